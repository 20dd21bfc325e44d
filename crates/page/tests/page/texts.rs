//! Answers for people. Specification: answers.md 13.

use vc_engine::CycleTime;
use vc_model::fixture::{START_MICROS, events_of};
use vc_page::{
    AnswerView, AskedJob, AskedTimeline, Document, PageRange, Question, StateSource, cycles_text,
    line_text, nodes_text, nodes_wide_text, queues_text, queues_wide_text, runs_text, summary_text,
    timeline_text, why_list_text, why_list_wide_text, why_text,
};

use crate::support::{CLUSTER, view};

fn text(question: &Question) -> String {
    let (engine, mut view, timeline) = view(CLUSTER);
    match view.answer(&engine, &timeline, question).unwrap() {
        Document::Explanation(one) => why_text(&one),
        Document::Explanations(list) => why_list_text(&list),
        Document::Runs(list) => runs_text(&list),
        Document::Queues(list) => queues_text(&list),
        Document::Line(list) => line_text(&list),
        Document::Nodes(list) => nodes_text(&list),
        Document::Summary(one) => summary_text(&one),
        Document::Timeline(one) => timeline_text(&one),
        Document::Cycles(list) => cycles_text(&list),
        other => panic!("no text for {other:?}"),
    }
}

fn lines(question: &Question) -> Vec<String> {
    text(question).lines().map(str::to_owned).collect()
}

#[test]
fn ans_13_a_job_is_explained_in_lines() {
    let (namespace, name) = ("ml".to_owned(), "train".to_owned());
    let asked = AskedJob { namespace, name, ..AskedJob::default() };
    let lines = lines(&Question::Explanation(asked));
    assert!(lines[0].starts_with("ml/train (PodGroup, queue research, priority 0) waits"));
    assert!(lines[1].starts_with("WHY      NoRoom: 2 nvidia.com/gpu short: "), "{lines:#?}");
    assert!(lines.last().unwrap().ends_with(", cycle 1, 7 ms behind"), "{lines:#?}");
}

#[test]
fn ans_13_further_classes_of_pods_have_lines() {
    let cluster = "node n1 cpu=8 gpu=1\nnode n2 cpu=8 gpu=1\nqueue research
        job ml/j queue=research min=3\n task a cpu=9\n task b gpu=2 x2";
    let (engine, mut view, timeline) = view(cluster);
    let (namespace, name) = ("ml".to_owned(), "j".to_owned());
    let asked = Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() });
    let Document::Explanation(one) = view.answer(&engine, &timeline, &asked).unwrap() else {
        panic!("no explanation")
    };
    let text = why_text(&one);
    let expected = "PODS     2 more pods (2 nvidia.com/gpu): NeverFits: no eligible node is large enough: \
        2 nvidia.com/gpu asked, 1 on the largest";
    assert!(text.lines().any(|line| line == expected), "{text}");
}

#[test]
fn ans_21_pods_that_do_not_exist_yet_are_unknown() {
    let (engine, mut view, timeline) = view("queue research\njob ml/j queue=research min=2");
    let (namespace, name) = ("ml".to_owned(), "j".to_owned());
    let asked = Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() });
    let Document::Explanation(one) = view.answer(&engine, &timeline, &asked).unwrap() else {
        panic!("no explanation")
    };
    assert_eq!(one.pods.as_deref(), Some("unknown"));
    let text = why_text(&one);
    assert!(text.lines().next().unwrap().ends_with(": pods unknown"), "{text}");
}

/// How long twelve earlier pods ran, in seconds. Of them 91 minutes are the short run, 100 the median, 125 the long run.
const RUNS: [i64; 12] =
    [5_000, 5_460, 5_500, 5_700, 5_900, 6_000, 6_100, 6_300, 6_700, 7_000, 7_500, 7_600];

/// Example A with runs that were learned, as docs/answers.md shows it.
#[test]
fn ans_18_a_learned_start_is_told_as_on_the_page() {
    let now = 36_000;
    let mut earlier = String::new();
    for (at, run) in RUNS.iter().enumerate() {
        let (owner, started) = (28_473_800 + at, now - run);
        earlier.push_str(&format!(
            "job ml/e{at} queue=research min=1 owner=eval-{owner} running
              task a cpu=8 gpu=5 @g1 running started={started}\n"
        ));
    }
    let cluster = "node g1 cpu=64 gpu=8\nnode g2 cpu=64 gpu=8\nnode g3 cpu=64 gpu=8
        node g4 cpu=64 gpu=8 taint=team=vision:NoSchedule\nqueue research
        job ml/train queue=research min=2\n task a cpu=8 gpu=4 x2
        job ml/eval queue=research min=1 owner=eval running
          task a cpu=8 gpu=5 @g1 running started=32400
        job ml/etl queue=research min=1 running\n task a cpu=8 gpu=5 @g2 running
        job ml/tune queue=research min=1 running\n task a cpu=8 gpu=5 @g3 running\n";
    let (mut engine, _, mut timeline) = view(&(cluster.to_owned() + &earlier));
    let ended = events_of(&earlier.replace("@g1 running", "@g1 succeeded"));
    let unix_micros = START_MICROS + now * 1_000_000;
    timeline.learn(engine.cluster(), &ended, unix_micros);
    let (_effects, report) = engine.cycle(ended, CycleTime { unix_micros });
    let mut view = AnswerView::new(&engine, &report, StateSource::Daemon { behind_millis: 0 });
    let (namespace, name) = ("ml".to_owned(), "train".to_owned());
    let asked = AskedJob { namespace, name, when: true, ..AskedJob::default() };
    let answer = view.answer(&engine, &timeline, &Question::Explanation(asked)).unwrap();
    let Document::Explanation(one) = answer else { panic!("no explanation") };
    let text = why_text(&one);
    let start = text.lines().find(|line| line.starts_with("START")).unwrap();
    let expected = "START    expected 10:40, between 10:31 and 11:05, if nothing arrives, when ml/eval on g1 \
        (learned from 12 runs) ends";
    assert_eq!(start, expected, "{text}");
    assert!(include_str!("../../../../docs/answers.md").contains(start));
}

