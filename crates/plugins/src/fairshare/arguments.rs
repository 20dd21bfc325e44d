//! Arguments of `fairshare`. Those of Volcano are texts; numbers and booleans are read as well.
//! Specification: fair-share.md 1, 16.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_conf::{
    Argument, ArgumentShape, Arguments, DeclaredArgument, DurationRule, FreeForm, OneOf, Warning,
};
use vc_model::{Cluster, Job, Labels, ObjectKey, PodGroup, go_duration_micros};

use super::charge::{ChargeRule, WeightedCharge};
use super::preempt::PreemptRule;
use super::saves::SaveRule;
use super::shares::ShareRule;

const MICROS_PER_MINUTE: f64 = 60e6;
const HALF_LIFE_MINUTES: i64 = 240;
const MICROS_PER_SECOND: f64 = 1e6;
const FLUSH_INTERVAL_MICROS: i64 = 30_000_000;
const TEN_MINUTES_MICROS: i64 = 600_000_000;
const SHARE_INTERVAL_MICROS: i64 = 60_000_000;
const ENTRY_HORIZON_MICROS: i64 = 300_000_000;
const MILLIONTHS: f64 = 1e6;
const THOUSANDTHS: f64 = 1e3;
/// The largest weight of an account or a queue.
const MOST_WEIGHT: f64 = 1e9;
/// The largest `fairshare.kValue` that counts.
const MOST_K: f64 = 1e6;

pub(super) const DECLARED: &[&dyn DeclaredArgument] = &[
    &TARGET_QUEUES,
    &RESOURCE_KEY,
    &QUEUE_RESOURCE_KEY,
    &HALF_LIFE,
    &ENQUEUE_GATE,
    &RESOURCE_WEIGHTS,
    &BILLING,
    &ENTRY_HORIZON,
    &ACCOUNT,
    &WEIGHTS,
    &QUEUE_ORDER,
    &K_VALUE,
    &SHARE_INTERVAL,
    &PREEMPT,
    &MIN_RUN_TIME,
    &HYSTERESIS,
    &PERSIST_STATE,
    &STATE_NAMESPACE,
    &STATE_CONFIG_MAP,
    &FLUSH_INTERVAL,
];

const TARGET_QUEUES: Argument<&str> = Argument::new(
    "fairshare.targetQueues",
    "",
    "queues whose jobs are ordered by usage, with commas; empty: all",
);
const RESOURCE_KEY: Argument<&str> =
    Argument::new("fairshare.resourceKey", "nvidia.com/gpu", "the resource that is charged");
const QUEUE_RESOURCE_KEY: Argument<&str> =
    Argument::new("fairshare.resourceKey.*", "", "the resource that is charged in this queue");
const HALF_LIFE: Argument<FreeForm> = Argument::new(
    "fairshare.halfLifeMinutes",
    FreeForm("number or string", &["number", "string"]),
    "minutes after which usage counts half",
)
.shown_as("240");
const ENQUEUE_GATE: Argument<bool> = Argument::new(
    "fairshare.enableEnqueueGate",
    false,
    "reject jobs of a namespace that holds its part of the queue",
);
const RESOURCE_WEIGHTS: Argument<ArgumentShape> = Argument::new(
    "fairshare.resourceWeights",
    ArgumentShape::MapOf(&ArgumentShape::Number),
    "charge several resources: weight per cpu, per GiB, per piece of anything else",
)
.shown_as("none");
const BILLING: Argument<OneOf> = Argument::new(
    "fairshare.billing",
    OneOf { words: &["sum", "max"], is_strict: false },
    "charge the sum of the weighted amounts, or the largest one",
);
const ENTRY_HORIZON: Argument<DurationRule> = Argument::new(
    "fairshare.entryHorizon",
    minutes("write a duration in quotes, such as \"5m\"; until then the default 5m is in force"),
    "time ahead for which running pods are charged at once; 0s as in Volcano",
)
.shown_as("5m");
const ACCOUNT: Argument<FreeForm> = Argument::new(
    "fairshare.account",
    FreeForm("`namespace`, `label:<key>`, `annotation:<key>`", &["string"]),
    "who is charged within a queue: the namespace of a job, or the value of this label or annotation of its PodGroup",
)
.shown_as("namespace");
const WEIGHTS: Argument<ArgumentShape> = Argument::new(
    "fairshare.weights",
    ArgumentShape::MapOf(&ArgumentShape::Number),
    "weight of a namespace; a namespace of weight 2 may use twice as much",
)
.shown_as("1 each");
pub(super) const QUEUE_ORDER: Argument<bool> =
    Argument::new("fairshare.queueOrder", false, "order queues by their usage, too");
