//! Cases 60-67 of plugins-jobs-queues.md: capacity with `ancestorReclaimLevel`. One node; `a100` is
//! `nvidia.com/a100`.

use vc_framework::{GangEviction, Session};

use crate::support::{in_session, job, names, preemptive, reclaimed, task, warnings};

fn check<R>(level: u32, text: &str, check: impl FnOnce(&mut Session<'_>) -> R) -> R {
    let tiers = format!("priority, capacity +enableHierarchy ancestorReclaimLevel={level}");
    let text = format!("node n cpu=64 memory=64Gi a100=16\n queue root\n{text}");
    in_session(&text.replace("a100", "nvidia.com/a100"), &tiers, check)
}

#[test]
fn jobs_60_a_leaf_reclaims_by_what_its_parent_deserves() {
    let text = "queue q1 deserved.a100=1\n queue own parent=q1\n queue v
        job v queue=v\n task t a100=4 @n running
        job p queue=own\n task t a100=1";
    check(1, text, |session| {
        assert!(preemptive(session, "own", &["p/t"]));
        assert_eq!(reclaimed(session, "p/t", &["v/t"]), ["v-t"]);
    });
    check(0, text, |session| assert!(!preemptive(session, "own", &["p/t"])));
}

const PROJECTS: &str = "queue p1 deserved.a100=1 cap.a100=2
    queue p1-np parent=p1 deserved.a100=1 cap.a100=1\n queue p1-pre parent=p1
    queue p2 deserved.a100=3 cap.a100=4
    queue p2-np parent=p2 deserved.a100=3 cap.a100=3\n queue p2-pre parent=p2\n";

#[test]
fn jobs_61_the_lowest_priority_goes() {
    let text = format!(
        "{PROJECTS} job v queue=p2-pre\n task t x3 a100=1 priority=2 @n running
         task low a100=1 priority=1 @n running
         job p queue=p1-pre\n task t a100=1"
    );
    check(1, &text, |session| {
        assert!(preemptive(session, "p1-pre", &["p/t"]));
        let victims = reclaimed(session, "p/t", &["v/t-0", "v/t-1", "v/t-2", "v/low"]);
        assert_eq!(victims, ["v-low"], "then p2 stands at what it deserves");
    });
}

#[test]
fn jobs_62_a_parent_at_its_share_protects_its_leaf() {
    let text = format!(
        "{PROJECTS} job v queue=p2-pre\n task p x3 a100=1 @n running
         job o queue=p1-pre\n task t a100=1 @n running
         job p queue=p2-np\n task t a100=1"
    );
    check(1, &text, |session| {
        assert!(preemptive(session, "p2-np", &["p/t"]));
        let victims = reclaimed(session, "p/t", &["o/t", "v/p-0", "v/p-1", "v/p-2"]);
        assert_eq!(victims, ["v-p-2", "v-p-1", "v-p-0"]);
    });
}

#[test]
fn jobs_63_a_sibling_at_its_deserved_amount_gives_nothing() {
    let text = "queue p deserved.a100=2\n queue a parent=p deserved.a100=1
        queue b parent=p deserved.a100=1
        job v queue=a\n task t a100=1 @n running
        job p queue=b\n task t a100=1";
    check(1, text, |session| assert_eq!(reclaimed(session, "p/t", &["v/t"]), [""; 0]));
}

#[test]
fn jobs_64_every_ancestor_up_to_the_level_must_be_above_its_share() {
    let both = |name: &str, amount: u32| format!("{name}.cpu={amount} {name}.memory={amount}Gi");
    let text = format!(
        "queue grand-a {} {}\n queue parent-a parent=grand-a {}\n queue queue-a parent=parent-a {}
         queue grand-b {}\n queue parent-b parent=grand-b {} {}
         queue queue-b parent=parent-b {} {}
         job v queue=queue-b\n task t cpu=2 memory=2Gi @n running
         job p queue=queue-a\n task t cpu=2 memory=2Gi",
        both("deserved", 2),
        both("cap", 4),
        both("deserved", 2),
        both("deserved", 2),
        both("deserved", 3),
        both("deserved", 1),
        both("cap", 2),
        both("deserved", 1),
        both("cap", 2),
    );
    for (level, expected) in [(0, 1), (1, 1), (2, 0)] {
        check(level, &text, |session| {
            assert!(preemptive(session, "queue-a", &["p/t"]));
            assert_eq!(reclaimed(session, "p/t", &["v/t"]).len(), expected, "{level}");
            let (own, victims) = (job(session, "p"), [task(session, "v/t")]);
            let kind = GangEviction::Reclaim;
            let by_gang = session.plugins().unified_evictable(session.view(), own, kind, &victims);
            assert_eq!(names(session, &by_gang).len(), expected, "D3: {level}");
        });
    }
}

#[test]
fn jobs_65_relatives_that_deserve_nothing_do_not_quarrel() {
    let jobs = "job v queue=v\n task t a100=1 @n running\n job p queue=own\n task t a100=1";
    for (level, queues) in [
        (1, "queue p deserved.a100=4\n queue v parent=p\n queue own parent=p"),
        (
            2,
            "queue g deserved.a100=4\n queue p1 parent=g\n queue p2 parent=g
             queue v parent=p1\n queue own parent=p2",
        ),
        (
            2,
            "queue g deserved.a100=4\n queue p-deep parent=g\n queue v parent=p-deep
             queue own parent=g",
        ),
    ] {
        check(level, &format!("{queues}\n{jobs}"), |session| {
            assert_eq!(reclaimed(session, "p/t", &["v/t"]), [""; 0], "{queues}");
        });
        check(0, &format!("{queues}\n{jobs}"), |session| {
            assert_eq!(reclaimed(session, "p/t", &["v/t"]), ["v-t"], "{queues}");
        });
    }
}

#[test]
fn jobs_66_levels_of_trees_that_are_not_balanced() {
    let text =
        "queue shallow-parent deserved.a100=1\n queue shallow parent=shallow-parent deserved.a100=1
        queue deep-grand deserved.a100=2\n queue deep-parent parent=deep-grand deserved.a100=1
        queue deep parent=deep-parent deserved.a100=1
        job v queue=deep\n task t x2 a100=1 @n running
        job p queue=shallow\n task t a100=1";
    for (level, expected) in [(1, 1), (2, 0)] {
        check(level, text, |session| {
            let victims = reclaimed(session, "p/t", &["v/t-0", "v/t-1"]);
            assert_eq!(victims.len(), expected, "{level}");
        });
    }
}

#[test]
fn jobs_67_a_level_below_zero_or_in_quotes_is_none() {
    let text = "queue q1 deserved.a100=1\n queue own parent=q1\n job p queue=own\n task t a100=1";
    for level in ["-1", "\"1\""] {
        let tiers = format!("capacity +enableHierarchy ancestorReclaimLevel={level}");
        assert_eq!(warnings(&tiers).len(), 1, "{level}");
        let text =
            format!("node n a100=4\n queue root\n {text}").replace("a100", "nvidia.com/a100");
        in_session(&text, &tiers, |session| assert!(!preemptive(session, "own", &["p/t"])));
    }
    assert_eq!(warnings("capacity +enableHierarchy ancestorReclaimLevel=2"), [""; 0]);
}
