//! The typed arguments of the actions (actions.md 1.2, A2, A3; core.md 2.4, C-08).
//!
//! Every call starts from the defaults, so an argument that a later file no longer sets is reset.

use serde_json::Value;

use crate::arguments::Arguments;
use crate::error::Warning;
use crate::file::Config;

/// The arguments of every action that has some.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ActionSettings {
    pub allocate: AllocateSettings,
    pub backfill: BackfillSettings,
    pub preempt: PreemptSettings,
    pub reclaim: ReclaimSettings,
    pub gang_preempt: GangSettings,
    pub gang_reclaim: GangSettings,
}

/// Arguments of `allocate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocateSettings {
    /// Reuse filter failures among tasks of one role (2.6).
    pub predicate_error_cache_enable: bool,
    /// Jobs for which pods were evicted are placed first (4.1).
    pub claim_first: bool,
    /// Partially running gangs before fresh ones (4.11).
    pub gang_repair_first: bool,
    pub head_of_line: HeadOfLine,
}

/// Whether a job that found no room keeps later ones of its queue from overtaking it (4.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HeadOfLine {
    #[default]
    Off,
    /// The later jobs of the queue wait for the next cycle.
    Queue,
}

/// Arguments of `backfill`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillSettings {
    pub predicate_error_cache_enable: bool,
}

/// Arguments of `preempt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptSettings {
    pub predicate_error_cache_enable: bool,
    /// Dry-run preemption (6.7) instead of normal preemption (6.6).
    pub topology_aware: bool,
    /// At least 1; never changes a result.
    pub worker_num: i64,
    /// Percent of the nodes, at least 0.
    pub min_candidate_nodes_percentage: i64,
    /// Nodes, at least 1.
    pub min_candidate_nodes_absolute: i64,
    /// Nodes, at least 1.
    pub max_candidate_nodes_absolute: i64,
    /// Drop victims that turn out not to be needed (6.6 step 7).
    pub trim_victims: bool,
    /// Also those that victims of a later member of the gang make needless.
    pub trim_statement: bool,
    /// One diagnostic per starving job without success (10.6).
    pub explain: bool,
}

/// Arguments of `reclaim`; those it shares with `preempt` mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimSettings {
    pub predicate_error_cache_enable: bool,
    pub trim_victims: bool,
    pub trim_statement: bool,
    pub explain: bool,
    /// Also consider bound but not yet running pods (7.4).
    pub reclaim_bound_tasks: bool,
}

/// For `gangpreempt` and `gangreclaim`, each with its own values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangSettings {
    /// That of `allocate`: the gang actions have none of their own.
    pub predicate_error_cache_enable: bool,
    /// HyperNode domains tried per starving job, at least 1.
    pub max_domains: i64,
    /// May the core of a victim gang be evicted.
    pub allow_whole_bundle: bool,
    pub explain: bool,
    /// Take no more of the last bundle than needed (9.5).
    pub trim_boundary_bundle: bool,
    pub victim_order_policy: VictimOrderPolicy,
}

/// What decides first between victim bundles (9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum VictimOrderPolicy {
    #[default]
    SafeFirst,
    PriorityFirst,
}

impl Default for AllocateSettings {
    fn default() -> Self {
        AllocateSettings {
            predicate_error_cache_enable: true,
            claim_first: true,
            gang_repair_first: false,
            head_of_line: HeadOfLine::Off,
        }
    }
}

impl Default for BackfillSettings {
    fn default() -> Self {
        BackfillSettings { predicate_error_cache_enable: true }
    }
}

impl Default for PreemptSettings {
    fn default() -> Self {
        PreemptSettings {
            predicate_error_cache_enable: true,
            topology_aware: false,
            worker_num: 16,
            min_candidate_nodes_percentage: 10,
            min_candidate_nodes_absolute: 1,
            max_candidate_nodes_absolute: 100,
            trim_victims: true,
            trim_statement: false,
            explain: true,
        }
    }
}

impl Default for ReclaimSettings {
    fn default() -> Self {
        ReclaimSettings {
            predicate_error_cache_enable: true,
            trim_victims: true,
            trim_statement: false,
            explain: true,
            reclaim_bound_tasks: false,
        }
    }
}

impl Default for GangSettings {
    fn default() -> Self {
        GangSettings {
            predicate_error_cache_enable: true,
            max_domains: 8,
            allow_whole_bundle: true,
            explain: true,
            trim_boundary_bundle: true,
            victim_order_policy: VictimOrderPolicy::SafeFirst,
        }
    }
}