pub(super) const K_VALUE: Argument<FreeForm> = Argument::new(
    "fairshare.kValue",
    FreeForm("number or string", &["number", "string"]),
    "how strongly past usage of a queue lowers what `proportion` lets it deserve; 0: not at all",
)
.shown_as("0");
const SHARE_INTERVAL: Argument<DurationRule> = Argument::new(
    "fairshare.shareInterval",
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros).filter(|&micros| 0 < micros),
        problem: "{value} is not a duration above 0s",
        remedy: "write a duration in quotes, such as \"60s\"; until then the default 60s is in force",
    },
    "time between two steps in which deserved amounts follow usage",
)
.shown_as("60s");
pub(super) const PREEMPT: Argument<bool> = Argument::new(
    "fairshare.preempt",
    false,
    "evict pods of a namespace that has used much more, for one that has used less",
);
const MIN_RUN_TIME: Argument<DurationRule> = Argument::new(
    "fairshare.minRunTime",
    minutes("write a duration in quotes, such as \"10m\"; until then the default 10m is in force"),
    "time for which a pod runs at least before it is evicted by usage, or reclaimed",
)
.shown_as("10m");
const HYSTERESIS: Argument<DurationRule> = Argument::new(
    "fairshare.hysteresis",
    minutes("write a duration in quotes, such as \"10m\"; until then the default 10m is in force"),
    "how much more: what the whole cluster can use in this time",
)
.shown_as("10m");
const PERSIST_STATE: Argument<bool> =
    Argument::new("fairshare.persistState", false, "keep usage over a restart, in a ConfigMap");
const STATE_NAMESPACE: Argument<&str> =
    Argument::new("fairshare.stateNamespace", "volcano-system", "namespace of that ConfigMap");
const STATE_CONFIG_MAP: Argument<&str> =
    Argument::new("fairshare.stateConfigMap", "fairshare-usage-state", "name of that ConfigMap");
const FLUSH_INTERVAL: Argument<FreeForm> = Argument::new(
    "fairshare.flushIntervalSeconds",
    FreeForm("number or string", &["number", "string"]),
    "seconds between two writes of it",
)
.shown_as("30");

/// Returns the rule of a duration of at least 0.
const fn minutes(remedy: &'static str) -> DurationRule {
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros).filter(|&micros| 0 <= micros),
        problem: "{value} is not a duration",
        remedy,
    }
}

/// The account of jobs that name none, as in Volcano.
const UNKNOWN_ACCOUNT: &str = "_unknown";

/// Who is charged within a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccountKey {
    Namespace,
    /// The value of a text of the PodGroup.
    Text {
        of: GroupTexts,
        key: String,
        unknown: Arc<str>,
    },
}

/// Which texts of a PodGroup name the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupTexts {
    Labels,
    Annotations,
}

impl GroupTexts {
    /// Returns the word of the argument `fairshare.account`.
    fn word(self) -> &'static str {
        match self {
            GroupTexts::Labels => "label",
            GroupTexts::Annotations => "annotation",
        }
    }

    fn of(self, group: &PodGroup) -> &Labels {
        match self {
            GroupTexts::Labels => &group.labels,
            GroupTexts::Annotations => &group.annotations,
        }
    }
}

impl AccountKey {
    /// Returns the account of a job.
    pub(super) fn of<'a>(&'a self, job: &'a Job) -> &'a Arc<str> {
        match self {
            AccountKey::Namespace => &job.key.namespace,
            AccountKey::Text { of, key, unknown } => {
                let value = job.pod_group.as_ref().and_then(|group| of.of(group).get(&**key));
                value.filter(|value| !value.is_empty()).unwrap_or(unknown)
            }
        }
    }

