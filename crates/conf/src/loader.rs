//! From the YAML tree to actions, tiers and arguments, with every warning (core.md 2.1-2.6, C-07).
//!
//! The file is used as Volcano would use it: unknown keys are ignored, of a duplicate key the last
//! one wins; here both are named.

mod entries;

use std::collections::{BTreeMap, BTreeSet};

use self::entries::MapEntry;
use crate::argument::{DeclaredArgument, keys_of, warn_unknown};
use crate::arguments::{Arguments, meant_bool};
use crate::error::{ConfError, Warning};
use crate::file::{ActionConfig, Config, PluginOption, Tier};
use crate::missing::{MissingEntry, MissingKind};
use crate::older;
use crate::registry::{ACTIONS, EntryFinding, KnownNames, PluginDeclaration, QueueRule};
use crate::spelling::{did_you_mean, nearest};
use crate::switches::{SWITCHES, Switches, switch_of};
use crate::tree::{YamlNode, YamlTree};
use crate::{advice, metrics, quota, settings};

/// Entries of `configurations` that are of no action: the parameters of MindCluster, which the plugin
/// deviceshare needs (plugins-nodes.md 16.10).
const PARAMETERS: &[&str] = &["init-params"];
const TOP_KEYS: &[&str] = &["actions", "tiers", "configurations", "metrics"];
const ACTIONS_HINT: &str = "name at least one, as in actions: \"enqueue, allocate, backfill\"";

