//! Claims and nominations of committed evictions: actions.md 2.11, A15, A16.

use vc_framework::{EvictReason, EvictionHolds, Room, Session, SessionState};
use vc_model::{Cluster, ClusterEvent, ObjectKey, Pause, TaskStatus, fixture};

use super::support::{in_session, in_session_of, job, node, task};

const BED: &str = "node n1 cpu=2
     node n2 cpu=1
     job v
       task runs cpu=2 @n1 running
     job j min=2
       task a cpu=1
       task b cpu=1
       task c cpu=1";

/// Evicts for `a`, and plans `b` on room that becomes free anyway.
fn evict_for_a(session: &mut Session<'_>, end: impl FnOnce(vc_framework::Statement<'_, '_>)) {
    let [victim, a, b] = ["v/runs", "j/a", "j/b"].map(|path| task(session, path));
    let (n1, n2) = (node(session, "n1"), node(session, "n2"));
    let mut statement = session.statement();
    statement.evict(victim, EvictReason::Preempt, Some(a)).unwrap();
    statement.pipeline(a, n1, Room::Evicted).unwrap();
    statement.pipeline(b, n2, Room::Releasing).unwrap();
    end(statement);
}

fn committed() -> (Cluster, EvictionHolds) {
    let mut cluster = fixture::cluster(BED);
    let ((), _, eviction_holds) = in_session_of(&mut cluster, "", |session| {
        evict_for_a(session, |statement| assert!(statement.commit()));
    });
    (cluster, eviction_holds)
}

fn planned(session: &SessionState<'_>, path: &str) -> Option<String> {
    let row = &session.tasks[task(session, path)];
    let hold = session.eviction_holds.of(session, row.job.unwrap())?;
    hold.planned.get(&row.uid).map(|node| node.to_string())
}

#[test]
fn only_a_committed_eviction_plans_nodes() {
    // A15: a discarded statement plans nothing.
    in_session(BED, "", |session| {
        evict_for_a(session, |statement| statement.discard());
        assert_eq!(planned(session, "j/a"), None);
        evict_for_a(session, |statement| assert!(statement.commit()));
        assert_eq!(planned(session, "j/a").as_deref(), Some("n1"));
        assert_eq!(planned(session, "j/b").as_deref(), Some("n2"), "its gang needs it there");
    });
    in_session(BED, "", |session| {
        evict_for_a(session, |statement| statement.keep());
        assert_eq!(planned(session, "j/a"), None);
    });
}

#[test]
fn room_without_an_eviction_plans_nothing() {
    in_session(BED, "", |session| {
        let (a, n1) = (task(session, "j/a"), node(session, "n1"));
        let mut statement = session.statement();
        statement.pipeline(a, n1, Room::Evicted).unwrap();
        statement.commit();
        assert_eq!(planned(session, "j/a"), None);
        assert!(session.eviction_holds.of(session, job(session, "j")).is_none());
    });
}

#[test]
fn a_claim_plans_for_members_that_were_placed_before_the_statement() {
    // Allocate keeps `b`, a statement without evictions lets `c` wait.
    let mut cluster = fixture::cluster(BED);
    let ((), _, eviction_holds) = in_session_of(&mut cluster, "", |session| {
        let [victim, a, b, c] = ["v/runs", "j/a", "j/b", "j/c"].map(|path| task(session, path));
        let (n1, n2) = (node(session, "n1"), node(session, "n2"));
        let mut statement = session.statement();
        statement.allocate(b, n2).unwrap();
        statement.keep();
        let mut statement = session.statement();
        statement.pipeline(c, n1, Room::Releasing).unwrap();
        assert!(statement.commit());
        assert_eq!(planned(session, "j/b"), None);
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Preempt, Some(a)).unwrap();
        statement.pipeline(a, n1, Room::Evicted).unwrap();
        assert!(statement.commit());
    });
    let hold = eviction_holds.of(&cluster, job(&cluster, "j")).unwrap();
    let nodes: Vec<&str> = hold.planned.values().map(|node| &**node).collect();
    assert_eq!(nodes, ["n1", "n2", "n1"]);
}

