//! What a session sees when it opens and how jobs are admitted: core.md 4.8, 5.1, actions.md 3.1,
//! A10.

use proptest::prelude::*;
use vc_framework::{Effect, Filter, PluginSet, Session, SessionState, job_text};
use vc_model::{JobId, PodGroupPhase, fixture};
use vc_resource::Dim;

use super::fake;
use super::support::{config, in_session, in_session_of, job, opening, shown};

fn jobs_of(session: &SessionState<'_>) -> Vec<String> {
    session.info().jobs.iter().map(|&id| session.jobs[id].key.to_string()).collect()
}

#[test]
fn core_60_a_job_is_in_the_session_once_its_group_is_there() {
    let mut cluster =
        fixture::cluster("pod p annotation.scheduling.k8s.io/group-name=j cpu=1\n queue default");
    let (jobs, ..) = in_session_of(&mut cluster, "", |session| jobs_of(session));
    assert_eq!(jobs, [""; 0]);
    fixture::apply(&mut cluster, "job j");
    let (jobs, ..) = in_session_of(&mut cluster, "", |session| jobs_of(session));
    assert_eq!(jobs, ["default/j"]);
}

#[test]
fn core_61_a_job_of_a_missing_queue_is_not_in_the_session() {
    let mut cluster = fixture::cluster("job j queue=q\n task a\n job k\n task a");
    let (jobs, ..) = in_session_of(&mut cluster, "", |session| jobs_of(session));
    assert_eq!(jobs, ["default/k"]);
    fixture::apply(&mut cluster, "queue q");
    let (jobs, ..) = in_session_of(&mut cluster, "", |session| jobs_of(session));
    assert_eq!(jobs, ["default/j", "default/k"]);
}

#[test]
fn core_58_facts_are_the_known_nodes_by_name_and_all_they_offer() {
    let text = "node b cpu=2\n node a cpu=1 unschedulable\n queue r\n pod p @ghost running";
    in_session(text, "", |session| {
        let info = session.info();
        let names: Vec<&str> = info.nodes.iter().map(|&id| &*session.nodes[id].name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(info.total.get(Dim::CPU), 3_000.0);
        let queues: Vec<&str> = info.queues.iter().map(|&id| &*session.queues[id].name).collect();
        assert_eq!(queues, ["r"]);
    });
}

#[test]
fn jobs_are_in_the_order_of_their_uid() {
    // A10: the uid is the text namespace/name.
    in_session("job a/x\n job a-b/x\n job b/x", "", |session| {
        assert_eq!(jobs_of(session), ["a-b/x", "a/x", "b/x"]);
    });
}

#[test]
fn admission_changes_the_phase_and_remembers_what_it_was() {
    let mut cluster = fixture::cluster("job j\n task a");
    in_session_of(&mut cluster, "", |session| {
        let id = job(session, "j");
        assert_eq!(session.phase_before(id), PodGroupPhase::Pending);
        session.enqueue(id);
        assert_eq!(session.jobs[id].phase(), PodGroupPhase::Inqueue);
        session.admit(id);
        assert_eq!(session.phase_before(id), PodGroupPhase::Pending);
    });
    assert_eq!(cluster.jobs[job(&cluster, "j")].phase(), PodGroupPhase::Inqueue);
}

#[test]
fn a_refused_job_gets_an_event_on_its_group() {
    let mut cluster = fixture::cluster("job j");
    let ((), outbox, _) = in_session_of(&mut cluster, "", |session| {
        session.pod_group_event(job(session, "j"), "no room".to_owned());
    });
    let [Effect::Event { warning: false, reason: "Unschedulable", message, .. }] =
        &outbox.effects[..]
    else {
        panic!("{:?}", outbox.effects);
    };
    assert_eq!(&**message, "no room");
}

#[test]
fn a_session_starts_plugins_from_nothing() {
    let (mut plugins, _) = PluginSet::new(&config("a counter=x"), fake::ALL);
    let mut cluster = fixture::cluster("node n cpu=2\n job j\n task a cpu=1\n task b cpu=1");
    let settings = vc_conf::ActionSettings::default();
    for path in ["j/a", "j/b"] {
        let opening = opening(Default::default());
        let mut session = Session::open(&mut cluster, &mut plugins, &settings, opening);
        let (task, node) = (fixture::task(&session, path), fixture::node(&session, "n"));
        let mut statement = session.statement();
        statement.allocate(task, node).unwrap();
        statement.commit();
        assert_eq!(super::support::counter(&session).0, 1.0);
        session.finish();
    }
}

/// Places every pending task by job and task order; messages and binds.
fn decide(lines: &[String]) -> Vec<String> {
    let mut cluster = fixture::cluster(&lines.join("\n"));
    let tiers = "a job_order=x task_order=x node_order=n3:5,n1:5,n5:5";
    let (mut texts, outbox, _) = in_session_of(&mut cluster, tiers, |session| {
        let mut jobs = session.info().jobs.clone();
        jobs.sort_by(|&l, &r| session.plugins().job_order(session.view(), l, r));
        jobs.into_iter().map(|job| place_all(session, job)).collect::<Vec<_>>()
    });
    texts.extend(shown(&outbox.effects));
    texts
}

fn place_all(session: &mut Session<'_>, job: JobId) -> String {
    let mut tasks = session.jobs[job].tasks.clone();
    tasks.sort_by(|&l, &r| session.plugins().task_order(session.view(), l, r));
    for task in tasks {
        let nodes = session.info().nodes.clone();
        let scan = session.filter(task, &nodes, Filter::Allocate);
        let Some(node) = session.choose_by_group(task, &scan.feasible) else {
            session.note_fit_errors(task, scan.errors.into());
            continue;
        };
        let mut statement = session.statement();
        statement.allocate(task, node).unwrap();
        statement.commit();
    }
    job_text(session.view(), &session.records, job)
}

/// Six nodes for 12 of 20 pods of four jobs, one line each.
fn objects() -> Vec<String> {
    let nodes = (0..6).map(|n| format!("node n{n} cpu=2"));
    let pods = (0..20).map(|n| {
        let (job, pod) = (n % 4, n / 4);
        format!("job j{job} min=2 priority={}\n task w-{pod} cpu=1", job % 2)
    });
    nodes.chain(pods).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn order__determinism(lines in Just(objects()).prop_shuffle()) {
        prop_assert_eq!(decide(&lines), decide(&objects()));
    }
}
