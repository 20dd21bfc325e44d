//! Arguments of the plugin: default policies of queues, fair sharing, the shape of the trees.
//! Unknown words and lists were refused with the file.
//! Specification: cohort.md B.1.

use vc_cohort::{
    BorrowWithin, Policy, PreemptionStrategies, ReclaimWithin, SearchOptions, WithinQueue,
};
use vc_conf::{
    Argument, DeclaredArgument, DurationRule, OneOf, OneOrBoth, PluginOption, Switch, Warning,
};
use vc_model::go_duration_micros;

pub(super) const WITHIN: Argument<OneOf> = Argument::new(
    "withinClusterQueue",
    OneOf { words: &["Never", "LowerPriority", "LowerOrNewerEqualPriority"], is_strict: true },
    "who may be preempted in the own queue",
);
pub(super) const RECLAIM: Argument<OneOf> = Argument::new(
    "reclaimWithinCohort",
    OneOf { words: &["Never", "LowerPriority", "Any"], is_strict: true },
    "who may be preempted in other queues",
);
pub(super) const BORROW: Argument<OneOf> = Argument::new(
    "borrowWithinCohort.policy",
    OneOf { words: &["Never", "LowerPriority"], is_strict: true },
    "preemption while borrowing",
);
pub(super) const THRESHOLD: Argument<i64> = Argument::new(
    "borrowWithinCohort.maxPriorityThreshold",
    i32::MIN as i64,
    "highest priority of pods that are preempted while borrowing",
)
.or_decimal_text()
.shown_as("absent");
const FAIR: Argument<bool> = Argument::new("fairSharing.enable", false, "compare weighted shares")
    .shown_as("false; true if another `fairSharing.*` is given");
const STRATEGIES: Argument<OneOrBoth> = Argument::new(
    "fairSharing.preemptionStrategies",
    OneOrBoth(["LessThanOrEqualToFinalShare", "LessThanInitialShare"]),
    "when a share allows a preemption",
)
.shown_as("both");
const ROOT_COHORT: Argument<bool> = Argument::new("rootCohort", true, "whether `root` is a cohort");
const ROOT_QUOTA: Argument<OneOf> = Argument::new(
    "rootQuota",
    OneOf { words: &["Deserved", "Cluster"], is_strict: true },
    "quota of `root`: what its children sum up to, or more if it says so (`Deserved`); at least \
     what the nodes have (`Cluster`)",
);
const BACKOFF: Argument<DurationRule> = Argument::new(
    "preemptionBackoff",
    DurationRule {
        remedy: "write a duration such as 90s or 0s; until then 60s is in force",
        ..DURATION
    },
    "wait of a group that was evicted before it has others evicted again, doubled each time; \
     0s: off",
)
.shown_as("60s");
const SHARE_PERIOD: Argument<DurationRule> = Argument::new(
    "weightedSharePeriod",
    DurationRule {
        remedy: "write a duration such as 90s or 0s; until then 30s is in force",
        ..DURATION
    },
    "shortest time between two writes of a weighted share; 0s: never written",
)
.shown_as("30s");
/// At least 0; the integer 0 needs no unit.
const DURATION: DurationRule = DurationRule {
    parse: |value| {
        let text = || value.as_str().and_then(go_duration_micros).filter(|micros| 0 <= *micros);
        value.as_i64().map_or_else(text, |number| (number == 0).then_some(0))
    },
    problem: "expected a duration, found {value}",
    remedy: "",
};

/// The arguments of the plugin.
pub(super) const ALL: &[&dyn DeclaredArgument] = &[
    &WITHIN,
    &RECLAIM,
    &BORROW,
    &THRESHOLD,
    &FAIR,
    &STRATEGIES,
    &ROOT_COHORT,
    &ROOT_QUOTA,
    &BACKOFF,
    &SHARE_PERIOD,
];

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
        let threshold = threshold(option, warnings);
        let policy = Policy {
            within_queue: within(WITHIN.read(arguments, warnings)).unwrap_or_default(),
            reclaim_within: reclaim(RECLAIM.read(arguments, warnings)).unwrap_or_default(),
            borrow_within: borrow(BORROW.read(arguments, warnings) != "Never", threshold),
        };
        let named_fair = |(key, _): (&str, _)| key.starts_with("fairSharing.");
        let is_named = arguments.iter().any(named_fair);
        let fair = FAIR.with_default(is_named).read(arguments, warnings);
        let search = SearchOptions {
            fair_sharing: fair.then(|| strategies(&STRATEGIES.read(arguments, warnings))),
            own: option.switches.on(Switch::Preemptable),
            others: option.switches.on(Switch::Reclaimable),
        };
        Self {
            policy,
            threshold,
            search,
            without_root: !ROOT_COHORT.read(arguments, warnings),
            root_owns_cluster: ROOT_QUOTA.read(arguments, warnings) == "Cluster",
            backoff_micros: BACKOFF.read(arguments, warnings).unwrap_or(60 * MICROS_PER_SECOND),
            share_period_micros: SHARE_PERIOD
                .read(arguments, warnings)
                .unwrap_or(30 * MICROS_PER_SECOND),
        }
    }

    pub(super) fn is_fair(&self) -> bool {
        self.search.fair_sharing.is_some()
    }
}

fn threshold(option: &PluginOption, warnings: &mut Vec<Warning>) -> Option<i32> {
    option.arguments.get(THRESHOLD.key)?;
    let value = THRESHOLD.read(&option.arguments, warnings);
    Some(i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX }))
}

fn strategies(names: &[String]) -> PreemptionStrategies {
    match names {
        [name] if name == STRATEGIES.default.0[0] => PreemptionStrategies::FinalShare,
        [name] if name == STRATEGIES.default.0[1] => PreemptionStrategies::InitialShare,
        _ => PreemptionStrategies::Both,
    }
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
