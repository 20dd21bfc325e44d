//! What a scrape shows: core.md 9 with its cases 96 to 98; rust-ecosystem.md
//! case 15.

use std::collections::{BTreeMap, BTreeSet};

use vc_engine::{
    Amounts, CycleTime, DeviceUse, Engine, EngineOptions, EvictReason, FairshareUsage, GangState,
    HyperNodeProblemCount, KNOWN, NodeDevices, PendingPods, PendingReason, PluginStage, PluginTime,
    QueueAmount, QueueGauges, Report, Sample, Timings,
};
use vc_model::{ClusterEvent, ObjectKey, QueueRecord};
use vc_telemetry::{MetricKind, Metrics, TABLE};

fn report(samples: Vec<Sample>) -> Report {
    Report { samples, ..Report::default() }
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

/// Series of the families whose name begins so, without comments.
fn series(metrics: &Metrics, prefix: &str) -> Vec<String> {
    let text = metrics.encode();
    text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
}

fn queue(kind: QueueAmount, scalars: &[(&str, f64)]) -> Sample {
    let scalars = scalars.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let amounts = Amounts { cpu_milli: 1500.0, memory_bytes: 1024.0, scalars };
    Sample::Queue(Box::new(QueueGauges {
        queue: "q1".into(),
        amounts: vec![(kind, amounts)],
        weight: None,
        share: None,
        overused: None,
    }))
}

#[test]
fn core_96_scalars_of_a_queue_become_zero_and_go_with_it() {
    let metrics = Metrics::new();
    let scalars = |scalars: &[(&str, f64)]| -> Vec<String> {
        metrics.observe_cycle(&report(vec![queue(QueueAmount::Allocated, scalars)]));
        series(&metrics, "volcano_queue_allocated_scalar_resources")
    };
    let line = |resource: &str, value: i32| {
        let name = "volcano_queue_allocated_scalar_resources";
        format!("{name}{{queue_name=\"q1\",resource=\"{resource}\"}} {value}")
    };
    let first = scalars(&[("amd.com/gpu", 10.0), ("nvidia.com/gpu", 5.0)]);
    assert_eq!(first, [line("amd.com/gpu", 10), line("nvidia.com/gpu", 5)]);
    let second = scalars(&[("nvidia.com/gpu", 3.0)]);
    assert_eq!(second, [line("amd.com/gpu", 0), line("nvidia.com/gpu", 3)]);
    assert_eq!(scalars(&[]), [line("amd.com/gpu", 0), line("nvidia.com/gpu", 0)]);
    // Known by one of the amounts, known by all.
    metrics.observe_cycle(&report(vec![queue(QueueAmount::Request, &[])]));
    let request = series(&metrics, "volcano_queue_request_scalar_resources");
    assert_eq!(request.len(), 2, "{request:?}");
    metrics.observe_cycle(&report(vec![Sample::QueueGone("q1".into())]));
    assert_eq!(series(&metrics, "volcano_queue_"), [""; 0]);
}

#[test]
fn core_97_one_per_transaction() {
    let metrics = Metrics::new();
    let reasons = [EvictReason::Preempt, EvictReason::Preempt, EvictReason::GangReclaim];
    metrics.observe_cycle(&report(reasons.map(Sample::EvictionTransaction).into()));
    assert_eq!(
        series(&metrics, "volcano_eviction"),
        [
            "volcano_eviction_transactions_total{action=\"gangreclaim\"} 1",
            "volcano_eviction_transactions_total{action=\"preempt\"} 2",
        ]
    );
}

#[test]
fn core_98_bounds_as_text() {
    let metrics = Metrics::new();
    let timings = Some(Timings { cycle: 2_000_000, ..Timings::default() });
    metrics.observe_cycle(&Report { timings, ..Report::default() });
    let lines = series(&metrics, "volcano_e2e_scheduling_latency_milliseconds");
    let name = "volcano_e2e_scheduling_latency_milliseconds";
    for (le, count) in [("1.5656065579430964", 0), ("2.45112389427443", 1), ("+Inf", 1)] {
        assert!(lines.contains(&format!("{name}_bucket{{le=\"{le}\"}} {count}")), "{lines:#?}");
    }
    assert!(lines.contains(&format!("{name}_sum 2")) && lines.contains(&format!("{name}_count 1")));
}

#[test]
fn rust_15_counters_keep_their_names() {
    let metrics = Metrics::new();
    let samples = vec![Sample::PreemptionVictims(7), Sample::PreemptionAttempts(1)];
    metrics.observe_cycle(&report(samples));
    let lines = series(&metrics, "volcano_total_preemption_attempts");
    assert_eq!(lines, ["volcano_total_preemption_attempts 1"]);
    let lines = series(&metrics, "volcano_pod_preemption_victims");
    assert_eq!(lines, ["volcano_pod_preemption_victims 7"]);
}

fn gang(namespace: &str, state: GangState) -> Sample {
    Sample::JobGang { job: key(namespace, "j"), state }
}

#[test]
fn groups_of_one_name_share_a_series_that_is_their_sum() {
    let metrics = Metrics::new();
    let cycle = |mut samples: Vec<Sample>, n_unready| -> Vec<String> {
        samples.push(Sample::UnreadyJobs(n_unready));
        metrics.observe_cycle(&report(samples));
        let text = metrics.encode();
        let wanted = ["volcano_unschedule_", "volcano_job_retry"];
        let wanted = |line: &&str| wanted.iter().any(|prefix| line.starts_with(prefix));
        text.lines().filter(wanted).map(str::to_owned).collect()
    };
    let lines = |n_jobs: u32, n_tasks: u32, n_retries: u32| {
        let retries = format!("volcano_job_retry_counts{{job_id=\"j\"}} {n_retries}");
        let mut lines = vec![
            format!("volcano_unschedule_job_count {n_jobs}"),
            format!("volcano_unschedule_task_count{{job_id=\"j\"}} {n_tasks}"),
        ];
        lines.extend(Some(retries).filter(|_| 0 < n_retries));
        lines
    };
    assert_eq!(cycle(vec![gang("a", GangState::Ready)], 0), lines(0, 0, 0));
    assert_eq!(cycle(vec![gang("a", GangState::Unready(2))], 1), lines(1, 2, 1));
    assert_eq!(cycle(vec![gang("b", GangState::Unready(3))], 2), lines(2, 5, 3));
    assert_eq!(cycle(vec![], 2), lines(2, 5, 5));
    assert_eq!(cycle(vec![gang("a", GangState::Unsaid)], 1), lines(1, 5, 6));
    assert_eq!(cycle(vec![gang("b", GangState::Ready)], 0), lines(0, 2, 6));
    assert_eq!(cycle(vec![], 0), lines(0, 2, 6));
    // What is shared does not go down.
    assert_eq!(cycle(vec![Sample::JobGone(key("b", "j"))], 0), lines(0, 2, 6));
    let gone = cycle(vec![Sample::JobGone(key("a", "j"))], 0);
    assert_eq!(gone, ["volcano_unschedule_job_count 0"]);
}

#[test]
fn series_of_a_job_come_with_its_numbers_and_vanish_with_it() {
    let metrics = Metrics::new();
    let all = || -> Vec<String> {
        let mut lines = series(&metrics, "volcano_e2e_job_scheduling_");
        lines.retain(|line| !line.contains("latency"));
        lines.extend(series(&metrics, "volcano_job_share"));
        lines
    };
    let job = || key("n", "j");
    let seen = |queue: &str| Sample::JobSeen {
        job: job(),
        queue: queue.into(),
        created_micros: 1_500_000,
    };
    metrics.observe_cycle(&report(vec![seen("q1")]));
    let labels = |queue| format!("{{job_name=\"j\",job_namespace=\"n\",queue=\"{queue}\"}}");
    let start = |queue| format!("volcano_e2e_job_scheduling_start_time{} 1", labels(queue));
    assert_eq!(all(), [start("q1")]);
    let placed = Sample::JobPlaced {
        job: job(),
        queue: "q2".into(),
        n_tasks: 3,
        waited_micros: 2_500_500,
        now_micros: 4_000_500,
    };
    let share = Sample::JobShare { job: job(), share: 0.25 };
    metrics.observe_cycle(&report(vec![seen("q2"), placed, share]));
    assert_eq!(
        all(),
        [
            format!("volcano_e2e_job_scheduling_duration{} 2500.5", labels("q2")),
            format!("volcano_e2e_job_scheduling_last_time{} 4", labels("q2")),
            start("q2"),
            "volcano_job_share{job_id=\"j\",job_ns=\"n\"} 0.25".to_owned(),
        ]
    );
    metrics.observe_cycle(&report(vec![Sample::JobGone(job())]));
    assert_eq!(all(), [""; 0]);
    let count = series(&metrics, "volcano_e2e_job_scheduling_latency_milliseconds_count");
    assert_eq!(count, ["volcano_e2e_job_scheduling_latency_milliseconds_count 3"], "per task");
}

#[test]
fn reasons_to_wait_become_zero_and_go_with_the_queue() {
    let metrics = Metrics::new();
    let waiting = |queue: &str, reason, n_pods| PendingPods { queue: queue.into(), reason, n_pods };
    let pods = vec![
        waiting("", PendingReason::NoQueue, 2),
        waiting("q1", PendingReason::NoFit, 3),
        waiting("q1", PendingReason::Gated, 1),
    ];
    metrics.observe_cycle(&report(vec![Sample::PendingPods(pods)]));
    let line = |queue, reason, n_pods| {
        format!("volcano_pending_pods{{queue=\"{queue}\",reason=\"{reason}\"}} {n_pods}")
    };
    let all = || series(&metrics, "volcano_pending_pods");
    let first = [line("", "no_queue", 2), line("q1", "gated", 1), line("q1", "no_fit", 3)];
    assert_eq!(all(), first);
    let pods = vec![waiting("q1", PendingReason::NoFit, 4)];
    metrics.observe_cycle(&report(vec![Sample::PendingPods(pods)]));
    let second = [line("", "no_queue", 0), line("q1", "gated", 0), line("q1", "no_fit", 4)];
    assert_eq!(all(), second);
    metrics.observe_cycle(&report(vec![Sample::QueueGone("q1".into())]));
    assert_eq!(all(), [line("", "no_queue", 0)]);
}

#[test]
fn t6_metrics_of_quota_go_with_their_queues() {
    let metrics = Metrics::new();
    let preempted = |preempted: &str| Sample::QuotaPreempted {
        preempting: "c1".into(),
        preempted: preempted.into(),
        reason: "InCohortReclamation",
    };
    let refused = Sample::QuotaRefused { queue: "c2".into(), cause: "unplaceable", count: 3 };
    let share = |queue: &str, value| Sample::WeightedShare {
        queue: queue.into(),
        parent: "root".into(),
        value,
    };
    let samples = vec![
        preempted("c2"),
        preempted("c2"),
        preempted("c3"),
        refused,
        share("c2", f64::INFINITY),
        share("c3", 12.5),
    ];
    metrics.observe_cycle(&report(samples));
    let all = || series(&metrics, "volcano_cohort_");
    let line = |queue: &str, count: u32| {
        format!(
            "volcano_cohort_preempted_podgroups_total{{preempted_queue=\"{queue}\",\
             preempting_queue=\"c1\",reason=\"InCohortReclamation\"}} {count}"
        )
    };
    let share = |queue: &str, value: &str| {
        let labels = format!("parent=\"root\",queue_name=\"{queue}\"");
        format!("volcano_cohort_weighted_share{{{labels}}} {value}")
    };
    let refused = "volcano_cohort_preemption_refused_total\
        {cause=\"unplaceable\",queue_name=\"c2\"} 3";
    let first = [
        line("c2", 2),
        line("c3", 1),
        refused.to_owned(),
        share("c2", "+Inf"),
        share("c3", "12.5"),
    ];
    assert_eq!(all(), first);
    metrics.observe_cycle(&report(vec![Sample::QueueGone("c2".into())]));
    assert_eq!(all(), [line("c3", 1), share("c3", "12.5")]);
    metrics.observe_cycle(&report(vec![Sample::QueueGone("c1".into())]));
    assert_eq!(all(), [share("c3", "12.5")]);
}

/// Everything that can have a value has one.
fn full() -> std::sync::Arc<Metrics> {
    let metrics = Metrics::new();
    let time = PluginTime { plugin: "gang", stage: PluginStage::Open, nanos: 1 };
    let timings = Timings {
        actions: vec![("allocate", 1)],
        plugins: vec![time, PluginTime { stage: PluginStage::Close, ..time }],
        predicates: vec![1],
        scorings: vec![1],
        ..Timings::default()
    };
    let kinds = [
        QueueAmount::Allocated,
        QueueAmount::Request,
        QueueAmount::Deserved,
        QueueAmount::Capability,
        QueueAmount::RealCapability,
        QueueAmount::Inqueue,
    ];
    let mut samples: Vec<Sample> = kinds.map(|kind| queue(kind, &[("pods", 1.0)])).into();
    let (share, weight, overused) = (Some(0.5), Some(1), Some(true));
    let queue = "q1".into();
    let gauges = QueueGauges { queue, amounts: Vec::new(), weight, share, overused };
    let placed = Sample::JobPlaced {
        job: key("n", "j"),
        queue: "q1".into(),
        n_tasks: 1,
        waited_micros: 1,
        now_micros: 1,
    };
    let (job, created_micros) = (key("n", "j"), 1);
    let waiting = PendingPods { queue: "q1".into(), reason: PendingReason::NoFit, n_pods: 1 };
    samples.extend([
        Sample::Queue(Box::new(gauges)),
        Sample::JobSeen { job, queue: "q1".into(), created_micros },
        placed,
        Sample::JobShare { job: key("n", "j"), share: 1.0 },
        gang("n", GangState::Unready(1)),
        Sample::UnreadyJobs(1),
        Sample::Assumed { waited_micros: 1, n_tasks: 1 },
        Sample::EvictionTransaction(EvictReason::Reclaim),
        Sample::QuotaPreempted {
            preempting: "q1".into(),
            preempted: "q1".into(),
            reason: "InClusterQueue",
        },
        Sample::QuotaRefused { queue: "q1".into(), cause: "nofit", count: 1 },
        Sample::WeightedShare { queue: "q1".into(), parent: "root".into(), value: 1.0 },
        Sample::PendingPods(vec![waiting]),
        Sample::ConditionsOverwritten { kind: "Pod", n_conditions: 2 },
        Sample::HyperNodeProblems(vec![HyperNodeProblemCount {
            hyper_node: "rack-a".into(),
            field: "spec.members".into(),
            n_problems: 1,
        }]),
        Sample::NetworkTopologyProblems(vec![(
            ObjectKey::new("ns", "j"),
            "spec.networkTopology.highestTierName".into(),
        )]),
        Sample::NodeDevices(Box::new(node_devices("n1", 1))),
        Sample::FairshareUsage(Box::new(FairshareUsage {
            queue: "q".into(),
            account: "ns".into(),
            level: 1.0,
            rate: 1.0,
            since_micros: 0,
            half_life_micros: 60_000_000,
        })),
        Sample::FairshareShare { queue: "q".into(), account: "ns".into(), share: 2.0 },
        Sample::FairshareQueue { queue: "q".into(), parent: "root".into(), weight: 1 },
        Sample::FairshareEvictions { queue: "q".into(), n_pods: 1 },
        Sample::InternalErrors { kind: "amount_below_zero", n_errors: 2 },
    ]);
    metrics.observe_cycle(&Report { samples, timings: Some(timings), ..Report::default() });
    metrics.api_write("create", "pods/binding", 201);
    metrics.answer("/summary", 200, 0.1);
    metrics.answers_behind(0.5);
    metrics.answers_given_up("divergence");
    metrics.answer_incomplete("/whatifs");
    metrics.answers_trials("none", 3);
    metrics.waiting_jobs([(("q", "NoRoom"), 2)].into_iter());
    metrics.start_prediction(true, Some(0.05));
    metrics.usage_saved("written");
    metrics.watch_restart("pods");
    metrics.unreadable_kind("nodes", "watch", 403, true, true);
    metrics.objects("pods", 5);
    metrics.config_warnings(2);
    metrics.unknown_plugins(["gone"].into_iter());
    metrics.unknown_plugins(["magic"].into_iter());
    metrics.reload_failure();
    metrics.loads_read("prometheus", 1, 1, 1);
    metrics.loads_failed("prometheus", "timeout");
    metrics.malformed_object("podgroups");
    metrics.internal_error("check");
    metrics.task_stage("Bound", 12.0);
    metrics.stage_duration("Bind", 1.0);
    metrics.client_request("POST", "api:6443", "201", 0.1);
    metrics
}

/// A device of the node that so many pods share.
fn node_devices(node: &str, n_pods: i64) -> NodeDevices {
    let pods = (0..n_pods).map(|pod| (format!("p{pod}").into(), 100, 10)).collect();
    let (memory, cores) = (100 * n_pods, 10 * n_pods);
    let device = DeviceUse {
        device: "GPU-0".into(),
        n_users: n_pods,
        memory,
        cores,
        memory_limit: 400,
        pods,
    };
    NodeDevices { node: node.into(), devices: vec![device] }
}

/// Series of devices follow the last sample of their node.
#[test]
fn series_of_devices_vanish_with_pods_and_devices() {
    let metrics = Metrics::new();
    let lines = |devices: NodeDevices| {
        let samples = vec![Sample::NodeDevices(Box::new(devices))];
        metrics.observe_cycle(&Report { samples, ..Report::default() });
        let text = metrics.encode();
        let lines = text.lines().filter(|line| line.starts_with("volcano_vgpu_"));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let shared = |n: i64| {
        format!("volcano_vgpu_device_shared_number{{NodeName=\"n1\",devID=\"GPU-0\"}} {n}")
    };
    let two = lines(node_devices("n1", 2));
    let memory = "volcano_vgpu_device_memory_allocation_for_a_certain_pod\
        {NodeName=\"n1\",devID=\"GPU-0\",podName=\"p1\"} 100";
    assert!(two.contains(&shared(2)) && two.iter().any(|line| line == memory), "{two:#?}");
    let none = lines(node_devices("n1", 0));
    assert!(none.contains(&shared(0)) && none.len() == 4, "{none:#?}");
    let gone = NodeDevices { node: "n1".into(), devices: Vec::new() };
    assert_eq!(lines(gone), [""; 0]);
}

/// Name, label names and value of each line; `le` texts of each histogram.
type Families<'t> = BTreeMap<&'t str, (&'t str, BTreeSet<&'t str>, Vec<&'t str>)>;

fn families(text: &str) -> Families<'_> {
    let mut families: Families<'_> = BTreeMap::new();
    let mut current = "";
    let mut lines = BTreeSet::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("name and type");
            let before = families.insert(name, (kind, BTreeSet::new(), Vec::new()));
            assert!(before.is_none(), "{name} stands together");
            current = name;
        } else if !line.starts_with('#') {
            let (series, _) = line.rsplit_once(' ').expect("series and value");
            assert!(lines.insert(series), "once: {series}");
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            assert!(name.starts_with(current), "{name} in {current}");
            let family = families.get_mut(current).expect("declared");
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once("=\"").expect("a label");
                match label {
                    "le" => family.2.push(value.trim_end_matches('"')),
                    label => drop(family.1.insert(label)),
                }
            }
        }
    }
    families
}

