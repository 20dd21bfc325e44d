//! Cases 106-110 and 112 of plugins-nodes.md: the plugin `usage`.

use serde_json::{Value, json};
use vc_conf::{PluginOption, Warning};
use vc_framework::{Clock, Plugin, Points, SessionInfo, SessionView};
use vc_model::{Cluster, Code, TaskStatus, fixture};

const SECOND: i64 = 1_000_000;

/// A cluster, with the plugin over it. The time of a session is in seconds after the start.
struct World {
    cluster: Cluster,
    info: SessionInfo,
    plugin: Box<dyn Plugin>,
}

/// The plugin with these arguments, and the warnings about them.
fn plugin(arguments: Value) -> (Box<dyn Plugin>, Vec<Warning>) {
    let arguments = arguments.as_object().expect("a map").clone();
    let option = PluginOption {
        name: "usage".to_owned(),
        arguments: arguments.into_iter().collect(),
        ..PluginOption::default()
    };
    let entry = vc_plugins::ALL.iter().find(|entry| entry.name() == "usage");
    let mut warnings = Vec::new();
    let plugin = (entry.expect("it is built").build)(&option, &mut warnings);
    (plugin, warnings)
}

impl World {
    fn new(arguments: Value, text: &str) -> Self {
        let (plugin, warnings) = plugin(arguments);
        assert_eq!(warnings, []);
        Self { cluster: fixture::cluster(text), info: SessionInfo::default(), plugin }
    }

    /// Opens a session so many seconds after the start.
    fn open(&mut self, seconds: i64) {
        let now_micros = fixture::START_MICROS + seconds * SECOND;
        let nodes = self.cluster.nodes_by_name().into();
        self.info = SessionInfo { nodes, now_micros, ..SessionInfo::default() };
        self.plugin.open(SessionView { cluster: &self.cluster, info: &self.info });
    }

    fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    fn score(&self, node: &str) -> f64 {
        let task = self.cluster.tasks.ids().next().expect("a task");
        let score = self.plugin.node_order(self.view(), task, fixture::node(&self.cluster, node));
        // Sums of fractions end in other digits than the cases.
        (score.expect("it never fails") * 1e6).round() / 1e6
    }

    fn scores<const N: usize>(&self, nodes: [&str; N]) -> [f64; N] {
        nodes.map(|node| self.score(node))
    }

    /// What is found against a pod on the node. Eviction cannot help.
    fn refusal(&self, node: &str) -> Option<String> {
        let task = self.cluster.tasks.ids().next().expect("a task");
        let mut findings = Vec::new();
        self.plugin.predicate(self.view(), task, fixture::node(&self.cluster, node), &mut findings);
        assert!(findings.iter().all(|finding| finding.code == Code::Unresolvable));
        findings.pop().map(|finding| finding.reason.text(&self.cluster.dims))
    }

    fn put(&mut self, task: &str, status: TaskStatus, node: &str) {
        let (task, node) = (fixture::task(&self.cluster, task), fixture::node(&self.cluster, node));
        self.cluster.set_task(task, status, Some(node));
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        self.plugin.on_allocate(view, task);
    }

    fn take(&mut self, task: &str) {
        let task = fixture::task(&self.cluster, task);
        self.cluster.set_task(task, TaskStatus::Pending, None);
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        self.plugin.on_deallocate(view, task);
    }
}

/// The estimate for a pod in percent of a node of 10 cpu and 10 Gi without load, in weights of 0 and 1.
fn estimate(estimator: Value, pod: &str) -> [f64; 2] {
    [("cpu.weight", "memory.weight"), ("memory.weight", "cpu.weight")].map(|(one, other)| {
        let arguments =
            json!({"usage.weight": 1, one: 1, other: 0, "estimator": estimator.clone()});
        let text = format!("node n cpu=10 memory=10Gi\nload n\npod p {pod} @n bound");
        let mut world = World::new(arguments, &text);
        world.open(0);
        ((100.0 - world.score("n")) * 1e6).round() / 1e6
    })
}

