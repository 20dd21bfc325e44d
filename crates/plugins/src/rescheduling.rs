//! Plugin `rescheduling`: names running pods on nodes with a high load, for the action `shuffle`, so
//! that they start again on nodes with a low load.
//! Specification: plugins-jobs-queues.md 14, D28-D31.

mod low_node_utilization;
mod strategies;

use vc_conf::{Argument, DurationRule, FreeForm, PluginOption, Warning};
use vc_framework::{
    CacheKeys, Clock, Depends, EarlierMemory, Inputs, Plugin, PluginEntry, PluginMemory, Points,
    SessionView,
};
use vc_model::{TaskId, go_duration_micros};

use low_node_utilization::LowNodeUtilization;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("rescheduling", build).arguments(&[
    &INTERVAL,
    &METRICS_PERIOD,
    &strategies::STRATEGIES,
    &QUEUE_SELECTOR,
    &LABEL_SELECTOR,
]);

const INTERVAL: Argument<DurationRule> = Argument::new(
    "interval",
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros),
        problem: "not a duration: {value}",
        remedy: "write a duration in quotes, such as \"10m\"; until then the default 5m is in \
                 force",
    },
    "time between runs",
)
.shown_as("5m");
const DEFAULT_INTERVAL_MICROS: i64 = 300_000_000;

const METRICS_PERIOD: Argument<&str> = Argument::new(
    "metricsPeriod",
    "5m",
    "period of the load averages; only averages over ten minutes exist, and they are used",
);

/// Keys of Volcano's design document that Volcano ignores too.
const QUEUE_SELECTOR: Argument<FreeForm> =
    Argument::new("queueSelector", FreeForm("list of queues", &["array"]), "without effect");
const LABEL_SELECTOR: Argument<FreeForm> =
    Argument::new("labelSelector", FreeForm("map of labels", &["object"]), "without effect");

struct Rescheduling {
    interval_micros: i64,
    strategies: Vec<LowNodeUtilization>,
    /// Start of the last run, or the first session. `None` before the first session.
    last_run_micros: Option<i64>,
    /// The time of the run before, or of the first session. `None` if this session is no run.
    previous_micros: Option<i64>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let arguments = &option.arguments;
    let interval = INTERVAL.read(arguments, warnings);
    METRICS_PERIOD.read(arguments, warnings);
    for key in [QUEUE_SELECTOR.key, LABEL_SELECTOR.key] {
        if arguments.get(key).is_some() {
            let remedy = "remove it; pods that must stay can say volcano.sh/preemptable: \"false\"";
            warnings.push(arguments.warning(key, "it selects nothing, as in Volcano", remedy));
        }
    }
    Box::new(Rescheduling {
        interval_micros: interval.filter(|&micros| 0 < micros).unwrap_or(DEFAULT_INTERVAL_MICROS),
        strategies: strategies::read(arguments, warnings),
        last_run_micros: None,
        previous_micros: None,
    })
}

/// The choice reads the load and the pods of all nodes.
const READS: &[(Points, Inputs)] = &[(
    Points::VICTIM_TASKS,
    Inputs::CANDIDATE_ROW
        .and(Inputs::NODE_ROW)
        .and(Inputs::NODE_OBJECT)
        .and(Inputs::OTHER_PODS)
        .and(Inputs::CLOCK),
)];

impl Plugin for Rescheduling {
    fn points(&self) -> Points {
        Points::VICTIM_TASKS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    /// Returns the time of the last run, which belongs to the process and not to the configuration.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        self.last_run_micros.map(|last| Box::new(last) as Box<dyn PluginMemory>)
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.last_run_micros = memory.read();
    }

    /// Starts a run if the interval has passed. The first session only starts the clock. A run
    /// without victims counts too.
    fn open(&mut self, view: SessionView<'_>) {
        let now = view.now_micros();
        let last = *self.last_run_micros.get_or_insert(now);
        let is_run = !self.strategies.is_empty() && self.due_micros(last) <= now;
        self.previous_micros = is_run.then_some(last);
        if is_run {
            self.last_run_micros = Some(now);
        }
    }

    /// The rule. Each strategy names pods on its own.
    fn victim_tasks(&self, view: SessionView<'_>, running: &[TaskId]) -> Vec<TaskId> {
        let Some(last) = self.previous_micros else { return Vec::new() };
        let strategies = self.strategies.iter();
        strategies.flat_map(|strategy| strategy.victims(view, running, last)).collect()
    }
}

impl CacheKeys for Rescheduling {
    /// Returns the time of the next run. Until then a cycle without any change is skipped.
    fn clock(&self, view: SessionView<'_>) -> Clock {
        let last = self.last_run_micros.unwrap_or_else(|| view.now_micros());
        match self.strategies.is_empty() {
            true => Clock::Until(i64::MAX),
            false => Clock::Until(self.due_micros(last)),
        }
    }

    /// True in a run. In other sessions `shuffle` collects no pods.
    fn has_victim_tasks(&self) -> bool {
        self.previous_micros.is_some()
    }
}

impl Rescheduling {
    fn due_micros(&self, last_micros: i64) -> i64 {
        last_micros.saturating_add(self.interval_micros)
    }
}
