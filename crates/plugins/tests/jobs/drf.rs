//! Cases 16-21 of plugins-jobs-queues.md: drf and HDRF, with the worked examples 18.3 and 18.4.

use std::cmp::Ordering;

use vc_conf::{KnownNames, parse};
use vc_framework::{GangEviction, Session, SessionState};
use vc_model::{QueueId, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::support::{
    allocate, evict, in_session, job, names, pipeline, plugin, queue, series, task, tasks,
};

const HDRF: &str = "drf +enableHierarchy";

const EXAMPLE_18_3: &str = "node n1 cpu=10 memory=20Gi
    node n2 cpu=10 memory=20Gi
    job j1\n task t x2 cpu=2 memory=2Gi @n1 running\n task new cpu=1 memory=1Gi
    job j2\n task t x8 cpu=500m memory=2Gi @n2 running
    job j3\n task t x2 cpu=2 memory=2Gi @n1 running";

#[test]
fn jobs_16_example_18_3() {
    in_session(EXAMPLE_18_3, "drf", |session| {
        let candidates = series(session, "j2/t", 8);
        let own = task(session, "j1/new");
        let victims = session.plugins().preemptable(session.view(), own, &candidates);
        assert_eq!(names(session, &victims), ["j2-t-0", "j2-t-1", "j2-t-2"]);
    });
}

fn order(session: &SessionState<'_>, l: &str, r: &str) -> Ordering {
    session.plugins().job_order_plugins(session.view(), job(session, l), job(session, r))
}

#[test]
fn jobs_16_the_smaller_share_goes_first_and_events_move_it() {
    in_session(EXAMPLE_18_3, "drf", |session| {
        assert_eq!(order(session, "j1", "j2"), Ordering::Less);
        assert_eq!(order(session, "j1", "j3"), Ordering::Equal);
        let own = task(session, "j1/new");
        pipeline(session, own, "n1");
        assert_eq!(order(session, "j1", "j3"), Ordering::Greater);
        let gone = series(session, "j2/t", 5);
        evict(session, &gone);
        assert_eq!(order(session, "j2", "j3"), Ordering::Less);
    });
    in_session(EXAMPLE_18_3, "drf", |session| {
        let own = task(session, "j1/new");
        let node = session.node("n1").expect("it is known");
        let mut statement = session.statement();
        statement.allocate(own, node).expect("the task is pending");
        assert_eq!(order(&statement, "j1", "j3"), Ordering::Greater);
        statement.discard();
        // Exactly what it was before.
        assert_eq!(order(session, "j1", "j3"), Ordering::Equal);
    });
}

#[test]
fn jobs_16_a_preemptor_without_job_gets_nothing() {
    let text = format!("{EXAMPLE_18_3}\n pod own cpu=1");
    in_session(&text, "drf", |session| {
        let candidates = series(session, "j2/t", 8);
        let own = task(session, "own");
        assert_eq!(session.plugins().preemptable(session.view(), own, &candidates), []);
    });
}

/// Places one task per turn, of the queue that `compare` puts first, until nothing fits. The queues
/// in order.
fn place_in_turns(session: &mut Session<'_>, queues: &[&str]) -> Vec<String> {
    let mut open: Vec<QueueId> = queues.iter().map(|name| queue(session, name)).collect();
    let mut turns = Vec::new();
    loop {
        let order =
            |&&l: &&QueueId, &&r: &&QueueId| session.plugins().queue_order(session.view(), l, r);
        let Some(&first) = open.iter().min_by(order) else {
            return turns;
        };
        match next_that_fits(session, first) {
            Some(task) => {
                allocate(session, task, "n");
                turns.push(session.queues[first].name.to_string());
            }
            None => open.retain(|&other| other != first),
        }
    }
}

fn next_that_fits(session: &SessionState<'_>, queue: QueueId) -> Option<TaskId> {
    let mut jobs = session.jobs_by_key();
    let job = jobs.find(|&job| session.jobs[job].queue == queue)?;
    let mut tasks = session.jobs[job].tasks.iter().copied();
    let next = tasks.find(|&task| session.tasks[task].status == TaskStatus::Pending)?;
    let node = session.node("n")?;
    session.request(next).fits(&session.nodes[node].idle).then_some(next)
}

fn allocated(session: &SessionState<'_>, name: &str) -> Resource {
    session.jobs[job(session, name)].allocated.clone()
}

fn pods_of(session: &SessionState<'_>, names: &[&str]) -> Vec<i64> {
    let pods = |name: &&str| allocated(session, name).get(vc_resource::Dim::PODS);
    names.iter().map(pods).collect()
}

#[test]
fn jobs_17_weights() {
    let text = "node n cpu=8 pods=100
        queue a hierarchy=root/a weights=1/1
        queue b hierarchy=root/b weights=1/3
        job a queue=a\n task t x8 cpu=1
        job b queue=b\n task t x8 cpu=1";
    in_session(text, HDRF, |session| {
        let turns = place_in_turns(session, &["a", "b"]);
        assert_eq!(turns.concat(), "abbbabbb");
        assert_eq!(pods_of(session, &["a", "b"]), [2, 6]);
    });
}

#[test]
fn jobs_17_rescaling() {
    let text = "node n cpu=10 memory=10G pods=50
        queue sci hierarchy=root/sci weights=100/50
        queue dev hierarchy=root/eng/dev weights=100/50/50
        queue prod hierarchy=root/eng/prod weights=100/50/50
        job sci queue=sci\n task t x10 cpu=1 memory=1G
        job dev queue=dev\n task t x10 cpu=1
        job prod queue=prod\n task t x10 memory=1G";
    in_session(text, HDRF, |session| {
        place_in_turns(session, &["sci", "dev", "prod"]);
        assert_eq!(pods_of(session, &["sci", "dev", "prod"]), [5, 5, 5]);
    });
    // dev has .2, prod .1: eng counts .1, dev scaled by a half; before sci with .2, not beside it.
    in_session(text, HDRF, |session| {
        for path in ["sci/t-0", "sci/t-1", "dev/t-0", "dev/t-1", "prod/t-0"] {
            let placed = task(session, path);
            allocate(session, placed, "n");
        }
        let order = |l, r| {
            session.plugins().queue_order(session.view(), queue(session, l), queue(session, r))
        };
        assert_eq!(order("dev", "sci"), Ordering::Less);
        assert_eq!(order("prod", "dev"), Ordering::Less);
    });
}

#[test]
fn jobs_17_blocking() {
    let text = "node n cpu=30 memory=30G pods=500
        queue p1 hierarchy=root/p1 weights=100/25
        queue p2 hierarchy=root/p2 weights=100/25
        queue p31 hierarchy=root/p3/p31 weights=100/25/50
        queue p32 hierarchy=root/p3/p32 weights=100/25/50
        queue p4 hierarchy=root/p4 weights=100/25
        job p1 queue=p1\n task t x30 cpu=1
        job p2 queue=p2\n task t x30 cpu=1
        job p31 queue=p31\n task t x30 cpu=1
        job p32 queue=p32\n task t x30 memory=1G
        job p4 queue=p4\n task t x30 memory=1G";
    in_session(text, HDRF, |session| {
        let all = ["p1", "p2", "p31", "p32", "p4"];
        place_in_turns(session, &all);
        assert_eq!(pods_of(session, &all), [10, 10, 10, 15, 15]);
    });
}

fn reclaim_example(a_runs: usize) -> Vec<String> {
    let text = "node n cpu=8 pods=100
        queue a hierarchy=root/a weights=1/1
        queue b hierarchy=root/b weights=1/3
        job a queue=a\n task w x2 cpu=1
        job b queue=b\n task t x8 cpu=1";
    in_session(text, HDRF, |session| {
        let own = series(session, "a/w", 2);
        let candidates = series(session, "b/t", 8 - a_runs);
        for &placed in own[..a_runs].iter().chain(&candidates) {
            allocate(session, placed, "n");
        }
        let victims = session.plugins().reclaimable(session.view(), own[a_runs], &candidates);
        let (view, initiator) = (session.view(), job(session, "a"));
        let gang = |kind| session.plugins().unified_evictable(view, initiator, kind, &candidates);
        assert_eq!(gang(GangEviction::Preempt), candidates);
        if a_runs == 1 {
            // Its pending sum is the one task that is left (D3).
            assert_eq!(gang(GangEviction::Reclaim), victims);
        }
        names(session, &victims)
    })
}

#[test]
fn jobs_17_reclaim() {
    assert_eq!(reclaim_example(0).len(), 8);
    assert_eq!(reclaim_example(1), [""; 0]);
}

#[test]
fn jobs_18_a_queue_without_annotation_stands_at_the_root() {
    let text = "node n cpu=8
        queue plain\n queue a hierarchy=root/a weights=1/2
        job plain queue=plain\n task t cpu=1
        job a queue=a\n task t x3 cpu=1 @n running";
    in_session(text, HDRF, |session| {
        let mut drf = plugin(HDRF);
        drf.open(session.view());
        let (plain, a) = (queue(session, "plain"), queue(session, "a"));
        assert_eq!(drf.queue_order(session.view(), plain, a), Ordering::Equal);
        assert_eq!(drf.queue_order(session.view(), a, plain), Ordering::Equal);
    });
}

#[test]
fn jobs_19_malformed_weights_count_one() {
    let order = |weights: &str| {
        let text = format!(
            "node n cpu=8
             queue odd hierarchy=root/a/b weights={weights}
             queue one hierarchy=root/a/c weights=1/2/1
             queue idle hierarchy=root/z/y
             job odd queue=odd\n task t x2 cpu=1\n task r cpu=1 @n running
             job one queue=one\n task t x2 cpu=1\n task r cpu=1 @n running"
        );
        in_session(&text, HDRF, |session| {
            let mut drf = plugin(HDRF);
            drf.open(session.view());
            let of = |l, r| drf.queue_order(session.view(), queue(session, l), queue(session, r));
            // No job is below it: it has nothing and goes first (D9).
            assert_eq!(of("idle", "one"), Ordering::Less);
            of("odd", "one")
        })
    };
    for weights in ["1/2", "1/2/0.5", "1/2/x", "1/2/NaN", "1/2/"] {
        assert_eq!(order(weights), Ordering::Equal, "{weights}");
    }
    assert_eq!(order("1/2/4"), Ordering::Less);
}

/// Loads tiers of plugins given as lines of YAML.
fn load(tiers: &str) -> Result<(), String> {
    let plugins: Vec<_> = vc_plugins::ALL.iter().map(|entry| entry.declaration).collect();
    let known = KnownNames { plugins: &plugins, not_built: &[], actions: &["allocate"] };
    let text = format!("actions: allocate\ntiers:\n{tiers}");
    parse("conf", &text, &known).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn jobs_20_proportion_and_hierarchical_drf_in_one_tier_conflict() {
    let drf = "  - {name: drf, enableHierarchy: true}\n";
    let one = format!("- plugins:\n{drf}  - {{name: proportion}}\n");
    let error = load(&one).expect_err("both order queues");
    assert!(error.contains("proportion and drf with hierarchy enabled conflicts"), "{error}");
    let two = format!("- plugins:\n{drf}- plugins:\n  - {{name: proportion}}\n");
    assert_eq!(load(&two), Ok(()));
}

#[test]
fn jobs_21_namespace_order_is_gone() {
    assert_eq!(load("- plugins:\n  - {name: drf, enableNamespaceOrder: true}\n"), Ok(()));
}

#[test]
fn orphans_are_left_alone() {
    let text = "node n cpu=8
        queue a hierarchy=root/a weights=1/1
        job lost queue=gone\n task t x2 cpu=1 @n running\n task w cpu=1
        job own queue=a\n task w cpu=1";
    in_session(text, HDRF, |session| {
        let lost = tasks(session, &["lost/t-0", "lost/t-1"]);
        let (own, orphan) = (task(session, "own/w"), task(session, "lost/w"));
        assert_eq!(session.plugins().reclaimable(session.view(), own, &lost), []);
        assert_eq!(session.plugins().reclaimable(session.view(), orphan, &[own]), []);
        allocate(session, orphan, "n");
        assert_eq!(order(session, "lost", "own"), Ordering::Equal);
    });
}
