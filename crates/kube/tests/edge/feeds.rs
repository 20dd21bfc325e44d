//! Watches: fallback, expiry, restart, malformed objects (rust-ecosystem.md cases 1 to 4).

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use vc_kube::{Clients, EngineMessage, Feeds, KindSet, follow, inbox};
use vc_model::ClusterEvent;

use crate::fake::{self, Answer, Log, Seen, added, end_of_list, list, pod, refusal, watch};

const PODS: &str = "GET /api/v1/pods";
const POD_GROUPS: &str = "GET /apis/scheduling.volcano.sh/v1beta1/podgroups";

/// Follows everything; kinds that `handle` leaves out are empty.
async fn messages(
    wanted: usize,
    handle: impl Fn(&Seen) -> Option<Option<Answer>> + Send + Sync + 'static,
) -> (Vec<String>, Log) {
    let (client, log) =
        fake::client(move |seen| handle(seen).unwrap_or_else(|| watch(vec![end_of_list("1")])));
    let (sender, mut receiver) = inbox();
    let _feeds: Feeds =
        follow(&Clients::shared(client), &[KindSet::PriorityClasses], &sender, &fake::unobserved());
    let mut texts = Vec::new();
    while texts.len() < wanted {
        let message = receiver.recv().await.unwrap();
        texts.extend(text(&message));
    }
    (texts, log)
}

