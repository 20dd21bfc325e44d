//! Cases 33-45 of plugins-jobs-queues.md: capacity without hierarchy; the flat example of 18.2.

use std::cmp::Ordering;

use vc_framework::{GangEviction, QueueAmount, SessionState};
use vc_model::fixture;
use vc_resource::Dim;

use crate::support::{
    allocatable, allocate, bind, deserved, enqueueable, evict, in_session, in_session_of, job,
    names, pipeline, preemptive, queue, real_capability, reclaimed, series, shown, task, warnings,
};

const FLAT: &str = "capacity";

#[test]
fn jobs_33_a_pod_fits_up_to_the_capability() {
    for (cap, expected) in [
        ("cap.cpu=2 cap.memory=2Gi", Ok(())),
        ("cap.cpu=1500m cap.memory=1536Mi", Err(vec![Dim::CPU, Dim::MEMORY])),
        ("cap.cpu=1500m", Err(vec![Dim::CPU])),
        ("cap.memory=2Gi", Ok(())),
        // What a capability does not list is unlimited.
        ("cap.gpu=1", Ok(())),
    ] {
        let text = format!(
            "node n cpu=8 memory=8Gi
             queue q1 {cap}
             job r queue=q1\n task r cpu=1 memory=1Gi @n running
             job w queue=q1\n task w cpu=1 memory=1Gi"
        );
        in_session(&text, FLAT, |session| {
            assert_eq!(allocatable(session, "w/w"), expected, "{cap}");
        });
    }
    let text = "node n cpu=8\n queue q cap.cpu=4\n job j queue=q\n task t cpu=1 gpu=1";
    in_session(text, FLAT, |session| {
        let gpu = session.dims.get("nvidia.com/gpu").expect("the pod asks for it");
        assert_eq!(allocatable(session, "j/t"), Err(vec![gpu]));
    });
}

#[test]
fn jobs_34_a_queue_below_its_deserved_amount_takes_from_one_above() {
    let text = "node n1 cpu=2 memory=4Gi\n node n2 cpu=2 memory=4Gi
        queue q3 deserved.cpu=2 deserved.memory=4Gi\n queue q4 deserved.cpu=2 deserved.memory=4Gi
        job p5 queue=q3\n task t cpu=2 memory=4Gi @n1 running
        job p6 queue=q3\n task t cpu=2 memory=4Gi @n2 running
        job p queue=q4\n task t cpu=2 memory=4Gi";
    in_session(text, FLAT, |session| {
        assert!(preemptive(session, "q4", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["p6/t"]), ["p6-t"]);
        let victim = task(session, "p6/t");
        evict(session, &[victim]);
        let reclaimer = task(session, "p/t");
        pipeline(session, reclaimer, "n2");
        // Both stand at what they deserve now.
        assert_eq!((deserved(session, "q3").1, deserved(session, "q4").1), (1.0, 1.0));
        assert_eq!(reclaimed(session, "p/t", &["p5/t"]), [""; 0]);
    });
}

#[test]
fn jobs_35_one_scalar_within_the_deserved_amount_is_enough() {
    let deserved = "deserved.cpu=2 deserved.memory=4Gi deserved.nvidia.com/a100=10";
    let text = format!(
        "node n1 cpu=8 memory=16Gi nvidia.com/a100=20\n queue q5 {deserved}\n queue q6 {deserved}
         job p7 queue=q5\n task t nvidia.com/a100=10 @n1 running
         job p8 queue=q5\n task t nvidia.com/a100=10 @n1 running
         job p9 queue=q6\n task t cpu=4 memory=8Gi @n1 running
         job p queue=q6\n task t nvidia.com/a100=10"
    );
    in_session(&text, FLAT, |session| {
        assert!(preemptive(session, "q6", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["p8/t"]), ["p8-t"]);
        assert_eq!(reclaimed(session, "p/t", &["p7/t", "p8/t"]).len(), 1);
    });
}

