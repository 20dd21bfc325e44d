//! actions.md "gangpreempt, gangreclaim": who takes part, what is tried, and what is left of it.
//! The cases with HyperNodes are in `hyper_node_evictions`.

use vc_conf::Config;
use vc_framework::{EvictReason, EvictionHolds, Plugin, PluginEntry, Points, Sample, SessionView};
use vc_model::{HostPort, NodeId, Protocol, Reservation, TaskId, TaskStatus};

use crate::support::gang::*;
use crate::support::*;

/// Without HyperNodes the whole cluster is the domain; a job with a topology has none.
#[test]
fn gang__domains() {
    let text = |word: &str| {
        format!(
            "node n1 cpu=1
            node n2 cpu=2
            job a priority=1 min=1
              task v cpu=1 @n1 running
            job b priority=2 min=1
              task v cpu=2 @n2 running
            job p priority=9 {word}
              task p cpu=2"
        )
    };
    assert_eq!(evicted(&gang_preempt(), &text("")), "b-v");
    assert_eq!(evicted(&gang_preempt(), &text("topology=hard")), "");
}

#[test]
fn gang__preempt_scope() {
    let text = "node n1 cpu=6
        queue other
        job equal priority=9 min=0
          task v cpu=1 @n1 running
        job above priority=10 min=0
          task v cpu=1 @n1 running
        job other queue=other priority=1 min=0
          task v cpu=1 @n1 running
        job guarded priority=1 min=0
          task v cpu=1 @n1 running pre=false
        job below priority=1 min=0
          task v cpu=1 @n1 bound
          task w cpu=1 @n1 running
        job p priority=9
          task p cpu=";
    assert_eq!(evicted(&gang_preempt(), &format!("{text}2")), "below-v below-w");
    assert_eq!(evicted(&gang_preempt(), &format!("{text}3")), "");
}

#[test]
fn gang__reclaim_scope() {
    let text = "node n1 cpu=5
        queue q1
        queue q2 reclaimable=false
        queue q3
        job own queue=q3 priority=1 min=0
          task v cpu=1 @n1 running
        job kept queue=q2 min=0
          task v cpu=1 @n1 running
        job high queue=q1 priority=99 min=0
          task v cpu=1 @n1 running
          task guarded cpu=1 @n1 running pre=false
          task bound cpu=1 @n1 bound
        job p queue=q3
          task p cpu=";
    assert_eq!(evicted(&gang_reclaim(), &format!("{text}1")), "high-v");
    assert_eq!(evicted(&gang_reclaim(), &format!("{text}2")), "");
}

/// A queue that has what it deserves takes nothing back, nor does one that would get too much.
#[test]
fn gang__reclaim_gates() {
    let text = "node n1 cpu=4 pods=4
        queue q1
        queue q2
        job v queue=q1 min=0
          task x cpu=1 @n1 x3 running
        job r queue=q2 min=0
          task x cpu=1 @n1 running
        job p queue=q2 min=2
          task p cpu=1 x2";
    assert_eq!(evicted(&gang_reclaim(), text), "v-x-0 v-x-1");
    let with = |switches: &str| {
        let tiers = format!("{TIERS} proportion{{{switches}}}");
        conf("gangreclaim", &tiers)
    };
    // q2 deserves 2: it may have one more, but not two. Of q1 one is too much.
    assert_eq!(evicted(&with("preemptive"), text), "");
    let one = text.replace("min=2\n", "min=1\n").replace("x2", "");
    assert_eq!(evicted(&with("preemptive"), &one), "v-x-0");
    assert_eq!(evicted(&with("overused"), &one), "v-x-0");
    let enough =
        one.replace("job r queue=q2 min=0\n", "job r queue=q2 min=0\n task y cpu=1 @n1 running\n");
    let enough = enough.replace("@n1 x3", "@n1 x2");
    assert_eq!(evicted(&with("overused"), &enough), "");
    assert_eq!(evicted(&with(""), &enough), "");
}

/// C9: no more pods are evicted than needed (issue 5984).
#[test]
fn gang__trim() {
    let text = "node n1 cpu=11 pods=20
        job v priority=1 min=1
          task x cpu=1 @n1 x11 running
        job p priority=9
          task p cpu=1";
    assert_eq!(evicted(&gang_preempt(), text), "v-x-0");
    let whole = with_arguments(gang_preempt(), "gangpreempt", "{trimBoundaryBundle: false}");
    assert_eq!(evicted(&whole, text).split(' ').count(), 10);
}