pub(crate) const CACHE: &str = "predicateErrorCacheEnable";
/// The name in two of the requirement documents; Volcano's own wins when both are present.
const CACHE_ALIAS: &str = "enablePredicateErrorCache";
pub(crate) const HEAD_OF_LINE: &[(&str, HeadOfLine)] =
    &[("off", HeadOfLine::Off), ("queue", HeadOfLine::Queue)];
pub(crate) const VICTIM_ORDER: &[(&str, VictimOrderPolicy)] = &[
    ("safe-first", VictimOrderPolicy::SafeFirst),
    ("priority-first", VictimOrderPolicy::PriorityFirst),
];

/// The argument keys of each registered action; one that is not listed takes none.
const KEYS: &[(&str, &[&str])] = &[
    ("allocate", &[CACHE, CACHE_ALIAS, "claimFirst", "gangRepairFirst", "headOfLine"]),
    ("backfill", &[CACHE, CACHE_ALIAS]),
    (
        "preempt",
        &[
            CACHE,
            CACHE_ALIAS,
            "enableTopologyAwarePreemption",
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
            "trimVictims",
            "trimStatement",
            "explain",
        ],
    ),
    (
        "reclaim",
        &[CACHE, CACHE_ALIAS, "trimVictims", "trimStatement", "explain", "reclaimBoundTasks"],
    ),
    ("gangpreempt", GANG_KEYS),
    ("gangreclaim", GANG_KEYS),
];
const GANG_KEYS: &[&str] =
    &["maxDomains", "allowWholeBundle", "explain", "trimBoundaryBundle", "victimOrderPolicy"];

/// The argument keys of a registered action.
pub(crate) fn keys_of(action: &str) -> &'static [&'static str] {
    KEYS.iter().find(|(name, _)| *name == action).map_or(&[], |(_, keys)| keys)
}

impl ActionSettings {
    /// Reads the arguments of every action. [`crate::parse`] already reports these warnings; a
    /// caller that reads the settings again may drop them.
    pub fn from(config: &Config, warnings: &mut Vec<Warning>) -> ActionSettings {
        let allocate = read_allocate(&mut ArgumentReader::new(config, "allocate", warnings));
        let cache = allocate.predicate_error_cache_enable;
        ActionSettings {
            allocate,
            backfill: read_backfill(&mut ArgumentReader::new(config, "backfill", warnings)),
            preempt: read_preempt(&mut ArgumentReader::new(config, "preempt", warnings)),
            reclaim: read_reclaim(&mut ArgumentReader::new(config, "reclaim", warnings)),
            gang_preempt: read_gang(
                &mut ArgumentReader::new(config, "gangpreempt", warnings),
                cache,
            ),
            gang_reclaim: read_gang(
                &mut ArgumentReader::new(config, "gangreclaim", warnings),
                cache,
            ),
        }
    }
}

/// Reads the arguments of one action.
struct ArgumentReader<'w> {
    arguments: Arguments,
    warnings: &'w mut Vec<Warning>,
}

impl<'w> ArgumentReader<'w> {
    fn new(config: &Config, action: &str, warnings: &'w mut Vec<Warning>) -> Self {
        ArgumentReader { arguments: config.action_arguments(action), warnings }
    }

    fn bool(&mut self, key: &str, default: bool) -> bool {
        self.arguments.bool(key, default, self.warnings)
    }

    fn cache(&mut self) -> bool {
        let alias = self.bool(CACHE_ALIAS, true);
        self.bool(CACHE, alias)
    }

    /// A value below `least` gives the default and a warning (A3).
    fn at_least(&mut self, key: &str, least: i64, default: i64) -> i64 {
        let value = self.arguments.int_lenient(key, default, self.warnings);
        if least <= value {
            return value;
        }
        let message = format!("{value} is less than {least}");
        let remedy = format!("write {least} or more; until then the default {default} is in force");
        self.warnings.push(self.arguments.warning(key, &message, &remedy));
        default
    }

    /// A plain `off` is the boolean false in YAML 1.1 and means the word all the same.
    fn head_of_line(&mut self) -> HeadOfLine {
        const KEY: &str = "headOfLine";
        match self.arguments.get(KEY) {
            Some(Value::Bool(false)) => HeadOfLine::Off,
            _ => self.word(KEY, HEAD_OF_LINE),
        }
    }

    /// One of a few words; the first is the default.
    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> T {
        let (default, first) = words[0];
        let text = self.arguments.string(key, default, self.warnings);
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("unknown value {text}");
        let remedy = format!("write one of {}; until then {default} is in force", known.join(", "));
        self.warnings.push(self.arguments.warning(key, &message, &remedy));
        first
    }
}

