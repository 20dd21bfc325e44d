//! The metrics that the registry keeps, made from the rows of the table. Specification: core.md 9.

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

use crate::table::row;

/// All of them. Fields are named after the metrics.
pub(crate) struct Families {
    pub(crate) cycle: Histogram,
    pub(crate) open: Histogram,
    pub(crate) job: Histogram,
    pub(crate) plugins: HistogramVec,
    pub(crate) actions: HistogramVec,
    pub(crate) task_stages: HistogramVec,
    pub(crate) stages: HistogramVec,
    pub(crate) preemption_victims: Gauge,
    pub(crate) preemption_attempts: IntCounter,
    pub(crate) eviction_transactions: IntCounterVec,
    pub(crate) unready_jobs: IntGauge,
    pub(crate) phases: HistogramVec,
    pub(crate) api_writes: IntCounterVec,
    pub(crate) watch_restarts: IntCounterVec,
    pub(crate) unreadable_kinds: IntGaugeVec,
    pub(crate) objects: IntGaugeVec,
    pub(crate) internal_errors: IntCounterVec,
    pub(crate) config_warnings: IntGauge,
    pub(crate) unknown_plugins: IntGaugeVec,
    pub(crate) reload_failures: IntCounter,
    pub(crate) load_failures: IntCounterVec,
    pub(crate) load_reads: IntGaugeVec,
    pub(crate) loaded_nodes: IntGaugeVec,
    pub(crate) malformed_objects: IntCounterVec,
    pub(crate) foreign_binds: IntCounter,
    pub(crate) usage_evictions: IntCounterVec,
    pub(crate) usage_writes: IntCounterVec,
    pub(crate) overwritten_conditions: IntCounterVec,
    pub(crate) hyper_node_problems: IntGaugeVec,
    pub(crate) topology_problems: IntGaugeVec,
    pub(crate) clock_skew: IntGauge,
    pub(crate) leader: IntGauge,
    pub(crate) default_in_force: IntGauge,
    pub(crate) dynamic_resources: IntGauge,
    pub(crate) answers: IntCounterVec,
    pub(crate) answer_durations: HistogramVec,
    pub(crate) answers_backlog: IntGauge,
    pub(crate) answers_behind: Gauge,
    pub(crate) answers_divergences: IntCounter,
    pub(crate) answers_given_up: IntCounterVec,
    pub(crate) answers_incomplete: IntCounterVec,
    pub(crate) answers_trials: IntCounterVec,
    pub(crate) waiting_jobs: IntGaugeVec,
    pub(crate) start_predictions: IntCounterVec,
    pub(crate) start_prediction_errors: Histogram,
    pub(crate) requests: IntCounterVec,
    pub(crate) request_durations: HistogramVec,
    pub(crate) scrapes: IntCounterVec,
    pub(crate) scrapes_in_flight: IntGauge,
}

/// Why the expectations below hold.
const VALID: &str = "names, labels and buckets of the table are valid and each is used once";