#[test]
fn jobs_36_queue_priority_then_share_then_a_deserved_amount() {
    let text = "node n cpu=20
        queue five priority=5 cap.cpu=2\n queue one priority=1 cap.cpu=2
        queue ten priority=10 cap.cpu=2\n queue none priority=5
        queue full priority=5 deserved.cpu=1\n queue low priority=5 deserved.cpu=4
        job f queue=full\n task t cpu=1 @n running
        job l queue=low\n task t cpu=1 @n running";
    in_session(text, FLAT, |session| {
        let mut all =
            ["five", "one", "ten", "none", "full", "low"].map(|name| queue(session, name));
        all.sort_by(|&l, &r| session.plugins().queue_order(session.view(), l, r));
        let names = all.map(|id| session.queues[id].name.to_string());
        // A queue that deserves nothing has share 1 and goes after one that stands at exactly 1.
        assert_eq!(names, ["ten", "low", "full", "five", "none", "one"]);
    });
}

#[test]
fn jobs_37_cpu_within_the_deserved_amount_suffices() {
    let text = "node n cpu=2 memory=4Gi
        queue q10 deserved.cpu=2 deserved.memory=2Gi\n queue q11 deserved.cpu=0 deserved.memory=0
        job a queue=q10\n task t cpu=1 memory=3Gi @n running
        job b queue=q11\n task t cpu=1 memory=1Gi @n running
        job p queue=q10\n task t cpu=1 memory=1Gi";
    in_session(text, FLAT, |session| {
        assert!(preemptive(session, "q10", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["b/t"]), ["b-t"]);
    });
}

#[test]
fn jobs_38_no_dimension_within_the_deserved_amount() {
    let text = "node n cpu=2 memory=4Gi
        queue q12 deserved.cpu=1 deserved.memory=2Gi\n queue none
        job a queue=q12\n task t cpu=1 memory=1Gi @n running
        job p queue=q12\n task t cpu=1 memory=2Gi
        job o queue=none\n task t cpu=1";
    in_session(text, FLAT, |session| {
        assert!(!preemptive(session, "q12", &["p/t"]));
        assert!(!preemptive(session, "none", &["o/t"]), "it deserves nothing");
    });
}

#[test]
fn jobs_39_a_queue_at_its_deserved_amount_keeps_its_pods() {
    let text = "node n cpu=4 memory=8Gi gpu=4
        queue at deserved.cpu=2 deserved.memory=4Gi deserved.gpu=2\n queue none
        queue own deserved.cpu=4 deserved.gpu=4
        job a queue=at\n task t cpu=2 memory=4Gi @n running
        job g queue=none\n task t gpu=1 @n running
        job p queue=own\n task t cpu=2 gpu=1";
    in_session(text, FLAT, |session| {
        // The one of `none` frees a gpu, but no cpu: that is for the action to see.
        assert_eq!(reclaimed(session, "p/t", &["a/t", "g/t"]), ["g-t"]);
    });
}

#[test]
fn jobs_40_victims_share_a_dimension_with_the_reclaimer() {
    let text = "node n cpu=4 memory=8Gi gpu=4
        queue none\n queue below deserved.cpu=2\n queue lacks deserved.cpu=2
        queue own deserved.cpu=4
        job m queue=none\n task t memory=1Gi @n running
        job c queue=below\n task t cpu=1 @n running
        job g queue=lacks\n task t gpu=1 @n running
        job p queue=own\n task t cpu=1 gpu=1";
    in_session(text, FLAT, |session| {
        assert_eq!(reclaimed(session, "p/t", &["m/t", "c/t", "g/t"]), ["g-t"]);
    });
}

#[test]
fn jobs_41_dimensions_that_are_not_deserved_do_not_count_beside_one_that_is() {
    let text = "node n cpu=4 memory=8Gi gpu=1
        queue q19 deserved.gpu=1\n queue q20 deserved.cpu=2 deserved.memory=2Gi
        job v queue=q19\n task t cpu=4 memory=4Gi gpu=1 @n running
        job p queue=q20\n task t cpu=1 memory=1Gi";
    in_session(text, FLAT, |session| {
        assert!(preemptive(session, "q20", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["v/t"]), [""; 0]);
    });
}

#[test]
fn jobs_42_nothing_is_taken_beyond_the_capability() {
    let both = "cap.cpu=8 cap.memory=100Gi deserved.cpu=8 deserved.memory=100Gi";
    let text = format!(
        "node n cpu=20 memory=200Gi\n queue q {both}
         job r queue=q\n task t cpu=7 memory=90Gi @n running
         job w queue=q\n task big cpu=2 memory=5Gi\n task fits cpu=1 memory=5Gi"
    );
    in_session(&text, FLAT, |session| {
        assert!(!preemptive(session, "q", &["w/big"]));
        assert!(preemptive(session, "q", &["w/fits"]));
        assert!(!preemptive(session, "q", &["w/fits", "w/big"]));
    });
}