#[test]
fn every_metric_has_the_type_the_labels_and_the_bounds_of_the_table() {
    let metrics = full();
    metrics.encode();
    let text = metrics.encode();
    let families = families(&text);
    let mut absent = Vec::new();
    for row in TABLE {
        let Some((kind, labels, bounds)) = families.get(row.name) else {
            absent.push(row.name);
            continue;
        };
        assert_eq!(*kind, row.kind.as_str(), "{}", row.name);
        assert_eq!(*labels, row.labels.iter().copied().collect(), "{}", row.name);
        let mut expected: Vec<String> = row.buckets.iter().map(f64::to_string).collect();
        expected.extend(Some("+Inf".to_owned()).filter(|_| row.kind == MetricKind::Histogram));
        for bounds in bounds.chunks(expected.len().max(1)) {
            assert_eq!(bounds, expected, "{}", row.name);
        }
        assert_eq!(bounds.is_empty(), row.kind != MetricKind::Histogram, "{}", row.name);
    }
    assert_eq!(
        absent,
        [
            "volcano_schedule_attempts_total",
            "volcano_namespace_weight",
            "volcano_namespace_weighted_share",
        ]
    );
    let known = |name: &&str| TABLE.iter().any(|row| row.name == *name);
    let others: Vec<&str> = families.into_keys().filter(|name| !known(name)).collect();
    assert!(others.iter().all(|name| name.starts_with("process_")), "{others:?}");
    assert_eq!(others.is_empty(), !cfg!(target_os = "linux"));
}

