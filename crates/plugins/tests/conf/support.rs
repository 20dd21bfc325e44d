//! Declarations of plugins for the tests of the loader.

use vc_conf::{ACTIONS, KnownNames, LoadedConfig, PluginDeclaration, parse};
use vc_plugins::{ALL, NOT_BUILT};

/// Every declared plugin, by name.
pub(crate) fn declarations() -> Vec<PluginDeclaration> {
    let built = ALL.iter().map(|entry| entry.declaration);
    let mut declarations: Vec<PluginDeclaration> = built.chain(NOT_BUILT.iter().copied()).collect();
    declarations.sort_by_key(|plugin| plugin.name);
    declarations
}

/// All plugins and actions, as if all were built.
pub(crate) fn all() -> KnownNames<'static> {
    KnownNames { plugins: declarations().leak(), not_built: &[], actions: ACTIONS }
}

/// The plugins of these names, in their order, as if no others were built. A name that is not
/// declared is a plugin of an embedding binary with one argument.
pub(crate) fn known(
    names: &[&'static str],
    actions: &'static [&'static str],
) -> KnownNames<'static> {
    let declarations = declarations();
    let declared = |name: &&'static str| {
        let found = declarations.iter().find(|plugin| plugin.name == *name);
        let foreign = PluginDeclaration { arguments: FOREIGN, ..PluginDeclaration::new(name) };
        found.copied().unwrap_or(foreign)
    };
    let plugins: Vec<PluginDeclaration> = names.iter().map(declared).collect();
    let not_built = declarations.iter().copied().filter(|plugin| !names.contains(&plugin.name));
    let not_built: Vec<PluginDeclaration> = not_built.collect();
    KnownNames { plugins: plugins.leak(), not_built: not_built.leak(), actions }
}

const FOREIGN: &[&dyn vc_conf::DeclaredArgument] = &[&vc_conf::Argument::new("anything", 0, "")];

/// Loads one plugin with one argument, whose value is JSON, and all plugins built.
pub(crate) fn load_argument(plugin: &str, key: &str, value: &str) -> Result<LoadedConfig, String> {
    let text = format!(
        "actions: allocate\ntiers:\n- plugins:\n  - name: {plugin}\n    arguments: {{\"{key}\": {value}}}\n"
    );
    parse("x", &text, &all()).map_err(|error| format!("{}: {}", error.field, error.problem))
}
