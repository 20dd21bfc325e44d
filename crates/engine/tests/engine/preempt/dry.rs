//! actions.md "preempt, dry-run (TT)".

use vc_framework::SessionState;
use vc_model::NodeId;
use vc_resource::Resource;

use super::*;

/// All nodes are compared.
fn dry_all() -> Config {
    dry_with("enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 100")
}

#[test]
fn dry__reprieve_order() {
    let text = "node n1 cpu=5
        job j1 priority=1 min=0
          task v cpu=1 @n1 running
        job j5 priority=5 min=0
          task v cpu=1 @n1 running
        job j9 priority=9 min=0
          task v cpu=3 @n1 running
        job high priority=100
          task p cpu=4";
    assert_eq!(evicted(&dry(), text), "j1-v j9-v");
}

/// Two full nodes, with victims of one job each.
fn two_nodes(a: &str, b: &str) -> String {
    let tasks = |words: &str, node: &str| -> String {
        let line = |(index, task): (usize, &str)| format!("task v{index} @{node} running {task}\n");
        words.split(',').enumerate().map(line).collect()
    };
    format!(
        "node na cpu=2\nnode nb cpu=2\njob a min=0 priority=10\n{}job b min=0 priority=10\n{}\
         job high priority=100\ntask p cpu=2",
        tasks(a, "na"),
        tasks(b, "nb")
    )
}

/// Pods of node a and of node b, and who goes.
fn check_levels(cases: &[(&str, &str, &str)]) {
    for &(a, b, victims) in cases {
        assert_eq!(evicted(&dry_all(), &two_nodes(a, b)), victims, "{a} | {b}");
    }
}

#[test]
fn dry__level1() {
    check_levels(&[
        ("cpu=1 priority=5,cpu=1 priority=5", "cpu=2 priority=9", "a-v0 a-v1"),
        ("cpu=2 priority=9", "cpu=1 priority=5,cpu=1 priority=5", "b-v0 b-v1"),
    ]);
}

#[test]
fn dry__level2() {
    check_levels(&[
        ("cpu=1 priority=5,cpu=1 priority=3", "cpu=1 priority=5,cpu=1 priority=1", "b-v0 b-v1"),
        ("cpu=2 priority=5", "cpu=1 priority=5,cpu=1 priority=1", "a-v0"),
        ("cpu=1 priority=5,cpu=1 priority=1", "cpu=2 priority=5", "b-v0"),
    ]);
}

#[test]
fn dry__level4() {
    check_levels(&[
        ("cpu=2 priority=5 started=9", "cpu=2 priority=5 started=1", "a-v0"),
        ("cpu=2 priority=5 started=1", "cpu=2 priority=5 started=9", "b-v0"),
    ]);
}

#[test]
fn dry__level5() {
    check_levels(&[("cpu=2 priority=5 started=1", "cpu=2 priority=5 started=1", "a-v0")]);
}

#[test]
fn dry__level1_max() {
    // The first victim of na is the pod of the more important job; the other has more pod priority.
    let text = "node na cpu=2
        node nb cpu=2
        job important priority=50 min=0
          task v cpu=1 @na running priority=1
        job other priority=10 min=0
          task a cpu=1 @na running priority=9
          task b cpu=2 @nb running priority=5
        job high priority=100
          task p cpu=2";
    assert_eq!(evicted(&dry_all(), text), "other-b");
}

#[test]
fn dry__workers() {
    let text = "node n1 cpu=1\nnode n2 cpu=1\nnode n3 cpu=1\nnode n4 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running priority=4
          task b cpu=1 @n2 running priority=2
          task c cpu=1 @n3 running priority=3
          task d cpu=1 @n4 running priority=1
        job high priority=100
          task p cpu=1";
    let of = |n_workers: u32| {
        let arguments = format!(
            "enableTopologyAwarePreemption: true, minCandidateNodesAbsolute: 2, \
             topologyAwarePreemptWorkerNum: {n_workers}"
        );
        decide(&dry_with(&arguments), text)
    };
    assert!(of(1).starts_with("evict low-"), "{}", of(1));
    assert_eq!([of(4), of(16)], [of(1), of(1)]);
    // With all nodes as candidates the offset does not matter.
    assert_eq!(evicted(&dry_all(), text), "low-d");
}

