//! Filtering, scoring and choosing nodes: core.md 8.2, 8.3, actions.md 2.6-2.9, 4.7.

use vc_framework::{Filter, SessionState};
use vc_model::{FitErrors, TaskStatus};

use super::support::{in_session, node, node_names, nodes, task, tasks};

const THREE: &str =
    "node n1 cpu=4\n node n2 cpu=4\n node n3 cpu=4\n job j\n task x cpu=1\n task y cpu=1";

fn feasible(session: &SessionState<'_>, path: &str, filter: Filter) -> Vec<String> {
    let scan = session.filter(task(session, path), &session.info().nodes, filter);
    node_names(session, &scan.feasible)
}

fn errors(session: &SessionState<'_>, path: &str, filter: Filter) -> FitErrors {
    session.filter(task(session, path), &session.info().nodes, filter).errors
}

#[test]
fn core_72_nodes_worth_evicting() {
    let tiers = "a predicate=n2:!taint";
    in_session(THREE, tiers, |session| {
        let [x, y] = ["j/x", "j/y"].map(|path| task(session, path));
        let found = errors(session, "j/x", Filter::Allocate);
        session.note_fit_errors(x, found.into());
        assert_eq!(node_names(session, &session.nodes_worth_evicting(x)), ["n1", "n3"]);
        assert_eq!(node_names(session, &session.nodes_worth_evicting(y)), ["n1", "n2", "n3"]);
    });
}

#[test]
fn unresolvable() {
    let text = "node a cpu=4\n node b cpu=1\n job j\n task t cpu=2\n task other";
    in_session(text, "a predicate=a:!selector_mismatch", |session| {
        let t = task(session, "j/t");
        let found = errors(session, "j/t", Filter::Allocate);
        let expected = "0/2 nodes are unavailable: 1 Insufficient cpu, 1 selector mismatch.";
        assert_eq!(found.text(&session.dims), expected);
        session.note_fit_errors(t, found.into());
        assert_eq!(node_names(session, &session.nodes_worth_evicting(t)), ["b"]);
        let other = task(session, "j/other");
        assert_eq!(node_names(session, &session.nodes_worth_evicting(other)), ["a", "b"]);
    });
}

#[test]
fn what_rejects_a_node_depends_on_the_filter() {
    let text = "node full cpu=1
         node busy cpu=4
         node broken cpu=4
         node taint cpu=4
         node well cpu=4
         job j
           task x cpu=2";
    let tiers = "a predicate=busy:ports,broken:?lost,taint:!no";
    in_session(text, tiers, |session| {
        let of = |filter| feasible(session, "j/x", filter);
        assert_eq!(of(Filter::Allocate), ["well"]);
        assert_eq!(of(Filter::BestEffort), ["full", "well"], "no room is needed");
        assert_eq!(of(Filter::Preempt), ["busy", "full", "well"], "eviction may cure it");
        let reported = errors(session, "j/x", Filter::Preempt).text(&session.dims);
        assert_eq!(reported, "0/2 nodes are unavailable: 1 lost, 1 no.");
    });
}

#[test]
fn room_is_asked_for_before_the_plugins_and_in_report_order() {
    let text = "node n cpu=1 memory=1\n job j\n task x gpu=1 memory=2\n task y gpu=1 cpu=1";
    in_session(text, "a predicate=n:busy", |session| {
        let text = |path| errors(session, path, Filter::Allocate).text(&session.dims);
        assert_eq!(text("j/x"), "0/1 nodes are unavailable: 1 Insufficient memory.");
        assert_eq!(text("j/y"), "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu.");
    });
    in_session("job j\n task x", "", |session| {
        let text = errors(session, "j/x", Filter::Allocate).text(&session.dims);
        assert_eq!(text, "0/0 nodes are unavailable");
    });
}

#[test]
fn core_51_an_overcommitted_dimension_matters_to_those_who_ask_for_it() {
    // C-15: a resource that a task does not request disqualifies no node.
    let text = "node n cpu=1 memory=8 gpu=1
         pod other cpu=3 @n running
         job j
           task plain memory=1
           task cpu cpu=1m";
    in_session(text, "", |session| {
        assert_eq!(feasible(session, "j/plain", Filter::Allocate), ["n"]);
        let text = errors(session, "j/cpu", Filter::Allocate).text(&session.dims);
        assert_eq!(text, "0/1 nodes are unavailable: 1 Insufficient cpu.");
    });
}

#[test]
fn core_92_identical_tasks_of_a_role_fail_alike_and_others_are_looked_at_again() {
    // A12: what may be remembered is the result, never the role.
    let text = "node n1 cpu=1
         node n2 cpu=1
         job j
           task first cpu=2 role=worker
           task second cpu=2 role=worker
           task small cpu=1 role=worker
           task none cpu=2";
    in_session(text, "", |session| {
        let first = errors(session, "j/first", Filter::Allocate);
        assert_eq!(first, errors(session, "j/second", Filter::Allocate));
        assert_eq!(first, errors(session, "j/none", Filter::Allocate));
        let (first, second) = (task(session, "j/first"), task(session, "j/second"));
        assert_eq!(session.tasks[first].class, session.tasks[second].class);
        assert_eq!(feasible(session, "j/small", Filter::Allocate), ["n1", "n2"]);
    });
}

fn chosen(tiers: &str) -> Option<String> {
    in_session(THREE, tiers, |session| {
        let all = session.info().nodes.clone();
        let node = session.choose(task(session, "j/x"), &all)?;
        Some(session.nodes[node].name.to_string())
    })
}