pub(crate) struct Loader<'a> {
    file: &'a str,
    source: &'a str,
    known: &'a KnownNames<'a>,
    warnings: Vec<Warning>,
    missing: Vec<MissingEntry>,
    /// Where each plugin was listed first.
    plugins_seen: BTreeMap<String, String>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(file: &'a str, source: &'a str, known: &'a KnownNames<'a>) -> Self {
        let (warnings, missing) = (Vec::new(), Vec::new());
        Loader { file, source, known, warnings, missing, plugins_seen: BTreeMap::new() }
    }

    pub(crate) fn into_findings(self) -> (Vec<Warning>, Vec<MissingEntry>) {
        (self.warnings, self.missing)
    }

    pub(crate) fn config(&mut self, root: &YamlNode) -> Result<Config, ConfError> {
        let mut config = Config::default();
        let (mut has_actions, mut actions_line) = (false, None);
        for entry in self.entries(root, "")? {
            match entry.key.as_str() {
                "actions" => {
                    (has_actions, actions_line) = (true, entry.node.line());
                    config.actions = self.actions(&entry)?;
                }
                "tiers" => config.tiers = self.tiers(&entry)?,
                "configurations" => config.configurations = self.configurations(&entry)?,
                "metrics" => config.metrics = self.metrics(&entry)?,
                _ => self.unknown_key(&entry, TOP_KEYS),
            }
        }
        self.warnings.extend(advice::enqueue_voters(&config, self.known, actions_line));
        for action in config.actions.iter().collect::<BTreeSet<_>>() {
            let arguments = config.action_arguments(action);
            self.find_unbuilt(action, settings::arguments_of(action), &arguments);
        }
        match has_actions {
            true => Ok(config),
            false => {
                let problem = match root.tree {
                    YamlTree::Null => "failed to find Action : the file is empty",
                    _ => "failed to find Action : the file names no actions",
                };
                Err(self.error(None, "actions", problem, ACTIONS_HINT))
            }
        }
    }

    /// The comma-separated names; one that nobody knows makes the file invalid (core.md 2.2).
    fn actions(&mut self, entry: &MapEntry<'_>) -> Result<Vec<String>, ConfError> {
        let hint = "write one string with commas, as in actions: \"enqueue, allocate\"";
        let text = self.text(entry, hint)?;
        let line = entry.node.line();
        if text.trim().is_empty() {
            let problem = "failed to find Action : the list is empty";
            return Err(self.error(line, "actions", problem, ACTIONS_HINT));
        }
        let mut actions = Vec::new();
        for (at, name) in text.split(',').map(str::trim).enumerate() {
            if name.is_empty() {
                let problem = format!("failed to find Action : name {} is empty", at + 1);
                return Err(self.error(line, "actions", &problem, "remove the extra comma"));
            }
            actions.extend(self.action(name, line)?);
        }
        Ok(actions)
    }

    /// The canonical name, `None` for an action that this process lacks.
    fn action(&mut self, name: &str, line: Option<usize>) -> Result<Option<String>, ConfError> {
        let registered = self.known.all_actions();
        if !registered.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let problem = format!("failed to find Action {name}");
            let hint = did_you_mean(name, &registered);
            return Err(self.error(line, "actions", &problem, &hint));
        }
        let canonical = name.to_ascii_lowercase();
        if self.known.actions.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(Some(canonical));
        }
        self.missing.push(MissingEntry::not_built("action", &canonical, line, "actions"));
        Ok(None)
    }

    fn tiers(&mut self, entry: &MapEntry<'_>) -> Result<Vec<Tier>, ConfError> {
        self.plugins_seen.clear();
        let mut tiers = Vec::new();
        for (at, node) in self.items(entry)?.iter().enumerate() {
            tiers.push(self.tier(node, &format!("{}[{at}]", entry.field))?);
        }
        let checked = quota::check(&tiers, self.known, &mut self.warnings);
        checked
            .map_err(|(problem, hint)| self.error(entry.key_line, &entry.field, &problem, hint))?;
        self.check_entries(&tiers, entry)?;
        Ok(tiers)
    }

    /// Lets plugins judge their entries beside all others.
    fn check_entries(&mut self, tiers: &[Tier], entry: &MapEntry<'_>) -> Result<(), ConfError> {
        for plugin in tiers.iter().flat_map(|tier| &tier.plugins) {
            let Some(declared) = self.known.built(&plugin.name) else { continue };
            for finding in (declared.check_entry)(plugin, tiers) {
                let EntryFinding { key, problem, remedy, is_error } = finding;
                let (line, field) = match key {
                    "" => (None, entry.field.clone()),
                    key => (plugin.arguments.line(key), plugin.arguments.field_of(key)),
                };
                if is_error {
                    let line = line.or(entry.key_line);
                    return Err(self.error(line, &field, &problem, &remedy));
                }
                self.warnings.push(Warning::new(line, field, problem, remedy));
            }
        }
        Ok(())
    }

    fn tier(&mut self, node: &YamlNode, field: &str) -> Result<Tier, ConfError> {
        let mut plugins = Vec::new();
        for entry in self.entries(node, field)? {
            match entry.key.as_str() {
                "plugins" => plugins = self.plugins(&entry)?,
                _ => self.unknown_key(&entry, &["plugins"]),
            }
        }
        Ok(Tier { plugins })
    }

    /// The plugins of a tier that this process can run.
    fn plugins(&mut self, entry: &MapEntry<'_>) -> Result<Vec<PluginOption>, ConfError> {
        let mut plugins = Vec::new();
        for (at, node) in self.items(entry)?.iter().enumerate() {
            plugins.push(self.plugin(node, &format!("{}[{at}]", entry.field))?);
        }
        quota::check_tier(&plugins, self.known)
            .map_err(|(problem, hint)| self.error(entry.key_line, &entry.field, &problem, hint))?;
        plugins.retain(|plugin| self.known.built(&plugin.name).is_some());
        Ok(plugins)
    }

    fn plugin(&mut self, node: &YamlNode, field: &str) -> Result<PluginOption, ConfError> {
        let mut plugin = PluginOption::default();
        let mut unknown = Vec::new();
        let mut line = node.line();
        for entry in self.entries(node, field)? {
            match entry.key.as_str() {
                "name" => {
                    line = entry.key_line;
                    plugin.name = self.text(&entry, "write the plugin's name")?;
                }
                "arguments" => plugin.arguments = self.arguments(&entry)?,
                key if switch_of(key).is_some() => {
                    plugin.switches = self.switch(plugin.switches, &entry)?;
                }
                _ => unknown.push(entry),
            }
        }
        for entry in unknown {
            self.unknown_plugin_key(&plugin.name, &entry);
        }
        self.check_name(&plugin.name, field, line);
        self.check_arguments(&plugin)?;
        Ok(plugin)
    }

    fn switch(&self, switches: Switches, entry: &MapEntry<'_>) -> Result<Switches, ConfError> {
        let key = &entry.key;
        match (&entry.node.tree, switch_of(key)) {
            (YamlTree::Bool(on), Some(switch)) => Ok(switches.with(switch, *on)),
            (YamlTree::Null, _) => Ok(switches),
            (tree, _) => {
                let problem = format!("expected true or false, found {}", entry.node.kind());
                let hint = match tree {
                    YamlTree::Text(text) => match meant_bool(text) {
                        Some(on) => format!("write {key}: {on} without quotes"),
                        None => format!("write {key}: true or {key}: false without quotes"),
                    },
                    _ => format!("write {key}: true or {key}: false"),
                };
                Err(self.error(entry.node.line(), &entry.field, &problem, &hint))
            }
        }
    }

    /// Warns of plugins that limit the same queues, each by its own figures
    /// (plugins-jobs-queues.md 17).
    fn check_queue_plugins(&mut self, name: &str, field: &str, line: Option<usize>) {
        let has_quota = |name: &str| {
            self.known.declared(name).is_some_and(|it| it.queue_rule == QueueRule::Quota)
        };
        let others = self.plugins_seen.keys().filter(|other| *other != name && has_quota(other));
        for other in others.filter(|_| has_quota(name)) {
            let message = format!("{name} beside {other}: queues have to stay within both");
            let remedy = format!("keep one of them, {name} or {other}");
            self.warnings.push(Warning::new(line, field, message, remedy));
        }
    }

    /// Warns of a plugin that cannot run, and of one that is listed again (core.md 2.3, C-07).
    fn check_name(&mut self, name: &str, field: &str, line: Option<usize>) {
        if name.is_empty() {
            let message = "plugin without a name, it is skipped";
            let remedy = "add the key name, or remove the entry";
            self.warnings.push(Warning::new(line, field, message, remedy));
            return;
        }
        if self.known.built(name).is_none() {
            let missing = match self.known.declared(name).is_some() {
                true => MissingEntry::not_built("plugin", name, line, field),
                false => MissingEntry::unknown(name, line, field, &self.suggestion(name)),
            };
            self.missing.push(missing);
        }
        let place = match line {
            Some(line) => format!("{field}, line {line}"),
            None => field.to_owned(),
        };
        let Some(first) = self.plugins_seen.get(name) else {
            self.plugins_seen.insert(name.to_owned(), place);
            self.check_queue_plugins(name, field, line);
            return;
        };
        let message = format!("plugin {name} is listed before, at {first}");
        let remedy = "keep one of them: at both places the later one's rules are called";
        self.warnings.push(Warning::new(line, field, message, remedy));
    }

    /// What an unknown plugin was probably meant to be. The list of all of them is given once.
    fn suggestion(&self, name: &str) -> String {
        let unknown = |entry: &&MissingEntry| entry.kind == MissingKind::Unknown;
        match nearest(name, self.known.all_plugins()) {
            Some(near) => format!("did you mean {near}?"),
            None if self.missing.iter().any(|entry| unknown(&entry)) => {
                "remove it, or correct its name.".to_owned()
            }
            None => {
                let names: Vec<&str> = self.known.plugins.iter().map(|known| known.name).collect();
                format!("known are: {}.", names.join(", "))
            }
        }
    }

    /// Checks the arguments of a plugin against its declaration (C-07, C-09, C-40).
    fn check_arguments(&mut self, plugin: &PluginOption) -> Result<(), ConfError> {
        let PluginOption { name, arguments, .. } = plugin;
        let Some(declared) = self.known.declared(name) else { return Ok(()) };
        let moved = |key: &str| declared.moved_argument(key);
        warn_unknown(name, &keys_of(declared.arguments), moved, arguments, &mut self.warnings);
        if self.known.built(name).is_some() {
            self.find_unbuilt(name, declared.arguments, arguments);
        }
        for argument in declared.arguments {
            argument.check(name, arguments, &mut self.warnings).map_err(|wrong| {
                let page = || format!("see the arguments of {name} in docs/configuration.md");
                let hint = wrong.hint.unwrap_or_else(page);
                self.error(arguments.line(argument.key()), &wrong.field, &wrong.problem, &hint)
            })?;
        }
        self.check_exclusive(declared, arguments)
    }

    /// Refuses arguments of which only one can be true.
    fn check_exclusive(
        &self,
        declared: &PluginDeclaration,
        arguments: &Arguments,
    ) -> Result<(), ConfError> {
        let is_on = |key: &str| {
            let argument = declared.arguments.iter().find(|argument| argument.key() == key);
            argument.is_some_and(|argument| argument.in_force(arguments) == true)
        };
        let mut pairs = declared.exclusive_arguments.iter();
        match pairs.find(|(one, other, _)| is_on(one) && is_on(other)) {
            None => Ok(()),
            Some((one, other, problem)) => {
                let (line, field) = (arguments.line(other), arguments.field_of(other));
                let hint = format!("set {one} or {other} to false");
                Err(self.error(line, &field, problem, &hint))
            }
        }
    }

    /// Finds the arguments that switch on what is not built.
    fn find_unbuilt(
        &mut self,
        owner: &str,
        declared: &[&dyn DeclaredArgument],
        arguments: &Arguments,
    ) {
        self.missing.extend(declared.iter().filter_map(|one| one.unbuilt(owner, arguments)));
    }

    fn configurations(&mut self, entry: &MapEntry<'_>) -> Result<Vec<ActionConfig>, ConfError> {
        let mut configurations: Vec<ActionConfig> = Vec::new();
        for (at, node) in self.items(entry)?.iter().enumerate() {
            let field = format!("{}[{at}]", entry.field);
            let (line, config) = self.action_config(node, &field)?;
            let same = |other: &ActionConfig| other.name.eq_ignore_ascii_case(&config.name);
            let repeated = configurations.iter().any(same);
            self.check_action_config(&config, repeated, &field, line);
            configurations.push(config);
        }
        Ok(configurations)
    }

    fn action_config(
        &mut self,
        node: &YamlNode,
        field: &str,
    ) -> Result<(Option<usize>, ActionConfig), ConfError> {
        let mut config = ActionConfig::default();
        let mut line = node.line();
        for entry in self.entries(node, field)? {
            match entry.key.as_str() {
                "name" => {
                    line = entry.key_line;
                    config.name = self.text(&entry, "write the action's name")?;
                }
                "arguments" => config.arguments = self.arguments(&entry)?,
                _ => self.unknown_key(&entry, &["name", "arguments"]),
            }
        }
        Ok((line, config))
    }

    fn check_action_config(
        &mut self,
        config: &ActionConfig,
        repeated: bool,
        field: &str,
        line: Option<usize>,
    ) {
        let name = &config.name;
        if PARAMETERS.contains(&name.as_str()) {
            return;
        }
        let registered = self.known.all_actions();
        if !registered.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            let message = format!("unknown action {name}, the entry is ignored");
            let remedy = did_you_mean(name, &registered);
            self.warnings.push(Warning::new(line, field, message, remedy));
        } else if repeated {
            let message = format!("second entry for action {name}, it is ignored");
            let remedy = "the first one counts: merge the two";
            self.warnings.push(Warning::new(line, field, message, remedy));
        } else if let Some(action) = ACTIONS.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            let keys = keys_of(settings::arguments_of(action));
            warn_unknown(action, &keys, |_| None, &config.arguments, &mut self.warnings);
        }
    }

    fn metrics(&mut self, entry: &MapEntry<'_>) -> Result<BTreeMap<String, String>, ConfError> {
        let mut values = BTreeMap::new();
        for value in self.entries(entry.node, &entry.field)? {
            if !metrics::KEYS.contains(&value.key.as_str()) {
                self.unknown_key(&value, metrics::KEYS);
            }
            let text = self.text(&value, &metrics::remedy_for(&value.key))?;
            values.insert(value.key, text);
        }
        metrics::check(&values, entry.key_line, &mut self.warnings);
        Ok(values)
    }

    /// Beside the switches, an argument that stands one level too high is a likely mistake.
    fn unknown_plugin_key(&mut self, plugin: &str, entry: &MapEntry<'_>) {
        let switches = SWITCHES.iter().map(|(key, _, _)| *key);
        let known: Vec<&str> = ["name", "arguments"].into_iter().chain(switches).collect();
        let key = entry.key.as_str();
        let value = match entry.node.tree {
            YamlTree::Bool(value) => Some(value),
            _ => None,
        };
        let renamed = older::renamed_switch(key, value);
        let has_key = |plugin: &PluginDeclaration| keys_of(plugin.arguments).contains(&key);
        let remedy = match nearest(key, known.iter().copied()) {
            _ if renamed.is_some() => renamed.unwrap_or_default(),
            _ if self.known.declared(plugin).is_some_and(has_key) => {
                format!("move it under arguments of {plugin}")
            }
            Some(near) => format!("did you mean {near}?"),
            None => "known are name, arguments and the switches of docs/configuration.md".into(),
        };
        let message = format!("unknown key {key}, it is ignored");
        self.warnings.push(Warning::new(entry.key_line, &entry.field, message, remedy));
    }
}
