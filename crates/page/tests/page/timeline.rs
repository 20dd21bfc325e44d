//! What happened lately over HTTP. Specification: answers.md 8, 11, 12.

use std::sync::Mutex;

use serde_json::json;
use vc_answers::StartAnswer;
use vc_engine::CycleTime;
use vc_model::ObjectKey;
use vc_model::fixture::events_of;
use vc_page::{
    AnswerView, AskedTimeline, Document, EvictionGrant, Question, StateSource, TimelineStep,
    how_evicted, summary_text, timeline_wide_text,
};

use crate::support::{CLUSTER, Page, Source, view};

#[test]
fn ans_41_the_sums_say_how_many_predictions_held() {
    let (mut engine, mut before, mut timeline) = view(CLUSTER);
    let sums = before.answer(&engine, &timeline, &Question::Summary).unwrap();
    assert!(matches!(sums, Document::Summary(one) if one.content.held.is_none()));
    let asked_micros = engine.last_micros();
    let start = StartAnswer { expected_micros: Some(asked_micros), ..StartAnswer::default() };
    timeline.told(&ObjectKey::new("ml", "soon"), &start, asked_micros);
    let events = events_of("job ml/soon queue=research min=1\n task a cpu=1");
    let (n_events, now_micros) = (events.len(), asked_micros + 1_000_000);
    let (effects, report) = engine.cycle(events, CycleTime { unix_micros: now_micros });
    timeline.record(&TimelineStep {
        cluster: engine.cluster(),
        effects: &effects,
        report: Some(&report),
        cycle: engine.n_cycles(),
        now_micros,
        took_micros: 7,
        n_events,
    });
    let mut after = AnswerView::new(&engine, &report, StateSource::Daemon { behind_millis: 7 });
    let sums = after.answer(&engine, &timeline, &Question::Summary).unwrap();
    let Document::Summary(one) = sums else { panic!("no sums") };
    assert_eq!(one.content.held, Some([1, 1]));
    let text = summary_text(&one);
    assert!(text.contains("\nSTARTS   1 of the last 1 predictions held\n"), "{text}");
}

#[test]
fn ans_46_an_eviction_says_who_granted_it_and_whether_all_was_needed() {
    let plugins = ["gang".to_owned(), "priority".to_owned()];
    let text = |for_job, plugins, tier, minimal| {
        how_evicted("preempt", for_job, EvictionGrant { plugins, tier, minimal })
    };
    let full = "by preempt for ml/high, granted by gang, priority (tier 2), each bundle needed";
    assert_eq!(text(Some("ml/high"), &plugins[..], Some(2), Some("bundle")), full);
    let of_older = "by preempt for ml/high, granted by gang, priority";
    assert_eq!(text(Some("ml/high"), &plugins[..], None, None), of_older);
    assert_eq!(text(None, &[], None, Some("pod")), "by preempt, each pod needed");
}

#[tokio::test]
async fn ans_45_jobs_have_their_times() {
    let page = Page::new();
    let timeline = page.get("admin", "timeline?from=2h").await.json();
    assert_eq!(timeline["kind"], "Timeline");
    let jobs: Vec<&str> =
        timeline["jobs"].as_array().unwrap().iter().map(|it| it["job"].as_str().unwrap()).collect();
    assert_eq!(jobs, ["ml/on-g1", "prod/on-g2"]);
    let job = &timeline["jobs"][0];
    assert_eq!((&job["created"], &job["bound"]), (&"2026-01-01T00:00:00Z".into(), &0.into()));
    assert_eq!((job.get("firstBind"), job.get("binds")), (None, None), "nobody saw it: {job}");
    assert_eq!(timeline["samples"][0]["running"], 2);
    assert_eq!(timeline["samples"][0]["allocated"]["nvidia.com/gpu"], "10");
    // It reaches back as far as it was recorded.
    assert_eq!(timeline["from"], timeline["to"]);
    assert_eq!(timeline["truncated"], false);
    let none = page.get("admin", "timeline?namespace=other&queue=small").await.json();
    assert_eq!(none["jobs"].as_array().unwrap().len(), 0);
    let cycles = page.get("admin", "cycles?last=3").await.json();
    assert_eq!((&cycles["kind"], &cycles["total"]), (&"CycleList".into(), &1.into()));
    assert_eq!(cycles["items"][0]["cycle"], 1);
    for wrong in ["timeline?from=yesterday", "timeline?to=x", "cycles?last=x", "timeline?since=1h"]
    {
        assert_eq!(page.get("admin", wrong).await.code, 400, "{wrong}");
    }
}

