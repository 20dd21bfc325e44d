//! Plugins of Volcano that are not built. A configuration that names one is refused, and its
//! arguments are checked all the same. Specification: core.md 2.3 (C-40).

use vc_conf::PluginDeclaration;

/// The plugins of Volcano that this version lacks, with their arguments. All are built.
pub const NOT_BUILT: &[PluginDeclaration] = &[];