#[test]
fn ans_13_lists_are_tables() {
    let range = PageRange::default();
    let queues = lines(&Question::Queues);
    assert!(queues[0].starts_with("QUEUE"), "{queues:#?}");
    let research = queues.iter().find(|line| line.trim_start().starts_with("research")).unwrap();
    assert!(research.contains("2 of 4") && research.contains("10/"), "{research}");
    let line = lines(&Question::Line { queue: "research".to_owned(), range });
    assert!(line[0].starts_with("PLACE  JOB         PRIORITY  PODS  WAITS  CODE "), "{line:#?}");
    assert!(line[1].starts_with("1      ml/train    0         2     "), "{line:#?}");
    let words: Vec<&str> = line[0].split_whitespace().skip(6).collect();
    assert_eq!(words, ["DECIDED", "BY", "AHEAD"]);
    let first: Vec<&str> = line[1].split_whitespace().skip(6).collect();
    assert_eq!(first, ["-", "-"], "{line:#?}");
    let second = "  created: 00:00 before 00:40  1 job, 2 pods (16 cpu, 8 nvidia.com/gpu)";
    assert!(line[2].ends_with(second), "{line:#?}");
    let empty = lines(&Question::Line { queue: "default".to_owned(), range });
    assert_eq!(empty[0], "nothing waits");
    let nodes = lines(&Question::Nodes { range, label: None });
    let tainted = nodes.iter().find(|line| line.starts_with("g4")).unwrap();
    assert!(tainted.contains("8/8 nvidia.com/gpu"), "{tainted}");
    assert!(tainted.ends_with("team=vision:NoSchedule"), "{tainted}");
    let runs = lines(&Question::Runs { namespace: None, queue: None, range });
    let words: Vec<&str> = runs[1].split_whitespace().collect();
    assert_eq!(words[..3], ["ml/on-g1", "research", "1"], "{runs:#?}");
    assert_eq!(words[4..], ["-", "-"], "no end is known: {runs:#?}");
    let none = lines(&Question::Runs { namespace: None, queue: Some("small".to_owned()), range });
    assert_eq!(none[0], "nothing runs");
    let sums = lines(&Question::Summary);
    assert_eq!(sums[0], "NODES    4");
    assert!(sums.iter().all(|line| !line.starts_with("STARTS")), "nothing was predicted");
    let all = Question::Explanations { namespace: None, queue: None, code: None, range };
    assert_eq!(lines(&all).len(), 4, "a head and three jobs");
}

#[test]
fn ans_86_wide_lists_have_all_resources() {
    let (engine, mut view, timeline) = view(CLUSTER);
    let mut wide = |question: &Question| -> Vec<String> {
        let text = match view.answer(&engine, &timeline, question).unwrap() {
            Document::Explanations(list) => why_list_wide_text(&list),
            Document::Queues(list) => queues_wide_text(&list),
            Document::Nodes(list) => nodes_wide_text(&list),
            other => panic!("no wide text for {other:?}"),
        };
        text.lines().map(str::to_owned).collect()
    };
    let range = PageRange::default();
    let queues = wide(&Question::Queues);
    assert!(queues[0].contains("WEIGHT") && queues[0].ends_with("LIMIT"), "{queues:#?}");
    let research = queues.iter().find(|line| line.trim_start().starts_with("research")).unwrap();
    assert!(research.contains("2 of 4") && research.contains(" nvidia.com/gpu"), "{research}");
    let nodes = wide(&Question::Nodes { range, label: None });
    let tainted = nodes.iter().find(|line| line.starts_with("g4")).unwrap();
    assert!(tainted.contains(" pods") && tainted.ends_with("team=vision:NoSchedule"), "{tainted}");
    let all = Question::Explanations { namespace: None, queue: None, code: None, range };
    let jobs = wide(&all);
    assert_eq!(jobs[0].split_whitespace().nth(9), Some("ALSO"), "{jobs:#?}");
    assert_eq!(jobs.len(), 4, "a head and three jobs");
}

#[test]
fn ans_13_the_timeline_and_the_cycles_are_tables() {
    let timeline = lines(&Question::Timeline(AskedTimeline::default()));
    assert_eq!(timeline[1].split_whitespace().collect::<Vec<_>>()[..3], ["JOB", "QUEUE", "PODS"]);
    assert!(timeline[2].starts_with("ml/on-g1"), "{timeline:#?}");
    let cycles = lines(&Question::Cycles { last: 5 });
    assert!(cycles[0].starts_with("CYCLE") && cycles[1].starts_with("1 "), "{cycles:#?}");
}