#[test]
fn nodes_106_estimates() {
    let cases = [
        // Request, limit, ratios, and the estimate of cpu in percent of 10.
        ("cpu=500m limit.cpu=2", json!({"request_ratio": 0.5, "burst_ratio": 0.2}), 5.5),
        ("cpu=500m limit.cpu=100m", json!({"request_ratio": 1, "burst_ratio": 1}), 5.0),
        ("cpu=500m", json!({"request_ratio": 0.5, "burst_ratio": 1}), 2.5),
        ("cpu=500m limit.cpu=600m", json!({"risk_threshold": 0, "risk_factor": 9}), 6.0),
        ("cpu=500m", json!({"risk_threshold": 0, "risk_factor": 1.2}), 4.2),
        ("cpu=500m", json!({}), 3.5),
        ("memory=1Gi", json!({}), 0.0),
    ];
    for (pod, estimator, expected) in cases {
        assert_eq!(estimate(estimator.clone(), pod)[0], expected, "{pod} {estimator}");
    }
    assert_eq!(estimate(json!({}), "memory=1Gi limit.memory=2Gi"), [0.0, 7.0]);
    // A pod without requests.
    let cases = [
        (json!({}), [2.5, 1.953125]),
        (json!({"be_cpu": 100, "be_mem": 1024}), [1.0, 10.0]),
        (json!({"be_cpu": "1", "be_mem": "2Gi"}), [10.0, 20.0]),
        (json!({"be_cpu": 0, "be_mem": 0}), [0.0, 0.0]),
        (json!({"risk_threshold": 0, "be_mem": "1Gi"}), [3.0, 12.0]),
    ];
    for (estimator, expected) in cases {
        assert_eq!(estimate(estimator.clone(), ""), expected, "{estimator}");
    }
}

#[test]
fn nodes_107_the_load_decides_the_risk_of_the_next_pod() {
    // The load of the node, the weights, and the part of the capacity that a pod of 1 cpu adds.
    let cases = [
        ("cpu=40 memory=60", [1, 1], 0.6, 7.0),
        ("cpu=40 memory=60", [1, 1], 0.5, 8.4),
        ("cpu=80 memory=20", [3, 1], 0.65, 8.4),
        ("cpu=80 memory=20", [3, 1], 0.66, 7.0),
        ("cpu=59 memory=59", [1, 1], 0.6, 7.0),
        ("cpu=60 memory=60", [1, 1], 0.6, 8.4),
        // Without weights the load is 0.
        ("cpu=99 memory=99", [0, 0], 0.1, 0.0),
    ];
    for (load, [cpu, memory], risk_threshold, added) in cases {
        let arguments = json!({"usage.weight": 1, "cpu.weight": cpu, "memory.weight": memory,
            "estimator": {"risk_threshold": risk_threshold}});
        let scores = ["", "bound"].map(|pod| {
            let pod = if pod.is_empty() { "pod p cpu=1" } else { "pod p cpu=1 @n bound" };
            let text = format!("node n cpu=10 memory=10Gi\nload n {load}\n{pod}");
            let mut world = World::new(arguments.clone(), &text);
            world.open(0);
            world.score("n")
        });
        let share = f64::from(cpu) / f64::from(cpu + memory).max(1.0);
        let difference = ((scores[0] - scores[1]) * 1e6).round() / 1e6;
        assert_eq!(difference, ((added * share) * 1e6).round() / 1e6, "{load} {risk_threshold}");
    }
    // The pod that comes first raises the load, so that the factor counts for the second one.
    let two = "node n cpu=10 memory=10Gi\nload n cpu=55 memory=55
        pod a cpu=1 memory=1Gi @n running started=-9\npod b cpu=1 memory=1Gi @n running started=-8";
    let mut world = World::new(json!({"usage.weight": 1}), two);
    world.open(0);
    assert_eq!(world.score("n"), 100.0 - 55.0 - 7.0 - 8.4);
}

#[test]
fn nodes_107_a_factor_below_1_is_ignored() {
    let (_, warnings) = plugin(json!({"estimator": {"risk_factor": 0.9}}));
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected = "estimator.risk_factor: 0.9 is less than 1\nhint: write a number of at least 1; \
        until then the default 1.2 is in force";
    assert_eq!(texts, [expected]);
}