#[test]
fn jobs_43_shares() {
    for (deserves, uses, expected) in [
        ("", "cpu=1 memory=1Gi", 1.0),
        ("deserved.cpu=2 deserved.memory=2Gi", "cpu=1 memory=1Gi", 0.5),
        ("deserved.cpu=2 deserved.memory=2Gi", "cpu=3 memory=2Gi", 1.5),
        ("deserved.cpu=2 deserved.memory=4Gi", "cpu=1 memory=3Gi", 0.75),
        ("deserved.cpu=0 deserved.memory=0", "cpu=1 memory=1Gi", 1.0),
        ("deserved.cpu=2 deserved.memory=2Gi", "", 0.0),
        ("deserved.cpu=2 deserved.pods=4", "cpu=0", 0.25),
    ] {
        let pod = if uses.is_empty() { String::new() } else { format!("task t {uses} @n running") };
        let text = format!("node n cpu=8 memory=8Gi\n queue q {deserves}\n job j queue=q\n {pod}");
        let share = in_session(&text, FLAT, |session| deserved(session, "q").1);
        assert_eq!(share, expected, "{deserves} {uses}");
    }
}

#[test]
fn jobs_44_a_guarantee_is_kept() {
    let text = "node n cpu=3
        queue v guarantee.cpu=2\n queue own deserved.cpu=3
        job v queue=v\n task t x3 cpu=1 @n running
        job p queue=own\n task t cpu=3";
    in_session(text, FLAT, |session| {
        assert_eq!(deserved(session, "v"), ([2.0, 0.0, 0.0], 1.5));
        let all = ["v/t-0", "v/t-1", "v/t-2"];
        assert_eq!(reclaimed(session, "p/t", &all).len(), 1);
        let victims = series(session, "v/t", 3);
        let (view, own) = (session.view(), job(session, "p"));
        let gang = |kind| session.plugins().unified_evictable(view, own, kind, &victims);
        assert_eq!(names(session, &gang(GangEviction::Reclaim)), ["v-t-0"]);
        assert_eq!(gang(GangEviction::Preempt), victims);
    });
}

#[test]
fn jobs_45_enqueue_counts_only_what_is_asked_for() {
    let text = "node n cpu=4 memory=4G
        queue q1 cap.cpu=2 cap.memory=2G\n queue q2 cap.cpu=3 cap.memory=3G
        job r1 queue=q1 running minres.cpu=1 minres.memory=2G\n task r cpu=1 memory=2G @n running
        job r2 queue=q2 running minres.cpu=2 minres.memory=1G\n task r cpu=2 memory=1G @n running
        job cpu queue=q1 minres.cpu=1\n task w cpu=1
        job memory queue=q2 minres.memory=1G\n task w memory=1G
        job both queue=q1 minres.cpu=1 minres.memory=1G\n task w cpu=1 memory=1G
        job free queue=q1\n task w cpu=1";
    in_session(text, FLAT, |session| {
        for name in ["cpu", "memory", "free"] {
            assert_eq!(enqueueable(session, name), Ok(()), "{name}");
            assert_eq!(allocatable(session, &format!("{name}/w")), Ok(()), "{name}");
        }
        let message = "queue resource quota insufficient: insufficient memory".to_owned();
        assert_eq!(enqueueable(session, "both"), Err(Some(message)));
        assert_eq!(allocatable(session, "both/w"), Err(vec![Dim::MEMORY]));
    });
}

#[test]
fn jobs_45_a_queue_that_is_not_open_admits_nothing() {
    for state in ["Closed", "Closing", "Unknown"] {
        let text = format!(
            "node n cpu=4\n queue q state={state} deserved.cpu=4
             job j queue=q minres.cpu=1\n task w cpu=1\n job free queue=q\n task w cpu=1"
        );
        in_session(&text, FLAT, |session| {
            assert_eq!(enqueueable(session, "j"), Err(None));
            assert_eq!(enqueueable(session, "free"), Err(None));
            assert_eq!(allocatable(session, "j/w"), Err(vec![]));
            assert!(!preemptive(session, "q", &["j/w"]));
        });
    }
}