/// What an earlier bundle gave may turn out not to be needed.
#[test]
fn gang__trim_earlier_bundles() {
    let whole = "node n1 cpu=1
        node n2 cpu=2
        job a priority=1 min=1
          task v cpu=1 @n1 running
        job b priority=2 min=1
          task v cpu=2 @n2 running
        job p priority=9
          task p cpu=2";
    assert_eq!(evicted(&gang_preempt(), whole), "b-v");
    let off = with_arguments(gang_preempt(), "gangpreempt", "{trimBoundaryBundle: false}");
    assert_eq!(evicted(&off, whole), "a-v b-v");
    // Of safe pods each stands for itself.
    let safe = "node n1 cpu=2
        node n2 cpu=2
        job a priority=1 min=0
          task v cpu=1 priority=1 @n1 running
          task w cpu=1 priority=2 @n2 running
        job b priority=2 min=0
          task v cpu=1 priority=1 @n1 running
          task w cpu=1 priority=2 @n2 running
        job p priority=9
          task p cpu=2";
    assert_eq!(evicted(&gang_preempt(), safe), "a-v b-v");
}

#[test]
fn gang__broken_event() {
    let text = "node n1 cpu=3 pods=3
        job v priority=1 min=3
          task a cpu=1 priority=1 @n1 running
          task b cpu=1 priority=2 @n1 running pre=false
          task c cpu=1 priority=3 @n1 running
        job p priority=9
          task p cpu=1";
    let cycle = World::new(&gang_preempt(), text).cycle();
    assert_eq!(victims(&cycle), "v-a v-c");
    let event = "event PodGroup v Warning GangBroken \"gang is broken by eviction: 2 of its pods \
        are evicted, 1 stay, minMember is 3\"";
    assert!(cycle.lines.iter().any(|line| line == event), "{:#?}", cycle.lines);
    let safe = World::new(&gang_preempt(), &text.replace("min=3", "min=1")).cycle();
    assert_eq!(victims(&safe), "v-a");
    assert!(!safe.all().contains("GangBroken"));
}

#[test]
fn gang__sim_success() {
    let text = |cpu: u32, need: u32| {
        format!(
            "node n1 cpu={cpu}
            job v priority=1 min=1
              task x cpu=1 @n1 running
            job p priority=9
              task p cpu={need}"
        )
    };
    let decided = "evict v-x gangpreempt\npipeline p-p n1";
    assert_eq!(decide(&gang_preempt(), &text(1, 1)), decided);
    assert_eq!(decide(&gang_preempt(), &text(1, 2)), "");
    // Room that is idle is allocate's, room that becomes free is taken.
    assert_eq!(decide(&gang_preempt(), &text(2, 1)), "");
    let leaving = text(1, 1).replace("running", "running deleting");
    assert_eq!(decide(&gang_preempt(), &leaving), "pipeline p-p n1");
}

/// Refuses every node at the last moment.
struct Refuses;

impl Plugin for Refuses {
    fn points(&self) -> Points {
        Points::EVENT_HANDLERS
    }
    fn reserve(
        &self,
        _: SessionView<'_>,
        _: TaskId,
        _: NodeId,
        _: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        Err("nothing to be had".to_owned())
    }
}

/// `gang/sim-success`, a pipeline that fails: no plan, and the victim runs.
#[test]
fn gang__sim_failing_pipeline() {
    let text = "node n1 cpu=1
        job v priority=1 min=1
          task x cpu=1 @n1 running
        job p priority=9
          task p cpu=1";
    let refuses = PluginEntry::new("scorer", |_, _| Box::new(Refuses));
    let config = conf("gangpreempt", &format!("scorer {TIERS}"));
    let mut stage = Stage::new(&config, vec![refuses], text);
    let before = State::of(&stage.cluster);
    let outbox = stage.session(|session| {
        run(session, "gangpreempt");
        assert_eq!(State::of(session), before);
    });
    assert_eq!(outbox.effects, []);
}

#[test]
fn gang__sim_node_choice() {
    let text = |nominated: &str| {
        format!(
            "node n1 cpu=1
            node n2 cpu=1
            job v priority=1 min=1
              task x cpu=1 @n1 running
            job p priority=9 min=2
              task p cpu=1 {nominated}
              task q cpu=1"
        )
    };
    let decided = "evict v-x gangpreempt\npipeline p-p n2\npipeline p-q n1";
    for nominated in ["", "nominated=n1", "nominated=gone"] {
        assert_eq!(decide(&gang_preempt(), &text(nominated)), decided, "{nominated}");
    }
}