#[test]
fn nodes_108_scores() {
    let of = |cpu_weight: i64, memory_weight: i64, load: &str| {
        let arguments = json!({"cpu.weight": cpu_weight, "memory.weight": memory_weight});
        let text = format!("node n cpu=10 memory=10Gi\nload n {load}\npod p");
        let mut world = World::new(arguments, &text);
        world.open(0);
        world.score("n")
    };
    assert_eq!(of(1, 1, "cpu=30 memory=50"), 300.0);
    assert_eq!(of(2, 8, "cpu=60 memory=50"), 240.0);
    // Nothing is below 0 or above 1.
    assert_eq!(of(1, 1, "cpu=250 memory=0"), 250.0);
    assert_eq!(of(0, 0, "cpu=30 memory=50"), 0.0);
}

#[test]
fn nodes_109_a_loaded_node_is_full() {
    let text = "node n cpu=10 memory=10Gi\nnode unread cpu=10\npod p";
    let mut world = World::new(json!({}), text);
    let cases = [
        ("cpu=80 memory=80", None),
        ("cpu=80.1 memory=80", Some("the CPU load of the node exceeds the upper limit.")),
        ("cpu=80 memory=80.1", Some("the memory load of the node exceeds the upper limit.")),
        ("cpu=81 memory=81", Some("the CPU load of the node exceeds the upper limit.")),
    ];
    for (load, expected) in cases {
        fixture::apply(&mut world.cluster, &format!("load n {load}"));
        world.open(0);
        assert_eq!(world.refusal("n").as_deref(), expected, "{load}");
        assert_eq!((world.refusal("unread"), world.score("unread")), (None, 0.0));
    }
    // Five minutes later it still counts, then no more.
    for (seconds, is_fresh) in [(300, true), (301, false), (299, true)] {
        world.open(seconds);
        assert_eq!(world.refusal("n").is_some(), is_fresh, "{seconds}");
        assert_eq!(world.score("n") != 0.0, is_fresh, "{seconds}");
    }
    let mut other = World::new(json!({"thresholds": {"cpu": 50, "mem": 60}}), text);
    fixture::apply(&mut other.cluster, "load n cpu=50 memory=61");
    other.open(0);
    assert!(other.refusal("n").is_some_and(|text| text.contains("memory")));
}

#[test]
fn nodes_110_the_second_pod_goes_elsewhere() {
    let text = "node a cpu=10 memory=10Gi\nnode b cpu=10 memory=10Gi
        load a cpu=10 memory=10\nload b cpu=10 memory=10\njob j\n  task p cpu=1 x2";
    let mut world = World::new(json!({"usage.weight": 2}), text);
    world.open(0);
    assert_eq!(world.scores(["a", "b"]), [180.0, 180.0]);
    world.put("j/p-0", TaskStatus::Allocated, "a");
    assert_eq!(world.scores(["a", "b"]), [173.0, 180.0]);
    // A pod that only waits for the node counts too.
    world.put("j/p-1", TaskStatus::Pipelined, "a");
    assert_eq!(world.scores(["a", "b"]), [166.0, 180.0]);
    world.take("j/p-1");
    world.take("j/p-0");
    assert_eq!(world.scores(["a", "b"]), [180.0, 180.0], "to the last bit");
}

#[test]
fn nodes_110_pods_that_monitoring_has_seen_do_not_count() {
    let text = "node a cpu=10 memory=10Gi\nload a at=60 interval=60
        pod bound cpu=1 @a bound\npod old cpu=1 @a running started=-60
        pod new cpu=1 @a running started=50\npod unknown cpu=1 @a running
        pod leaving cpu=1 @a releasing started=50\npod waiting cpu=1";
    let mut world = World::new(json!({"usage.weight": 2}), text);
    world.open(60);
    assert_eq!(world.score("a"), 200.0 - 3.0 * 7.0);
    let keys = world.plugin.as_cache_keys().expect("it has keys");
    let before = keys.revision();
    let due = |seconds: i64| Clock::Until(fixture::START_MICROS + seconds * SECOND);
    assert_eq!(keys.clock(world.view()), due(110));
    world.open(109);
    assert_eq!(world.plugin.as_cache_keys().and_then(|keys| keys.revision()), before);
    world.open(110);
    assert_eq!(world.score("a"), 200.0 - 2.0 * 7.0);
    let keys = world.plugin.as_cache_keys().expect("it has keys");
    assert_ne!(keys.revision(), before, "time alone has changed the score");
    // The next is the load itself, five minutes after it was read.
    let Clock::Until(until) = keys.clock(world.view()) else { panic!("it is due") };
    assert_eq!(until, fixture::START_MICROS + 360 * SECOND + 1);
}

