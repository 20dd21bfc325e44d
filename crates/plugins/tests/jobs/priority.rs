//! Cases 12-15 of plugins-jobs-queues.md: priority.

use std::cmp::Ordering;

use vc_framework::GangEviction;

use crate::support::{in_session, job, names, task, tasks};

const NODE: &str = "node n cpu=100 memory=100Gi\n";

#[test]
fn jobs_12_gang_preempt_asks_for_priority_and_gang_reclaim_does_not() {
    let text = format!(
        "{NODE} job low priority=100\n task a cpu=1 @n running
                job high priority=1000\n task a cpu=1 @n running
                job equal priority=500\n task a cpu=1 @n running
                job own priority=500\n task a cpu=1"
    );
    in_session(&text, "priority", |session| {
        let candidates = tasks(session, &["low/a", "high/a", "equal/a"]);
        let victims = |kind| {
            let (view, own) = (session.view(), job(session, "own"));
            let victims = session.plugins().unified_evictable(view, own, kind, &candidates);
            names(session, &victims)
        };
        assert_eq!(victims(GangEviction::Reclaim), ["low-a", "high-a", "equal-a"]);
        assert_eq!(victims(GangEviction::Preempt), ["low-a"], "nor one of equal priority");
    });
}

#[test]
fn jobs_13_the_pod_of_default_priority_is_the_first_victim() {
    let text = "node n cpu=6 memory=6Gi
                job low priority=1
                  task keeps cpu=3 memory=3Gi @n running priority=1000
                  task goes cpu=3 memory=3Gi @n running
                job high priority=1000
                  task a cpu=3 memory=3Gi";
    let victims = |tiers| {
        in_session(text, tiers, |session| {
            let (view, preemptor) = (session.view(), task(session, "high/a"));
            let candidates = tasks(session, &["low/keeps", "low/goes"]);
            let mut victims = session.plugins().preemptable(view, preemptor, &candidates);
            let own = Some(job(session, "high"));
            victims.sort_by(|&l, &r| session.plugins().victim_order(view, own, l, r));
            names(session, &victims)
        })
    };
    assert_eq!(victims("priority"), ["low-goes", "low-keeps"]);
    assert_eq!(victims("priority -enablePreemptable"), [""; 0]);
}

#[test]
fn jobs_14_inside_a_job_tasks_compare_by_their_own_priority() {
    let text = format!(
        "{NODE} job j priority=5
           task own cpu=1 priority=10
           task equal cpu=1 @n running priority=10
           task lower cpu=1 @n running priority=9
         job equal priority=5\n task a cpu=1 @n running priority=0
         job lower priority=4\n task a cpu=1 @n running priority=99"
    );
    let victims = in_session(&text, "priority", |session| {
        let candidates = tasks(session, &["j/equal", "j/lower", "equal/a", "lower/a"]);
        let own = task(session, "j/own");
        names(session, &session.plugins().preemptable(session.view(), own, &candidates))
    });
    assert_eq!(victims, ["j-lower", "lower-a"]);
}

#[test]
fn jobs_14_without_a_job_nothing_is_outranked() {
    let text = format!("{NODE} pod own cpu=1\n job j priority=-5\n task a cpu=1 @n running");
    let victims = in_session(&text, "priority", |session| {
        let candidates = tasks(session, &["j/a"]);
        session.plugins().preemptable(session.view(), task(session, "own"), &candidates)
    });
    assert_eq!(victims, []);
}

#[test]
fn jobs_15_gang_and_priority_in_one_tier_must_both_call_a_job_starving() {
    let text = format!("{NODE} job j min=2\n task t x2 cpu=1 @n running\n task w cpu=1");
    let starving = |tiers| {
        in_session(&text, tiers, |session| {
            session.plugins().job_starving(session.view(), job(session, "j"))
        })
    };
    assert!(starving("priority") && !starving("gang"));
    assert!(!starving("priority, gang"));
    assert!(starving("priority, gang -enableJobStarving"));
}

#[test]
fn orders_put_higher_priority_first() {
    let text = "job high priority=2
                  policy p keys=idx min=1
                  task a priority=-7 label.idx=0
                  task b priority=-3 label.idx=1
                job low priority=1
                  task a priority=3";
    in_session(text, "priority", |session| {
        let (view, plugins) = (session.view(), session.plugins());
        let (high, low) = (job(session, "high"), job(session, "low"));
        assert_eq!(plugins.job_order_plugins(view, high, low), Ordering::Less);
        let (a, b) = (task(session, "low/a"), task(session, "high/a"));
        assert_eq!(plugins.task_order(view, a, b), Ordering::Less);
        // Also where all are negative (D8): -7 is after -3.
        assert_eq!(plugins.sub_job_order(view, high, 1, 2), Ordering::Greater);
    });
}