fn read_allocate(reader: &mut ArgumentReader<'_>) -> AllocateSettings {
    let default = AllocateSettings::default();
    AllocateSettings {
        predicate_error_cache_enable: reader.cache(),
        claim_first: reader.bool("claimFirst", default.claim_first),
        gang_repair_first: reader.bool("gangRepairFirst", default.gang_repair_first),
        head_of_line: reader.head_of_line(),
    }
}

fn read_backfill(reader: &mut ArgumentReader<'_>) -> BackfillSettings {
    BackfillSettings { predicate_error_cache_enable: reader.cache() }
}

fn read_preempt(reader: &mut ArgumentReader<'_>) -> PreemptSettings {
    let default = PreemptSettings::default();
    let (percentage, least, most) = (
        default.min_candidate_nodes_percentage,
        default.min_candidate_nodes_absolute,
        default.max_candidate_nodes_absolute,
    );
    PreemptSettings {
        predicate_error_cache_enable: reader.cache(),
        topology_aware: reader.bool("enableTopologyAwarePreemption", default.topology_aware),
        worker_num: reader.at_least("topologyAwarePreemptWorkerNum", 1, default.worker_num),
        min_candidate_nodes_percentage: reader.at_least(
            "minCandidateNodesPercentage",
            0,
            percentage,
        ),
        min_candidate_nodes_absolute: reader.at_least("minCandidateNodesAbsolute", 1, least),
        max_candidate_nodes_absolute: reader.at_least("maxCandidateNodesAbsolute", 1, most),
        trim_victims: reader.bool("trimVictims", default.trim_victims),
        trim_statement: reader.bool("trimStatement", default.trim_statement),
        explain: reader.bool("explain", default.explain),
    }
}

fn read_reclaim(reader: &mut ArgumentReader<'_>) -> ReclaimSettings {
    let default = ReclaimSettings::default();
    ReclaimSettings {
        predicate_error_cache_enable: reader.cache(),
        trim_victims: reader.bool("trimVictims", default.trim_victims),
        trim_statement: reader.bool("trimStatement", default.trim_statement),
        explain: reader.bool("explain", default.explain),
        reclaim_bound_tasks: reader.bool("reclaimBoundTasks", default.reclaim_bound_tasks),
    }
}

fn read_gang(reader: &mut ArgumentReader<'_>, cache_of_allocate: bool) -> GangSettings {
    let default = GangSettings::default();
    GangSettings {
        predicate_error_cache_enable: cache_of_allocate,
        max_domains: reader.at_least("maxDomains", 1, default.max_domains),
        allow_whole_bundle: reader.bool("allowWholeBundle", default.allow_whole_bundle),
        explain: reader.bool("explain", default.explain),
        trim_boundary_bundle: reader.bool("trimBoundaryBundle", default.trim_boundary_bundle),
        victim_order_policy: reader.word("victimOrderPolicy", VICTIM_ORDER),
    }
}

