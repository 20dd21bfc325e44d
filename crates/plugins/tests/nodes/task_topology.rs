//! Cases 115 and 116 of plugins-nodes.md and the rules of section 13: the plugin `task-topology`.

use std::cmp::Ordering;

use vc_framework::{Effect, Outbox, Plugin, Records, SessionInfo, SessionView};
use vc_model::{Cluster, ClusterEvent, TaskStatus, fixture};

use crate::bed::plugin;

/// A cluster, with the plugin over it.
struct World {
    cluster: Cluster,
    info: SessionInfo,
    plugin: Box<dyn Plugin>,
}

impl World {
    /// The text, where `roles.` stands for the annotations of a task topology.
    fn new(text: &str) -> Self {
        let text = text.replace("roles.", "annotation.volcano.sh/task-topology-");
        let mut world = Self {
            cluster: fixture::cluster(&text),
            info: SessionInfo::default(),
            plugin: plugin("task-topology", &[]),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let nodes = self.cluster.nodes_by_name().into();
        self.info = SessionInfo { nodes, ..SessionInfo::default() };
        self.plugin.open(SessionView { cluster: &self.cluster, info: &self.info });
    }

    fn view(&self) -> SessionView<'_> {
        SessionView { cluster: &self.cluster, info: &self.info }
    }

    /// The scores of all nodes by name.
    fn scores(&self, task: &str) -> Vec<f64> {
        let task = fixture::task(&self.cluster, task);
        let mut scores = vec![0.0; self.info.nodes.len()];
        let answer = self.plugin.batch_node_order(self.view(), task, &self.info.nodes, &mut scores);
        assert_eq!(answer, Ok(()));
        scores
    }

    fn order(&self, l: &str, r: &str) -> Ordering {
        let [l, r] = [l, r].map(|task| fixture::task(&self.cluster, task));
        let order = self.plugin.task_order(self.view(), l, r);
        assert_eq!(self.plugin.task_order(self.view(), r, l), order.reverse());
        order
    }

    /// Places a task, or takes its place away.
    fn place(&mut self, task: &str, node: Option<&str>) {
        let task = fixture::task(&self.cluster, task);
        let node = node.map(|node| fixture::node(&self.cluster, node));
        let status = if node.is_some() { TaskStatus::Allocated } else { TaskStatus::Pending };
        self.cluster.set_task(task, status, node);
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        match node {
            Some(_) => self.plugin.on_allocate(view, task),
            None => self.plugin.on_deallocate(view, task),
        }
    }

    /// Evicts a running task, or undoes its eviction.
    fn evict(&mut self, task: &str, is_undone: bool) {
        let task = fixture::task(&self.cluster, task);
        match is_undone {
            false => self.cluster.evict_task(task),
            true => self.cluster.unevict_task(task, TaskStatus::Running),
        }
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        match is_undone {
            false => self.plugin.on_deallocate(view, task),
            true => self.plugin.on_allocate(view, task),
        }
    }

    /// What the plugin reports at the end of a session: warnings, and events.
    fn reported(&mut self) -> (Vec<String>, Vec<String>) {
        let mut out = Outbox::default();
        let view = SessionView { cluster: &self.cluster, info: &self.info };
        self.plugin.close(view, &Records::default(), &mut out);
        let text = |effect: &Effect| match effect {
            Effect::Event { reason, message, .. } => format!("{reason}: {message}"),
            other => panic!("no event: {other:?}"),
        };
        (out.warnings.clone(), out.effects.iter().map(text).collect())
    }
}

/// Two buckets, each with one ps and one worker.
const TWO_BUCKETS: &str = "node n1 cpu=8
    node n2 cpu=8
    job j min=4 roles.affinity=ps,worker roles.anti-affinity=ps
      task p x2 cpu=1 role=ps
      task w x2 cpu=1 role=worker
      task other cpu=1";

#[test]
fn nodes_115_roles_with_affinity_share_a_bucket() {
    let mut world = World::new(TWO_BUCKETS);
    // Each node can take the whole bucket.
    assert_eq!(world.scores("j/p-0"), [100.0, 100.0]);
    world.place("j/p-0", Some("n1"));
    // One of two is there, and the other one can follow.
    assert_eq!(world.scores("j/w-0"), [100.0, 50.0]);
    world.place("j/w-0", Some("n1"));
    assert_eq!(world.scores("j/p-1"), [50.0, 100.0], "it avoids the other ps");
    assert_eq!(world.scores("j/w-1"), [100.0, 100.0]);
    world.place("j/p-1", Some("n2"));
    assert_eq!(world.scores("j/w-1"), [50.0, 100.0]);
    assert_eq!(world.scores("j/other"), [0.0, 0.0]);
}

