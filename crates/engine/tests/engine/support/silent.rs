//! A plugin of which nothing is known but that it filters.

use std::sync::OnceLock;

use vc_engine::EngineOptions;
use vc_framework::{Plugin, PluginEntry, Points};

/// Has nothing against any node, and says nothing about what it reads: it has to be asked every time.
struct Silent;

impl Plugin for Silent {
    fn points(&self) -> Points {
        Points::PREDICATE
    }
}

/// The plugins that are built, and the silent one, which configurations call `scorer`.
pub(crate) fn beside_silent() -> EngineOptions {
    static PLUGINS: OnceLock<Vec<PluginEntry>> = OnceLock::new();
    let silent = PluginEntry::new("scorer", |_, _| Box::new(Silent));
    let plugins = PLUGINS.get_or_init(|| [vc_plugins::ALL, &[silent]].concat());
    EngineOptions { plugins, ..EngineOptions::default() }
}
