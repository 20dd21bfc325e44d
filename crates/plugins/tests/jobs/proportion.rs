//! Cases 22-31 of plugins-jobs-queues.md: proportion, with the worked examples 18.1.

use std::cmp::Ordering;

use vc_framework::{GangEviction, Session, SessionState};
use vc_model::fixture;
use vc_resource::Dim;

use crate::support::{
    allocate, bind, deserved, enqueueable, evict, in_session, in_session_of, job, names, queue,
    series, task, tasks,
};

/// Cores, Gi and share within a thousandth.
fn assert_close(session: &SessionState<'_>, name: &str, cpu: f64, memory: f64) {
    let ([has_cpu, has_memory, _], _) = deserved(session, name);
    let close = (has_cpu - cpu).abs() < 1e-3 && (has_memory - memory).abs() < 1e-3;
    assert!(close, "{name}: {has_cpu}/{has_memory} instead of {cpu}/{memory}");
}

fn check(text: &str, expected: &[(&str, f64, f64)]) {
    in_session(text, "proportion", |session| {
        for &(name, cpu, memory) in expected {
            assert_close(session, name, cpu, memory);
        }
    });
}

const A: &str = "node n cpu=12 memory=24Gi
    queue a weight=1\n queue b weight=2\n queue c weight=3
    job a queue=a\n task r cpu=1 @n running\n task w cpu=11 memory=24Gi
    job b queue=b\n task w cpu=12 memory=24Gi
    job c queue=c\n task w cpu=2 memory=4Gi";

#[test]
fn jobs_22_a_weights() {
    let (third, two_thirds) = (10.0 / 3.0, 20.0 / 3.0);
    check(A, &[("a", third, two_thirds), ("b", two_thirds, 40.0 / 3.0), ("c", 2.0, 4.0)]);
    let share = in_session(A, "proportion", |session| {
        // Only cpu counts here: its one pod of two would be a half.
        let share = deserved(session, "a").1;
        (share, session.plugins().overused(session.view(), queue(session, "a")))
    });
    assert_eq!(share, (0.5, false));
}

#[test]
fn jobs_22_a_share_of_the_weighted_part() {
    let text = A.replace("task w cpu=11 memory=24Gi", "task w x40 cpu=275m memory=600Mi");
    let share = in_session(&text, "proportion", |session| deserved(session, "a").1);
    assert!((share - 0.3).abs() < 1e-4, "{share}");
}

#[test]
fn jobs_22_b_capability() {
    let text = "node n cpu=10 memory=10Gi
        queue a cap.cpu=2\n queue b
        job a queue=a\n task w cpu=10 memory=10Gi
        job b queue=b\n task w cpu=10 memory=10Gi";
    check(text, &[("a", 2.0, 5.0), ("b", 8.0, 5.0)]);
}

#[test]
fn jobs_22_c_idle_guarantee() {
    let text = "node n cpu=10 memory=10Gi
        queue g guarantee.cpu=4 guarantee.memory=4Gi\n queue b
        job b queue=b\n task w cpu=10 memory=10Gi";
    check(text, &[("b", 6.0, 6.0), ("g", 0.0, 0.0)]);
}

/// The loop alone would give 6/6, 4/4, 4/4: tested beside it.
#[test]
fn jobs_22_d_guarantee_above_weight() {
    let text = "node n cpu=12 memory=12Gi
        queue a guarantee.cpu=6 guarantee.memory=6Gi\n queue b\n queue c
        job a queue=a\n task w cpu=12 memory=12Gi
        job b queue=b\n task w cpu=12 memory=12Gi
        job c queue=c\n task w cpu=12 memory=12Gi";
    check(text, &[("a", 6.0, 6.0), ("b", 3.0, 3.0), ("c", 3.0, 3.0)]);
}

#[test]
fn jobs_22_e_guarantee_is_an_offset() {
    let text = "node n cpu=12 memory=12Gi
        queue a guarantee.cpu=5 guarantee.memory=5Gi\n queue b\n queue c weight=4
        job a queue=a\n task w cpu=12 memory=12Gi
        job b queue=b\n task w cpu=12 memory=12Gi
        job c queue=c\n task w cpu=1 memory=1Gi";
    check(text, &[("a", 7.0, 7.0), ("b", 4.0, 4.0), ("c", 1.0, 1.0)]);
}