    /// Returns what an account is, for messages.
    pub(super) fn noun(&self) -> &str {
        match self {
            AccountKey::Namespace => "namespace",
            AccountKey::Text { key, .. } => key,
        }
    }

    /// Returns true if accounts are not namespaces.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, AccountKey::Text { .. })
    }
}

/// The arguments that are in force.
#[derive(Debug)]
pub(super) struct FairshareArguments {
    /// Names of the target queues. `None`: all queues.
    target_queues: Option<BTreeSet<String>>,
    charge: ChargeRule,
    charge_by_queue: BTreeMap<String, ChargeRule>,
    pub(super) half_life_micros: i64,
    pub(super) entry_horizon_micros: i64,
    pub(super) has_enqueue_gate: bool,
    pub(super) has_queue_order: bool,
    /// What is configured of deserved shares by usage. `None`: they do not follow usage.
    pub(super) shares: Option<ShareRule>,
    /// Age from which a pod may be evicted by usage, or reclaimed, τ.
    pub(super) min_run_micros: i64,
    pub(super) account: AccountKey,
    /// What is configured of preemption by usage. `None`: nothing is evicted by usage.
    pub(super) preempt: Option<PreemptRule>,
    /// Where usage is saved. `None`: it is not.
    pub(super) save: Option<SaveRule>,
    /// Weights of accounts, in thousandths.
    weights: BTreeMap<String, i64>,
}

impl FairshareArguments {
    /// Reads the arguments. A value that cannot be used gives a warning and leaves the default.
    pub(super) fn read(from: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let targets: BTreeSet<String> = TARGET_QUEUES
            .read(from, warnings)
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        Self {
            target_queues: (!targets.is_empty()).then_some(targets),
            charge: charge(from, warnings),
            charge_by_queue: charge_by_queue(from, warnings),
            half_life_micros: half_life(from, warnings),
            entry_horizon_micros: ENTRY_HORIZON
                .read(from, warnings)
                .unwrap_or(ENTRY_HORIZON_MICROS),
            has_enqueue_gate: ENQUEUE_GATE.read(from, warnings),
            has_queue_order: QUEUE_ORDER.read(from, warnings),
            account: account_key(from, warnings),
            shares: share_rule(from, warnings),
            min_run_micros: MIN_RUN_TIME.read(from, warnings).unwrap_or(TEN_MINUTES_MICROS),
            preempt: preempt_rule(from, warnings),
            save: save_rule(from, warnings),
            weights: weights(from, warnings),
        }
    }

    /// FS-1: true if jobs of the queue are ordered by usage.
    pub(super) fn is_target(&self, queue: &str) -> bool {
        self.target_queues.as_ref().is_none_or(|names| names.contains(queue))
    }

    /// FS-54: true if pods are reclaimed only after they have run for a while.
    pub(super) fn keeps_young_pods(&self) -> bool {
        self.preempt.is_some() || self.shares.is_some()
    }

    /// Returns the target queues that do not exist.
    pub(super) fn missing_targets(&self, cluster: &Cluster) -> Vec<&str> {
        let is_present =
            |name: &str| cluster.queue(name).is_some_and(|queue| cluster.queues[queue].present);
        let named = self.target_queues.iter().flatten().map(String::as_str);
        named.filter(|name| !is_present(name)).collect()
    }

    /// Returns what is charged in a queue.
    pub(super) fn charge(&self, queue: &str) -> &ChargeRule {
        self.charge_by_queue.get(queue).unwrap_or(&self.charge)
    }

    /// Returns the configured weight of an account, in thousandths. `None` if there is none.
    pub(super) fn weight(&self, account: &str) -> Option<i64> {
        self.weights.get(account).copied()
    }

