//! Cases 81-85 of plugins-jobs-queues.md: overcommit and sla.

use std::cmp::Ordering;

use vc_framework::{Admission, SessionState};
use vc_model::fixture;

use crate::support::{bind, in_session, in_session_of, job, plugin, warnings};

/// The answer of JobEnqueueable over all tiers.
fn enqueueable(session: &SessionState<'_>, name: &str) -> Result<(), Option<String>> {
    let answer = session.plugins().job_enqueueable(session.view(), job(session, name));
    answer.map_err(|refusal| refusal.message)
}

const NODES: &str = "node n1 cpu=2 memory=4Gi\n node n2 cpu=4 memory=16Gi\n";

#[test]
fn jobs_81_example_18_5() {
    let text = format!(
        "{NODES} job in inqueue minres.cpu=2 minres.memory=2G
                 job big minres.cpu=20 minres.memory=20G
                 job bigger minres.cpu=20 minres.memory=30G
                 job free"
    );
    in_session(&text, "overcommit", |session| {
        let again = job(session, "in");
        session.enqueue(again);
        assert_eq!(enqueueable(session, "in"), Ok(()));
        session.enqueue(again);
        let message = "resource in cluster is overused: overused cpu".to_owned();
        assert_eq!(enqueueable(session, "in"), Err(Some(message)));
        assert_eq!(enqueueable(session, "free"), Ok(()));
    });
    let empty = text.replace("job in inqueue", "job in");
    in_session(&empty, "overcommit", |session| {
        let overused = |names| Err(Some(format!("resource in cluster is overused: {names}")));
        assert_eq!(enqueueable(session, "big"), overused("overused cpu"));
        assert_eq!(enqueueable(session, "bigger"), overused("overused cpu, overused memory"));
    });
}

#[test]
fn jobs_81_factors() {
    let admits = |tiers: &str, cpu: &str| {
        let text = format!("node n cpu=10\n job j minres.cpu={cpu}");
        in_session(&text, tiers, |session| enqueueable(session, "j").is_ok())
    };
    for default in
        ["overcommit", "overcommit overcommit-factor=0.8", r#"overcommit overcommit-factor="1.5""#]
    {
        assert!(admits(default, "12") && !admits(default, "12001m"), "{default}");
    }
    let one = "overcommit overcommit-factor=1";
    assert!(admits(one, "10") && !admits(one, "10001m"));
    let text = &warnings("overcommit overcommit-factor=0.8")[0];
    assert!(text.starts_with("overcommit-factor: 0.8 is less than 1\nhint: "), "{text}");
    assert_eq!(warnings(one), [""; 0]);
}

#[test]
fn jobs_81_what_pods_use_and_gated_pods_count() {
    let text = "node n cpu=10
                pod other cpu=4 @n releasing
                job in inqueue minres.cpu=3\n task g cpu=2 gate=foreign\n task q cpu=1 gate=queue
                job fits minres.cpu=7
                job over minres.cpu=7001m";
    in_session(text, "overcommit", |session| {
        // 12 - 4 used - (3 - 2 gated) = 7.
        assert_eq!(enqueueable(session, "fits"), Ok(()));
        assert!(enqueueable(session, "over").is_err());
    });
}

#[test]
fn jobs_82_an_inqueue_job_that_is_being_bound_is_not_counted_twice() {
    let mut cluster = fixture::cluster(
        "node n cpu=10
         job in min=3 inqueue minres.cpu=3\n task t x3 cpu=1
         job fits minres.cpu=9
         job over minres.cpu=9001m",
    );
    for path in ["in/t-0", "in/t-1", "in/t-2"] {
        bind(&mut cluster, path, "n");
    }
    in_session_of(cluster, "overcommit", 0, |session| {
        assert_eq!(enqueueable(session, "fits"), Ok(()));
        assert!(enqueueable(session, "over").is_err());
    });
}

#[test]
fn jobs_83_the_end_of_the_waiting_time_orders_jobs() {
    let text = "job plain\n job hour sla=1h\n job late created=60 sla=3m";
    let order = |tiers: &str, l: &str, r: &str| {
        in_session(text, tiers, |session| {
            let (l, r) = (job(session, l), job(session, r));
            session.plugins().job_order_plugins(session.view(), l, r)
        })
    };
    assert_eq!(order("sla sla-waiting-time=3m", "plain", "hour"), Ordering::Less);
    assert_eq!(order("sla sla-waiting-time=3m", "plain", "late"), Ordering::Less);
    assert_eq!(order("sla sla-waiting-time=4m", "plain", "late"), Ordering::Equal);
    // Of the wrong type: no global time.
    assert_eq!(order("sla sla-waiting-time=3", "plain", "hour"), Ordering::Greater);
    assert_eq!(order("sla", "plain", "plain"), Ordering::Equal);
}

#[test]
fn jobs_83_arguments_that_are_no_duration_are_reported() {
    for argument in ["3", "abc", "-1s", "0"] {
        let warnings = warnings(&format!("sla sla-waiting-time={argument}"));
        assert_eq!(warnings.len(), 1, "{argument}");
        let start = "sla-waiting-time: not a positive duration\nhint: write a duration in quotes";
        assert!(warnings[0].starts_with(start), "{}", warnings[0]);
    }
    assert_eq!(warnings("sla sla-waiting-time=1h30m"), [""; 0]);
}

#[test]
fn jobs_83_a_job_that_waited_long_enough_is_permitted() {
    let text = "job plain\n job j sla=3m";
    let answers = |seconds: i64, name: &str| {
        in_session_of(fixture::cluster(text), "sla", seconds, |session| {
            let mut sla = plugin("sla");
            sla.open(session.view());
            sla.job_enqueueable(session.view(), job(session, name))
        })
    };
    assert_eq!(answers(179, "j"), Admission::Abstain);
    assert_eq!(answers(180, "j"), Admission::Permit);
    assert_eq!(answers(999, "plain"), Admission::Abstain);
}

#[test]
fn jobs_84_the_second_annotation_is_read_when_the_first_says_nothing() {
    let text = "job j annotation.volcano.sh/sla-waiting-time=bad annotation.sla-waiting-time=5m
                job negative annotation.volcano.sh/sla-waiting-time=-1s
                job plain";
    let waiting = |name| {
        let cluster = fixture::cluster(text);
        let group = cluster.jobs[fixture::job(&cluster, name)].pod_group.clone();
        group.expect("it has a PodGroup").sla_waiting_micros
    };
    assert_eq!(waiting("j"), Some(300_000_000));
    assert_eq!([waiting("negative"), waiting("plain")], [None, None]);
}

#[test]
fn jobs_85_the_tier_decides_whether_sla_overrides_quotas() {
    let text = "node n cpu=1\n job j sla=1m minres.cpu=9";
    let answer = |tiers: &str, seconds: i64| {
        let cluster = fixture::cluster(text);
        in_session_of(cluster, tiers, seconds, |session| enqueueable(session, "j").is_ok())
    };
    assert!(answer("sla / overcommit", 60));
    assert!(!answer("sla / overcommit", 59));
    assert!(!answer("sla, overcommit", 60));
}

#[test]
fn sla_before_gang_holds_resources_and_beside_it_does_not() {
    let text = "node n cpu=9\n job j min=2 sla=1m\n task t x2 cpu=1";
    let pipelined = |tiers: &str| {
        in_session_of(fixture::cluster(text), tiers, 60, |session| {
            session.plugins().job_pipelined(session.view(), job(session, "j"))
        })
    };
    assert!(pipelined("sla / gang") && !pipelined("sla, gang") && !pipelined("gang"));
}