const F: &str = "node n cpu=10 memory=10Gi
    queue a\n queue b
    job a queue=a\n task t x9 cpu=1\n task last cpu=1 memory=1Gi
    job b queue=b\n task t x9 memory=1Gi\n task last cpu=1 memory=1Gi";

#[test]
fn jobs_22_f_complementary() {
    in_session(F, "proportion", |session| {
        let found = |name, dim| {
            let share = session.plugins().queue_share(session.view(), queue(session, name));
            share.map(|share| share.deserved.get(dim))
        };
        assert_eq!(found("a", Dim::CPU), Some(8999.999999941792));
        assert_eq!(found("b", Dim::MEMORY), Some(9663676415.9375));
        assert_eq!(found("a", Dim::MEMORY), Some(f64::from(1 << 30)));
    });
}

#[test]
fn jobs_22_g_test_fixture() {
    let text = "node n cpu=4 memory=4G
        queue q1 cap.cpu=2 cap.memory=2G\n queue q2 cap.cpu=3 cap.memory=3G
        job j1 queue=q1\n task r cpu=1 memory=2G @n running\n task w cpu=2 memory=1G
        job j2 queue=q2\n task r cpu=2 memory=1G @n running";
    in_session(text, "proportion", |session| {
        let gi = 1e9 / f64::from(1 << 30);
        assert_close(session, "q1", 2.0, 2.0 * gi);
        assert_close(session, "q2", 2.0, gi);
        assert_eq!((deserved(session, "q1").1, deserved(session, "q2").1), (1.0, 1.0));
        let overused = |name| session.plugins().overused(session.view(), queue(session, name));
        assert!(!overused("q1") && overused("q2"));
    });
}

#[test]
fn jobs_22_h_idle_guarantee_and_two_busy_queues() {
    let text = "node n cpu=12 memory=12Gi
        queue g guarantee.cpu=6 guarantee.memory=6Gi\n queue b\n queue c
        job b queue=b\n task w cpu=12 memory=12Gi
        job c queue=c\n task w cpu=12 memory=12Gi";
    check(text, &[("b", 6.0, 6.0), ("c", 6.0, 6.0)]);
}

const I: &str = "node n cpu=40 memory=100Gi pods=220
    queue gold weight=3 guarantee.cpu=8\n queue silver cap.cpu=10\n queue bronze
    job gold queue=gold\n task t x40 cpu=1 memory=256Mi
    job silver queue=silver\n task t x30 cpu=1 memory=2Gi
    job bronze queue=bronze\n task t x8 cpu=500m memory=8Gi";

#[test]
fn jobs_22_i_all_together() {
    in_session(I, "proportion", |session| {
        for (name, cpu, memory, pods) in
            [("gold", 27.0, 10.0, 40.0), ("silver", 9.0, 45.0, 30.0), ("bronze", 4.0, 45.0, 8.0)]
        {
            assert_close(session, name, cpu, memory);
            let ([_, _, has_pods], _) = deserved(session, name);
            assert!((has_pods - pods).abs() < 0.1, "{name}: {has_pods}");
        }
    });
}

/// Places tasks of one series until the queue refuses the next; how many were placed.
fn place_while_allocatable(session: &mut Session<'_>, name: &str, n: usize) -> usize {
    let queue = queue(session, name);
    for (n_placed, task) in series(session, &format!("{name}/t"), n).into_iter().enumerate() {
        if session.plugins().allocatable(session.view(), queue, task).is_err() {
            return n_placed;
        }
        allocate(session, task, "n");
    }
    n
}

