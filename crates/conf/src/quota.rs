//! What cannot stand beside the plugin `cohort`, over all tiers, and values of its arguments that
//! make a file invalid. Specification: cohort.md B.1 (Q1).

use serde_json::Value;

use crate::arguments::{Arguments, shown};
use crate::error::Warning;
use crate::file::{PluginOption, Tier};
use crate::switches::Switch;

const COHORT: &str = "cohort";
const STRATEGIES: &str = "fairSharing.preemptionStrategies";
const FINAL: &str = "LessThanOrEqualToFinalShare";
const INITIAL: &str = "LessThanInitialShare";

/// Arguments that are one of a few words.
const WORDS: &[(&str, &[&str])] = &[
    ("withinClusterQueue", &["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
    ("reclaimWithinCohort", &["Never", "LowerPriority", "Any"]),
    ("borrowWithinCohort.policy", &["Never", "LowerPriority"]),
    ("rootQuota", &["Deserved", "Cluster"]),
];

/// Plugins whose permit in an earlier tier hides that the quota says no (B.5.1).
const HIDING: &[&str] = &["overcommit", "sla", "resourcequota", "extender"];

/// Why the file is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QuotaConflict {
    pub(crate) line: Option<usize>,
    pub(crate) field: String,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

/// Checks all tiers together.
pub(crate) fn check(tiers: &[Tier], warnings: &mut Vec<Warning>) -> Result<(), QuotaConflict> {
    let all = || tiers.iter().flat_map(|tier| &tier.plugins);
    let mut ours = all().filter(|plugin| plugin.name == COHORT);
    let Some(cohort) = ours.next() else { return Ok(()) };
    let conflict = |problem: String, hint: &str| {
        let (field, hint) = ("tiers".to_owned(), hint.to_owned());
        Err(QuotaConflict { line: None, field, problem, hint })
    };
    if ours.next().is_some() {
        let problem = format!("plugin \"{COHORT}\" is configured twice");
        return conflict(problem, "keep one of the two entries");
    }
    for other in all() {
        let (name, what) = match other.name.as_str() {
            name @ ("proportion" | "capacity") => (format!("\"{name}\""), "quota"),
            "drf" if other.switches.on(Switch::Hierarchy) => {
                ("\"drf\" (enableHierarchy)".to_owned(), "shares")
            }
            _ => continue,
        };
        let problem =
            format!("plugins \"{COHORT}\" and {name} both decide queue {what}; keep one of them");
        return conflict(problem, "remove one of the two");
    }
    check_arguments(cohort)?;
    warnings.extend(hidden(tiers, cohort));
    Ok(())
}

fn check_arguments(cohort: &PluginOption) -> Result<(), QuotaConflict> {
    let arguments = &cohort.arguments;
    let wrong = |key: &str, problem: String, hint: String| {
        Err(QuotaConflict {
            line: arguments.line(key),
            field: arguments.field_of(key),
            problem,
            hint,
        })
    };
    for (key, words) in WORDS {
        let Some(value) = arguments.get(key).filter(|value| !value.is_null()) else { continue };
        if value.as_str().is_none_or(|text| !words.contains(&text)) {
            let text = value.as_str().map_or_else(|| shown(value), str::to_owned);
            let words = words.join(", ");
            let problem =
                format!("plugin \"{COHORT}\": argument {key}: \"{text}\" is not one of {words}");
            return wrong(key, problem, format!("write one of {words}"));
        }
    }
    let Some(value) = arguments.get(STRATEGIES).filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let names = arguments.names(STRATEGIES);
    let known = |names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        [&[FINAL][..], &[INITIAL], &[FINAL, INITIAL]].contains(&&names[..])
    };
    match names {
        Some(names) if known(&names) => Ok(()),
        names => {
            let list =
                names.map_or_else(|| shown(value), |names| format!("[{}]", names.join(", ")));
            let problem = format!("plugin \"{COHORT}\": {STRATEGIES}: {list} is not supported");
            let hint = format!("write [{FINAL}], [{INITIAL}] or both in this order");
            wrong(STRATEGIES, problem, hint)
        }
    }
}

/// The reject of cohort at enqueue is not heard where an earlier tier permits.
fn hidden(tiers: &[Tier], cohort: &PluginOption) -> Vec<Warning> {
    let has_cohort = |tier: &Tier| tier.plugins.iter().any(|plugin| plugin.name == COHORT);
    let Some(place) = tiers.iter().position(has_cohort) else { return Vec::new() };
    let before = tiers[..place].iter().flat_map(|tier| &tier.plugins);
    let hiding = before.filter(|plugin| {
        HIDING.contains(&plugin.name.as_str()) && plugin.switches.on(Switch::JobEnqueued)
    });
    let warning = |plugin: &PluginOption| {
        let name = &plugin.name;
        let message =
            format!("{name} stands in an earlier tier: what it admits, cohort cannot hold back");
        let remedy = format!("list {name} in the tier of cohort");
        Warning::new(None, cohort.arguments.path(), message, remedy)
    };
    hiding.map(warning).collect()
}

impl Arguments {
    /// A list of strings, or one comma-separated string (plugins-jobs-queues.md D35); `None`: it is
    /// absent, or neither.
    pub fn names(&self, key: &str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::Array(items) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Value::String(text) => {
                let names = text.split(',').map(|name| name.trim().to_owned());
                Some(names.filter(|name| !name.is_empty()).collect())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{KnownNames, parse};

    const ALL: &[&str] = &["cohort", "capacity", "proportion", "drf", "sla", "gang"];

    fn load(tiers: &str) -> Result<usize, String> {
        let text = format!("actions: \"allocate\"\ntiers:\n{tiers}");
        let known = KnownNames { plugins: ALL, actions: &["allocate"] };
        let loaded = parse("x", &text, &known);
        loaded.map(|loaded| loaded.warnings.len()).map_err(|error| error.problem)
    }

    #[test]
    fn t6_conf_conflict_of_plugins() {
        let with =
            |other: &str| load(&format!("- plugins: [{{name: cohort}}]\n- plugins: [{other}]"));
        for other in ["proportion", "capacity"] {
            let expected = format!(
                "plugins \"cohort\" and \"{other}\" both decide queue quota; keep one of them"
            );
            assert_eq!(with(&format!("{{name: {other}}}")), Err(expected));
        }
        let drf = "plugins \"cohort\" and \"drf\" (enableHierarchy) both decide queue shares; \
            keep one of them";
        assert_eq!(with("{name: drf, enableHierarchy: true}"), Err(drf.to_owned()));
        assert_eq!(with("{name: drf}"), Ok(0));
        let twice = "plugin \"cohort\" is configured twice";
        assert_eq!(with("{name: cohort}"), Err(twice.to_owned()));
        let alone = "- plugins: [{name: proportion}, {name: drf, enableHierarchy: false}]";
        assert_eq!(load(alone), Ok(0));
    }

    #[test]
    fn t6_conf_conflict_of_arguments() {
        let with = |arguments: &str| {
            load(&format!("- plugins: [{{name: cohort, arguments: {{{arguments}}}}}]"))
        };
        let unknown = "plugin \"cohort\": argument withinClusterQueue: \"lower\" is not one of \
            Never, LowerPriority, LowerOrNewerEqualPriority";
        assert_eq!(with("withinClusterQueue: lower"), Err(unknown.to_owned()));
        let number = "plugin \"cohort\": argument reclaimWithinCohort: \"3\" is not one of \
            Never, LowerPriority, Any";
        assert_eq!(with("reclaimWithinCohort: 3"), Err(number.to_owned()));
        let list = "plugin \"cohort\": fairSharing.preemptionStrategies: \
            [LessThanInitialShare, LessThanOrEqualToFinalShare] is not supported";
        let key = "fairSharing.preemptionStrategies";
        let reversed = "[LessThanInitialShare, LessThanOrEqualToFinalShare]";
        assert_eq!(with(&format!("{key}: {reversed}")), Err(list.to_owned()));
        for good in [
            "[LessThanInitialShare]",
            "\"LessThanOrEqualToFinalShare, LessThanInitialShare\"",
            "LessThanOrEqualToFinalShare",
        ] {
            assert_eq!(with(&format!("{key}: {good}")), Ok(0), "{good}");
        }
    }

    #[test]
    fn a_plugin_that_hides_the_quota_is_named() {
        let tiers = "- plugins: [{name: sla}]\n- plugins: [{name: cohort}, {name: gang}]";
        assert_eq!(load(tiers), Ok(1));
        assert_eq!(load("- plugins: [{name: sla}, {name: cohort}]"), Ok(0));
    }
}