    /// Returns what is charged, as text. Usage that was charged by another text cannot be compared.
    pub(super) fn charge_text(&self) -> String {
        let mut text = self.charge.text();
        if let AccountKey::Text { of, key, .. } = &self.account {
            text.push_str(&format!(" by {} {key}", of.word()));
        }
        for (queue, charge) in &self.charge_by_queue {
            text.push_str(&format!(" and in queue {queue} {}", charge.text()));
        }
        text
    }

    /// FS-2: true if usage that was charged with the other arguments counts on.
    pub(super) fn charges_as(&self, other: &Self) -> bool {
        (&self.charge, &self.charge_by_queue, &self.account)
            == (&other.charge, &other.charge_by_queue, &other.account)
    }
}

fn charge(from: &Arguments, warnings: &mut Vec<Warning>) -> ChargeRule {
    let key = RESOURCE_KEY.read(from, warnings);
    let is_max = BILLING.read(from, warnings) == "max";
    let given = from.structured(RESOURCE_WEIGHTS.key);
    let mut weights = Vec::new();
    for (name, value) in given.entries() {
        let weight = value.number().unwrap_or_default();
        if !weight.is_finite() || weight < 0.0 {
            let message = format!("the weight {weight} of {name} is below 0, it is ignored");
            let remedy = "write a number of at least 0";
            warnings.push(from.warning(RESOURCE_WEIGHTS.key, &message, remedy));
        } else if 0.0 < weight {
            let weight = (weight.min(MOST_WEIGHT) * MILLIONTHS).floor() as i64;
            weights.push((name.to_owned(), weight));
        }
    }
    if weights.is_empty() {
        if from.get(RESOURCE_WEIGHTS.key).is_some() {
            let message = "all weights are 0, which would charge nothing";
            let remedy = format!("give one resource a weight above 0; until then {key} is charged");
            warnings.push(from.warning(RESOURCE_WEIGHTS.key, message, &remedy));
        }
        return ChargeRule::Resource(key);
    }
    if from.get(RESOURCE_KEY.key).is_some() {
        let message = "both fairshare.resourceKey and fairshare.resourceWeights are given";
        let remedy = "remove fairshare.resourceKey; until then fairshare.resourceWeights counts";
        warnings.push(from.warning(RESOURCE_KEY.key, message, remedy));
    }
    weights.sort();
    ChargeRule::Weighted(WeightedCharge { weights, is_max })
}

fn charge_by_queue(from: &Arguments, warnings: &mut Vec<Warning>) -> BTreeMap<String, ChargeRule> {
    let prefix = QUEUE_RESOURCE_KEY.key.trim_end_matches('*');
    let queues = from.iter().filter_map(|(key, _)| key.strip_prefix(prefix));
    let keys = queues
        .map(|queue| (queue.to_owned(), QUEUE_RESOURCE_KEY.read_named(queue, from, warnings)));
    let keys: BTreeMap<String, String> = keys.collect();
    let given = keys.into_iter().filter(|(_, key)| !key.is_empty());
    given.map(|(queue, key)| (queue, ChargeRule::Resource(key))).collect()
}

fn half_life(from: &Arguments, warnings: &mut Vec<Warning>) -> i64 {
    let default = HALF_LIFE_MINUTES * MICROS_PER_MINUTE as i64;
    let Some(value) = from.get(HALF_LIFE.key) else { return default };
    let text = value.as_str().map(str::trim);
    let minutes = value.as_f64().or_else(|| text?.parse().ok());
    let micros = minutes.map_or(0.0, |minutes: f64| minutes * MICROS_PER_MINUTE);
    if 1.0 <= micros && micros.is_finite() {
        return micros.min(i64::MAX as f64 / 1024.0) as i64;
    }
    let message = format!("{value} is not a positive number of minutes");
    let remedy = "write a number above 0, such as 240; until then the default 240 is in force";
    warnings.push(from.warning(HALF_LIFE.key, &message, remedy));
    default
}