#[test]
fn jobs_22_i_checks() {
    in_session(I, "proportion", |session| {
        assert_eq!(place_while_allocatable(session, "gold", 40), 27);
        assert_eq!(place_while_allocatable(session, "silver", 30), 9);
        let silver = queue(session, "silver");
        // Memory is left, so it is served on, but nothing that asks for cpu passes.
        assert!(!session.plugins().overused(session.view(), silver));
        let next = task(session, "silver/t-9");
        assert_eq!(
            session.plugins().allocatable(session.view(), silver, next),
            Err(vec![Dim::CPU])
        );
    });
    let text = format!("{I}\n job memory queue=silver\n task t memory=1Gi");
    in_session(&text, "proportion", |session| {
        place_while_allocatable(session, "silver", 30);
        let (silver, memory) = (queue(session, "silver"), task(session, "memory/t"));
        assert_eq!(session.plugins().allocatable(session.view(), silver, memory), Ok(()));
    });
}

#[test]
fn jobs_22_i_reclaim_stops_at_the_deserved_amount() {
    in_session(I, "proportion", |session| {
        let gold = series(session, "gold/t", 30);
        for &placed in &gold {
            allocate(session, placed, "n");
        }
        let reclaimer = task(session, "bronze/t-0");
        let victims = session.plugins().reclaimable(session.view(), reclaimer, &gold);
        assert_eq!(names(session, &victims), ["gold-t-0", "gold-t-1", "gold-t-2"]);
        let (view, bronze) = (session.view(), job(session, "bronze"));
        let gang = |kind| session.plugins().unified_evictable(view, bronze, kind, &gold);
        assert_eq!(gang(GangEviction::Reclaim), victims);
        assert_eq!(gang(GangEviction::Preempt), gold);
        evict(session, &gold[..3]);
        let reclaimer = task(session, "bronze/t-0");
        assert_eq!(session.plugins().reclaimable(session.view(), reclaimer, &gold[3..]), []);
    });
}

#[test]
fn jobs_23_the_pod_that_fills_the_share_passes_and_the_next_does_not() {
    in_session(F, "proportion", |session| {
        assert_eq!(place_while_allocatable(session, "a", 9), 9);
        let (a, last) = (queue(session, "a"), task(session, "a/last"));
        assert_eq!(session.plugins().allocatable(session.view(), a, last), Err(vec![Dim::CPU]));
        assert!(!session.plugins().preemptive(session.view(), a, &[last]));
    });
}

const CASE_24: &str = "node n cpu=4 memory=4G
    queue q1 cap.cpu=2 cap.memory=2G\n queue q2 cap.cpu=3 cap.memory=3G
    job r1 queue=q1 running minres.cpu=1 minres.memory=2G\n task r cpu=1 memory=2G @n running
    job r2 queue=q2 running minres.cpu=2 minres.memory=1G\n task r cpu=2 memory=1G @n running
    job cpu queue=q1 minres.cpu=1\n task w cpu=1
    job memory queue=q2 minres.memory=1G\n task w memory=1G
    job both queue=q1 minres.cpu=1 minres.memory=1G\n task w cpu=1 memory=1G";

#[test]
fn jobs_24_only_asked_dimensions_are_compared() {
    in_session(CASE_24, "proportion", |session| {
        let enqueueable = |name| enqueueable(session, name);
        let allocatable = |name: &str| {
            let task = task(session, &format!("{name}/w"));
            let queue = session.job_of(task).expect("it has a job").queue;
            session.plugins().allocatable(session.view(), queue, task)
        };
        assert_eq!((enqueueable("cpu"), allocatable("cpu")), (Ok(()), Ok(())));
        assert_eq!((enqueueable("memory"), allocatable("memory")), (Ok(()), Ok(())));
        let message = "queue resource quota insufficient: insufficient memory".to_owned();
        assert_eq!(enqueueable("both"), Err(Some(message)));
        assert_eq!(allocatable("both"), Err(vec![Dim::MEMORY]));
    });
}

#[test]
fn jobs_24_a_queue_that_is_not_open_admits_nothing() {
    for state in ["Closed", "Closing", "Unknown"] {
        let text = format!(
            "node n cpu=4\n queue q state={state}
             job j queue=q minres.cpu=1\n task w cpu=1\n job free queue=q\n task w cpu=1"
        );
        in_session(&text, "proportion", |session| {
            let (view, plugins) = (session.view(), session.plugins());
            let (q, w) = (queue(session, "q"), task(session, "j/w"));
            for name in ["j", "free"] {
                assert_eq!(enqueueable(session, name), Err(None));
            }
            assert_eq!(plugins.allocatable(view, q, w), Err(vec![]));
            assert!(!plugins.preemptive(view, q, &[w]));
        });
    }
}

