//! What the plugins and actions that are built declare, for reading a configuration, and the caches
//! that plugins switch off. Specification: core.md 2.2, 2.3.

use vc_conf::{Config, KnownNames, PluginDeclaration};
use vc_framework::CacheOff;

const N_PLUGINS: usize = vc_plugins::ALL.len();

static PLUGINS: [PluginDeclaration; N_PLUGINS] = {
    let mut declarations = [PluginDeclaration::new(""); N_PLUGINS];
    let mut index = 0;
    while index < N_PLUGINS {
        declarations[index] = vc_plugins::ALL[index].declaration;
        index += 1;
    }
    declarations
};

/// What [`vc_conf::parse`] accepts without a warning.
pub const KNOWN: KnownNames<'static> =
    KnownNames { plugins: &PLUGINS, not_built: vc_plugins::NOT_BUILT, actions: vc_actions::NAMES };

/// Returns the caches that plugins of the configuration switch off, with the cost of that.
pub fn caches_off(config: &Config) -> Vec<CacheOff> {
    vc_framework::caches_off(config, vc_plugins::ALL)
}