/// Best-effort and gated pods have nobody evicted, nor have those that must not.
#[test]
fn gang__need() {
    let text = |task: &str| {
        format!(
            "node n1 cpu=1
            job v priority=1 min=1
              task x cpu=1 @n1 running
            job p priority=9
              task p {task}"
        )
    };
    assert_eq!(evicted(&gang_preempt(), &text("cpu=1")), "v-x");
    for task in ["", "cpu=1 never", "cpu=1 gate=example.com/wait"] {
        assert_eq!(evicted(&gang_preempt(), &text(task)), "", "{task}");
    }
    let waits = text("cpu=1").replace("job p ", "job p pending ");
    assert_eq!(evicted(&gang_preempt(), &waits), "");
}

/// All members find a place, or nobody goes.
#[test]
fn gang__all_or_nothing() {
    let text = |elastic: &str| {
        format!(
            "node n1 cpu=2
            job v priority=1 min=0
              task x cpu=1 @n1 x2 running
            job p priority=9 min=1
              task p cpu=1 {elastic}"
        )
    };
    assert_eq!(evicted(&gang_preempt(), &text("x2")), "v-x-0 v-x-1");
    assert_eq!(evicted(&gang_preempt(), &text("x3")), "");
}

/// A starting job gets its sub-jobs in their order until it is pipelined.
#[test]
fn gang__sim_startup() {
    let text = |minimum: u32| {
        format!(
            "node n1 cpu=4
            job v priority=1 min=0
              task x cpu=1 @n1 x4 running
            job p priority=9 min={} policy.g=2x{minimum}
              task b cpu=1 label.g=2 x2
              task a cpu=1 label.g=1 x2",
            2 * minimum
        )
    };
    assert_eq!(evicted(&gang_preempt(), &text(2)), "v-x-0 v-x-1 v-x-2 v-x-3");
    let one = World::new(&gang_preempt(), &text(1)).cycle();
    // The room is measured for all, one sub-job is enough.
    assert_eq!(victims(&one), "v-x-0 v-x-1");
    assert_eq!(one.only(&["pipeline"]), "pipeline p-a-0 n1\npipeline p-a-1 n1");
}

/// A running job gets the first sub-job that lacks tasks, no more.
#[test]
fn gang__sim_startup_running() {
    let text = "node n1 cpu=6
        job v priority=1 min=0
          task x cpu=1 @n1 x4 running
        job p priority=9 min=2 policy.g=2x1
          task a cpu=1 label.g=1 @n1 x2 running
          task c cpu=1 label.g=3 x2
          task b cpu=1 label.g=2 x2";
    let tiers = "gang{jobReady subJobReady jobPipelined} priority{jobOrder taskOrder jobStarving}";
    let cycle = World::new(&conf("gangpreempt", tiers), text).cycle();
    assert_eq!(victims(&cycle), "v-x-0 v-x-1");
    assert_eq!(cycle.only(&["pipeline"]), "pipeline p-b-0 n1\npipeline p-b-1 n1");
}

/// The queue, not the nodes, lacks room.
#[test]
fn gang__queue_has_no_room() {
    let text = "node n1 cpu=8
        queue q cap.cpu=2
        job v queue=q priority=1 min=0
          task x cpu=1 @n1 x2 running
        job p queue=q priority=9
          task p cpu=1";
    let tiers = format!("{TIERS} proportion{{allocatable}}");
    let config = conf("gangpreempt", &tiers);
    assert_eq!(decide(&config, text), "evict v-x-0 gangpreempt\npipeline p-p n1");
}

/// Filters count, also those that eviction could cure: the port is held by a pod that stays.
#[test]
fn gang__filters_pass() {
    let text = "node n1 cpu=2
        job v priority=1 min=0
          task x cpu=1 @n1 running
        job stays priority=10 min=0
          task x cpu=1 @n1 running
        job p priority=9
          task p cpu=1";
    let config = conf("gangpreempt", &format!("{TIERS} predicates"));
    let decided = |holder: &str| {
        let mut world = World::new(&config, text);
        for pod in [holder, "p-p"] {
            let port = HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port: 80 };
            world.edit(pod, |pod| pod.containers[0].host_ports.push(port));
        }
        victims(&world.cycle())
    };
    assert_eq!(decided("v-x"), "v-x");
    assert_eq!(decided("stays-x"), "");
}