#[test]
fn jobs_45_tasks_being_bound_are_not_counted_twice() {
    let mut cluster = fixture::cluster(
        "node n cpu=10
         queue q cap.cpu=4
         job a queue=q min=3 inqueue minres.cpu=3\n task t x3 cpu=1
         job b queue=q minres.cpu=1\n task t cpu=1
         job c queue=q minres.cpu=2\n task t cpu=2",
    );
    for path in ["a/t-0", "a/t-1", "a/t-2"] {
        bind(&mut cluster, path, "n");
    }
    in_session_of(cluster, FLAT, 0, |session| {
        assert_eq!(enqueueable(session, "b"), Ok(()));
        let message = "queue resource quota insufficient: insufficient cpu".to_owned();
        assert_eq!(enqueueable(session, "c"), Err(Some(message)));
    });
}

#[test]
fn jobs_45_only_an_enqueued_job_takes_of_the_quota() {
    let text = "node n cpu=10
        queue q cap.cpu=1
        job a queue=q minres.cpu=1\n task t cpu=1
        job b queue=q minres.cpu=1\n task t cpu=1";
    in_session(text, FLAT, |session| {
        assert!(enqueueable(session, "a").is_ok() && enqueueable(session, "b").is_ok());
        let second = job(session, "b");
        session.enqueue(second);
        assert!(enqueueable(session, "a").is_err());
    });
}

/// What the cluster cannot hold is not admitted, and amounts that leave 64 bits are no exception.
#[test]
fn a_job_larger_than_the_cluster_is_not_enqueued() {
    let text = "node n cpu=10\n queue g guarantee.cpu=4\n queue q
        job r queue=q min=0 running\n task t cpu=1 @n running
        job fits queue=q minres.cpu=6
        job over queue=q minres.cpu=6001m
        job huge queue=q minres.cpu=9223372036854775807";
    in_session(text, FLAT, |session| {
        assert_eq!(enqueueable(session, "fits"), Ok(()));
        for name in ["over", "huge"] {
            let message = "queue resource quota insufficient: insufficient cpu".to_owned();
            assert_eq!(enqueueable(session, name), Err(Some(message)), "{name}");
        }
    });
}

/// Elastic 4, of which evictions left nothing: 1 + 0 + 0 - 4 is below zero (D5).
#[test]
fn amounts_below_zero_count_as_zero_and_are_reported() {
    let text = "node n cpu=10
        queue q cap.cpu=4
        job old queue=q min=0 running\n task t x4 cpu=1 @n running
        job new queue=q minres.cpu=1\n task t cpu=1";
    in_session(text, FLAT, |session| {
        let old = series(session, "old/t", 4);
        evict(session, &old);
        assert_eq!(enqueueable(session, "new"), Ok(()));
        session.close_plugins();
        let warning = "capacity: amounts of a queue below zero were taken as zero: 1";
        assert_eq!(session.outcome.out.warnings, [warning]);
    });
}

#[test]
fn flat_limits_of_example_18_2() {
    let text = "node n cpu=10 memory=40Gi
        queue q1 cap.cpu=6 deserved.cpu=8 deserved.memory=16Gi guarantee.cpu=2
        queue q2 deserved.cpu=4\n queue q3 guarantee.cpu=1
        job a queue=q1\n task t cpu=1\n job b queue=q2\n task t cpu=1
        job c queue=q3\n task t cpu=1";
    in_session(text, FLAT, |session| {
        let gi = f64::from(1 << 30);
        let queues = shown(session);
        let real = |name| real_capability(&queues, name);
        assert_eq!(real("q1"), (6.0, 40.0 * gi));
        assert_eq!(real("q2"), (7.0, 40.0 * gi));
        assert_eq!(real("q3"), (8.0, 40.0 * gi));
        assert_eq!(deserved(session, "q1").0, [6.0, 16.0, 0.0]);
        assert_eq!(deserved(session, "q2").0, [4.0, 0.0, 0.0]);
        assert_eq!(deserved(session, "q3").0, [1.0, 0.0, 0.0]);
    });
}

