//! Case 90 of plugins-jobs-queues.md: pdb, within a session and from one to the next.

use vc_framework::{EvictReason, GangEviction, SessionState};
use vc_model::{TaskStatus, fixture};

use crate::support::{Cycles, evict, in_session, job, names, send, series, task};

const CLUSTER: &str = "node n1 cpu=9\n node n2 cpu=9
    job j min=1
      task a x2 cpu=1 @n1 running label.app=x
      task b x2 cpu=1 @n2 running label.app=x
    job own
      task w cpu=1
";

/// Who of `j/<path>-0` and `-1` may go for `own/w`, by all three questions.
fn victims(session: &SessionState<'_>, path: &str) -> Vec<String> {
    let (view, plugins, own) = (session.view(), session.plugins(), task(session, "own/w"));
    let candidates = series(session, &format!("j/{path}"), 2);
    let preempt = plugins.preemptable(view, own, &candidates);
    assert_eq!(plugins.reclaimable(view, own, &candidates), preempt);
    let own = job(session, "own");
    let gang = plugins.unified_evictable(view, own, GangEviction::Preempt, &candidates);
    assert_eq!(gang, preempt);
    names(session, &preempt)
}

fn victims_with(budgets: &str) -> Vec<String> {
    in_session(&format!("{CLUSTER}{budgets}"), "pdb", |session| victims(session, "a"))
}

const BOTH: [&str; 2] = ["j-a-0", "j-a-1"];
const NONE: [&str; 0] = [];

#[test]
fn jobs_90_as_many_go_as_the_budget_allows() {
    assert_eq!(victims_with(""), BOTH);
    assert_eq!(victims_with("budget b app=x allowed=0"), NONE);
    assert_eq!(victims_with("budget b app=x allowed=1"), ["j-a-0"]);
    assert_eq!(victims_with("budget b app=x allowed=2"), BOTH);
    assert_eq!(victims_with("budget b app=x allowed=-1"), NONE);
    assert_eq!(victims_with("budget b app=y allowed=0"), BOTH);
    assert_eq!(victims_with("budget b allowed=0"), BOTH, "an empty selector covers nobody");
    assert_eq!(victims_with("budget other/b app=x allowed=0"), BOTH);
}

#[test]
fn jobs_90_a_pod_whose_disruption_is_counted_consumes_nothing() {
    let listed = "budget b app=x allowed=1 disrupted=j-a-0";
    assert_eq!(victims_with(listed), BOTH);
    assert_eq!(victims_with("budget b app=x allowed=0 disrupted=j-a-1"), ["j-a-1"]);
}

#[test]
fn jobs_90_all_budgets_of_a_pod_hold() {
    assert_eq!(victims_with("budget b app=x allowed=2\n budget c app=x allowed=1"), ["j-a-0"]);
    assert_eq!(victims_with("budget b app=x allowed=2\n budget c app=x allowed=0"), NONE);
}

#[test]
fn jobs_90_an_unlabelled_pod_may_go() {
    let text = "node n cpu=9\n budget b app=x allowed=0
                job j\n task a x2 cpu=1 @n running\n job own\n task w cpu=1";
    in_session(text, "pdb", |session| assert_eq!(victims(session, "a"), BOTH));
}

#[test]
fn jobs_90_a_budget_that_cannot_be_read_protects_its_namespace() {
    assert_eq!(victims_with("budget b unreadable allowed=9"), NONE);
    assert_eq!(victims_with("budget other/b unreadable allowed=9"), BOTH);
}

#[test]
fn jobs_90_evictions_on_one_node_count_on_the_next() {
    let text = format!("{CLUSTER}budget b app=x allowed=1");
    in_session(&text, "pdb", |session| {
        let first = series(session, "j/a", 1);
        let mut statement = session.statement();
        statement.evict(first[0], EvictReason::Preempt, None).unwrap();
        assert_eq!(victims(&statement, "b"), NONE);
        statement.discard();
        assert_eq!(victims(session, "b"), ["j-b-0"], "given back");
        evict(session, &first);
        assert_eq!(victims(session, "b"), NONE);
    });
}

#[test]
fn jobs_90_undo_is_exact_whatever_the_order() {
    let text = format!("{CLUSTER}budget b app=x allowed=3\n budget c app=x allowed=2");
    in_session(&text, "pdb", |session| {
        let (a, b) = (series(session, "j/a", 2), series(session, "j/b", 2));
        let mut statement = session.statement();
        let start = statement.mark();
        for round in [[a[0], b[0]], [b[1], a[1]], [a[0], a[1]]] {
            for victim in round {
                statement.evict(victim, EvictReason::Reclaim, None).unwrap();
            }
            let rest = names(
                &statement,
                &statement.plugins().preemptable(
                    statement.view(),
                    task(&statement, "own/w"),
                    &[a[0], a[1], b[0], b[1]],
                ),
            );
            assert_eq!(rest, NONE);
            let plan = statement.plan(start);
            statement.roll_back(start);
            statement.replay(&plan).unwrap();
            assert_eq!(victims(&statement, "a"), NONE);
            statement.roll_back(start);
            assert_eq!(victims(&statement, "a"), BOTH);
        }
    });
}