#[test]
fn core_94_the_best_node() {
    let name = |tiers| chosen(tiers).unwrap();
    assert_eq!(name("a node_order=n1:1,n2:2,n3:2"), "n2", "ties by name");
    assert_eq!(name("a node_order=n1:-3,n2:-1,n3:-2"), "n2", "all negative");
    assert_eq!(name("a node_order=n1:NaN,n2:NaN,n3:-2"), "n3", "what is no number never wins");
    assert_eq!(chosen("a node_order=n1:NaN,n2:NaN,n3:NaN"), None);
    assert_eq!(name(""), "n1");
    let nothing = in_session(THREE, "", |session| session.choose(task(session, "j/x"), &[]));
    assert_eq!(nothing, None);
}

#[test]
fn mapped_scores_are_rounded_down_and_reduced_by_their_plugin() {
    let name = |tiers| chosen(tiers).unwrap();
    assert_eq!(name("a node_map=n1:1.2,n2:2.1,n3:2.9"), "n2", "both are 2, by name");
    assert_eq!(name("a node_map=n1:1,n2:2,n3:3 node_reduce=yes"), "n1", "reversed");
    let with_other = "a node_map=n1:1,n2:2,n3:3 node_reduce=error; b node_order=n2:1";
    assert_eq!(name(with_other), "n2", "a reduction that fails leaves the other scorers");
    assert_eq!(name("a -enableNodeOrder node_map=n3:5; b node_order=n2:1"), "n2");
}

#[test]
fn points_without_a_user_combine_as_specified() {
    in_session(
        "job j1\n task x\n job j2\n task y",
        "a target_job=j2; b target_job=j1",
        |session| {
            let jobs = session.info().jobs.clone();
            let target = session.plugins().target_job(session.view(), &jobs);
            assert_eq!(target, Some(jobs[1]), "the first registered plugin decides");
        },
    );
    in_session("job j1\n task x", "a +enabledClusterOrder cluster_order=yes", |session| {
        assert!(session.plugins().cluster_order(session.view(), "a", "b").is_gt());
    });
    in_session("job j1\n task x", "a cluster_order=yes", |session| {
        let order = session.plugins().cluster_order(session.view(), "a", "b");
        assert!(order.is_lt(), "off unless it is switched on, then by name");
        assert_eq!(session.plugins().target_job(session.view(), &[]), None);
    });
}

#[test]
fn scores_are_added_over_plugins_and_a_node_may_be_insisted_on() {
    let tiers = "a node_order=n1:3,n2:1 / b node_order=n2:1 batch_node_order=n2:2,n3:3";
    assert_eq!(chosen(tiers).unwrap(), "n2");
    let insisting = format!("{tiers} / c best_node=n3; d best_node=n1");
    assert_eq!(chosen(&insisting).unwrap(), "n3");
    assert_eq!(chosen(&format!("{insisting} / e best_node=n9")).unwrap(), "n3");
    assert_eq!(chosen("a node_order=n3:9 -enableNodeOrder").unwrap(), "n1");
}

#[test]
fn a_scorer_that_fails_counts_nothing() {
    // A13: a scorer that fails contributes nothing. 8.3: a failure of NodeOrder concerns only that node.
    let scores = |tiers: &str| {
        in_session(THREE, tiers, |session| {
            let all = session.info().nodes.clone();
            session.plugins().scores(session.view(), task(session, "j/x"), &all)
        })
    };
    let batch = "a batch_node_order=n1:5,n2:error,n3:7; b batch_node_order=n3:1";
    assert_eq!(scores(batch), [0.0, 0.0, 1.0]);
    let single = "a node_order=n1:5,n2:7; b node_order=n2:error,n3:2; c batch_node_order=n2:1";
    assert_eq!(scores(single), [5.0, 1.0, 2.0]);
}

#[test]
fn one_node_needs_no_score() {
    in_session(THREE, "a node_order=n2:NaN best_node=n1", |session| {
        let only = nodes(session, &["n2"]);
        assert_eq!(session.choose(task(session, "j/x"), &only), Some(only[0]));
    });
}

#[test]
fn an_idle_node_beats_one_that_will_be() {
    let text = "node busy cpu=2
         node idle cpu=2
         job old
           task r cpu=2 @busy releasing
         job j
           task x cpu=2
           task y cpu=3";
    in_session(text, "a node_order=busy:100", |session| {
        let all = session.info().nodes.clone();
        let choose = |session: &SessionState<'_>, path: &str| {
            let node = session.choose_by_group(task(session, path), &all)?;
            Some(session.nodes[node].name.to_string())
        };
        assert_eq!(choose(session, "j/x").as_deref(), Some("idle"));
        let (other, at) = (task(session, "j/y"), node(session, "idle"));
        let mut statement = session.statement();
        statement.allocate(other, at).unwrap();
        assert_eq!(choose(&statement, "j/x").as_deref(), Some("busy"));
        assert_eq!(choose(&statement, "j/y"), None);
    });
}

#[test]
fn validate__empty() {
    let text = "node n cpu=2
         job old
           task r cpu=1 @n releasing
           task v cpu=1 @n running
         job j
           task one cpu=1
           task two cpu=2
           task three cpu=3";
    in_session(text, "", |session| {
        let n = node(session, "n");
        let [one, two, three] = ["j/one", "j/two", "j/three"].map(|path| task(session, path));
        let victims = tasks(session, &["old/v"]);
        assert!(session.victims_suffice(one, n, &[]), "room from what leaves anyway");
        assert!(!session.victims_suffice(two, n, &[]));
        assert!(session.victims_suffice(two, n, &victims));
        assert!(!session.victims_suffice(three, n, &victims));
        let mut statement = session.statement();
        statement.evict(victims[0], vc_framework::EvictReason::Preempt, None).unwrap();
        assert!(statement.victims_suffice(two, n, &[]), "an earlier eviction");
        assert_eq!(statement.tasks[victims[0]].status, TaskStatus::Releasing);
    });
}