#[test]
fn what_the_edge_counts() {
    let metrics = full();
    metrics.api_write("create", "pods/binding", 201);
    metrics.api_write("update", "podgroups", 0);
    metrics.clock_skew(-60);
    metrics.leads(true);
    metrics.default_in_force(true);
    metrics.dynamic_resources(true);
    metrics.foreign_bind();
    let text = metrics.encode();
    for line in [
        "volcano_api_writes_total{code=\"201\",resource=\"pods/binding\",verb=\"create\"} 2",
        "volcano_api_writes_total{code=\"0\",resource=\"podgroups\",verb=\"update\"} 1",
        "volcano_watch_restarts_total{kind=\"pods\"} 1",
        "volcano_unreadable_kinds{code=\"403\",kind=\"nodes\",required=\"true\",verb=\"watch\"} 1",
        "volcano_objects{kind=\"pods\"} 5",
        "volcano_config_warnings 2",
        "volcano_config_unknown_plugins{plugin=\"magic\"} 1",
        "volcano_node_load_failures_total{cause=\"timeout\",source=\"prometheus\"} 1",
        "volcano_node_load_last_read_timestamp_seconds{source=\"prometheus\"} 1",
        "volcano_node_load_nodes{source=\"prometheus\",state=\"missing\"} 1",
        "volcano_malformed_objects_total{kind=\"podgroups\"} 1",
        "volcano_foreign_binds_total 1",
        "volcano_fairshare_state_writes_total{result=\"written\"} 1",
        "volcano_clock_skew_seconds -60",
        "volcano_leader 1",
        "volcano_config_default_in_force 1",
        "volcano_dynamic_resources 1",
        "volcano_config_reload_failures_total 1",
        "volcano_internal_errors_total{kind=\"amount_below_zero\"} 2",
        "volcano_internal_errors_total{kind=\"check\"} 1",
        "rest_client_requests_total{code=\"201\",host=\"api:6443\",method=\"POST\"} 1",
        "promhttp_metric_handler_requests_in_flight 1",
        "promhttp_metric_handler_requests_total{code=\"200\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(!text.contains("plugin=\"gone\""), "a reload has taken it away");
    metrics.unreadable_kind("nodes", "watch", 403, true, false);
    metrics.loads_stopped();
    let again = metrics.encode();
    assert!(!again.contains("volcano_node_load_nodes{"), "{again}");
    assert!(!again.contains("volcano_unreadable_kinds{"), "{again}");
    assert!(again.contains("promhttp_metric_handler_requests_total{code=\"200\"} 1"));
}

