//! Every metric: name, type, labels, buckets, when it changes. Registration, exposition and
//! `docs/metrics.md` are made from this table. Specification: core.md 9, actions.md 10.4.

use crate::buckets;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
    /// Counts by size.
    Histogram,
}

impl MetricKind {
    /// As in a `# TYPE` line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// Whose name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricOrigin {
    /// Volcano has it, with this name and these labels.
    Volcano,
    /// Other schedulers and clients of Kubernetes have it.
    Common,
    /// It is ours.
    Ours,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow {
    /// With its prefix.
    pub name: &'static str,
    /// Type.
    pub kind: MetricKind,
    /// Label names, as the specification lists them.
    pub labels: &'static [&'static str],
    /// Upper bounds without `+Inf`; empty unless it is a histogram.
    pub buckets: &'static [f64],
    /// Whose name it is.
    pub origin: MetricOrigin,
    /// Text of the `# HELP` line.
    pub help: &'static str,
    /// When it changes.
    pub updated: &'static str,
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    updated: &'static str,
) -> MetricRow {
    MetricRow {
        name,
        kind: MetricKind::Gauge,
        labels,
        buckets: &[],
        origin: MetricOrigin::Volcano,
        help,
        updated,
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    updated: &'static str,
) -> MetricRow {
    MetricRow { kind: MetricKind::Counter, ..gauge(name, labels, help, updated) }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    buckets: &'static [f64],
    help: &'static str,
    updated: &'static str,
) -> MetricRow {
    MetricRow { kind: MetricKind::Histogram, buckets, ..gauge(name, labels, help, updated) }
}

const fn ours(row: MetricRow) -> MetricRow {
    MetricRow { origin: MetricOrigin::Ours, ..row }
}

const fn common(row: MetricRow) -> MetricRow {
    MetricRow { origin: MetricOrigin::Common, ..row }
}

const JOB: &[&str] = &["job_name", "queue", "job_namespace"];
const JOB_ID: &[&str] = &["job_id"];
const QUEUE: &[&str] = &["queue_name"];
const QUEUE_RESOURCE: &[&str] = &["queue_name", "resource"];
const ACCOUNT: &[&str] = &["namespace_name", "queue"];
const NAMESPACE: &[&str] = &["namespace_name"];
const DEVICE: &[&str] = &["devID", "NodeName"];
const DEVICE_POD: &[&str] = &["devID", "NodeName", "podName"];
const PREEMPTED: &[&str] = &["preempting_queue", "preempted_queue", "reason"];

const AT_CLOSE: &str = "end of a cycle, if it has changed";
const NEVER: &str = "never; the name is kept, nothing is exported";

/// All metrics but `process_*`.
#[rustfmt::skip]
pub const TABLE: &[MetricRow] = &[
    histogram("volcano_e2e_scheduling_latency_milliseconds", &[], buckets::CYCLE,
        "Duration of a cycle in milliseconds", "end of each cycle"),
    histogram("volcano_open_session_duration_milliseconds", &[], buckets::CYCLE,
        "Duration of opening a session in milliseconds", "each cycle"),
    histogram("volcano_e2e_job_scheduling_latency_milliseconds", &[], buckets::JOB,
        "Time from the creation of a PodGroup to a place for one of its tasks in milliseconds",
        "each task that allocate or backfill finds a place for"),
    gauge("volcano_e2e_job_scheduling_duration", JOB,
        "Time from the creation of a PodGroup to the last place found for a task in milliseconds",
        "likewise"),
    gauge("volcano_e2e_job_scheduling_start_time", JOB,
        "Creation of a PodGroup in seconds since 1970", "each event of the PodGroup"),
    gauge("volcano_e2e_job_scheduling_last_time", JOB,
        "When a place was last found for a task of the PodGroup, in seconds since 1970",
        "with `volcano_e2e_job_scheduling_duration`"),
    histogram("volcano_plugin_scheduling_latency_milliseconds", &["plugin", "OnSession"],
        buckets::PLUGIN, "Duration of opening and closing a plugin in milliseconds",
        "each cycle; `OnSession` is `OnSessionOpen` or `OnSessionClose`"),
    histogram("volcano_action_scheduling_latency_milliseconds", &["action"], buckets::ACTION,
        "Duration of an action in milliseconds", "after each action"),
    histogram("volcano_task_scheduling_latency_milliseconds", &["stage"], buckets::TASK,
        "Time from the creation of a pod to a stage of its scheduling in milliseconds",
        "`Watched`: seen without a node; `Assumed`: handed to the binder; `PreBound`: its volumes and \
         claims are written; `Bound`: bound"),
    histogram("volcano_scheduling_stage_duration_milliseconds", &["stage"], buckets::STAGE,
        "Duration of a stage of the scheduling of a task in milliseconds",
        "`Predicate`: each filtering of nodes; `Scoring`: each scoring; `PreBind`: each writing of what \
         a bind needs; `Bind`: each successful bind"),
    counter("volcano_schedule_attempts_total", &["result"],
        "Attempts to schedule pods by result", NEVER),
    gauge("volcano_pod_preemption_victims", &[],
        "Victims on the node with which the last search of preempt ended, 0 if it found none",
        "each search of preempt"),
    counter("volcano_total_preemption_attempts", &[],
        "Nodes on which preempt has evicted, and candidates that it has chosen", "each of them"),
    counter("volcano_eviction_transactions_total", &["action"],
        "Committed statements with at least one eviction",
        "each of them; `action` is `preempt`, `reclaim`, `gangpreempt` or `gangreclaim`"),
    gauge("volcano_unschedule_task_count", JOB_ID,
        "Members that the gangs of this name lack, in all namespaces together", AT_CLOSE),
    gauge("volcano_unschedule_job_count", &[],
        "Gangs that are not ready", "end of each cycle"),
    counter("volcano_job_retry_counts", JOB_ID,
        "Cycles at whose end the gangs of this name were not ready, in all namespaces together",
        "end of each cycle"),
    gauge("volcano_job_share", &["job_ns", "job_id"],
        "Dominant share of a job", AT_CLOSE),
    gauge("volcano_namespace_share", ACCOUNT,
        "Part of a queue that `fairshare` lets a namespace hold, in units of the charge",
        "end of a cycle, if it has changed; only with `fairshare.enableEnqueueGate`"),
    gauge("volcano_namespace_decayed_usage", ACCOUNT,
        "Use of a queue by a namespace that `fairshare` remembers, in charge times seconds",
        "each scrape, with the plugin `fairshare`; the series ends when the usage has faded"),
    gauge("volcano_namespace_weight", NAMESPACE, "Weight of a namespace", NEVER),
    gauge("volcano_namespace_weighted_share", NAMESPACE, "Weighted share of a namespace", NEVER),

    gauge("volcano_queue_allocated_milli_cpu", QUEUE,
        "CPU allocated to a queue in millicores", AT_CLOSE),
    gauge("volcano_queue_allocated_memory_bytes", QUEUE,
        "Memory allocated to a queue in bytes", AT_CLOSE),
    gauge("volcano_queue_allocated_scalar_resources", QUEUE_RESOURCE,
        "Other resources allocated to a queue in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_request_milli_cpu", QUEUE,
        "CPU requested in a queue in millicores", AT_CLOSE),
    gauge("volcano_queue_request_memory_bytes", QUEUE,
        "Memory requested in a queue in bytes", AT_CLOSE),
    gauge("volcano_queue_request_scalar_resources", QUEUE_RESOURCE,
        "Other resources requested in a queue in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_deserved_milli_cpu", QUEUE,
        "CPU that a queue deserves in millicores", AT_CLOSE),
    gauge("volcano_queue_deserved_memory_bytes", QUEUE,
        "Memory that a queue deserves in bytes", AT_CLOSE),
    gauge("volcano_queue_deserved_scalar_resources", QUEUE_RESOURCE,
        "Other resources that a queue deserves in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_capacity_milli_cpu", QUEUE,
        "CPU capability of a queue in millicores", AT_CLOSE),
    gauge("volcano_queue_capacity_memory_bytes", QUEUE,
        "Memory capability of a queue in bytes", AT_CLOSE),
    gauge("volcano_queue_capacity_scalar_resources", QUEUE_RESOURCE,
        "Other capabilities of a queue in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_real_capacity_milli_cpu", QUEUE,
        "CPU that a queue could have at most in millicores", AT_CLOSE),
    gauge("volcano_queue_real_capacity_memory_bytes", QUEUE,
        "Memory that a queue could have at most in bytes", AT_CLOSE),
    gauge("volcano_queue_real_capacity_scalar_resources", QUEUE_RESOURCE,
        "Other resources that a queue could have at most in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_inqueue_milli_cpu", QUEUE,
        "CPU held back for admitted jobs of a queue in millicores", AT_CLOSE),
    gauge("volcano_queue_inqueue_memory_bytes", QUEUE,
        "Memory held back for admitted jobs of a queue in bytes", AT_CLOSE),
    gauge("volcano_queue_inqueue_scalar_resources", QUEUE_RESOURCE,
        "Other resources held back for admitted jobs of a queue in thousandths, pods whole", AT_CLOSE),
    gauge("volcano_queue_share", QUEUE,
        "Largest ratio of allocated to deserved of a queue", AT_CLOSE),
    gauge("volcano_queue_weight", QUEUE, "Weight of a queue", AT_CLOSE),
    gauge("volcano_queue_overused", QUEUE, "Whether a queue has all that it deserves", AT_CLOSE),

    ours(histogram("volcano_cycle_phase_seconds", &["phase"], buckets::PHASE,
        "Duration of the parts of a cycle in seconds",
        "each cycle; `phase` is `apply`, `open`, `actions` or `close`")),
    ours(counter("volcano_api_writes_total", &["verb", "resource", "code"],
        "Requests to the API server that change something",
        "each answer; `code` 0: there was none")),
    ours(counter("volcano_watch_restarts_total", &["kind"],
        "Watches that were interrupted and begun again", "each of them")),
    ours(gauge("volcano_unreadable_kinds", &["kind", "verb", "code", "required"],
        "Kinds that the API server refuses to us or does not have: without a required one nothing \
         is decided, the others count as none",
        "1 while it is so, else absent; asked for again within a minute")),
    ours(gauge("volcano_objects", &["kind"], "Objects that are known", "as they come and go")),
    ours(gauge("volcano_pending_pods", &["queue", "reason"],
        "Pods that wait, by what keeps them out first", AT_CLOSE)),
    gauge("volcano_vgpu_device_shared_number", DEVICE,
        "Containers that share a vGPU device", AT_CLOSE),
    gauge("volcano_vgpu_device_allocated_memory", DEVICE,
        "Memory of a vGPU device in use in MiB", AT_CLOSE),
    gauge("volcano_vgpu_device_allocated_cores", DEVICE,
        "Cores of a vGPU device in use in percent", AT_CLOSE),
    gauge("volcano_vgpu_device_memory_limit", DEVICE,
        "Memory of a vGPU device in MiB", AT_CLOSE),
    gauge("volcano_vgpu_device_memory_allocation_for_a_certain_pod", DEVICE_POD,
        "Memory of a vGPU device that a pod has in MiB", AT_CLOSE),
    gauge("volcano_vgpu_device_core_allocation_for_a_certain_pod", DEVICE_POD,
        "Cores of a vGPU device that a pod has in percent", AT_CLOSE),
    ours(counter("volcano_cohort_preempted_podgroups_total", PREEMPTED,
        "PodGroups that were evicted for the quota of another one",
        "each of them; `reason` is `InClusterQueue`, `InCohortReclamation`, `InCohortFairSharing` or \
         `InCohortReclaimWhileBorrowing`")),
    ours(counter("volcano_cohort_preemption_refused_total", &["queue_name", "cause"],
        "Times that no PodGroup was evicted for one that asked for it",
        "each of them; `cause` is `no_candidates`, `not_enough`, `unplaceable`, `would_return`, \
         `backoff` or `nofit`")),
    ours(gauge("volcano_cohort_weighted_share", &["queue_name", "parent"],
        "What a queue borrows of what its cohort lends in thousandths, divided by its weight; +Inf for \
         a borrower of weight 0. With fair sharing only", AT_CLOSE)),
    ours(counter("volcano_internal_errors_total", &["kind"],
        "Things that cannot happen and have happened; the scheduler went on", "each of them")),
    ours(gauge("volcano_config_warnings", &[],
        "Warnings about the configuration that is in force", "when a configuration is loaded")),
    ours(gauge("volcano_config_unknown_plugins", &["plugin"],
        "1 for a plugin of the configuration in force that nobody knows: it is skipped",
        "when a configuration is loaded; not for what `--allow-missing-plugins` names")),
    ours(counter("volcano_config_reload_failures_total", &[],
        "Configurations that could not be used; the last good one stays", "each of them")),

    ours(counter("volcano_node_load_failures_total", &["source", "cause"],
        "Rounds in which a load source gave nothing",
        "each of them; `cause` is `timeout`, `connection`, `status`, `too_large`, `unreadable` or \
         `no_nodes`")),
    ours(gauge("volcano_node_load_last_read_timestamp_seconds", &["source"],
        "When the load source was read last, in seconds since 1970", "each round that gave something")),
    ours(gauge("volcano_node_load_nodes", &["source", "state"],
        "Nodes of which the load source gave a load (`read`), and of which it gave none (`missing`)",
        "each round that gave something")),

    ours(counter("volcano_malformed_objects_total", &["kind"],
        "Fields and objects that could not be read; the rest is in effect", "each of them")),
    ours(counter("volcano_foreign_binds_total", &[],
        "Pods of ours that somebody else has bound while we were about to",
        "each of them; two schedulers work on the same pods")),
    ours(gauge("volcano_fairshare_level", QUEUE,
        "Part of a queue in the weights of its siblings, over its part of their use that `fairshare` remembers",
        "each scrape, for queues that have used something; above 1 the queue had less than its part")),
    ours(counter("volcano_fairshare_evictions_total", QUEUE,
        "Pods of a queue that were evicted because their namespace had used more",
        "each of them, with `fairshare.preempt`")),
    ours(counter("volcano_fairshare_state_writes_total", &["result"],
        "Writes of the usage that `fairshare` keeps over a restart",
        "each of them, with `fairshare.persistState`; `result` is `written`, `conflict` or `failed`")),
    ours(counter("volcano_overwritten_conditions_total", &["kind"],
        "Conditions of ours that somebody else has overwritten, by kind of object",
        "each of them, if it is less than two minutes old; two schedulers work on the same pods")),
    ours(gauge("volcano_hypernode_problems", &["hypernode", "field"],
        "Problems of a field of a HyperNode: members that do not count, nodes that it shares with another branch, wrong values",
        "when HyperNodes or nodes change; a field without a problem has no series")),
    ours(gauge("volcano_network_topology_problems", &["job_ns", "job_id", "field"],
        "Whether a field of the PodGroup cannot mean what was wanted of a network topology, or leaves \
            no HyperNode that could ever hold the pods",
        "with PodGroups and HyperNodes; a limit that nothing satisfies is shown in cycles that try the \
            job. A PodGroup without a problem has no series")),
    ours(gauge("volcano_clock_skew_seconds", &[],
        "Clock of the API server minus ours in seconds", "each answer")),
    ours(gauge("volcano_config_default_in_force", &[],
        "Whether the built-in configuration is in force because the file could not be used",
        "at the start and when a configuration is loaded")),
    ours(gauge("volcano_dynamic_resources", &[],
        "Whether claims for devices are taken into account: the API server has them and we may read them",
        "at the start and when that changes")),
    ours(gauge("volcano_leader", &[],
        "Whether this process schedules: as the leader, or alone", "when that changes")),

    ours(counter("volcano_answers_requests_total", &["route", "code"],
        "Answered questions by route and HTTP status", "each of them, with `--enable-answers`")),
    ours(histogram("volcano_answers_duration_seconds", &["route"], buckets::REQUEST,
        "Duration of answers to questions in seconds", "each of them, with `--enable-answers`")),
    ours(gauge("volcano_answers_backlog_events", &[],
        "Changes that the copy of the state that answers questions has not seen yet",
        "each batch, with `--enable-answers`")),
    ours(gauge("volcano_answers_behind_seconds", &[],
        "Age of the oldest changes that the copy of the state that answers questions has not applied, in seconds",
        "each scrape, with `--enable-answers`")),
    ours(counter("volcano_answers_divergences_total", &[],
        "Times that the copy of the state has decided otherwise than the scheduler: a fault of ours",
        "each of them, with `--enable-answers`")),
    ours(counter("volcano_answers_given_up_total", &["cause"],
        "Times that questions were no longer answered",
        "each of them; `cause` is `backlog`, `divergence`, `panic` or `services`")),
    ours(counter("volcano_answers_incomplete_total", &["route"],
        "Answers that left something out because the budget of the question was spent",
        "each of them, with `--enable-answers`")),
    ours(counter("volcano_answers_trials_total", &["shortcut"],
        "Trials of jobs for answers, by the shortcut that knew the result",
        "each question, with `--enable-answers`; `shortcut` is `none` if the trial was run, else `known_trials`, `known_verdicts`, `known_failures` or `changed_copy`")),
    ours(gauge("volcano_waiting_jobs", &["queue_name", "code"],
        "Jobs that wait, by queue and by the code of the cause",
        "once a minute if something changed, with `--enable-answers`")),
    ours(counter("volcano_start_predictions_total", &["covered"],
        "Predicted starts of jobs, by whether the job started as predicted",
        "when such a job starts: the first prediction that somebody was told, and the last one an hour before")),
    ours(histogram("volcano_start_prediction_error_ratio", &[], buckets::ERROR_RATIO,
        "How late jobs started, divided by how long they were expected to wait: 0 is exact",
        "when a job starts whose predicted start somebody was told")),

    common(counter("rest_client_requests_total", &["code", "method", "host"],
        "Requests to the API server by status, method and host", "each answer")),
    common(histogram("rest_client_request_duration_seconds", &["verb", "host"], buckets::REQUEST,
        "Duration of requests to the API server in seconds", "each answer")),
    common(counter("promhttp_metric_handler_requests_total", &["code"],
        "Answered scrapes by status", "each scrape")),
    common(gauge("promhttp_metric_handler_requests_in_flight", &[],
        "Scrapes that are being answered", "each scrape")),
];

/// The row of this name.
pub(crate) fn row(name: &str) -> &'static MetricRow {
    TABLE.iter().find(|row| row.name == name).expect("names in this crate are in the table")
}