impl Families {
    pub(crate) fn register(registry: &Registry) -> Self {
        let families = FamilyMaker(registry);
        Self {
            cycle: families.histogram("volcano_e2e_scheduling_latency_milliseconds"),
            open: families.histogram("volcano_open_session_duration_milliseconds"),
            job: families.histogram("volcano_e2e_job_scheduling_latency_milliseconds"),
            plugins: families.histograms("volcano_plugin_scheduling_latency_milliseconds"),
            actions: families.histograms("volcano_action_scheduling_latency_milliseconds"),
            task_stages: families.histograms("volcano_task_scheduling_latency_milliseconds"),
            stages: families.histograms("volcano_scheduling_stage_duration_milliseconds"),
            preemption_victims: families
                .add(Gauge::with_opts(opts("volcano_pod_preemption_victims"))),
            preemption_attempts: families.counter("volcano_total_preemption_attempts"),
            eviction_transactions: families.counters("volcano_eviction_transactions_total"),
            unready_jobs: families.gauge("volcano_unschedule_job_count"),
            phases: families.histograms("volcano_cycle_phase_seconds"),
            api_writes: families.counters("volcano_api_writes_total"),
            watch_restarts: families.counters("volcano_watch_restarts_total"),
            unreadable_kinds: families.gauges("volcano_unreadable_kinds"),
            objects: families.gauges("volcano_objects"),
            internal_errors: families.counters("volcano_internal_errors_total"),
            config_warnings: families.gauge("volcano_config_warnings"),
            unknown_plugins: families.gauges("volcano_config_unknown_plugins"),
            reload_failures: families.counter("volcano_config_reload_failures_total"),
            load_failures: families.counters("volcano_node_load_failures_total"),
            load_reads: families.gauges("volcano_node_load_last_read_timestamp_seconds"),
            loaded_nodes: families.gauges("volcano_node_load_nodes"),
            malformed_objects: families.counters("volcano_malformed_objects_total"),
            foreign_binds: families.counter("volcano_foreign_binds_total"),
            usage_evictions: families.counters("volcano_fairshare_evictions_total"),
            usage_writes: families.counters("volcano_fairshare_state_writes_total"),
            overwritten_conditions: families.counters("volcano_overwritten_conditions_total"),
            hyper_node_problems: families.gauges("volcano_hypernode_problems"),
            topology_problems: families.gauges("volcano_network_topology_problems"),
            clock_skew: families.gauge("volcano_clock_skew_seconds"),
            leader: families.gauge("volcano_leader"),
            default_in_force: families.gauge("volcano_config_default_in_force"),
            dynamic_resources: families.gauge("volcano_dynamic_resources"),
            answers: families.counters("volcano_answers_requests_total"),
            answer_durations: families.histograms("volcano_answers_duration_seconds"),
            answers_backlog: families.gauge("volcano_answers_backlog_events"),
            answers_behind: families.add(Gauge::with_opts(opts("volcano_answers_behind_seconds"))),
            answers_divergences: families.counter("volcano_answers_divergences_total"),
            answers_given_up: families.counters("volcano_answers_given_up_total"),
            answers_incomplete: families.counters("volcano_answers_incomplete_total"),
            answers_trials: families.counters("volcano_answers_trials_total"),
            waiting_jobs: families.gauges("volcano_waiting_jobs"),
            start_predictions: families.counters("volcano_start_predictions_total"),
            start_prediction_errors: families.histogram("volcano_start_prediction_error_ratio"),
            requests: families.counters("rest_client_requests_total"),
            request_durations: families.histograms("rest_client_request_duration_seconds"),
            scrapes: families.counters("promhttp_metric_handler_requests_total"),
            scrapes_in_flight: families.gauge("promhttp_metric_handler_requests_in_flight"),
        }
    }
}

struct FamilyMaker<'a>(&'a Registry);

fn opts(name: &str) -> Opts {
    Opts::new(name, row(name).help)
}

fn histogram_opts(name: &str) -> HistogramOpts {
    HistogramOpts::new(name, row(name).help).buckets(row(name).buckets.to_vec())
}

impl FamilyMaker<'_> {
    fn add<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let collector = made.expect(VALID);
        self.0.register(Box::new(collector.clone())).expect(VALID);
        collector
    }

    fn histogram(&self, name: &str) -> Histogram {
        self.add(Histogram::with_opts(histogram_opts(name)))
    }

    fn histograms(&self, name: &str) -> HistogramVec {
        self.add(HistogramVec::new(histogram_opts(name), row(name).labels))
    }

    fn counter(&self, name: &str) -> IntCounter {
        self.add(IntCounter::with_opts(opts(name)))
    }

    fn counters(&self, name: &str) -> IntCounterVec {
        self.add(IntCounterVec::new(opts(name), row(name).labels))
    }

    fn gauge(&self, name: &str) -> IntGauge {
        self.add(IntGauge::with_opts(opts(name)))
    }

    fn gauges(&self, name: &str) -> IntGaugeVec {
        self.add(IntGaugeVec::new(opts(name), row(name).labels))
    }
}
