//! Plugins of Volcano that are not built: their arguments are known, so that spelling and shape are
//! checked. A plugin that is built takes its arguments along into its own file.
//! Specification: core.md 2.3 (C-40), plugins-nodes.md, plugins-jobs-queues.md.

use vc_conf::{Argument, DeclaredArgument, PluginDeclaration};

/// The plugins of Volcano that this version lacks, by name.
pub const NOT_BUILT: &[PluginDeclaration] = &[
    plugin("numa-aware", &[&argument("weight", 1, "weight of the score")]),
    plugin("task-topology", &[&argument("task-topology.weight", 1, "weight of the score")]),
];

type Arguments = &'static [&'static dyn DeclaredArgument];

const fn plugin(name: &'static str, arguments: Arguments) -> PluginDeclaration {
    PluginDeclaration { arguments, ..PluginDeclaration::new(name) }
}

const fn argument<T: Copy>(key: &'static str, default: T, about: &'static str) -> Argument<T> {
    Argument::new(key, default, about)
}