// The slugs of the specification have a double underscore.
#[cfg(test)]
#[allow(non_snake_case)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::file::ActionConfig;

    fn settings(action: &str, arguments: Value) -> (ActionSettings, Vec<Warning>) {
        let map = arguments.as_object().cloned().unwrap_or_default();
        let entry = ActionConfig { name: action.into(), arguments: map.into_iter().collect() };
        let config = Config { configurations: vec![entry], ..Config::default() };
        let mut warnings = Vec::new();
        (ActionSettings::from(&config, &mut warnings), warnings)
    }

    #[test]
    fn args__removed_a_missing_key_is_the_default_again() {
        let (set, _) = settings("preempt", json!({"maxCandidateNodesAbsolute": 7}));
        assert_eq!(set.preempt.max_candidate_nodes_absolute, 7);
        let (unset, warnings) = settings("preempt", json!({}));
        assert_eq!((unset, warnings), (ActionSettings::default(), Vec::new()));
    }

    #[test]
    fn core_12_topology_aware_preemption_is_off_again_when_removed() {
        let (set, _) = settings("preempt", json!({"enableTopologyAwarePreemption": true}));
        assert!(set.preempt.topology_aware);
        let (unset, _) = settings("preempt", json!({}));
        assert!(!unset.preempt.topology_aware);
    }

    #[test]
    fn args__range_of_the_preempt_integers() {
        let cases = [
            ("maxCandidateNodesAbsolute", json!(0), 1),
            ("minCandidateNodesAbsolute", json!(0), 1),
            ("topologyAwarePreemptWorkerNum", json!(-1), 1),
            ("minCandidateNodesPercentage", json!(-1), 1),
            ("minCandidateNodesPercentage", json!("10"), 0),
            ("topologyAwarePreemptWorkerNum", json!("16"), 0),
        ];
        for (key, value, expected) in cases {
            let (settings, warnings) = settings("preempt", json!({ key: value }));
            assert_eq!(settings, ActionSettings::default(), "{key}");
            assert_eq!(warnings.len(), expected, "{key}: {warnings:?}");
        }
        let (zero, warnings) = settings("preempt", json!({"minCandidateNodesPercentage": 0}));
        assert_eq!((zero.preempt.min_candidate_nodes_percentage, warnings.len()), (0, 0));
    }

    #[test]
    fn args__cache_key_in_both_spellings() {
        let cases = [
            (json!({}), true),
            (json!({CACHE_ALIAS: false}), false),
            (json!({CACHE: false}), false),
            (json!({CACHE_ALIAS: false, CACHE: true}), true),
            (json!({CACHE_ALIAS: true, CACHE: false}), false),
        ];
        for (arguments, expected) in cases {
            for action in ["allocate", "backfill", "preempt", "reclaim"] {
                let (all, _) = settings(action, arguments.clone());
                let caches = [
                    ("allocate", all.allocate.predicate_error_cache_enable),
                    ("backfill", all.backfill.predicate_error_cache_enable),
                    ("preempt", all.preempt.predicate_error_cache_enable),
                    ("reclaim", all.reclaim.predicate_error_cache_enable),
                ];
                for (name, cache) in caches {
                    assert_eq!(cache, name != action || expected, "{action} {name} {arguments}");
                }
            }
        }
    }

    #[test]
    fn the_gang_actions_use_the_cache_argument_of_allocate() {
        let (settings, _) = settings("allocate", json!({CACHE: false}));
        assert!(!settings.gang_preempt.predicate_error_cache_enable);
        assert!(!settings.gang_reclaim.predicate_error_cache_enable);
    }

    #[test]
    fn args__maxdomains_below_one_is_eight() {
        for value in [0, -1] {
            for action in ["gangpreempt", "gangreclaim"] {
                let (settings, warnings) = settings(action, json!({"maxDomains": value}));
                assert_eq!(settings, ActionSettings::default());
                let text = warnings[0].to_string();
                let expected = format!(
                    "maxDomains: {value} is less than 1
hint: write 1 or more"
                );
                assert!(text.starts_with(&expected), "{text}");
            }
        }
    }

    #[test]
    fn args__bool_strings() {
        let key = "enableTopologyAwarePreemption";
        let (settings_t, warnings) = settings("preempt", json!({key: "t"}));
        assert!(settings_t.preempt.topology_aware && warnings.is_empty());
        let (settings_yes, warnings) = settings("preempt", json!({key: "yes"}));
        assert!(!settings_yes.preempt.topology_aware);
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn head_of_line_values() {
        let cases = [
            (json!("off"), HeadOfLine::Off, 0),
            (json!(false), HeadOfLine::Off, 0),
            (json!("queue"), HeadOfLine::Queue, 0),
            (json!("cluster"), HeadOfLine::Off, 1),
            (json!(true), HeadOfLine::Off, 1),
        ];
        for (value, expected, warned) in cases {
            let (settings, warnings) = settings("allocate", json!({"headOfLine": value}));
            assert_eq!((settings.allocate.head_of_line, warnings.len()), (expected, warned));
        }
    }

    #[test]
    fn every_other_argument_is_read() {
        let (all, _) = settings("allocate", json!({"claimFirst": false, "gangRepairFirst": true}));
        assert!(!all.allocate.claim_first && all.allocate.gang_repair_first);
        let victims = json!({"trimVictims": false, "trimStatement": true, "explain": false,
            "reclaimBoundTasks": true});
        let (all, _) = settings("reclaim", victims.clone());
        assert!(!all.reclaim.trim_victims && !all.reclaim.explain);
        assert!(all.reclaim.trim_statement && all.reclaim.reclaim_bound_tasks);
        let (all, _) = settings("preempt", victims);
        assert!(!all.preempt.trim_victims && !all.preempt.explain && all.preempt.trim_statement);
        let gang = json!({"allowWholeBundle": false, "trimBoundaryBundle": false,
            "victimOrderPolicy": "priority-first", "explain": false, "maxDomains": "3"});
        let (all, warnings) = settings("GangPreempt", gang);
        let expected = GangSettings {
            predicate_error_cache_enable: true,
            max_domains: 3,
            allow_whole_bundle: false,
            explain: false,
            trim_boundary_bundle: false,
            victim_order_policy: VictimOrderPolicy::PriorityFirst,
        };
        assert_eq!((all.gang_preempt, all.gang_reclaim), (expected, GangSettings::default()));
        assert!(warnings.is_empty());
    }
}
