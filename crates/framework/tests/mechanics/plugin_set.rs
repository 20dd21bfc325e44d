//! How answers combine, and who is asked at all: core.md 2.3, 5.3, actions.md 2.3.

use vc_framework::{PluginSet, Session, SessionState};
use vc_model::fixture;
use vc_resource::Dim;

use super::fake;
use super::support::{config, in_session, job, node, queue, task};

const JOB: &str = "node n cpu=8\n job j min=1\n task x cpu=1";

fn query<R>(tiers: &str, run: impl FnOnce(&mut Session<'_>) -> R) -> R {
    in_session(JOB, tiers, run)
}

fn job_pipelined(tiers: &str) -> bool {
    query(tiers, |session| session.plugins().job_pipelined(session.view(), job(session, "j")))
}

fn job_starving(tiers: &str) -> bool {
    query(tiers, |session| session.plugins().job_starving(session.view(), job(session, "j")))
}

#[test]
fn votes__job_pipelined() {
    assert!(job_pipelined("a job_pipelined=permit / b job_pipelined=reject"));
    assert!(!job_pipelined("a job_pipelined=permit; b job_pipelined=reject"));
    assert!(job_pipelined(""));
}

#[test]
fn votes__starving() {
    assert!(!job_starving("a job_ready=true"), "no such plugin");
    assert!(job_starving("a / b job_starving=true / c job_starving=false"));
    assert!(!job_starving("a job_starving=true; b job_starving=false / c job_starving=true"));
    assert!(job_starving("a job_starving=false -enableJobStarving / c job_starving=true"));
}

#[test]
fn core_69_job_pipelined_and_starving() {
    assert!(job_pipelined("a job_pipelined=permit / b job_pipelined=reject"));
    assert!(!job_pipelined("a job_pipelined=abstain / b job_pipelined=reject"));
    assert!(!job_pipelined("a job_pipelined=permit; b job_pipelined=reject"));
    assert!(!job_pipelined("a job_pipelined=reject / b job_pipelined=permit"));
    assert!(!job_starving(""));
}

#[test]
fn admission_votes_by_tier_and_brings_the_message() {
    let admit = |tiers: &str| {
        let answer = |session: &SessionState<'_>| {
            session.plugins().job_enqueueable(session.view(), job(session, "j"))
        };
        query(tiers, |session| answer(session).map_err(|refusal| (refusal.by, refusal.message)))
    };
    let refused = Err(("b", Some("no room".to_owned())));
    assert_eq!(admit(""), Ok(()));
    assert_eq!(admit("a job_enqueueable=permit / b job_enqueueable=reject"), Ok(()));
    assert_eq!(admit("a job_enqueueable=permit; b job_enqueueable=reject"), refused);
    assert_eq!(admit("a job_enqueueable=abstain / b job_enqueueable=reject"), refused);
    assert_eq!(admit("a job_enqueueable=reject -enableJobEnqueued"), Ok(()));
}

#[test]
fn all_must_agree_over_all_tiers() {
    let ready = |tiers: &str| {
        query(tiers, |session| session.plugins().job_ready(session.view(), job(session, "j")))
    };
    assert!(ready("") && ready("a job_ready=true / b job_ready=true"));
    assert!(!ready("a job_ready=true / b job_ready=false"));
    let preemptive = |tiers: &str| {
        query(tiers, |session| {
            let queue = queue(session, "default");
            session.plugins().preemptive(session.view(), queue, &[])
        })
    };
    assert!(preemptive("") && preemptive("a preemptive=true"));
    assert!(!preemptive("a preemptive=true / b preemptive=false"));
}

#[test]
fn one_is_enough_for_overused() {
    let overused = |tiers: &str| {
        query(tiers, |session| {
            session.plugins().overused(session.view(), queue(session, "default"))
        })
    };
    assert!(!overused("") && !overused("a overused=false"));
    assert!(overused("a overused=false / b overused=true"));
}

#[test]
fn a_queue_without_room_names_the_dimensions() {
    let allocatable = |tiers: &str| {
        query(tiers, |session| {
            let (queue, task) = (queue(session, "default"), task(session, "j/x"));
            session.plugins().allocatable(session.view(), queue, task)
        })
    };
    assert_eq!(allocatable("a allocatable=true"), Ok(()));
    assert_eq!(allocatable("a allocatable=true / b allocatable=false"), Err(vec![Dim::MEMORY]));
}

#[test]
fn the_first_failure_is_reported() {
    let tiers = "a / b job_valid=first pre_predicate=early / c job_valid=second pre_predicate=late";
    query(tiers, |session| {
        let (plugins, view) = (session.plugins(), session.view());
        let invalid = plugins.job_valid(view, job(session, "j")).unwrap_err();
        assert_eq!(invalid.message, "first");
        assert_eq!(plugins.pre_predicate(view, task(session, "j/x")), Err("early".to_owned()));
    });
}

#[test]
fn findings_are_those_of_the_first_plugin_that_has_any() {
    query("a / b predicate=m:x / c predicate=n:busy; d predicate=n:!taint", |session| {
        let mut findings = Vec::new();
        let (task, node) = (task(session, "j/x"), node(session, "n"));
        session.plugins().predicate(session.view(), task, node, &mut findings);
        let texts: Vec<String> =
            findings.iter().map(|finding| finding.reason.text(&session.dims)).collect();
        assert_eq!(texts, ["busy"]);
    });
}

#[test]
fn a_job_without_policies_is_asked_as_a_job() {
    let tiers =
        "a job_ready=true sub_job_ready=false job_pipelined=permit sub_job_pipelined=reject";
    let answers = |text: &str| {
        in_session(text, tiers, |session| {
            let (plugins, view, job) = (session.plugins(), session.view(), job(session, "j"));
            (plugins.sub_job_ready(view, job, 0), plugins.sub_job_pipelined(view, job, 0))
        })
    };
    assert_eq!(answers(JOB), (true, true));
    assert_eq!(answers("job j\n policy p keys=x\n task x"), (false, false));
}

#[test]
fn the_last_instance_of_a_name_answers_at_every_position() {
    // core.md 2.3: the plugin is built twice, the second one's functions replace the first one's.
    assert!(!job_starving("a job_starving=true / a job_starving=false"));
    assert!(job_starving("a job_starving=false; b job_starving=true / a job_starving=true"));
}

#[test]
fn an_unknown_plugin_is_left_out() {
    assert!(job_starving("nobody job_starving=false; a job_starving=true"));
}

#[test]
fn both_instances_of_a_name_are_reported_of_placements() {
    let (mut plugins, warnings) = PluginSet::new(&config("a counter=x / a"), fake::ALL);
    assert!(warnings.is_empty());
    let mut cluster = fixture::cluster(JOB);
    let settings = vc_conf::ActionSettings::default();
    let opening = super::support::opening(Default::default());
    let mut session = Session::open(&mut cluster, &mut plugins, &settings, opening);
    let (task, node) = (task(&session, "j/x"), node(&session, "n"));
    let mut statement = session.statement();
    statement.allocate(task, node).unwrap();
    statement.keep();
    assert_eq!(super::support::counter(&session), (1.0, 1_000.0));
    session.finish();
}
