//! The typed arguments of the actions (actions.md 1.2, A2, A3; core.md 2.4, C-08).
//!
//! Every call starts from the defaults, so an argument that a later file no longer sets is reset.

use crate::argument::{Argument, DeclaredArgument};
use crate::argument_types::OneOf;
use crate::arguments::Arguments;
use crate::error::Warning;
use crate::file::Config;

/// The arguments of every action that has some.
#[derive(Clone, Debug, PartialEq, Eq)]
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

pub(crate) const CACHE: Argument<bool> = Argument::new(
    "predicateErrorCacheEnable",
    true,
    "reuse filter failures among tasks of one role",
)
// The name in two of the requirement documents; Volcano's own wins when both are present.
.or_key("enablePredicateErrorCache");
const CLAIM_FIRST: Argument<bool> =
    Argument::new("claimFirst", true, "jobs for which pods were evicted come first");
const REPAIR_FIRST: Argument<bool> =
    Argument::new("gangRepairFirst", false, "partially running gangs before fresh ones");
const HEAD_OF_LINE: Argument<OneOf> = Argument::new(
    "headOfLine",
    OneOf { words: &["off", "queue"], is_strict: false },
    "nothing of a queue overtakes a job that found no room",
);
const TOPOLOGY_AWARE: Argument<bool> =
    Argument::new("enableTopologyAwarePreemption", false, "dry-run preemption");
const WORKERS: Argument<i64> = at_least(
    1,
    Argument::new(
        "topologyAwarePreemptWorkerNum",
        16,
        "accepted without effect: Volcano's parallelism, which changes no result",
    ),
);
const PERCENTAGE: Argument<i64> =
    at_least(0, Argument::new("minCandidateNodesPercentage", 10, "nodes looked at, in percent"));
const MIN_CANDIDATES: Argument<i64> =
    at_least(1, Argument::new("minCandidateNodesAbsolute", 1, "nodes looked at, at least"));
const MAX_CANDIDATES: Argument<i64> =
    at_least(1, Argument::new("maxCandidateNodesAbsolute", 100, "nodes looked at, at most"));
const TRIM_VICTIMS: Argument<bool> =
    Argument::new("trimVictims", true, "spare victims that turn out not to be needed");
const TRIM_STATEMENT: Argument<bool> = Argument::new(
    "trimStatement",
    false,
    "spare also victims of one gang member that those of a later one make needless; after 65,536 \
     evictions and placements that were tried for that, those that are left stay, and the \
     certificate does not claim to be minimal",
);
const EXPLAIN: Argument<bool> = Argument::new("explain", true, "one diagnostic per starving job");
const BOUND_TASKS: Argument<bool> =
    Argument::new("reclaimBoundTasks", false, "also take pods that are bound and not yet running");
const MAX_DOMAINS: Argument<i64> =
    at_least(1, Argument::new("maxDomains", 8, "HyperNode domains tried per starving job"));
const WHOLE_BUNDLE: Argument<bool> =
    Argument::new("allowWholeBundle", true, "whether the core of a victim gang may be evicted");
const TRIM_BUNDLE: Argument<bool> =
    Argument::new("trimBoundaryBundle", true, "take no more of the last bundle than needed");
const VICTIM_ORDER: Argument<OneOf> = Argument::new(
    "victimOrderPolicy",
    OneOf { words: &["safe-first", "priority-first"], is_strict: false },
    "what decides first between victim bundles",
);

/// Integers of actions may be decimal strings (A3).
const fn at_least(least: i64, argument: Argument<i64>) -> Argument<i64> {
    argument.at_least(least).or_decimal_text()
}

/// Returns the arguments of a registered action.
pub fn arguments_of(action: &str) -> &'static [&'static dyn DeclaredArgument] {
    match action {
        "allocate" => &[&CACHE, &CLAIM_FIRST, &REPAIR_FIRST, &HEAD_OF_LINE],
        "backfill" => &[&CACHE],
        "preempt" => &[
            &CACHE,
            &TOPOLOGY_AWARE,
            &WORKERS,
            &PERCENTAGE,
            &MIN_CANDIDATES,
            &MAX_CANDIDATES,
            &TRIM_VICTIMS,
            &TRIM_STATEMENT,
            &EXPLAIN,
        ],
        "reclaim" => &[&CACHE, &TRIM_VICTIMS, &TRIM_STATEMENT, &EXPLAIN, &BOUND_TASKS],
        "gangpreempt" | "gangreclaim" => {
            &[&MAX_DOMAINS, &WHOLE_BUNDLE, &EXPLAIN, &TRIM_BUNDLE, &VICTIM_ORDER]
        }
        _ => &[],
    }
}

