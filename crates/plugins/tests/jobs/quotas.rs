//! Case 88 of plugins-jobs-queues.md: resourcequota.

use vc_framework::{FactOwner, LimitFact, SessionState};

use crate::support::{Cycles, in_session, job};

fn enqueueable(session: &SessionState<'_>, name: &str) -> Result<(), Option<String>> {
    let answer = session.plugins().job_enqueueable(session.view(), job(session, name));
    answer.map_err(|refusal| refusal.message)
}

/// The answer for a job of these words in a namespace with these quotas.
fn answer(quotas: &str, words: &str) -> Result<(), Option<String>> {
    in_session(&format!("{quotas}\n job j {words}"), "resourcequota", |session| {
        enqueueable(session, "j")
    })
}

fn insufficient(amounts: &str) -> Result<(), Option<String>> {
    Err(Some(format!("resource quota insufficient, {amounts}")))
}

#[test]
fn jobs_88_a_job_that_the_quota_cannot_hold_stays_out() {
    let quota = "quota q hard.cpu=2 hard.memory=2G";
    let big = "minres.cpu=20 minres.memory=20G";
    assert_eq!(answer(quota, "minres.cpu=2 minres.memory=2G"), Ok(()));
    assert_eq!(
        answer(quota, big),
        insufficient(
            "requested: map[cpu:20 memory:20G], used: map[cpu:0 memory:0], \
             limited: map[cpu:2 memory:2G]"
        )
    );
    assert_eq!(answer("", big), Ok(()));
    assert_eq!(answer("quota other/q hard.cpu=2", big), Ok(()));
    assert_eq!(answer(quota, ""), Ok(()));
}

#[test]
fn jobs_88_names_are_compared_as_they_are_written() {
    let quota = "quota q hard.requests.cpu=2 hard.count/pods=3 used.requests.cpu=500m";
    let asks = "minres.cpu=100 minres.requests.cpu=1501m minres.count/pods=3";
    assert_eq!(
        answer(quota, asks),
        insufficient(
            "requested: map[requests.cpu:1501m], used: map[requests.cpu:500m], \
             limited: map[requests.cpu:2]"
        )
    );
    assert_eq!(
        answer(quota, "minres.cpu=100 minres.requests.cpu=1500m minres.count/pods=3"),
        Ok(())
    );
    let above = "quota q hard.count/pods=3";
    assert_eq!(
        answer(above, "minres.count/pods=4"),
        insufficient(
            "requested: map[count/pods:4], used: map[count/pods:0], limited: map[count/pods:3]"
        )
    );
}

#[test]
fn jobs_88_every_quota_of_the_namespace_must_hold_the_job() {
    let quotas = "quota a hard.cpu=9\n quota b hard.memory=1Gi used.memory=512Mi";
    assert_eq!(answer(quotas, "minres.cpu=9 minres.memory=512Mi"), Ok(()));
    assert_eq!(
        answer(quotas, "minres.cpu=9 minres.memory=513Mi"),
        insufficient(
            "requested: map[memory:513Mi], used: map[memory:512Mi], limited: map[memory:1Gi]"
        )
    );
}

/// Returns what the plugin says about the job, in words: used, asked, short.
fn facts(session: &SessionState<'_>, name: &str) -> Vec<String> {
    let (view, job) = (session.view(), job(session, name));
    let facts = session.plugins().admission_facts_of(view, job, "resourcequota");
    let text = |it: &LimitFact| {
        let FactOwner::ResourceQuota(key) = &it.owner else { return format!("{it:?}") };
        let LimitFact { resource, limit, amount, used, asked, short, .. } = it;
        format!("{key} {limit} {amount} {resource}, used {used}, asked {asked}, short {short}")
    };
    facts.iter().map(text).collect()
}

/// Amounts are exact to a billionth, and what this session has admitted is used.
#[test]
fn ans_14_numbers_of_the_vote_are_exact() {
    let text = "quota a hard.cpu=1 used.cpu=1n\n quota b hard.cpu=9 hard.memory=1Gi
                job first minres.cpu=500m\n job second minres.cpu=500m
                job j minres.cpu=499999999n minres.memory=1Gi";
    in_session(text, "resourcequota", |session| {
        assert_eq!(facts(session, "j"), [""; 0]);
        session.enqueue(job(session, "first"));
        assert_eq!(enqueueable(session, "j"), Ok(()));
        session.enqueue(job(session, "second"));
        let short = "default/a hard 1 cpu, used 1000000001n, asked 499999999n, short 500m";
        assert_eq!(facts(session, "j"), [short]);
    });
}

#[test]
fn jobs_88_admitted_jobs_are_counted_until_the_session_ends() {
    let text = "quota q hard.cpu=1
                job a minres.cpu=1\n job b minres.cpu=1\n job other/c minres.cpu=1\n job d";
    let mut cycles = Cycles::new(text, "resourcequota");
    let full = insufficient("requested: map[cpu:1], used: map[cpu:0], limited: map[cpu:1]");
    cycles.session(0, |session| {
        assert_eq!(enqueueable(session, "a"), Ok(()));
        // Somebody else has rejected it: nothing is charged.
        assert_eq!(enqueueable(session, "b"), Ok(()));
        session.enqueue(job(session, "d"));
        session.enqueue(job(session, "other/c"));
        assert_eq!(enqueueable(session, "b"), Ok(()));
        session.enqueue(job(session, "b"));
        assert_eq!(enqueueable(session, "a"), full);
        assert_eq!(enqueueable(session, "d"), Ok(()));
    });
    // From now on the quota itself shows what the pods use.
    cycles.session(1, |session| assert_eq!(enqueueable(session, "a"), Ok(())));
}