#[test]
fn jobs_90_shuffle_with_pdb_only_selects_nobody() {
    let text = format!("{CLUSTER}budget b app=x allowed=1");
    in_session(&text, "pdb", |session| {
        let running = series(session, "j/a", 2);
        assert_eq!(session.plugins().victim_tasks(session.view(), &running), []);
    });
}

#[test]
fn pods_that_another_filter_protects_spend_no_budget() {
    let cooling = "annotation.volcano.sh/cooldown-time=1h scheduled=0";
    let text = format!(
        "node n cpu=9\n budget b app=x allowed=1
         job j\n task a-0 cpu=1 @n running label.app=x {cooling}
         task a-1 cpu=1 @n running label.app=x\n job own\n task w cpu=1"
    );
    for tiers in ["pdb, cdp", "cdp / pdb"] {
        in_session(&text, tiers, |session| assert_eq!(victims(session, "a"), ["j-a-1"]));
    }
}

/// A cluster in which one of the two pods on `n1` was evicted in the first of its sessions.
fn after_one_eviction() -> Cycles {
    let mut cycles = Cycles::new(&format!("{CLUSTER}budget b app=x allowed=1 healthy=4"), "pdb");
    cycles.session(0, |session| {
        assert_eq!(victims(session, "b"), ["j-b-0"]);
        let first = series(session, "j/a", 1);
        send(session, &first);
        assert_eq!(victims(session, "b"), NONE);
    });
    cycles
}

#[test]
fn a_sent_eviction_counts_until_the_budget_shows_it() {
    let mut cycles = after_one_eviction();
    cycles.session(1, |session| assert_eq!(victims(session, "b"), NONE));
    let gone = "job j min=1\n task a-0 cpu=1 @n1 releasing label.app=x";
    fixture::apply(&mut cycles.cluster, gone);
    cycles.session(2, |session| assert_eq!(victims(session, "b"), NONE, "its budget is older"));
    // Another pod of the budget became healthy: still not ours.
    fixture::apply(&mut cycles.cluster, "budget b app=x allowed=1 healthy=5");
    cycles.session(3, |session| assert_eq!(victims(session, "b"), NONE));
    fixture::apply(&mut cycles.cluster, "budget b app=x allowed=1 healthy=4");
    cycles.session(4, |session| assert_eq!(victims(session, "b"), ["j-b-0"]));
}

#[test]
fn what_a_budget_lists_as_disrupted_is_counted() {
    let mut cycles = after_one_eviction();
    fixture::apply(&mut cycles.cluster, "budget b app=x allowed=1 healthy=4 disrupted=j-a-0");
    cycles.session(1, |session| assert_eq!(victims(session, "b"), ["j-b-0"]));
}

#[test]
fn an_eviction_that_failed_is_given_back() {
    let mut cycles = after_one_eviction();
    let a = fixture::task(&cycles.cluster, "j/a-0");
    let node = cycles.cluster.tasks[a].node;
    cycles.cluster.tasks[a].evicting = false;
    cycles.cluster.set_task(a, TaskStatus::Running, node);
    cycles.session(1, |session| assert_eq!(victims(session, "b"), ["j-b-0"]));
}

#[test]
fn an_eviction_that_no_status_ever_shows_is_forgotten() {
    let mut cycles = after_one_eviction();
    cycles.session(119, |session| assert_eq!(victims(session, "b"), NONE));
    cycles
        .session(120, |session| assert_eq!(victims(session, "b"), NONE, "it is still on its way"));
    fixture::apply(&mut cycles.cluster, "job j min=1\n task a-0 cpu=1 @n1 releasing label.app=x");
    cycles.session(121, |session| assert_eq!(victims(session, "b"), ["j-b-0"]));
}

#[test]
fn a_reload_does_not_forget_what_is_on_its_way() {
    let mut cycles = after_one_eviction();
    cycles.reload("pdb");
    cycles.session(1, |session| assert_eq!(victims(session, "b"), NONE));
    // Also what has left and is not counted by any status yet.
    fixture::apply(&mut cycles.cluster, "job j min=1\n task a-0 cpu=1 @n1 releasing label.app=x");
    cycles.reload("pdb");
    cycles.session(2, |session| assert_eq!(victims(session, "b"), NONE));
    // Whoever was without the plugin meanwhile begins with what is on its way.
    cycles.reload("gang");
    cycles.session(3, |_| ());
    cycles.reload("pdb");
    cycles.session(4, |session| assert_eq!(victims(session, "b"), ["j-b-0"]));
}

#[test]
fn a_budget_that_is_gone_protects_nobody() {
    let mut cycles = after_one_eviction();
    let key = vc_model::ObjectKey::new("default", "b");
    cycles.cluster.apply(vc_model::ClusterEvent::BudgetDeleted { key });
    cycles.session(1, |session| assert_eq!(victims(session, "b"), ["j-b-0", "j-b-1"]));
}