#[test]
fn nodes_115_tasks_of_a_bucket_go_together() {
    let world = World::new(TWO_BUCKETS);
    assert_eq!(world.order("j/p-0", "j/w-0"), Ordering::Less, "its priority is higher");
    assert_eq!(world.order("j/w-0", "j/p-1"), Ordering::Less, "the earlier bucket first");
    assert_eq!(world.order("j/p-0", "j/p-0"), Ordering::Equal);
    assert_eq!(world.order("j/w-1", "j/other"), Ordering::Less, "tasks in buckets first");
}

/// 13.3: large buckets first, the order of the user, and jobs of their own.
#[test]
fn nodes_115_tasks_are_ordered_by_buckets() {
    let mut world = World::new(
        "node n1 cpu=8
         job j min=0 roles.affinity=a,b roles.anti-affinity=c roles.task-order=b,a
           task x cpu=1 role=a
           task y cpu=1 role=b
           task z cpu=1 role=c
           task o x2 cpu=1 role=other
         job k min=0 roles.affinity=a
           task x cpu=1 role=a
           task o cpu=1
         job plain min=0
           task o cpu=1",
    );
    assert_eq!(world.order("j/y", "j/x"), Ordering::Less, "as the user says");
    assert_eq!(world.order("j/x", "j/z"), Ordering::Less, "two tasks before one");
    world.place("j/x", Some("n1"));
    assert_eq!(world.order("j/y", "j/z"), Ordering::Less, "the earlier bucket");
    assert_eq!(world.order("k/x", "j/x"), Ordering::Equal, "of another job");
    assert_eq!(world.order("k/x", "j/o-0"), Ordering::Less, "also before those of other jobs");
    assert_eq!(world.order("k/o", "j/o-0"), Ordering::Equal);
    assert_eq!(world.order("k/x", "plain/o"), Ordering::Equal, "the job has no buckets");
}

/// 13.4: what of the bucket fits besides the task; the largest tasks are left out first.
#[test]
fn nodes_115_a_small_node_scores_by_what_fits() {
    let world = World::new(
        "node n1 cpu=8
         node n2 cpu=3
         node n3 cpu=2
         node n4 cpu=1
         job j min=0 roles.affinity=a
           task x cpu=2 role=a
           task y cpu=3 role=a
           task z cpu=1 role=a",
    );
    let third = 100.0 / 3.0;
    assert_eq!(world.scores("j/x"), [100.0, 200.0 / 3.0, third, 0.0]);
    assert_eq!(world.scores("j/z"), [100.0, 200.0 / 3.0, third, third]);
}

/// Deviation (c): tasks that ran before the session are avoided, too.
#[test]
fn nodes_115_a_restarted_worker_avoids_running_ones() {
    let mut world = World::new(
        "node n1 cpu=8
         node n2 cpu=8
         job j min=0 roles.anti-affinity=worker running
           task a cpu=1 role=worker @n1 running
           task b cpu=1 role=worker",
    );
    assert_eq!(world.scores("j/b"), [0.0, 100.0]);
    world.evict("j/a", false);
    assert_eq!(world.scores("j/b"), [100.0, 100.0]);
    world.evict("j/a", true);
    assert_eq!(world.scores("j/b"), [0.0, 100.0]);
}

#[test]
fn nodes_116_a_discarded_attempt_leaves_the_buckets() {
    let mut world = World::new(TWO_BUCKETS);
    let tasks = ["j/p-0", "j/w-0", "j/p-1", "j/w-1"];
    let scores = |world: &World| tasks.map(|task| world.scores(task));
    let before = scores(&world);
    for (task, node) in tasks.into_iter().zip(["n1", "n1", "n2", "n1"]) {
        world.place(task, Some(node));
    }
    assert_ne!(scores(&world), before);
    for task in tasks.into_iter().rev() {
        world.place(task, None);
    }
    assert_eq!(scores(&world), before);
    assert_eq!(world.order("j/w-0", "j/p-1"), Ordering::Less);
}

#[test]
fn nodes_114_a_wrong_name_is_reported_once() {
    let text = "node n1 cpu=8
        job job1 min=0 roles.affinity=ps,chief
          task a cpu=1 role=ps
        job job2 min=0 roles.affinity=ps
          task a cpu=1 role=ps";
    let mut world = World::new(text);
    assert_eq!(world.scores("job1/a"), [0.0]);
    assert_eq!(world.scores("job2/a"), [100.0], "other jobs are unharmed");
    let text = "annotation volcano.sh/task-topology-affinity: task chief do not exist in job \
        <default/job1>. The task topology of the job is ignored. Write names of its tasks, each \
        once in a group, or remove it";
    let expected = (
        vec![format!("PodGroup default/job1: {text}")],
        vec![format!("InvalidTaskTopology: {text}")],
    );
    assert_eq!(world.reported(), expected);
    world.open();
    assert_eq!(world.reported(), (vec![], vec![]), "once");
    for event in fixture::events_of("job job1 min=0\n task b cpu=1 role=chief") {
        if let ClusterEvent::PodApplied(_) = event {
            world.cluster.apply(event);
        }
    }
    world.open();
    assert_eq!(world.scores("job1/a"), [100.0], "the role exists now");
}
