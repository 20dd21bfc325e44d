//! Arguments of the plugin: default policies of queues, fair sharing, the shape of the trees.
//! Unknown words and lists were refused with the file.
//! Specification: cohort.md B.1.

use vc_cohort::{
    BorrowWithin, Policy, PreemptionStrategies, ReclaimWithin, SearchOptions, WithinQueue,
};
use vc_conf::{PluginOption, Switch, Warning};
use vc_model::go_duration_micros;

pub(super) const WITHIN: &str = "withinClusterQueue";
pub(super) const RECLAIM: &str = "reclaimWithinCohort";
pub(super) const BORROW: &str = "borrowWithinCohort.policy";
pub(super) const THRESHOLD: &str = "borrowWithinCohort.maxPriorityThreshold";
const FAIR: &str = "fairSharing.enable";
const STRATEGIES: &str = "fairSharing.preemptionStrategies";
const ROOT_COHORT: &str = "rootCohort";
const ROOT_QUOTA: &str = "rootQuota";
const BACKOFF: &str = "preemptionBackoff";
const SHARE_PERIOD: &str = "weightedSharePeriod";

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The values of the arguments and switches.
#[derive(Clone, Debug)]
pub(super) struct CohortArguments {
    /// Default policy of queues without policy annotations.
    pub(super) policy: Policy,
    /// Default of `borrowWithinCohort.maxPriorityThreshold`. `None` means no limit.
    pub(super) threshold: Option<i32>,
    /// Groups that a search may take, by the switches. The actions restrict it further.
    pub(super) search: SearchOptions,
    /// True for `rootCohort: false`.
    pub(super) without_root: bool,
    /// True for `rootQuota: Cluster`.
    pub(super) root_owns_cluster: bool,
    /// First backoff in microseconds (section B.7); 0 switches it off.
    pub(super) backoff_micros: i64,
    /// Shortest time between two writes of a weighted share, in microseconds (section B.8); 0
    /// switches the writes off.
    pub(super) share_period_micros: i64,
}

impl CohortArguments {
    pub(super) fn new(option: &PluginOption, warnings: &mut Vec<Warning>) -> Self {
        let arguments = &option.arguments;
        let word = |key| arguments.get(key).and_then(|value| value.as_str());
        let threshold = threshold(option, warnings);
        let policy = Policy {
            within_queue: word(WITHIN).and_then(within).unwrap_or_default(),
            reclaim_within: word(RECLAIM).and_then(reclaim).unwrap_or_default(),
            borrow_within: borrow(word(BORROW).is_some_and(|word| word != "Never"), threshold),
        };
        let named_fair = |(key, _): (&str, _)| key.starts_with("fairSharing.");
        let is_named = arguments.iter().any(named_fair);
        let fair = arguments.bool(FAIR, is_named, warnings);
        let search = SearchOptions {
            fair_sharing: fair.then(|| strategies(option)),
            own: option.switches.on(Switch::Preemptable),
            others: option.switches.on(Switch::Reclaimable),
        };
        Self {
            policy,
            threshold,
            search,
            without_root: !arguments.bool(ROOT_COHORT, true, warnings),
            root_owns_cluster: word(ROOT_QUOTA) == Some("Cluster"),
            backoff_micros: duration(option, BACKOFF, 60, warnings),
            share_period_micros: duration(option, SHARE_PERIOD, 30, warnings),
        }
    }

    pub(super) fn is_fair(&self) -> bool {
        self.search.fair_sharing.is_some()
    }
}

fn threshold(option: &PluginOption, warnings: &mut Vec<Warning>) -> Option<i32> {
    option.arguments.get(THRESHOLD)?;
    let value = option.arguments.int_lenient(THRESHOLD, i64::from(i32::MIN), warnings);
    Some(i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX }))
}

fn strategies(option: &PluginOption) -> PreemptionStrategies {
    let names = option.arguments.names(STRATEGIES).unwrap_or_default();
    match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["LessThanOrEqualToFinalShare"] => PreemptionStrategies::FinalShare,
        ["LessThanInitialShare"] => PreemptionStrategies::InitialShare,
        _ => PreemptionStrategies::Both,
    }
}

fn duration(
    option: &PluginOption,
    key: &str,
    default_seconds: i64,
    warnings: &mut Vec<Warning>,
) -> i64 {
    let arguments = &option.arguments;
    let default = default_seconds * MICROS_PER_SECOND;
    let Some(value) = arguments.get(key) else { return default };
    let micros = match value.as_i64() {
        Some(0) => Some(0),
        Some(_) => None,
        None => value.as_str().and_then(go_duration_micros),
    };
    micros.filter(|micros| 0 <= *micros).unwrap_or_else(|| {
        let message = format!("expected a duration, found {value}");
        let remedy = format!(
            "write a duration such as 90s or 0s; until then {default_seconds}s is in force"
        );
        warnings.push(arguments.warning(key, &message, &remedy));
        default
    })
}

pub(super) fn within(word: &str) -> Option<WithinQueue> {
    match word {
        "Never" => Some(WithinQueue::Never),
        "LowerPriority" => Some(WithinQueue::LowerPriority),
        "LowerOrNewerEqualPriority" => Some(WithinQueue::LowerOrNewerEqualPriority),
        _ => None,
    }
}

pub(super) fn reclaim(word: &str) -> Option<ReclaimWithin> {
    match word {
        "Never" => Some(ReclaimWithin::Never),
        "LowerPriority" => Some(ReclaimWithin::LowerPriority),
        "Any" => Some(ReclaimWithin::Any),
        _ => None,
    }
}

pub(super) fn borrow(is_on: bool, max_priority: Option<i32>) -> BorrowWithin {
    match is_on {
        true => BorrowWithin::LowerPriority { max_priority },
        false => BorrowWithin::Never,
    }
}