#[test]
fn cycles_of_an_engine() {
    let conf =
        "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: proportion";
    let config = vc_conf::parse("test.conf", conf, &KNOWN).expect("it is valid").config;
    let options = EngineOptions { stopwatch: Some(|| 0), ..EngineOptions::default() };
    let (mut engine, _) = Engine::new(options, &config);
    let metrics = Metrics::new();
    let mut cycle = |event| {
        let (_, report) = engine.cycle(Vec::from_iter(event), CycleTime { unix_micros: 0 });
        metrics.observe_cycle(&report);
        metrics.encode()
    };
    let queue = QueueRecord { name: "q1".into(), ..QueueRecord::default() };
    let text = cycle(Some(ClusterEvent::QueueApplied(Box::new(queue))));
    for line in [
        "volcano_action_scheduling_latency_milliseconds_count{action=\"allocate\"} 1",
        "volcano_plugin_scheduling_latency_milliseconds_count\
            {OnSession=\"OnSessionOpen\",plugin=\"gang\"} 1",
        "volcano_cycle_phase_seconds_count{phase=\"apply\"} 1",
        "volcano_queue_allocated_milli_cpu{queue_name=\"q1\"} 0",
        "volcano_unschedule_job_count 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(!text.contains("volcano_scheduling_stage_duration"), "nothing was filtered");
    assert_eq!(cycle(None).matches("queue_name=\"q1\"").count(), 6, "it stays without news");
    let gone = cycle(Some(ClusterEvent::QueueDeleted { name: "q1".into() }));
    assert_eq!(gone.matches("queue_name=").count(), 0);
}
