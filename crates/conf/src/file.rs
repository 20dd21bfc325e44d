//! A configuration file as the rest of the scheduler sees it (core.md 2.1, 2.6).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::error::{ConfError, Warning};
use crate::loader::Loader;
use crate::missing::MissingEntry;
use crate::registry::KnownNames;
use crate::settings::ActionSettings;
use crate::switches::Switches;
use crate::{syntax, tree};

/// What is in force. Entries that this process cannot run are left out; the warnings name them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Lower-case names in the order of execution; a name may repeat (actions.md 1.1).
    pub actions: Vec<String>,
    /// Plugins by tier, both in the order of the file.
    pub tiers: Vec<Tier>,
    /// Arguments of actions, in the order of the file.
    pub configurations: Vec<ActionConfig>,
    /// The source of node load for the `usage` plugin (core.md 2.5).
    pub metrics: BTreeMap<String, String>,
}

/// Plugins that decide together, before those of later tiers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// In the order of the file; a name may repeat (core.md 2.3).
    pub plugins: Vec<PluginOption>,
}

/// A plugin as a tier lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PluginOption {
    pub name: String,
    pub switches: Switches,
    pub arguments: Arguments,
}

/// An entry of `configurations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionConfig {
    /// As written; compared without regard to case (A1).
    pub name: String,
    pub arguments: Arguments,
}

/// A usable file.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    pub config: Config,
    /// By line; those without a place come last.
    pub warnings: Vec<Warning>,
    /// What the file names and this process lacks, by line. Whoever puts a file in force decides with
    /// [`LoadedConfig::admit`] whether it may be.
    pub missing: Vec<MissingEntry>,
}

impl LoadedConfig {
    /// Adds warnings of others who have read the configuration; the order of lines is kept.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        self.warnings.extend(warnings);
        self.warnings.sort_by_key(|warning| warning.line.unwrap_or(usize::MAX));
    }
}

impl Config {
    /// The arguments of an action: those of the first entry with its name, else none.
    pub fn action_arguments(&self, action: &str) -> Arguments {
        let mut entries = self.configurations.iter();
        let first = entries.find(|entry| entry.name.eq_ignore_ascii_case(action));
        first.map(|entry| entry.arguments.clone()).unwrap_or_default()
    }
}

/// Reads a configuration file. `file_name` only appears in errors.
///
/// # Errors
///
/// YAML that cannot be read, a value of the wrong type, an unknown action or none at all, a
/// structured argument of the wrong shape (C-09), `proportion` beside hierarchical `drf`.
pub fn parse(
    file_name: &str,
    text: &str,
    known: &KnownNames<'_>,
) -> Result<LoadedConfig, ConfError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::load(text).map_err(|error| syntax::explain(file_name, &error))?;
    let mut loader = Loader::new(file_name, text, known);
    let config = loader.config(&root)?;
    let (mut warnings, mut missing) = loader.into_findings();
    ActionSettings::from(&config, &mut warnings);
    missing.sort_by_key(|entry| entry.line.unwrap_or(usize::MAX));
    let mut loaded = LoadedConfig { config, warnings: Vec::new(), missing };
    loaded.warn(warnings);
    Ok(loaded)
}
