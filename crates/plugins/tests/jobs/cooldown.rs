//! Case 89 of plugins-jobs-queues.md: cdp.

use vc_framework::GangEviction;

use crate::support::{in_session_of, job, names, task, tasks};
use vc_model::fixture;

const KEY: &str = "volcano.sh/cooldown-time";

/// Of one pod, scheduled at 0, who may go at 100 s.
fn goes(words: &str) -> bool {
    let text =
        format!("node n cpu=9\n job j\n task a cpu=1 @n running {words}\n job own\n task a cpu=1");
    in_session_of(fixture::cluster(&text), "cdp", 100, |session| {
        let (view, plugins, own) = (session.view(), session.plugins(), task(session, "own/a"));
        let candidates = tasks(session, &["j/a"]);
        let kind = GangEviction::Reclaim;
        let answers = [
            plugins.preemptable(view, own, &candidates),
            plugins.reclaimable(view, own, &candidates),
            plugins.unified_evictable(view, job(session, "own"), kind, &candidates),
        ];
        let answers = answers.map(|answer| names(session, &answer) == ["j-a"]);
        assert!(answers.iter().all(|&answer| answer == answers[0]), "{words}: {answers:?}");
        answers[0]
    })
}

#[test]
fn jobs_89_a_pod_that_was_scheduled_recently_stays() {
    for (words, expected) in [
        (format!("label.{KEY}=600s scheduled=0"), false),
        (format!("annotation.{KEY}=600s scheduled=0"), false),
        (format!("label.{KEY}=600abcde scheduled=0"), true),
        (format!("label.{KEY}=100s scheduled=0"), true),
        (format!("label.{KEY}=101s scheduled=0"), false),
        (format!("label.{KEY}=600s scheduled=-700"), true),
        (format!("label.{KEY}=600s"), true),
        (format!("label.{KEY}=bad annotation.{KEY}=600s scheduled=0"), true),
        (format!("label.{KEY}=50s annotation.{KEY}=600s scheduled=0"), true),
        (format!("label.{KEY}=600s scheduled=0 bound"), true),
        (format!("label.{KEY}=-600s scheduled=0"), true),
        (format!("label.{KEY}=2562047h scheduled=0"), false),
        ("scheduled=0".to_owned(), true),
    ] {
        assert_eq!(goes(&words), expected, "{words}");
    }
}