#[tokio::test]
async fn ans_45_jobs_have_the_cycles_in_which_their_pods_got_nodes() {
    let cluster =
        "node n cpu=4\nqueue research\njob ml/soon queue=research min=2\n task a cpu=1 x3";
    let page = Page::of(Source(Ok(Mutex::new(view(cluster)))));
    let job = page.get("admin", "timeline").await.json()["jobs"][0].clone();
    let time = "2026-01-01T01:30:00Z";
    assert_eq!((&job["firstBind"], &job["start"]), (&time.into(), &time.into()), "{job}");
    assert_eq!(job["bound"], 3);
    assert_eq!(job["binds"], json!([{"cycle": 1, "time": time, "pods": 3}]));
}

#[test]
fn ans_45_counts_of_binds_may_begin_later_than_the_timeline() {
    let (mut engine, mut view, mut timeline) = view(CLUSTER);
    let now_micros = engine.last_micros() + 1_000_000;
    let events = events_of("job ml/soon queue=research min=1\n task a cpu=1");
    let (effects, _) = engine.cycle(events, CycleTime { unix_micros: now_micros });
    // As if the pod got a node again and again.
    for micros in 0..=30_000 {
        timeline.record(&TimelineStep {
            cluster: engine.cluster(),
            effects: &effects,
            report: None,
            cycle: 2,
            now_micros: now_micros + micros,
            took_micros: 7,
            n_events: 0,
        });
    }
    let question = Question::Timeline(AskedTimeline::default());
    let answer = view.answer(&engine, &timeline, &question).unwrap();
    let Document::Timeline(one) = answer else { panic!("no timeline") };
    let content = &one.content;
    assert_eq!(content.from, "2026-01-01T01:30:00Z");
    assert_eq!(content.binds_from.as_deref(), Some("2026-01-01T01:30:01Z"));
    let text = timeline_wide_text(&one);
    assert!(text.contains("\nbound by cycle: since 2026-01-01T01:30:01Z\n"), "{text}");
}

#[tokio::test]
async fn ans_79_jobs_of_the_timeline_are_hidden_from_whoever_may_not_see_them() {
    let page = Page::new();
    let timeline = page.get("lister", "timeline").await;
    let jobs = &timeline.json()["jobs"];
    assert_eq!((&jobs[0]["job"], &jobs[0]["hidden"]), (&"other-1".into(), &true.into()), "{jobs}");
    assert!(!timeline.text.contains("on-g"), "{}", timeline.text);
}

/// Sums over all queues are for whoever may ask for a timeline.
#[tokio::test]
async fn ans_79_amounts_of_one_queue_are_for_its_readers() {
    let cluster = CLUSTER.replace("queue research\n", "queue research deserved.gpu=12\n");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let timeline = async |user: &str, path: &str| page.get(user, path).await.json();
    let (all, one) = ("timeline", "timeline?queue=research");
    let full = timeline("admin", one).await;
    assert_eq!(full["queue"], "research");
    let seen = timeline("of-jobs", one).await;
    let (whole, sample) = (&full["samples"][0], &seen["samples"][0]);
    assert_eq!((sample.get("allocated"), sample.get("deserved")), (None, None), "{seen}");
    for field in ["time", "waiting", "running"] {
        assert_eq!(sample[field], whole[field], "{field}: counts stay");
    }
    assert_eq!(whole["allocated"]["nvidia.com/gpu"], "10");
    assert_eq!(timeline("of-ml", one).await["samples"][0], *whole);
    let [sums, seen] = [timeline("admin", all).await, timeline("of-jobs", all).await];
    assert!(seen.get("queue").is_none() && seen["samples"][0].get("allocated").is_some(), "{seen}");
    assert_eq!(seen["samples"], sums["samples"]);
}

#[tokio::test]
async fn ans_45_minutes_have_what_a_queue_deserves() {
    let cluster = CLUSTER.replace("queue research\n", "queue research deserved.gpu=12\n");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let sample = page.get("admin", "timeline?queue=research").await.json()["samples"][0].clone();
    let queue = page.get("admin", "queues/research").await.json();
    let deserved = json!({"nvidia.com/gpu": "12"});
    assert_eq!((&sample["deserved"], &queue["deserved"]), (&deserved, &deserved));
    let without = Page::new().get("admin", "timeline?queue=research").await.json();
    assert!(without["samples"][0].get("deserved").is_none(), "{without}");
}
