//! Cases 100-105 of plugins-nodes.md: the plugin `nodegroup`.

use vc_framework::{Effect, Outbox, Plugin, Records, SessionInfo, SessionView};
use vc_model::{Cluster, Code, Finding, TaskStatus, fixture};

use vc_conf::{PluginOption, Switch, Switches};

/// Nodes n1 to n4 in g1 to g4, and n5 without a group.
const NODES: &str = "node n1 cpu=8 group=g1
    node n2 cpu=8 group=g2
    node n3 cpu=8 group=g3
    node n4 cpu=8 group=g4
    node n5 cpu=8
    ";

/// A cluster, with the plugin over it.
struct World {
    cluster: Cluster,
    info: SessionInfo,
    plugin: Box<dyn Plugin>,
}

/// The plugin of these words: `loose`, `ordered`, `hierarchy`.
fn plugin(words: &str) -> Box<dyn Plugin> {
    let is = |word: &str| words.split(' ').any(|other| other == word);
    let value = |value: bool| -> serde_json::Value { value.into() };
    let option = PluginOption {
        name: "nodegroup".to_owned(),
        switches: Switches::default().with(Switch::Hierarchy, is("hierarchy")),
        arguments: [
            ("strict", value(!is("loose"))),
            ("enablePreferredOrder", value(is("ordered"))),
        ]
        .into_iter()
        .collect(),
    };
    let entry = vc_plugins::ALL.iter().find(|entry| entry.name() == "nodegroup");
    let mut warnings = Vec::new();
    let plugin = (entry.expect("it is built").build)(&option, &mut warnings);
    assert_eq!(warnings, []);
    plugin
}

impl World {
    /// The nodes, and what the text adds. `q` is the queue of the job `j` with the task `t`.
    fn new(words: &str, text: &str) -> Self {
        let mut world = Self {
            cluster: fixture::cluster(&format!("{NODES}{text}")),
            info: SessionInfo::default(),
            plugin: plugin(words),
        };
        world.open();
        world
    }

    /// Opens a session.
    fn open(&mut self) {
        let nodes = self.cluster.nodes_by_name().into();
        let queues = ["a", "b", "q", "r"].iter().filter_map(|name| self.cluster.queue(name));
        self.info = SessionInfo { nodes, queues: queues.collect(), ..SessionInfo::default() };
        self.plugin.open(SessionView { cluster: &self.cluster, info: &self.info });
    }

    fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    fn findings(&self, task: &str, node: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let (task, node) = (fixture::task(&self.cluster, task), fixture::node(&self.cluster, node));
        self.plugin.predicate(self.view(), task, node, &mut findings);
        findings
    }

    /// Per node n1 to n5: what is found against the task, with `!` if eviction cannot help.
    fn refusals(&self, task: &str) -> [String; 5] {
        ["n1", "n2", "n3", "n4", "n5"].map(|node| {
            let text = |finding: &Finding| {
                let mark = if finding.code == Code::Unresolvable { "!" } else { "" };
                format!("{mark}{}", finding.reason.text(&self.cluster.dims))
            };
            self.findings(task, node).iter().map(text).collect()
        })
    }

    /// The nodes that pass.
    fn passing(&self, task: &str) -> Vec<&'static str> {
        let nodes = ["n1", "n2", "n3", "n4", "n5"].into_iter();
        nodes.filter(|node| self.findings(task, node).is_empty()).collect()
    }

    fn scores(&self, task: &str) -> [f64; 5] {
        ["n1", "n2", "n3", "n4", "n5"].map(|node| {
            let node = fixture::node(&self.cluster, node);
            let task = fixture::task(&self.cluster, task);
            self.plugin.node_order(self.view(), task, node).expect("a score")
        })
    }

    /// Places a task, or takes its place away.
    fn place(&mut self, task: &str, status: TaskStatus, node: Option<&str>) {
        let task = fixture::task(&self.cluster, task);
        let node = node.map(|node| fixture::node(&self.cluster, node));
        self.cluster.set_task(task, status, node);
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        match node {
            Some(_) => self.plugin.on_allocate(view, task),
            None => self.plugin.on_deallocate(view, task),
        }
    }
}

const J: &str = "job j queue=q\n task t cpu=2";
const NOT_ALLOWED: &str = "!node does not satisfy the node group affinity";
const NO_GROUP: &str = "!node group label not found";
const NO_RULES: &str = "!node group affinity not specified";
const EXCEEDED: &str = "node group resource limit exceeded";