/// Messages about pods and pod groups.
fn text(message: &EngineMessage) -> Option<String> {
    match message {
        EngineMessage::Event(ClusterEvent::PodApplied(pod)) => {
            Some(format!("pod {}", pod.key.name))
        }
        EngineMessage::Event(ClusterEvent::PodRead { pod, .. }) => {
            Some(format!("read {}", pod.key.name))
        }
        EngineMessage::Event(ClusterEvent::PodDeleted { key, uid }) => {
            Some(format!("gone {} {uid}", key.name))
        }
        EngineMessage::Event(ClusterEvent::PodGroupApplied(group)) => {
            Some(format!("group {}", group.key.name))
        }
        EngineMessage::Synced(kind) if *kind == vc_wire::Kind::Pod => Some("synced".into()),
        _ => None,
    }
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

#[tokio::test(start_paused = true)]
async fn eco_1_falls_back_to_list_and_watch() {
    let (texts, log) = messages(4, |seen| {
        let answer = match seen.line == PODS {
            false => return None,
            true if seen.is_streaming_list() => refusal(422, "Invalid", "sendInitialEvents"),
            true if seen.is_watch() => watch(vec![event("MODIFIED", pod("a"))]),
            true => list(&[pod("a"), pod("b")]),
        };
        Some(answer)
    })
    .await;
    assert_eq!(texts, ["pod a", "pod b", "synced", "pod a"]);
    let streaming = log.of(PODS).iter().filter(|seen| seen.is_streaming_list()).count();
    assert_eq!(streaming, 1);
}

#[tokio::test(start_paused = true)]
async fn eco_2_expired_watch_start_lists_again() {
    let (texts, log) = messages(4, |seen| {
        let answer = match (seen.line == PODS, seen.before) {
            (false, _) => return None,
            (true, 0) => refusal(422, "Invalid", "sendInitialEvents"),
            (true, _) if !seen.is_watch() => list(&[pod("a")]),
            (true, 2) => refusal(410, "Expired", "too old resource version"),
            (true, _) => watch(vec![event("MODIFIED", pod("b"))]),
        };
        Some(answer)
    })
    .await;
    assert_eq!(texts, ["pod a", "synced", "pod a", "pod b"]);
    let (watches, lists): (Vec<Seen>, Vec<Seen>) =
        log.of(PODS).into_iter().skip(1).partition(Seen::is_watch);
    assert!(watches.len() <= lists.len(), "{} watches, {} lists", watches.len(), lists.len());
}

#[tokio::test(start_paused = true)]
async fn eco_3_rows_that_a_new_list_lacks_are_deleted() {
    let (texts, _) = messages(6, |seen| {
        let expired = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"});
        let lines = match (seen.line == PODS, seen.before) {
            (false, _) => return None,
            (true, 0) => {
                vec![added(&pod("a")), added(&pod("b")), end_of_list("5"), event("ERROR", expired)]
            }
            (true, _) => vec![added(&pod("a")), end_of_list("9"), event("MODIFIED", pod("c"))],
        };
        Some(watch(lines))
    })
    .await;
    assert_eq!(texts, ["pod a", "pod b", "synced", "pod a", "gone b uid-b", "pod c"]);
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_is_preceded_by_a_deletion() {
    let (texts, _) = messages(5, |seen| {
        let mut successor = pod("a");
        successor["metadata"]["uid"] = "other".into();
        let lines = vec![
            added(&pod("a")),
            end_of_list("5"),
            event("MODIFIED", successor.clone()),
            event("DELETED", successor),
        ];
        (seen.line == PODS).then(|| watch(lines))
    })
    .await;
    assert_eq!(texts, ["pod a", "synced", "gone a uid-a", "pod a", "gone a other"]);
}

#[tokio::test(start_paused = true)]
async fn eco_4_a_malformed_pod_group_does_not_stop_the_kind() {
    let group = |name: &str, min: Value| {
        json!({"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "3"},
            "spec": {"minMember": min, "queue": "default"}})
    };
    let (texts, log) = messages(3, move |seen| {
        let lines = vec![
            added(&group("first", json!(1))),
            added(&group("bad", json!("three"))),
            added(&group("last", json!(3))),
            end_of_list("5"),
            event("MODIFIED", group("last", json!(4))),
        ];
        match seen.line.as_str() {
            POD_GROUPS => Some(watch(lines)),
            // Keeps the message of the pods out of the answer.
            PODS => Some(None),
            _ => None,
        }
    })
    .await;
    assert_eq!(texts, ["group first", "group last", "group last"]);
    assert_eq!(log.of(POD_GROUPS).len(), 1);
}

fn is_pods(seen: &Seen) -> bool {
    seen.line == PODS
}

/// Milliseconds from the start until pods have been asked for so often.
async fn asked_at(
    n_times: usize,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> Vec<u64> {
    let (start, (tell, mut asked)) = (Instant::now(), mpsc::unbounded_channel());
    let (client, _log) = fake::client(move |seen| match is_pods(seen) {
        false => watch(vec![end_of_list("1")]),
        true => {
            tell.send(start.elapsed()).unwrap();
            handle(seen)
        }
    });
    let (sender, mut receiver) = inbox();
    let _feeds =
        follow(&Clients::shared(client), &[KindSet::PriorityClasses], &sender, &fake::unobserved());
    let read = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    let mut times = Vec::new();
    while times.len() < n_times {
        times.push(u64::try_from(asked.recv().await.unwrap().as_millis()).unwrap());
    }
    read.abort();
    times
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_again_and_again_is_asked_for_less_and_less() {
    let cut = asked_at(5, |_| fake::ended(vec![added(&pod("a"))])).await;
    assert_eq!(cut, [0, 250, 750, 1750, 2750]);
    let reported = json!({"code": 500, "message": "etcd"});
    let failing = move |_: &Seen| watch(vec![added(&pod("a")), event("ERROR", reported.clone())]);
    assert_eq!(asked_at(5, failing).await, [0, 250, 750, 1750, 3750]);
}

/// A page of the list of pods, behind which another one is named so.
fn page(name: &str, next: &str) -> Option<Answer> {
    let metadata = json!({"resourceVersion": "10", "continue": next});
    let list = json!({"kind": "List", "apiVersion": "v1", "metadata": metadata,
        "items": [pod(name)]});
    fake::json_answer(200, list)
}

/// Asks for pages of pods, the second of which fails so many times. Returns the messages, and what was asked for
/// as `first`, `second` and `watch`.
async fn of_pages(n_failures: usize, wanted: usize) -> (Vec<String>, Vec<&'static str>) {
    let (texts, log) = messages(wanted, move |seen| {
        let answer = match () {
            () if !is_pods(seen) => return None,
            () if seen.is_streaming_list() => refusal(422, "Invalid", "sendInitialEvents"),
            () if seen.is_watch() => watch(vec![event("MODIFIED", pod("c"))]),
            () if !seen.query.contains("continue=") => page("a", "token/2"),
            // The streaming list and the first page came before.
            () if seen.before < 2 + n_failures => refusal(500, "InternalError", "etcd"),
            () => page("b", ""),
        };
        Some(answer)
    })
    .await;
    let asked = |seen: Seen| match () {
        () if seen.is_watch() => "watch",
        () if seen.query.ends_with("&continue=token%2F2") => "second",
        () => "first",
    };
    (texts, log.of(PODS).into_iter().skip(1).map(asked).collect())
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_is_asked_for_again_and_not_the_whole_list() {
    let (texts, asked) = of_pages(4, 4).await;
    assert_eq!(texts, ["pod a", "pod b", "synced", "pod c"]);
    assert_eq!(asked, ["first", "second", "second", "second", "second", "second", "watch"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_begins_anew_when_one_of_its_pages_has_failed_five_times() {
    let (texts, asked) = of_pages(5, 5).await;
    assert_eq!(texts, ["pod a", "pod a", "pod b", "synced", "pod c"]);
    let failed = ["first", "second", "second", "second", "second", "second"];
    assert_eq!(asked, [&failed[..], &["first", "second", "watch"]].concat());
}

/// A page of a long list that fails is asked for again after a short pause, because the pages before it have come.
#[tokio::test(start_paused = true)]
async fn a_page_behind_the_first_one_is_progress() {
    let pages = |seen: &Seen| match seen.before {
        0 => refusal(422, "Invalid", "sendInitialEvents"),
        // Each page fails twice.
        before if before % 3 == 0 => page("a", &format!("{before}")),
        _ => refusal(503, "ServiceUnavailable", "busy"),
    };
    let asked = asked_at(13, pages).await;
    assert_eq!(asked, [0, 0, 250, 750, 750, 1750, 3750, 3750, 4000, 4500, 4500, 4750, 5250]);
}

/// The first two pages are listed again and again, which is no progress: the pauses become longer.
#[tokio::test(start_paused = true)]
async fn a_list_whose_third_page_never_comes_is_asked_for_less_and_less() {
    let pages = |seen: &Seen| match seen.query.rsplit_once("continue=") {
        _ if seen.is_streaming_list() => refusal(422, "Invalid", "sendInitialEvents"),
        None => page("a", "2"),
        Some((_, "2")) => page("b", "3"),
        Some(_) => refusal(503, "ServiceUnavailable", "busy"),
    };
    let asked = asked_at(18, pages).await;
    // The third page, five times; then the first, the second, and the third once more.
    assert_eq!(asked[..8], [0, 0, 0, 0, 250, 750, 1750, 3750]);
    assert_eq!(asked[8..11], [7750; 3]);
    assert_eq!(asked[11..15], [15_750, 25_750, 35_750, 45_750]);
    assert_eq!(asked[15..], [55_750; 3]);
}

#[tokio::test(start_paused = true)]
async fn watches_that_somebody_ends_at_once_are_not_begun_without_a_pause() {
    let lists = |seen: &Seen| match seen.before {
        0 => fake::ended(vec![added(&pod("a")), end_of_list("5")]),
        _ => fake::ended(Vec::new()),
    };
    assert_eq!(asked_at(5, lists).await, [0, 0, 250, 750, 1750]);
}

/// A connection that a network has swallowed says nothing more.
#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_gone_on_with_elsewhere() {
    let (texts, log) = messages(3, |seen| {
        let lines = match seen.before {
            0 => vec![added(&pod("a")), end_of_list("5")],
            _ => vec![event("MODIFIED", pod("b"))],
        };
        is_pods(seen).then(|| watch(lines))
    })
    .await;
    assert_eq!(texts, ["pod a", "synced", "pod b"]);
    let again = &log.of(PODS)[1];
    assert!(again.query.ends_with("resourceVersion=5") && !again.is_streaming_list());
}

/// It has given out its version again already, so that only the object shows it that was seen last.
#[tokio::test(start_paused = true)]
async fn an_object_that_has_gone_back_shows_that_the_server_was_restored() {
    let mut bound = pod(fake::OLDER);
    bound["spec"]["nodeName"] = "n".into();
    let (texts, log) = messages(6, move |seen| {
        let [before, after] = [added(&pod(fake::OLDER)), added(&bound)];
        let answer = match seen.before {
            0 => fake::ended(vec![before, end_of_list("6"), after]),
            _ => watch(vec![before, end_of_list("9")]),
        };
        is_pods(seen).then_some(answer)
    })
    .await;
    let pod = format!("pod {}", fake::OLDER);
    let gone = format!("gone {0} uid-{0}", fake::OLDER);
    assert_eq!(texts[..3], [&*pod, "synced", &*pod]);
    assert_eq!(texts[3..5], [gone, pod]);
    assert!(log.of(PODS)[1].is_streaming_list());
}

/// What a bind has written may be lost without a trace in the watch of the pods.
#[tokio::test(start_paused = true)]
async fn all_kinds_are_listed_again_when_one_has_noticed_a_restored_server() {
    let (texts, log) = messages(7, move |seen| {
        let group = json!({"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1",
            "metadata": {"name": fake::OLDER, "namespace": "ns", "uid": "u",
                "resourceVersion": "7"}, "spec": {"minMember": 1}});
        match seen.line.as_str() {
            PODS => Some(watch(vec![added(&pod("a")), end_of_list("6")])),
            POD_GROUPS if seen.before == 0 => {
                Some(fake::ended(vec![end_of_list("6"), added(&group)]))
            }
            _ => None,
        }
    })
    .await;
    let of_pods: Vec<&String> = texts.iter().filter(|text| !text.starts_with("group")).collect();
    assert_eq!(of_pods[..4], ["pod a", "synced", "gone a uid-a", "pod a"]);
    assert!(log.of(PODS)[1].is_streaming_list());
}

/// A watch from a version of the future is silent, and then misses what was before it.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_from_a_backup_is_listed_again() {
    let given_out = (fake::NEWEST + 1).to_string();
    let bound = |name: &str| {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = "n".into();
        pod
    };
    let (texts, log) = messages(9, move |seen| {
        let listed = [pod("a"), bound("b"), pod("c")];
        let listed = listed.iter().map(added);
        let answer = match seen.before {
            0 => fake::ended(listed.chain([end_of_list(&given_out)]).collect()),
            _ => watch(listed.take(2).chain([end_of_list("7")]).collect()),
        };
        is_pods(seen).then_some(answer)
    })
    .await;
    // What holds room stays in place, without our eviction; our writes to the others are lost, so that
    // they are new.
    let (first, again) = texts.split_at(4);
    assert_eq!(first, ["pod a", "pod b", "pod c", "synced"]);
    assert_eq!(again, ["gone a uid-a", "pod a", "pod b", "read b", "gone c uid-c"]);
    assert!(log.of(PODS)[1].is_streaming_list());
}

/// What was decided since the first of these lists is not lost.
#[tokio::test(start_paused = true)]
async fn a_list_after_a_restore_that_begins_again_forgets_nothing_twice() {
    let given_out = (fake::NEWEST + 1).to_string();
    let (texts, _) = messages(7, move |seen| {
        let listed = [pod("a"), pod("b")];
        let listed = listed.iter().map(added);
        let answer = match seen.before {
            0 => fake::ended(listed.chain([end_of_list(&given_out)]).collect()),
            // It breaks off after its first object.
            1 => fake::ended(listed.take(1).collect()),
            _ => watch(listed.chain([end_of_list("7")]).collect()),
        };
        is_pods(seen).then_some(answer)
    })
    .await;
    assert_eq!(texts[..3], ["pod a", "pod b", "synced"]);
    assert_eq!(texts[3..], ["gone a uid-a", "pod a", "pod a", "gone b uid-b"]);
}