fn account_key(from: &Arguments, warnings: &mut Vec<Warning>) -> AccountKey {
    let Some(value) = from.get(ACCOUNT.key) else { return AccountKey::Namespace };
    let text = value.as_str().unwrap_or_default().trim();
    let of_group = [GroupTexts::Labels, GroupTexts::Annotations].into_iter().find_map(|of| {
        let key = text.strip_prefix(of.word())?.strip_prefix(':')?.trim();
        (!key.is_empty()).then(|| (of, key.to_owned()))
    });
    match of_group {
        Some((of, key)) => AccountKey::Text { of, key, unknown: UNKNOWN_ACCOUNT.into() },
        None => {
            if text != "namespace" {
                let message =
                    format!("{value} is not one of namespace, label:<key>, annotation:<key>");
                let remedy = "write one such as label:user; until then namespace is in force";
                warnings.push(from.warning(ACCOUNT.key, &message, remedy));
            }
            AccountKey::Namespace
        }
    }
}

fn preempt_rule(from: &Arguments, warnings: &mut Vec<Warning>) -> Option<PreemptRule> {
    let hysteresis_micros = HYSTERESIS.read(from, warnings).unwrap_or(TEN_MINUTES_MICROS);
    let rule = PreemptRule { hysteresis_micros };
    PREEMPT.read(from, warnings).then_some(rule)
}

fn share_rule(from: &Arguments, warnings: &mut Vec<Warning>) -> Option<ShareRule> {
    let interval_micros =
        SHARE_INTERVAL.read(from, warnings).unwrap_or(SHARE_INTERVAL_MICROS).max(1);
    let value = from.get(K_VALUE.key)?;
    let text = value.as_str().map(str::trim);
    let k = value.as_f64().or_else(|| text?.parse().ok());
    match k.filter(|k: &f64| k.is_finite() && 0.0 <= *k) {
        Some(k) => (0.0 < k).then(|| ShareRule { k: k.min(MOST_K), interval_micros }),
        None => {
            let message = format!("{value} is not a number of at least 0");
            let remedy = "write a number such as 1; until then deserved amounts ignore usage";
            warnings.push(from.warning(K_VALUE.key, &message, remedy));
            None
        }
    }
}

fn save_rule(from: &Arguments, warnings: &mut Vec<Warning>) -> Option<SaveRule> {
    let namespace = STATE_NAMESPACE.read(from, warnings);
    let name = STATE_CONFIG_MAP.read(from, warnings);
    let interval_micros = flush_interval(from, warnings);
    let config_map = ObjectKey::new(&namespace, &name);
    PERSIST_STATE.read(from, warnings).then_some(SaveRule { config_map, interval_micros })
}

fn flush_interval(from: &Arguments, warnings: &mut Vec<Warning>) -> i64 {
    let Some(value) = from.get(FLUSH_INTERVAL.key) else { return FLUSH_INTERVAL_MICROS };
    let text = value.as_str().map(str::trim);
    let seconds = value.as_f64().or_else(|| text?.parse().ok());
    let micros = seconds.map_or(0.0, |seconds: f64| seconds * MICROS_PER_SECOND);
    if 1.0 <= micros && micros.is_finite() {
        return micros.min(i64::MAX as f64 / 1024.0) as i64;
    }
    let message = format!("{value} is not a positive number of seconds");
    let remedy = "write a number above 0, such as 30; until then the default 30 is in force";
    warnings.push(from.warning(FLUSH_INTERVAL.key, &message, remedy));
    FLUSH_INTERVAL_MICROS
}

