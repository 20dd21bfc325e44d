//! What `vc-scheduler check` prints: what is in force, and every warning with its remedy.

use std::fmt::Write;

use crate::argument::DeclaredArgument;
use crate::arguments::{Arguments, shown};
use crate::error::printable;
use crate::file::{Config, LoadedConfig, PluginOption};
use crate::missing::MissingKind;
use crate::settings::{CACHE, arguments_of};
use crate::switches::SWITCHES;

/// The configuration for an operator's eyes, without secrets; ends with a line break.
pub fn render(loaded: &LoadedConfig) -> String {
    let mut out = render_config(&loaded.config.without_secrets());
    missing(&mut out, loaded);
    warnings(&mut out, loaded);
    out
}

/// What is in force; ends with a line break.
pub(crate) fn render_config(config: &Config) -> String {
    let mut out = String::new();
    actions(&mut out, config);
    tiers(&mut out, config);
    action_arguments(&mut out, config);
    metrics(&mut out, config);
    out
}

fn line(out: &mut String, indent: usize, text: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(out, "{:indent$}{}", "", printable(text));
}

fn actions(out: &mut String, config: &Config) {
    line(out, 0, "actions, in this order:");
    for action in &config.actions {
        line(out, 2, action);
    }
    if config.actions.is_empty() {
        line(out, 2, "none");
    }
}

fn tiers(out: &mut String, config: &Config) {
    for (at, tier) in config.tiers.iter().enumerate() {
        line(out, 0, &format!("tier {}:", at + 1));
        for option in &tier.plugins {
            plugin(out, option);
        }
        if tier.plugins.is_empty() {
            line(out, 2, "no plugins");
        }
    }
    if config.tiers.is_empty() {
        line(out, 0, "tiers: none, no plugin is in force");
    }
}

/// The plugin, the switches that the file sets, and the arguments.
fn plugin(out: &mut String, option: &PluginOption) {
    line(out, 2, &option.name);
    for (key, switch, default) in SWITCHES {
        let on = option.switches.on(*switch);
        if option.switches.is_written(*switch) || on != *default {
            line(out, 4, &format!("{key}: {on}"));
        }
    }
    arguments(out, &option.arguments);
}

fn arguments(out: &mut String, arguments: &Arguments) {
    for (key, value) in arguments.iter() {
        line(out, 4, &format!("argument {key}: {}", shown(value)));
    }
}

/// Every argument of the configured actions, those that differ from the default marked.
fn action_arguments(out: &mut String, config: &Config) {
    let mut configured: Vec<&str> = Vec::new();
    for action in &config.actions {
        if !configured.contains(&action.as_str()) && !arguments_of(action).is_empty() {
            configured.push(action);
        }
    }
    let none = if configured.is_empty() { " none" } else { "" };
    line(out, 0, &format!("arguments of the actions:{none}"));
    for action in configured {
        line(out, 2, action);
        // The gang actions have no cache argument of their own.
        if action.starts_with("gang") {
            action_argument(out, &CACHE, &config.action_arguments("allocate"));
        }
        for argument in arguments_of(action) {
            action_argument(out, *argument, &config.action_arguments(action));
        }
    }
}

fn action_argument(out: &mut String, argument: &dyn DeclaredArgument, from: &Arguments) {
    let value = argument.in_force(from);
    let is_default = value == argument.in_force(&Arguments::default());
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mark = if is_default { " (default)" } else { "" };
    line(out, 4, &format!("{}: {text}{mark}", argument.key()));
}

fn metrics(out: &mut String, config: &Config) {
    if config.metrics.is_empty() {
        return;
    }
    line(out, 0, "metrics:");
    for (key, value) in &config.metrics {
        line(out, 2, &format!("{key}: {value}"));
    }
}

/// What the file names and nobody has allowed to be missing.
fn missing(out: &mut String, loaded: &LoadedConfig) {
    let refused = loaded.missing.iter().any(|entry| entry.kind == MissingKind::NotBuilt);
    let so = if refused { ", the file is refused" } else { "" };
    match loaded.missing.len() {
        0 => return,
        1 => line(out, 0, &format!("1 error{so}:")),
        n => line(out, 0, &format!("{n} errors{so}:")),
    }
    for entry in &loaded.missing {
        let place = entry.line.map_or(String::new(), |number| format!("line {number}: "));
        line(out, 2, &format!("{place}{}: {}", entry.field, entry.problem));
        line(out, 4, &format!("hint: {}", entry.remedy));
    }
}

fn warnings(out: &mut String, loaded: &LoadedConfig) {
    match loaded.warnings.len() {
        0 => return line(out, 0, "no warnings"),
        1 => line(out, 0, "1 warning:"),
        n => line(out, 0, &format!("{n} warnings:")),
    }
    for warning in &loaded.warnings {
        for text in warning.to_string().lines() {
            line(out, if text.starts_with("hint: ") { 4 } else { 2 }, text);
        }
    }
}