#[test]
fn a_claim_is_the_plan_of_every_task_of_the_statement() {
    let (cluster, eviction_holds) = committed();
    let hold = eviction_holds.of(&cluster, job(&cluster, "j")).unwrap();
    let planned: Vec<(&str, &str)> =
        hold.planned.iter().map(|(uid, node)| (&**uid, &**node)).collect();
    assert_eq!(planned, [("default-j-a", "n1"), ("default-j-b", "n2")]);
    assert_eq!(hold.victims.len(), 1);
    assert!(eviction_holds.of(&cluster, job(&cluster, "v")).is_none());
}

#[test]
fn a_claim_ends_with_its_job_its_tasks_and_its_nodes() {
    let still = |change: &dyn Fn(&mut Cluster)| {
        let (mut cluster, mut eviction_holds) = committed();
        change(&mut cluster);
        eviction_holds.expire(&cluster);
        cluster
            .job(&ObjectKey::new("default", "j"))
            .and_then(|id| eviction_holds.of(&cluster, id).map(|hold| hold.planned.len()))
    };
    let delete_pod = |cluster: &mut Cluster, path: &str| {
        let row = &cluster.tasks[task(cluster, path)];
        let (key, uid) = (row.key.clone(), row.uid.clone());
        cluster.apply(ClusterEvent::PodDeleted { key, uid });
    };
    assert_eq!(still(&|_| {}), Some(2));
    assert_eq!(still(&|cluster| delete_pod(cluster, "j/a")), Some(1));
    let both = |cluster: &mut Cluster| ["j/a", "j/b"].iter().for_each(|p| delete_pod(cluster, p));
    assert_eq!(still(&both), None);
    let no_node = |cluster: &mut Cluster| {
        cluster.apply(ClusterEvent::NodeDeleted { name: "n1".into() });
    };
    assert_eq!(still(&no_node), Some(1));
    let no_group = |cluster: &mut Cluster| {
        let key = ObjectKey::new("default", "j");
        ["j/a", "j/b", "j/c"].iter().for_each(|path| delete_pod(cluster, path));
        cluster.apply(ClusterEvent::PodGroupDeleted { key });
    };
    assert_eq!(still(&no_group), None);
    let ready = |cluster: &mut Cluster| {
        let n1 = node(cluster, "n1");
        for path in ["j/b", "j/c"] {
            let task = task(cluster, path);
            cluster.set_task(task, TaskStatus::Running, Some(n1));
        }
    };
    assert_eq!(still(&ready), Some(1), "room was made for a, too, which waits");
}

#[test]
fn a_claim_that_found_no_place_lasts_while_a_victim_remains() {
    let after = |change: &dyn Fn(&mut Cluster)| {
        let (mut cluster, mut eviction_holds) = committed();
        change(&mut cluster);
        let id = job(&cluster, "j");
        eviction_holds.end_unless_victims_remain(&cluster, id);
        eviction_holds.of(&cluster, id).is_some()
    };
    assert!(after(&|_| {}));
    assert!(!after(&|cluster| fixture::apply(cluster, "job v\n task runs cpu=2 @n1 failed")));
    let gone = |cluster: &mut Cluster| {
        let key = ObjectKey::new("default", "v-runs");
        cluster.apply(ClusterEvent::PodDeleted { key, uid: "".into() });
    };
    assert!(!after(&gone));
    let run_on = |cluster: &mut Cluster, pause: Option<Pause>| {
        let victim = task(cluster, "v/runs");
        let on_node = cluster.tasks[victim].node;
        cluster.set_task(victim, TaskStatus::Running, on_node);
        cluster.tasks[victim].pause = pause;
    };
    assert!(after(&|cluster| run_on(cluster, Some(Pause::Eviction))), "it is evicted again");
    assert!(!after(&|cluster| run_on(cluster, None)), "the pause is over");
}

#[test]
fn a_restarted_scheduler_finds_claims_in_nominations() {
    let mut cluster = fixture::cluster(BED);
    for (path, name) in [("j/a", "n1"), ("v/runs", "n2")] {
        let task = task(&cluster, path);
        cluster.tasks[task].nominated_node = Some(name.into());
    }
    let eviction_holds = EvictionHolds::rebuilt(&cluster);
    let hold = eviction_holds.of(&cluster, job(&cluster, "j")).unwrap();
    assert_eq!((hold.planned.len(), hold.victims.len()), (1, 0));
    assert!(eviction_holds.of(&cluster, job(&cluster, "v")).is_none(), "it runs");
}