#[test]
fn queues_without_jobs_show_their_spec_and_answer_by_the_normal_rules() {
    let text = "node n cpu=10 gpu=2
        queue idle deserved.cpu=12 deserved.gpu=1 cap.cpu=11\n queue busy deserved.cpu=4
        job j queue=busy\n task t cpu=5 @n running\n task w cpu=3";
    in_session(text, FLAT, |session| {
        let queues = shown(session);
        let of = |name: &str, kind| {
            let gauges = queues.iter().find(|gauges| &*gauges.queue == name)?;
            let (_, amounts) = gauges.amounts.iter().find(|(other, _)| *other == kind)?;
            Some(amounts.cpu_milli / 1000.0)
        };
        assert_eq!(of("idle", QueueAmount::Deserved), Some(12.0));
        assert_eq!(of("idle", QueueAmount::Capability), Some(11.0));
        assert_eq!(of("idle", QueueAmount::RealCapability), Some(10.0));
        assert_eq!(of("busy", QueueAmount::Capability), None);
        assert_eq!(of("busy", QueueAmount::Request), Some(8.0));
        let overused = |name: &str| {
            queues.iter().find(|gauges| &*gauges.queue == name).map(|gauges| gauges.overused)
        };
        assert_eq!(overused("busy"), Some(Some(true)));
        assert_eq!(overused("idle"), Some(Some(false)));
        let (view, plugins) = (session.view(), session.plugins());
        let (idle, busy) = (queue(session, "idle"), queue(session, "busy"));
        assert_eq!(plugins.queue_order(view, idle, busy), Ordering::Less);
        assert!(!plugins.overused(view, busy), "there is no Overused");
        assert_eq!(plugins.allocatable(view, idle, task(session, "j/w")), Ok(()));
    });
}

#[test]
fn jobs_102_beside_proportion_both_limits_hold() {
    let text = "node n cpu=10
        queue q cap.cpu=8\n queue other
        job q queue=q\n task t x7 cpu=1\n task over cpu=4
        job o queue=other\n task t x9 cpu=1";
    in_session(text, "proportion, capacity", |session| {
        assert_eq!(allocatable(session, "q/t-0"), Ok(()));
        let first = series(session, "q/t", 4);
        first.into_iter().for_each(|placed| allocate(session, placed, "n"));
        // Its weighted part is 5, its capability 8.
        assert_eq!(allocatable(session, "q/t-4"), Ok(()));
        assert_eq!(allocatable(session, "q/over"), Err(vec![Dim::CPU]));
    });
    in_session(text, FLAT, |session| {
        let first = series(session, "q/t", 4);
        first.into_iter().for_each(|placed| allocate(session, placed, "n"));
        assert_eq!(allocatable(session, "q/over"), Ok(()));
    });
}

/// Undo brings back amounts and shares bit for bit.
#[test]
fn shares_after_undo_are_as_before() {
    let text = "node n cpu=7
        queue q deserved.cpu=3 deserved.memory=1Gi
        job r queue=q\n task t x3 cpu=333m memory=7Mi @n running
        job w queue=q\n task t x3 cpu=77m";
    in_session(text, FLAT, |session| {
        let share = |session: &SessionState<'_>| deserved(session, "q").1.to_bits();
        let before = share(session);
        let (running, waiting) = (series(session, "r/t", 3), series(session, "w/t", 3));
        let node = fixture::node(session, "n");
        let mut statement = session.statement();
        for (&victim, &placed) in running.iter().zip(&waiting) {
            statement.allocate(placed, node).expect("it is pending");
            let reason = vc_framework::EvictReason::Reclaim;
            statement.evict(victim, reason, None).expect("it runs");
        }
        statement.discard();
        assert_eq!(share(session), before);
        allocate(session, waiting[0], "n");
        assert_ne!(share(session), before);
    });
}

#[test]
fn orphans_are_no_victims_and_reclaim_nothing() {
    let text = "node n cpu=10
        queue q deserved.cpu=4\n queue v
        job lost queue=gone\n task t cpu=9 @n running\n task w cpu=1
        job other queue=v\n task t cpu=1 @n running
        job own queue=q\n task t cpu=1";
    in_session(text, FLAT, |session| {
        assert_eq!(reclaimed(session, "own/t", &["lost/t", "other/t"]), ["other-t"]);
        assert_eq!(reclaimed(session, "lost/w", &["other/t"]), [""; 0]);
    });
}

#[test]
fn switches_of_quotas_of_devices_are_booleans() {
    for argument in ["DynamicResourceAllocationEnable", "DRAConsumableCapacityEnable"] {
        assert_eq!(warnings(&format!("capacity capacity.{argument}=false")), [""; 0]);
        let reported = warnings(&format!("capacity capacity.{argument}=7"));
        assert!(
            reported.len() == 1 && reported[0].contains("expected true or false"),
            "{reported:?}"
        );
    }
}