#[test]
fn gang__isolation() {
    let text = "node n1 cpu=2
        node n2 cpu=2
        job v priority=1 min=1
          task x cpu=1 @n1 x2 running
          task y cpu=1 @n2 bound
        job w priority=2 min=0
          task x cpu=1 @n2 running
        job p priority=9 min=2
          task p cpu=1
          task q cpu=3";
    let tiers = format!("{TIERS} drf{{jobOrder}} proportion{{allocatable queueOrder}} predicates");
    let mut stage = Stage::new(&conf("gangpreempt", &tiers), Vec::new(), text);
    let before = State::of(&stage.cluster);
    let outbox = stage.session(|session| {
        run(session, "gangpreempt");
        assert_eq!(State::of(session), before);
        assert!(session.records.last_transaction.is_empty());
        let queue = session.queue("default").expect("it exists");
        let share = session.plugins().queue_share(session.view(), queue);
        assert_eq!(share.map(|share| share.share), Some(1.0));
    });
    assert_eq!(outbox.effects, []);
}

/// The room goes to the gang for which it was made, and no more is evicted for it.
#[test]
fn gang__claim() {
    let text = "node n1 cpu=2
        node n2 cpu=2
        job v priority=1 min=1
          task x cpu=1 @n1 x2 running
          task y cpu=1 @n2 x2 running
        job p priority=9 min=3
          task p cpu=1 x3";
    let tiers = format!("{TIERS} predicates");
    let mut world = World::new(&conf("allocate, gangpreempt, backfill", &tiers), text);
    let first = world.cycle();
    assert_eq!(victims(&first), "v-x-0 v-x-1 v-y-0");
    assert!(first.all().contains("nominated=n1"), "{}", first.all());
    let count = Sample::EvictionTransaction(EvictReason::GangPreempt);
    assert_eq!(first.report.samples.iter().filter(|sample| **sample == count).count(), 1);
    for _ in 0..3 {
        world.tick(1);
        let waits = world.cycle();
        assert_eq!(waits.only(&["evict", "bind"]), "");
        assert_eq!(waits.report.pipelined.len(), 3);
    }
    world.kubelets_and_controllers();
    let last = world.cycle().only(&["evict", "bind"]);
    assert_eq!(last, "bind p-p-0 n1\nbind p-p-1 n1\nbind p-p-2 n2");
}

/// The gang is complete before the room for its other members is there: that stays theirs.
#[test]
fn gang__claim_beyond_the_minimum() {
    let text = "node n1 cpu=3
        node n2 cpu=1
        job v priority=1 min=1
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job p priority=9 min=2
          task r cpu=2 @n1 running
          task w cpu=1 x2";
    // The job that lost pods comes first again.
    let tiers = TIERS.replace("gang{", "gang{jobOrder ");
    let config = conf("allocate, gangpreempt", &format!("{tiers} predicates"));
    let mut world = World::new(&config, text);
    assert_eq!(victims(&world.cycle()), "v-a v-b");
    world.delete_pod("v-a");
    assert_eq!(world.cycle().decisions(), "bind p-w-0 n1\npipeline p-w-1 n2");
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind p-w-1 n2");
}

/// Whoever waits for room that was made for it keeps what it has: else that was made in vain.
#[test]
fn gang__spares_a_gang_that_waits() {
    let text = "node n1 cpu=4
        queue qa
        queue qb
        job v queue=qb min=0 created=0
          task x cpu=3 @n1 running
        job a queue=qa min=2 priority=5
          task r cpu=1 @n1 running
          task w cpu=3
        job b queue=qb min=1 priority=1
          task w cpu=1";
    let config = conf("allocate, gangreclaim", &format!("{TIERS} predicates"));
    let mut world = World::new(&config, text);
    for _ in 0..2 {
        let cycle = world.cycle();
        assert!(!cycle.all().contains("evict a-r"), "{}", cycle.all());
        assert_eq!(cycle.only(&["pipeline"]), "pipeline a-w n1");
    }
}

/// Filters refuse the claim while the victim leaves; that is no reason to evict more.
#[test]
fn gang__awaits_its_victims() {
    let text = "node n1 cpu=2 pods=1
        node n2 cpu=2 pods=1
        job v priority=1 min=0
          task x cpu=1 @n1 running
        job w priority=2 min=0
          task x cpu=1 @n2 running
        job p priority=9
          task p cpu=2";
    let tiers = format!("{TIERS} predicates");
    let config = conf("gangpreempt", &tiers);
    let mut world = World::new(&config, text);
    assert_eq!(victims(&world.cycle()), "v-x");
    for _ in 0..3 {
        world.tick(1);
        assert_eq!(victims(&world.cycle()), "");
    }
}

