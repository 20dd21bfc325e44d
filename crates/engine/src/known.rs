//! The names of the plugins and actions that are built, for reading a configuration, and the caches
//! that plugins switch off. Specification: core.md 2.2, 2.3.

use vc_conf::{Config, KnownNames};
use vc_framework::CacheOff;

const N_PLUGINS: usize = vc_plugins::ALL.len();

static PLUGINS: [&str; N_PLUGINS] = {
    let mut names = [""; N_PLUGINS];
    let mut index = 0;
    while index < N_PLUGINS {
        names[index] = vc_plugins::ALL[index].name;
        index += 1;
    }
    names
};

/// Names that [`vc_conf::parse`] accepts without a warning.
pub const KNOWN: KnownNames<'static> = KnownNames { plugins: &PLUGINS, actions: vc_actions::NAMES };

/// Returns the caches that plugins of the configuration switch off, with the cost of that.
pub fn caches_off(config: &Config) -> Vec<CacheOff> {
    vc_framework::caches_off(config, vc_plugins::ALL)
}