#[test]
fn nodes_100_affinity() {
    let queue = "queue q groups.required=g1,g3 groups.preferred=g3 groups.avoided=g2,g4 \
        groups.disliked=g4\n";
    let world = World::new("", &format!("{queue}{J}"));
    assert_eq!(world.scores("j/t"), [100.0, 0.0, 150.0, -1.0, 0.0]);
    assert_eq!(world.refusals("j/t"), ["", NOT_ALLOWED, "", "", NO_GROUP]);
    // A node without a group needs a queue without rules.
    let loose = World::new("loose", &format!("{queue}{J}"));
    assert_eq!(loose.passing("j/t"), ["n1", "n3", "n4"]);
}

#[test]
fn nodes_101_affinity() {
    let queue = "queue q groups.required=g1 groups.preferred=g3 groups.avoided=g2 \
        groups.disliked=g4\n";
    let world = World::new("", &format!("{queue}{J}"));
    assert_eq!(world.scores("j/t"), [100.0, 0.0, 50.0, -1.0, 0.0]);
    assert_eq!(world.passing("j/t"), ["n1", "n3", "n4"]);
    // A group in a required list of each is refused, one in no list as well.
    let queue = "queue q groups.required=g1,g2 groups.avoided=g2 groups.preferred=g4\n";
    let world = World::new("", &format!("{queue}{J}"));
    assert_eq!(world.passing("j/t"), ["n1", "n4"]);
    assert_eq!(world.refusals("j/t")[2], NOT_ALLOWED);
}

#[test]
fn nodes_102_strict() {
    for queue in ["queue q\n", "queue q groups\n"] {
        let loose = World::new("loose", &format!("{queue}{J}"));
        assert_eq!(loose.refusals("j/t"), [NO_RULES, NO_RULES, NO_RULES, NO_RULES, ""]);
        let strict = World::new("", &format!("{queue}{J}"));
        assert_eq!(strict.refusals("j/t"), [NO_RULES, NO_RULES, NO_RULES, NO_RULES, NO_GROUP]);
        assert_eq!(strict.scores("j/t"), [0.0; 5]);
    }
}

#[test]
fn nodes_103_hierarchy() {
    let own = ["n2"];
    for (text, words, passing) in [
        ("queue a groups.required=g1\n queue q parent=a", "hierarchy", &["n1"][..]),
        ("queue a groups.required=g1\n queue q parent=a", "", &[]),
        ("queue a groups.required=g1\n queue b parent=a\n queue q parent=b", "hierarchy", &["n1"]),
        ("queue a groups.required=g1\n queue q parent=a groups.required=g2", "hierarchy", &own),
        // An empty affinity is one.
        ("queue a groups.required=g1\n queue q parent=a groups", "hierarchy", &[]),
        // An empty parent is the root.
        ("queue root groups.required=g3\n queue q", "hierarchy", &["n3"]),
        ("queue root groups.required=g3\n queue q parent=gone", "hierarchy", &[]),
        ("queue a parent=b\n queue b parent=a\n queue q parent=a", "hierarchy", &[]),
    ] {
        let world = World::new(words, &format!("{text}\n{J}"));
        assert_eq!(world.passing("j/t"), passing, "{text}");
    }
}

#[test]
fn nodes_103_limits_are_not_inherited() {
    let text = "queue a groups.required=g1 limit.g1.cpu=1\n queue q parent=a\n";
    let world = World::new("hierarchy", &format!("{text}{J}"));
    assert_eq!(world.passing("j/t"), ["n1"]);
}

#[test]
fn nodes_104_order() {
    let text = format!("queue q groups.preferred=g1,g3\n{J}");
    assert_eq!(World::new("ordered", &text).scores("j/t"), [50.0, 0.0, 25.0, 0.0, 0.0]);
    assert_eq!(World::new("", &text).scores("j/t"), [50.0, 0.0, 50.0, 0.0, 0.0]);
    let text = format!("queue q groups.required=g4 groups.preferred=g1,g2,g3,g4\n{J}");
    assert_eq!(World::new("ordered", &text).scores("j/t"), [50.0, 37.5, 25.0, 112.5, 0.0]);
}

/// The limits of q; 2 cpu of g1 are used by `old/t`.
fn limited(limits: &str, task: &str) -> World {
    let text = format!(
        "queue q groups.required=g1,g2 groups.preferred=g2 {limits}
         queue r groups.required=g1
         job old queue=q\n task t cpu=2 @n1 running
         job gone queue=q\n task t cpu=5 @n1 releasing
         job other queue=r\n task t cpu=5 @n1 running
         job j queue=q\n task t {task}\n task u {task}"
    );
    World::new("", &text)
}