#[test]
fn dry__zero_victims() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100 min=2
          task p cpu=1 x2";
    let decided = "evict low-v preempt\npipeline high-p-0 n1\npipeline high-p-1 n2";
    assert_eq!(decide(&dry_all(), text), decided);
}

#[test]
fn dry__anti_affinity() {
    let text = "node n1 cpu=2 zone=n1
        queue q1 cap.cpu=2
        job pg1 queue=q1 priority=10 min=0
          task e2 cpu=1 @n1 running label.app=test away=zone:test
        job pg2 queue=q1 priority=10 min=0
          task e1 cpu=1 @n1 running
        job high queue=q1 priority=100000
          task p cpu=1 label.app=test away=zone:test";
    assert_eq!(evicted(&dry(), text), "pg1-e2");
}

#[test]
fn dry__priority_queues() {
    let text = "node n1 cpu=2 memory=2Gi
        queue q1 priority=1 cap.cpu=1 cap.memory=1Gi
        queue q2 priority=10 cap.cpu=1 cap.memory=1Gi
        job low1 queue=q1 priority=10 min=0
          task v cpu=1 memory=1Gi @n1 running
        job low2 queue=q2 priority=10 min=0
          task v cpu=1 memory=1Gi @n1 running
        job high queue=q1 priority=100000
          task p cpu=1 memory=1Gi";
    assert_eq!(evicted(&dry(), text), "low1-v");
    let capacity = conf("preempt", &TT.replace("proportion{", "capacity{"));
    let arguments = "{enableTopologyAwarePreemption: true}";
    assert_eq!(evicted(&with_arguments(capacity, "preempt", arguments), text), "low1-v");
}

#[test]
fn dry__queue_never_fits() {
    let text = "node n1 cpu=2
        queue q1 cap.cpu=1
        job low queue=q1 priority=10 min=0
          task v cpu=1 @n1 running
        job high queue=q1 priority=100
          task p cpu=2";
    assert_eq!(evicted(&dry(), text), "");
}

#[test]
fn dry__hostport() {
    let text = "node n1 cpu=2
        job low priority=10 min=0
          task v cpu=1 @n1 running
          task holder cpu=1 @n1 running pre=false
        job high priority=100
          task p cpu=1";
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p", "low-holder"])), "");
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p"])), "low-v");
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p", "low-v"])), "low-v");
}

/// Sums, statuses and shares. What is absent equals 0.
fn tables(session: &SessionState<'_>) -> (Vec<[Resource; 4]>, String) {
    let node = |id: &NodeId| {
        let row = &session.nodes[*id];
        [row.used.clone(), row.releasing.clone(), row.pipelined.clone(), row.idle.clone()]
    };
    let tasks: Vec<_> = session.tasks.iter().map(|(id, row)| (id, row.status, row.node)).collect();
    let jobs: Vec<_> = session.jobs.iter().map(|(id, row)| (id, row.counts.clone())).collect();
    let queues = session.info().queues.iter();
    let shares: Vec<_> =
        queues.map(|&queue| session.plugins().queue_share(session.view(), queue)).collect();
    let nodes = session.info().nodes.iter();
    (nodes.map(node).collect(), format!("{tasks:?} {jobs:?} {shares:?}"))
}

#[test]
fn dry__isolation() {
    // Room can be made for one member only.
    let text = "node n1 cpu=3
        queue q1 cap.cpu=3
        job low queue=q1 priority=10 min=1
          task v cpu=1 x3 @n1 running
        job high queue=q1 priority=100 min=3
          task p cpu=1 x3";
    let mut stage = Stage::new(&dry(), Vec::new(), text);
    let outbox = stage.session(|session| {
        let before = tables(session);
        run(session, "preempt");
        assert_eq!(tables(session), before);
    });
    assert_eq!(outbox.effects, []);
    assert_eq!(outbox.n_preemption_attempts, 2);
}