fn weights(from: &Arguments, warnings: &mut Vec<Warning>) -> BTreeMap<String, i64> {
    let mut weights = BTreeMap::new();
    for (account, value) in from.structured(WEIGHTS.key).entries() {
        let weight = value.number().unwrap_or_default();
        let thousandths = (weight.min(MOST_WEIGHT) * THOUSANDTHS).floor();
        if 1.0 <= thousandths {
            weights.insert(account.to_owned(), thousandths as i64);
            continue;
        }
        let message = format!("the weight {weight} of {account} is below 0.001, it is ignored");
        let remedy = "write a number above 0; until then the weight 1 is in force";
        warnings.push(from.warning(WEIGHTS.key, &message, remedy));
    }
    weights
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(arguments: &Value) -> (FairshareArguments, Vec<String>) {
        let entries = arguments.as_object().expect("a map").clone();
        let mut warnings = Vec::new();
        let read = FairshareArguments::read(&entries.into_iter().collect(), &mut warnings);
        (read, warnings.iter().map(|warning| warning.message.clone()).collect())
    }

    /// Volcano reads texts only; numbers and booleans mean the same.
    #[test]
    fn fs_volcano_config() {
        let texts = json!({
            "fairshare.targetQueues": "gpu, cpu",
            "fairshare.resourceKey": "nvidia.com/gpu",
            "fairshare.resourceKey.cpu": "cpu",
            "fairshare.halfLifeMinutes": "60",
            "fairshare.enableEnqueueGate": "true",
            "fairshare.stateNamespace": "volcano-system",
            "fairshare.flushIntervalSeconds": "30",
        });
        let mut values = texts.clone();
        values["fairshare.halfLifeMinutes"] = json!(60);
        values["fairshare.enableEnqueueGate"] = json!(true);
        for arguments in [texts, values] {
            let (read, warnings) = read(&arguments);
            assert_eq!(warnings, [""; 0]);
            assert_eq!((read.half_life_micros, read.has_enqueue_gate), (3_600_000_000, true));
            let targets = ["gpu", "cpu", "other"].map(|queue| read.is_target(queue));
            assert_eq!(targets, [true, true, false]);
            let charged = ["gpu", "cpu"].map(|queue| read.charge(queue).name().to_owned());
            assert_eq!(charged, ["nvidia.com/gpu", "cpu"]);
        }
    }

    #[test]
    fn fs_defaults() {
        let (read, warnings) = read(&json!({}));
        assert_eq!(warnings, [""; 0]);
        assert!(read.is_target("any") && !read.has_enqueue_gate && !read.has_queue_order);
        let minute = 60_000_000;
        assert_eq!(read.half_life_micros, 240 * minute);
        assert_eq!(read.entry_horizon_micros, 5 * minute);
        assert_eq!(read.weight("a"), None);
    }

    #[test]
    fn fs_bad_arguments_leave_the_default() {
        for (key, value, text) in [
            ("halfLifeMinutes", json!("0"), "\"0\" is not a positive number of minutes"),
            ("halfLifeMinutes", json!(-1), "-1 is not a positive number of minutes"),
            ("halfLifeMinutes", json!("soon"), "\"soon\" is not a positive number of minutes"),
            ("entryHorizon", json!("soon"), "\"soon\" is not a duration"),
            ("billing", json!("mean"), "unknown value mean"),
            ("kValue", json!(-1), "-1 is not a number of at least 0"),
            ("kValue", json!("much"), "\"much\" is not a number of at least 0"),
            ("shareInterval", json!("0s"), "\"0s\" is not a duration above 0s"),
            (
                "account",
                json!("user"),
                "\"user\" is not one of namespace, label:<key>, annotation:",
            ),
            ("account", json!("label:"), "\"label:\" is not one of namespace, label:<key>"),
            ("account", json!("annotation:"), "\"annotation:\" is not one of namespace"),
            ("minRunTime", json!("soon"), "\"soon\" is not a duration"),
            ("flushIntervalSeconds", json!("0"), "\"0\" is not a positive number of seconds"),
            ("weights", json!({"a": 0}), "the weight 0 of a is below 0.001, it is ignored"),
            ("resourceWeights", json!({"cpu": -1, "memory": 1}), "the weight -1 of cpu is below 0"),
            ("resourceWeights", json!({"cpu": 0}), "all weights are 0, which would charge nothing"),
        ] {
            let (read, warnings) = read(&json!({format!("fairshare.{key}"): value}));
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(text), "{warnings:?}");
            assert_eq!(read.half_life_micros, 240 * 60_000_000);
            assert_eq!(read.weight("a"), None);
        }
        let both = json!({"fairshare.resourceKey": "cpu", "fairshare.resourceWeights": {"cpu": 1}});
        let (read, warnings) = read(&both);
        assert_eq!(read.charge("q").name(), "weighted resources");
        assert!(warnings[0].contains("both"), "{warnings:?}");
    }
}
