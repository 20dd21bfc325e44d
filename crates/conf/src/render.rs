//! What `vc-scheduler check` prints: what is in force, and every warning with its remedy.

use std::fmt::Write;

use crate::arguments::{Arguments, shown};
use crate::error::printable;
use crate::file::{Config, LoadedConfig, PluginOption};
use crate::missing::MissingKind;
use crate::settings::{
    ActionSettings, AllocateSettings, CACHE, GangSettings, HEAD_OF_LINE, PreemptSettings,
    ReclaimSettings, VICTIM_ORDER,
};
use crate::switches::SWITCHES;

/// Argument key of an action and its value.
type RenderedRow = (&'static str, String);

/// The configuration for an operator's eyes; ends with a line break.
pub fn render(loaded: &LoadedConfig) -> String {
    let config = &loaded.config;
    let mut out = String::new();
    actions(&mut out, config);
    tiers(&mut out, config);
    action_arguments(&mut out, config);
    metrics(&mut out, config);
    missing(&mut out, loaded);
    warnings(&mut out, loaded);
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
    let in_force = ActionSettings::from(config, &mut Vec::new());
    let defaults = ActionSettings::default();
    let mut configured: Vec<&str> = Vec::new();
    for action in &config.actions {
        if !configured.contains(&action.as_str()) && !rows(&defaults, action).is_empty() {
            configured.push(action);
        }
    }
    let none = if configured.is_empty() { " none" } else { "" };
    line(out, 0, &format!("arguments of the actions:{none}"));
    for action in configured {
        line(out, 2, action);
        let usual = rows(&defaults, action);
        for ((key, value), (_, default)) in rows(&in_force, action).iter().zip(&usual) {
            let mark = if value == default { " (default)" } else { "" };
            line(out, 4, &format!("{key}: {value}{mark}"));
        }
    }
}

fn metrics(out: &mut String, config: &Config) {
    if config.metrics.is_empty() {
        return;
    }
    line(out, 0, "metrics:");
    for (key, value) in &config.metrics {
        let hidden = key.ends_with("password") && !value.is_empty();
        line(out, 2, &format!("{key}: {}", if hidden { "(hidden)" } else { value.as_str() }));
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

fn rows(settings: &ActionSettings, action: &str) -> Vec<RenderedRow> {
    match action {
        "allocate" => allocate_rows(&settings.allocate),
        "backfill" => vec![flag(CACHE, settings.backfill.predicate_error_cache_enable)],
        "preempt" => preempt_rows(&settings.preempt),
        "reclaim" => reclaim_rows(&settings.reclaim),
        "gangpreempt" => gang_rows(&settings.gang_preempt),
        "gangreclaim" => gang_rows(&settings.gang_reclaim),
        _ => Vec::new(),
    }
}

fn flag(key: &'static str, value: bool) -> RenderedRow {
    (key, value.to_string())
}

fn number(key: &'static str, value: i64) -> RenderedRow {
    (key, value.to_string())
}

fn word<T: PartialEq>(key: &'static str, value: T, words: &[(&str, T)]) -> RenderedRow {
    let text = words.iter().find(|(_, known)| *known == value).map_or("", |(text, _)| text);
    (key, text.to_owned())
}

fn allocate_rows(settings: &AllocateSettings) -> Vec<RenderedRow> {
    vec![
        flag(CACHE, settings.predicate_error_cache_enable),
        flag("claimFirst", settings.claim_first),
        flag("gangRepairFirst", settings.gang_repair_first),
        word("headOfLine", settings.head_of_line, HEAD_OF_LINE),
    ]
}

fn preempt_rows(settings: &PreemptSettings) -> Vec<RenderedRow> {
    vec![
        flag(CACHE, settings.predicate_error_cache_enable),
        flag("enableTopologyAwarePreemption", settings.topology_aware),
        number("topologyAwarePreemptWorkerNum", settings.worker_num),
        number("minCandidateNodesPercentage", settings.min_candidate_nodes_percentage),
        number("minCandidateNodesAbsolute", settings.min_candidate_nodes_absolute),
        number("maxCandidateNodesAbsolute", settings.max_candidate_nodes_absolute),
        flag("trimVictims", settings.trim_victims),
        flag("trimStatement", settings.trim_statement),
        flag("explain", settings.explain),
    ]
}

fn reclaim_rows(settings: &ReclaimSettings) -> Vec<RenderedRow> {
    vec![
        flag(CACHE, settings.predicate_error_cache_enable),
        flag("trimVictims", settings.trim_victims),
        flag("trimStatement", settings.trim_statement),
        flag("explain", settings.explain),
        flag("reclaimBoundTasks", settings.reclaim_bound_tasks),
    ]
}

fn gang_rows(settings: &GangSettings) -> Vec<RenderedRow> {
    vec![
        flag(CACHE, settings.predicate_error_cache_enable),
        number("maxDomains", settings.max_domains),
        flag("allowWholeBundle", settings.allow_whole_bundle),
        flag("explain", settings.explain),
        flag("trimBoundaryBundle", settings.trim_boundary_bundle),
        word("victimOrderPolicy", settings.victim_order_policy, VICTIM_ORDER),
    ]
}