#[test]
fn nodes_112_a_node_that_is_not_read_again_keeps_its_load() {
    let text = "node n1 cpu=10 memory=10Gi\nnode n2 cpu=10 memory=10Gi
        load n1 cpu=20 memory=20\nload n2 cpu=20 memory=20\npod p";
    let mut world = World::new(json!({"usage.weight": 1}), text);
    world.open(0);
    assert_eq!(world.scores(["n1", "n2"]), [80.0, 80.0]);
    // The source names only n2, and a node that does not exist.
    fixture::apply(&mut world.cluster, "load n2 cpu=40 memory=40 at=290\nload n9 cpu=1 memory=1");
    world.open(290);
    assert_eq!(world.scores(["n1", "n2"]), [80.0, 60.0]);
    world.open(301);
    assert_eq!(world.scores(["n1", "n2"]), [0.0, 60.0]);
    // A node that goes takes its load along.
    let events = ["n2", "n1"].map(|name| vc_model::ClusterEvent::NodeDeleted { name: name.into() });
    events.into_iter().for_each(|event| world.cluster.apply(event));
    fixture::apply(&mut world.cluster, "node n1 cpu=10 memory=10Gi\nnode n2 cpu=10 memory=10Gi");
    world.open(302);
    assert_eq!(world.scores(["n1", "n2"]), [0.0, 0.0]);
}

#[test]
fn without_weight_there_is_only_the_threshold() {
    let text = "node n cpu=10 memory=10Gi\nload n cpu=20 memory=20\npod p cpu=1 @n bound";
    let mut world = World::new(json!({"usage.weight": 0}), text);
    assert_eq!(world.plugin.points(), Points::PREDICATE);
    world.open(0);
    assert_eq!(world.refusal("n"), None);
}

#[test]
fn bad_arguments_leave_the_defaults() {
    let cases = [
        (json!({"usage.weight": -1}), "usage.weight: -1 is less than 0"),
        (json!({"cpu.weight": -1}), "cpu.weight: -1 is less than 0"),
        (json!({"memory.weight": "x"}), "memory.weight: expected an integer, found \"x\""),
        (json!({"thresholds": {"cpu": 101}}), "thresholds.cpu: 101 is more than 100"),
        (json!({"thresholds": {"mem": -1}}), "thresholds.mem: -1 is less than 0"),
        (json!({"thresholds": {"mem": 80.5}}), "thresholds.mem: expected an integer, found 80.5"),
        (
            json!({"estimator": {"request_ratio": 1.5}}),
            "estimator.request_ratio: 1.5 is more than 1",
        ),
        (json!({"estimator": {"burst_ratio": -0.5}}), "estimator.burst_ratio: -0.5 is less than 0"),
        (json!({"estimator": {"risk_threshold": 2}}), "estimator.risk_threshold: 2 is more than 1"),
        (json!({"estimator": {"be_cpu": -1}}), "estimator.be_cpu: not an amount: -1"),
        (json!({"estimator": {"be_cpu": "many"}}), "estimator.be_cpu: not an amount: \"many\""),
        (json!({"estimator": {"be_mem": "-1Gi"}}), "estimator.be_mem: not an amount: \"-1Gi\""),
        (json!({"estimator": {"be_mem": 1.5}}), "estimator.be_mem: not an amount: 1.5"),
    ];
    let text = "node n cpu=10 memory=10Gi\nload n cpu=65 memory=65
        pod a cpu=1 @n bound\npod b @n bound";
    let score = |arguments| {
        let plugin = plugin(arguments).0;
        let info = SessionInfo::default();
        let mut world = World { cluster: fixture::cluster(text), info, plugin };
        world.open(0);
        world.score("n")
    };
    let usual = score(json!({}));
    for (arguments, expected) in cases {
        let warnings = plugin(arguments.clone()).1;
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].starts_with(expected), "{}", texts[0]);
        assert!(texts[0].contains("until then"), "{}", texts[0]);
        assert_eq!(score(arguments), usual);
    }
    // Sections that are no maps are ignored; the loader has warned of them.
    assert_eq!(score(json!({"thresholds": 5, "estimator": [1]})), usual);
}
