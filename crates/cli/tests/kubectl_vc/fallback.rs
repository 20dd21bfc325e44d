//! Who is asked where no place is given. Specification: answers.md 13 (ANS-88, ANS-91), cases 79, 82.

use crate::front::{Front, serve, status};
use crate::{call, explanation, text};

const FIRST: &str = "no answer from Service volcano-system/vc-scheduler-answers: services \
    \"vc-scheduler-answers\" not found\n";

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_cluster_is_listed_where_no_scheduler_answers() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), Front::default()).await;
    let printed = |words: &[&str]| {
        let called = call(words, &config);
        (text(&called.stdout), text(&called.stderr))
    };
    let (out, said) = printed(&["why", "big", "-n", "default"]);
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    assert!(said.starts_with(&format!("{FIRST}asked without the scheduler: ")), "{said}");
    let (_, said) = printed(&["why", "big", "-n", "default", "-v"]);
    let expected = format!(
        "the API server: it has no group answers.volcano.sh\n\
         Service volcano-system/vc-scheduler-answers: {FIRST}\
         no answer from pods of namespace volcano-system: none is ready and has the label of the leader\n\
         asked without the scheduler: "
    );
    assert!(said.starts_with(&expected), "{said}");
    // What a scheduler remembers is in no list, and whoever names a place wants that one.
    for words in [
        &["cycles"][..],
        &["bundle"],
        &["ui"],
        &["why", "big", "--service", "volcano-system/vc-scheduler-answers"],
        &["why", "big", "--watch"],
        &["what-if", "-f", "-", "-n", "default"],
        &["what-if", "-f", "/dev/stdin", "-n", "default"],
    ] {
        let (out, said) = printed(words);
        assert!(out.is_empty(), "{words:?}: {out}");
        assert!(said.starts_with(&format!("error: {FIRST}hint: ")), "{words:?}: {said}");
    }
    let (out, said) = printed(&["why", "big", "--server", "http://127.0.0.1:1"]);
    let unreached = "error: no answer from http://127.0.0.1:1: ";
    assert!(out.is_empty() && said.starts_with(unreached), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_service_of_another_name_is_asked_in_its_own_namespace_alone() {
    let folder = tempfile::tempdir().unwrap();
    let front = |namespace| Front {
        labelled: vec![(namespace, "ask")],
        other: Some((200, explanation())),
        ..Front::default()
    };
    let ours = front("volcano-system");
    let config = serve(folder.path(), ours).await;
    let called = call(&["why", "job/train"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("ml/train (job, "), "{out}{said}");
    assert_eq!(said, "asked Service volcano-system/ask\n");
    // Whoever may create Services elsewhere must not get the token.
    let foreign = front("tenant");
    let asked = foreign.asked.clone();
    let config = serve(folder.path(), foreign).await;
    let called = call(&["why", "job/train"], &config);
    assert_eq!(called.status.code(), Some(1), "{}", text(&called.stdout));
    assert_eq!(asked.take(), ["Service volcano-system/vc-scheduler-answers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_whoever_is_there_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "no job, PodGroup or pod services \"x\" reach service";
    let away = "no endpoints available for service \"https:vc-scheduler-answers:answers\"";
    let hint = "hint: no scheduler answers there now: try again in some seconds";
    let of_away = format!(
        "error: no answer from Service volcano-system/vc-scheduler-answers: {away}\n{hint}"
    );
    let cases = [(404, unknown, format!("error: {unknown}\n")), (503, away, of_away)];
    for (code, message, expected) in cases {
        let default = Some(status(code, message));
        let labelled = vec![("volcano-system", "ask")];
        let other = Some((200, explanation()));
        let front = Front { labelled, other, default, ..Front::default() };
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train"], &config);
        let said = text(&called.stderr);
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!((called.status.code(), asked.take().len()), (Some(1), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_kind_that_may_not_be_listed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let forbidden = Some("/apis/policy/v1/poddisruptionbudgets");
    let config = serve(folder.path(), Front { forbidden, ..Front::default() }).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    let named = "without PodDisruptionBudget: the user may not list them";
    assert!(said.lines().any(|line| line.starts_with(named)), "{said}");
    // Without nodes nothing can be said.
    let front = Front { forbidden: Some("/api/v1/nodes"), ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let expected = "error: cannot list Node: the user may not list them";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    assert_eq!((called.status.code(), called.stdout.is_empty()), (Some(1), true));
}