#[test]
fn nodes_105_limit() {
    for (limits, task, expected) in [
        ("limit.g1.cpu=3", "cpu=2", EXCEEDED),
        ("limit.g1.cpu=3", "cpu=1", ""),
        ("limit.g1.cpu=3", "cpu=1001m", EXCEEDED),
        ("limit.g1.cpu=3", "cpu=1 memory=1Ti", ""),
        ("limit.g1.cpu=3 limit.g1.memory=1Gi", "cpu=1 memory=2Gi", EXCEEDED),
        ("limit.g1.gpu=0", "gpu=1", EXCEEDED),
        ("limit.g1.pods=2", "cpu=1", ""),
        ("limit.g1.pods=1", "cpu=1", EXCEEDED),
        ("limit.g2.cpu=1", "cpu=1", ""),
        ("limit.g1.cpu=1", "memory=1", EXCEEDED),
    ] {
        let world = limited(limits, task);
        let found = world.refusals("j/t");
        assert_eq!([&found[0], &found[1]], [expected, ""], "{limits}: {task}");
    }
}

#[test]
fn nodes_105_unreadable() {
    let mut world = limited("limits=unreadable", "cpu=1");
    let invalid = "!node group resource limit annotation invalid";
    assert_eq!(world.refusals("j/t"), [invalid; 5]);
    assert_eq!(world.passing("other/t"), ["n1"]);
    let report = |world: &mut World| {
        let mut out = Outbox::default();
        let view = SessionView { cluster: &world.cluster, info: &world.info };
        world.plugin.close(view, &Records::default(), &mut out);
        let text = |effect: &Effect| match effect {
            Effect::Event { reason, message, .. } => format!("{reason}: {message}"),
            other => panic!("{other:?}"),
        };
        (out.effects.iter().map(text).collect::<Vec<_>>(), out.warnings)
    };
    let message = "annotation unreadable. No pod of the queue is placed until it is corrected. \
        Write amounts for each group, such as {\"group1\": {\"cpu\": \"8\"}}, or remove it";
    let event = format!("InvalidNodeGroupLimits: {message}");
    assert_eq!(report(&mut world), (vec![event], vec![format!("queue q: {message}")]));
    world.open();
    assert_eq!(report(&mut world), (vec![], vec![]), "once");
    fixture::apply(&mut world.cluster, "queue q groups.required=g1 limits=otherwise");
    world.open();
    assert_eq!(report(&mut world).0.len(), 1, "another problem");
    fixture::apply(&mut world.cluster, "queue q groups.required=g1");
    world.open();
    assert_eq!(report(&mut world), (vec![], vec![]));
    assert_eq!(world.passing("j/t"), ["n1"]);
}

#[test]
fn nodes_105_events() {
    let mut world = limited("limit.g1.cpu=5", "cpu=2");
    let is_open = |world: &World| world.findings("j/u", "n1").is_empty();
    assert!(is_open(&world));
    for status in [TaskStatus::Allocated, TaskStatus::Pipelined] {
        world.place("j/t", status, Some("n1"));
        assert!(!is_open(&world), "{status:?}: 2 + 2 + 2 of 5");
        world.place("j/t", TaskStatus::Pending, None);
        assert!(is_open(&world));
    }
    world.place("j/t", TaskStatus::Allocated, Some("n2"));
    assert!(is_open(&world), "another group");
    world.place("j/t", TaskStatus::Pending, None);
    world.place("j/t", TaskStatus::Pending, None);
    assert!(is_open(&world), "nothing to take away");
    world.place("j/t", TaskStatus::Allocated, Some("n1"));
    // An eviction counts at once, and undoing it as well.
    let old = fixture::task(&world.cluster, "old/t");
    world.cluster.evict_task(old);
    let view = SessionView { cluster: &world.cluster, info: &world.info };
    world.plugin.on_deallocate(view, old);
    assert!(is_open(&world));
    world.cluster.unevict_task(old, TaskStatus::Running);
    let view = SessionView { cluster: &world.cluster, info: &world.info };
    world.plugin.on_allocate(view, old);
    assert!(!is_open(&world));
}

#[test]
fn nodes_105_labels_of_nodes_count_at_the_next_session() {
    let mut world = limited("limit.g1.cpu=3", "cpu=2");
    fixture::apply(&mut world.cluster, "node n1 cpu=8 group=g2\n node n3 cpu=8 group=g1");
    world.open();
    assert!(world.findings("j/t", "n3").is_empty(), "the use of n1 is that of another group");
}

#[test]
fn a_job_that_is_not_in_the_session_is_an_error() {
    let world = World::new("loose", "job j queue=gone\n task t\n pod bare cpu=1");
    let text = "job default/j not found in session";
    assert_eq!(world.refusals("j/t"), [text; 5]);
    assert_eq!(world.findings("j/t", "n1")[0].code, Code::Error);
}