impl Default for ActionSettings {
    fn default() -> Self {
        ActionSettings::from(&Config::default(), &mut Vec::new())
    }
}

impl ActionSettings {
    /// Reads the arguments of every action. [`crate::parse`] already reports these warnings; a
    /// caller that reads the settings again may drop them.
    pub fn from(config: &Config, warnings: &mut Vec<Warning>) -> ActionSettings {
        let of = |action: &str| config.action_arguments(action);
        let allocate = read_allocate(&of("allocate"), warnings);
        let cache = allocate.predicate_error_cache_enable;
        ActionSettings {
            allocate,
            backfill: BackfillSettings {
                predicate_error_cache_enable: CACHE.read(&of("backfill"), warnings),
            },
            preempt: read_preempt(&of("preempt"), warnings),
            reclaim: read_reclaim(&of("reclaim"), warnings),
            gang_preempt: read_gang(&of("gangpreempt"), cache, warnings),
            gang_reclaim: read_gang(&of("gangreclaim"), cache, warnings),
        }
    }
}

fn read_allocate(from: &Arguments, warnings: &mut Vec<Warning>) -> AllocateSettings {
    AllocateSettings {
        predicate_error_cache_enable: CACHE.read(from, warnings),
        claim_first: CLAIM_FIRST.read(from, warnings),
        gang_repair_first: REPAIR_FIRST.read(from, warnings),
        head_of_line: match HEAD_OF_LINE.read(from, warnings) {
            "queue" => HeadOfLine::Queue,
            _ => HeadOfLine::Off,
        },
    }
}

fn read_preempt(from: &Arguments, warnings: &mut Vec<Warning>) -> PreemptSettings {
    PreemptSettings {
        predicate_error_cache_enable: CACHE.read(from, warnings),
        topology_aware: TOPOLOGY_AWARE.read(from, warnings),
        worker_num: WORKERS.read(from, warnings),
        min_candidate_nodes_percentage: PERCENTAGE.read(from, warnings),
        min_candidate_nodes_absolute: MIN_CANDIDATES.read(from, warnings),
        max_candidate_nodes_absolute: MAX_CANDIDATES.read(from, warnings),
        trim_victims: TRIM_VICTIMS.read(from, warnings),
        trim_statement: TRIM_STATEMENT.read(from, warnings),
        explain: EXPLAIN.read(from, warnings),
    }
}

fn read_reclaim(from: &Arguments, warnings: &mut Vec<Warning>) -> ReclaimSettings {
    ReclaimSettings {
        predicate_error_cache_enable: CACHE.read(from, warnings),
        trim_victims: TRIM_VICTIMS.read(from, warnings),
        trim_statement: TRIM_STATEMENT.read(from, warnings),
        explain: EXPLAIN.read(from, warnings),
        reclaim_bound_tasks: BOUND_TASKS.read(from, warnings),
    }
}

fn read_gang(
    from: &Arguments,
    cache_of_allocate: bool,
    warnings: &mut Vec<Warning>,
) -> GangSettings {
    GangSettings {
        predicate_error_cache_enable: cache_of_allocate,
        max_domains: MAX_DOMAINS.read(from, warnings),
        allow_whole_bundle: WHOLE_BUNDLE.read(from, warnings),
        explain: EXPLAIN.read(from, warnings),
        trim_boundary_bundle: TRIM_BUNDLE.read(from, warnings),
        victim_order_policy: match VICTIM_ORDER.read(from, warnings) {
            "priority-first" => VictimOrderPolicy::PriorityFirst,
            _ => VictimOrderPolicy::SafeFirst,
        },
    }
}

// The slugs of the specification have a double underscore.
#[cfg(test)]
#[allow(non_snake_case)]
mod tests {
    use serde_json::{Value, json};

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
        const ALIAS: &str = "enablePredicateErrorCache";
        const CACHE: &str = super::CACHE.key;
        let cases = [
            (json!({}), true),
            (json!({ALIAS: false}), false),
            (json!({CACHE: false}), false),
            (json!({ALIAS: false, CACHE: true}), true),
            (json!({ALIAS: true, CACHE: false}), false),
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
        let (settings, _) = settings("allocate", json!({"predicateErrorCacheEnable": false}));
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
        assert_eq!(all.gang_preempt, expected);
        assert_eq!(all.gang_reclaim, ActionSettings::default().gang_reclaim);
        assert!(warnings.is_empty());
    }
}