/// Of the rows of 10.6 those that the gang actions can produce.
#[test]
fn record__causes_of_gang_actions() {
    let text = |victim: &str, preemptor: &str| {
        format!(
            "node n1 cpu=2
            queue q1 cap.cpu=2
            queue q2 reclaimable=false
            job v queue=q1 priority=1 {victim}
            job p queue=q1 priority=9 {preemptor}"
        )
    };
    let two = "min=1\ntask x cpu=1 x2 @n1 running";
    let whole = "min=2\ntask x cpu=1 x2 @n1 running";
    let leaving = "min=0\ntask x cpu=1 @n1 running\ntask y cpu=1 @n1 running pre=false";
    let cases = [
        (two, "min=1\ntask p cpu=1 never", "1 policy Never"),
        (
            two,
            "min=1 topology=hard\ntask p cpu=1",
            "1 network topology: hyperNodes are not ready. Remove networkTopology to place the pods without",
        ),
        (
            "min=1 pre=false\ntask x cpu=1 x2 @n1 running",
            "min=1\ntask p cpu=1",
            "1 no pod passed the victim filter",
        ),
        (whole, "min=1\ntask p cpu=1", "1 victims refused by gang"),
        (
            "min=0\ntask x cpu=1 x2 @n1 running class=system-node-critical",
            "min=1\ntask p cpu=1",
            "1 victims refused by conformance",
        ),
        (leaving, "min=1\ntask p cpu=2", "1 not enough even with all victims: insufficient cpu"),
    ];
    for (victim, preemptor, cause) in cases {
        let cycle = World::new(&only_safe(), &text(victim, preemptor)).cycle();
        let events = cycle.only(&["event"]);
        let reported = events.lines().find(|line| line.contains("PreemptionSkipped"));
        let reported = reported.unwrap_or_else(|| panic!("{cause}: {}", cycle.all()));
        assert!(reported.contains(cause), "{cause}: {reported}");
    }
    let silent = with_arguments(gang_preempt(), "gangpreempt", "{explain: false}");
    let cycle = World::new(&silent, &text(two, "min=1\ntask p cpu=1 never")).cycle();
    assert!(!cycle.all().contains("PreemptionSkipped"));
}

#[test]
fn log__gang_actions() {
    let text = "node n1 cpu=1
        queue q1
        queue q2
        job v queue=q1 priority=1 min=0
          task x cpu=1 @n1 running
        job p queue=q2 priority=9
          task p cpu=1";
    let logged = |config: &Config, text: &str| {
        let mut world = World::new(config, text);
        log_of(|| {
            world.cycle();
        })
    };
    let log = logged(&gang_preempt(), text);
    assert!(log.contains(&"5 Enter GangPreempt ...".to_owned()), "{log:#?}");
    assert!(log.contains(&"5 Leaving GangPreempt ...".to_owned()));
    let log = logged(&gang_reclaim(), text);
    for line in
        ["5 Enter GangReclaim ...", "3 Committing operations ...", "5 Leaving GangReclaim ..."]
    {
        assert!(log.iter().any(|logged| logged == line), "{line} {log:#?}");
    }
    let closed = text.replace("queue q2", "queue q2 state=Closed");
    let log = logged(&conf("gangreclaim", &format!("{TIERS} proportion{{preemptive}}")), &closed);
    let refused = "3 Queue <q2> cannot reclaim for task <default/p-p>, skip".to_owned();
    assert!(log.contains(&refused), "{log:#?}");
}

/// Claims of an earlier process are in the nominations.
#[test]
fn gang__restart() {
    let text = "node n1 cpu=1
        job v priority=1 min=0
          task x cpu=1 @n1 running
        job p priority=9
          task p cpu=1";
    let config = conf("allocate, gangpreempt", &format!("{TIERS} predicates"));
    let mut world = World::new(&config, text);
    assert_eq!(victims(&world.cycle()), "v-x");
    world.deliver();
    assert!(
        EvictionHolds::rebuilt(world.engine.cluster())
            .of(
                world.engine.cluster(),
                world.engine.cluster().job(&key("p")).expect("the job is known")
            )
            .is_some()
    );
    world.restart(&config);
    assert_eq!(world.cycle().decisions(), "pipeline p-p n1");
}