#[test]
fn jobs_25_queue_priority_comes_before_share() {
    let text = "node n cpu=4
        queue five priority=5\n queue one priority=1\n queue ten priority=10\n queue same priority=5
        job f queue=five\n task t cpu=1
        job o queue=one\n task t cpu=1
        job t queue=ten\n task t cpu=2 @n running
        job s queue=same\n task t cpu=1 @n running";
    in_session(text, "proportion", |session| {
        let mut all = ["five", "one", "ten", "same"].map(|name| queue(session, name));
        all.sort_by(|&l, &r| session.plugins().queue_order(session.view(), l, r));
        let names = all.map(|id| session.queues[id].name.to_string());
        assert_eq!(names, ["ten", "five", "same", "one"]);
    });
}

#[test]
fn jobs_26_tasks_being_bound_are_not_counted_twice() {
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
    in_session_of(cluster, "proportion", 0, |session| {
        let enqueueable = |name| enqueueable(session, name);
        assert_eq!(enqueueable("b"), Ok(()));
        let message = "queue resource quota insufficient: insufficient cpu".to_owned();
        assert_eq!(enqueueable("c"), Err(Some(message)));
    });
}

#[test]
fn jobs_27_only_an_enqueued_job_takes_of_the_quota() {
    let text = "node n cpu=10
        queue q cap.cpu=1
        job a queue=q minres.cpu=1\n task t cpu=1
        job b queue=q minres.cpu=1\n task t cpu=1";
    in_session(text, "proportion", |session| {
        let enqueueable = |session: &SessionState<'_>, name| {
            session.plugins().job_enqueueable(session.view(), job(session, name)).is_ok()
        };
        assert!(enqueueable(session, "a") && enqueueable(session, "b"));
        let second = job(session, "b");
        session.enqueue(second);
        assert!(!enqueueable(session, "a"));
    });
}

#[test]
fn jobs_28_a_queue_without_jobs_answers_by_the_normal_rules() {
    let text = "node n cpu=10
        queue idle weight=9\n queue busy
        job j queue=busy minres.cpu=1\n task t cpu=4";
    in_session(text, "proportion", |session| {
        let (view, plugins) = (session.view(), session.plugins());
        let (idle, busy, t) =
            (queue(session, "idle"), queue(session, "busy"), task(session, "j/t"));
        assert!(plugins.overused(view, idle));
        assert_eq!(plugins.allocatable(view, idle, t), Err(vec![Dim::CPU]));
        assert!(!plugins.preemptive(view, idle, &[t]));
        assert_eq!(plugins.queue_order(view, busy, idle), Ordering::Less);
        // Its weight takes nothing away from the other.
        assert_close(session, "busy", 4.0, 0.0);
    });
}

#[test]
fn jobs_29_gated_tasks_hold_nothing_back() {
    let text = "node n cpu=10
        queue q cap.cpu=4
        job in queue=q inqueue minres.cpu=3\n task g cpu=2 gate=foreign\n task q cpu=1 gate=queue
        job fits queue=q minres.cpu=3\n task t cpu=3
        job over queue=q minres.cpu=3001m\n task t cpu=3001m";
    in_session(text, "proportion", |session| {
        let enqueueable =
            |name| session.plugins().job_enqueueable(session.view(), job(session, name)).is_ok();
        assert!(enqueueable("fits") && !enqueueable("over"));
    });
}

#[test]
fn jobs_31_elastic_amounts_make_room_for_others() {
    let text = "node n cpu=10
        queue q cap.cpu=4
        job old queue=q min=1 running minres.cpu=1\n task t x4 cpu=1 @n running
        job fits queue=q minres.cpu=3\n task t cpu=3
        job over queue=q minres.cpu=4\n task t cpu=4";
    in_session(text, "proportion", |session| {
        let enqueueable =
            |name| session.plugins().job_enqueueable(session.view(), job(session, name)).is_ok();
        assert!(enqueueable("fits") && !enqueueable("over"));
    });
}

