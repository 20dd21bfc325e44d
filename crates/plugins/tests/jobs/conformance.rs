//! Cases 86 and 87 of plugins-jobs-queues.md: conformance as a filter before the tiers vote.

use vc_framework::GangEviction;

use crate::support::{in_session, job, names, task, tasks};

#[test]
fn jobs_86_critical_pods_stay() {
    let text = "node n cpu=100
                job kube-system/s\n task a cpu=1 @n running
                job j
                  task cluster cpu=1 @n running class=system-cluster-critical
                  task node cpu=1 @n running class=system-node-critical
                  task normal cpu=1 @n running
                job own\n task a cpu=1";
    in_session(text, "conformance", |session| {
        let (view, plugins, own) = (session.view(), session.plugins(), task(session, "own/a"));
        let paths = ["kube-system/s/a", "j/cluster", "j/node", "j/normal"];
        let candidates = tasks(session, &paths);
        let gang = GangEviction::Preempt;
        let answers = [
            plugins.preemptable(view, own, &candidates),
            plugins.reclaimable(view, own, &candidates),
            plugins.unified_evictable(view, job(session, "own"), gang, &candidates),
        ];
        for answer in answers {
            assert_eq!(names(session, &answer), ["j-normal"]);
        }
    });
}

#[test]
fn jobs_87_a_filter_does_not_settle_its_tier() {
    let text = "node n cpu=10
                queue under\n queue other
                job u queue=under\n task a cpu=1 @n running
                job o queue=other\n task a cpu=1 @n running\n task w x9 cpu=1";
    let victims = in_session(text, "conformance / proportion", |session| {
        let candidates = tasks(session, &["u/a"]);
        session.plugins().reclaimable(session.view(), task(session, "o/w-0"), &candidates)
    });
    assert_eq!(victims, []);
}

#[test]
fn jobs_87_a_filter_is_not_bypassed_when_its_tier_ends_with_nothing() {
    let text = "node n cpu=10
                queue q
                job kube-system/s\n task a x6 cpu=1 @n running
                job j\n task a cpu=1 @n running
                job own queue=q\n task w x8 cpu=1";
    let victims = |paths: &[&str]| {
        in_session(text, "gang, conformance / proportion", |session| {
            let candidates = tasks(session, paths);
            let own = task(session, "own/w-0");
            names(session, &session.plugins().reclaimable(session.view(), own, &candidates))
        })
    };
    // Of a gang of one, which gang refuses; the queue is above its deserved amount.
    assert_eq!(victims(&["j/a"]), ["j-a"]);
    assert_eq!(victims(&["kube-system/s/a-0"]), [""; 0]);
}
