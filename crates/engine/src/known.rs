//! The names of plugins and actions that are built, for reading a configuration. Specification:
//! core.md 2.2, 2.3.

use vc_conf::Known;

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

/// What [`vc_conf::parse`] may accept without a warning.
pub const KNOWN: Known<'static> = Known { plugins: &PLUGINS, actions: vc_actions::NAMES };