/// Elastic 4, of which evictions left nothing: 1 + 0 + 0 - 4 is below zero (D5).
#[test]
fn amounts_below_zero_count_as_zero_and_are_reported() {
    let text = "node n cpu=10
        queue q cap.cpu=4
        job old queue=q min=0 running\n task t x4 cpu=1 @n running
        job new queue=q minres.cpu=1\n task t cpu=1";
    in_session(text, "proportion", |session| {
        let old = series(session, "old/t", 4);
        evict(session, &old);
        assert_eq!(session.plugins().job_enqueueable(session.view(), job(session, "new")), Ok(()));
        session.close_plugins();
        let warning = "proportion: amounts of a queue below zero were taken as zero: 1";
        assert_eq!(session.outcome.out.warnings, [warning]);
    });
}

#[test]
fn a_capability_of_zero_is_none() {
    let text = "node n cpu=10
        queue zero cap.cpu=0 cap.memory=0\n queue gpu cap.gpu=0
        job z queue=zero minres.cpu=10\n task t cpu=10
        job g queue=gpu minres.cpu=10 minres.gpu=1\n task t cpu=10";
    in_session(text, "proportion", |session| {
        let enqueueable = |name| enqueueable(session, name);
        assert_eq!(enqueueable("z"), Ok(()));
        let message = "queue resource quota insufficient: insufficient nvidia.com/gpu".to_owned();
        assert_eq!(enqueueable("g"), Err(Some(message)));
    });
}

#[test]
fn orphans_are_no_victims_and_zero_weights_divide_nothing() {
    let text = "node n cpu=10
        queue q weight=0
        job lost queue=gone\n task t cpu=9 @n running
        job own queue=q\n task t cpu=1";
    in_session(text, "proportion", |session| {
        let lost = [task(session, "lost/t")];
        let own = task(session, "own/t");
        assert_eq!(session.plugins().reclaimable(session.view(), own, &lost), []);
        assert_close(session, "q", 0.0, 0.0);
    });
}

/// By 5.3 the pod of 3 cores could go, because the queue has more than it deserves.
#[test]
fn a_guarantee_is_not_reclaimed() {
    let text = |guarantee: &str| {
        format!(
            "node n cpu=4 gpu=1
            queue q {guarantee}
            queue own weight=9
            job r queue=q\n task large cpu=3 @n running\n task small cpu=1 @n running
            job j queue=own\n task t cpu=3"
        )
    };
    let both = ["r/large", "r/small"];
    for (guarantee, victims) in [
        ("", &["r-large"][..]),
        ("guarantee.cpu=1", &["r-large"]),
        ("guarantee.cpu=2", &["r-small"]),
        ("guarantee.cpu=4", &[]),
        ("guarantee.gpu=1", &[]),
    ] {
        in_session(&text(guarantee), "priority / proportion", |session| {
            let own = task(session, "j/t");
            let candidates = tasks(session, &both);
            let reclaimed = session.plugins().reclaimable(session.view(), own, &candidates);
            assert_eq!(names(session, &reclaimed), victims, "{guarantee}");
        });
    }
}

/// There is no copy to simulate on: a try changes the session and is undone, and the plugin has
/// what it had before, to the bit (6.7.2, S11).
#[test]
fn jobs_32_what_is_tried_out_and_undone_changes_no_share() {
    let text = "node n cpu=4
        queue q
        queue own
        job r queue=q min=0\n task t x4 cpu=1 @n running
        job j queue=own\n task t cpu=3";
    in_session(text, "proportion", |session| {
        let shares =
            |session: &SessionState<'_>| (deserved(session, "q"), deserved(session, "own"));
        let (before, victims) = (shares(session), series(session, "r/t", 4));
        let mut statement = session.statement();
        for &victim in &victims {
            let reason = vc_framework::EvictReason::Preempt;
            statement.evict(victim, reason, None).expect("it runs");
        }
        assert_ne!(shares(&statement), before, "the queue has less now");
        statement.discard();
        assert_eq!(shares(session), before);
    });
}
