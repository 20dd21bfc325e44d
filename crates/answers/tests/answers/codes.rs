//! Codes and stages of verdicts. Specification: answers.md 20, cases 1 to 4, 10, 11, 16, 17.

use vc_answers::WaitCode;
use vc_engine::{Effect, EngineOptions};
use vc_model::fixture::events_of;
use vc_model::{ClusterEvent, Division, ReadAfter, Settings};

use crate::support::{Asked, EXAMPLE, conf};

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate, backfill", EXAMPLE), text)
}

#[test]
fn ans_01_the_smallest_cluster_of_each_code() {
    let running = "job j min=1 running\n task a cpu=4 @n running\n";
    for (text, expected) in [
        (format!("node n cpu=4\n{running}"), "Placed: its pod has a node"),
        (
            "node n cpu=4\njob j\n task a cpu=1".to_owned(),
            "Binding: bind of default/j-a to n is being written",
        ),
        (
            "node n cpu=4\njob j\n task a cpu=1 gate=x".to_owned(),
            "Gated: 1 of 1 pod has scheduling gates: x",
        ),
        (
            "node n cpu=4\njob j queue=q\n task a cpu=1".to_owned(),
            "QueueMissing: queue q does not exist",
        ),
        (
            "node n cpu=4\nqueue q state=Closing\njob j queue=q\n task a cpu=1".to_owned(),
            "QueueNotOpen: queue q is Closing",
        ),
        (
            "node n cpu=4\njob j min=3\n task a cpu=1 x2".to_owned(),
            "NotValid: 2 of 3 needed pods exist",
        ),
        (
            "node n cpu=4\njob j minres.cpu=9\n task a cpu=9".to_owned(),
            "NotAdmitted: proportion: queue default holds 0 of 4 cpu, 9 more asked also QueueFull \
             NeverFits",
        ),
        (
            "node n cpu=4 zone=a\njob j\n task a cpu=1 selector.zone=b".to_owned(),
            "NodesRefuse: no node is eligible: 1 node label zone",
        ),
        ("job j\n task a cpu=1".to_owned(), "NodesRefuse: there is no node"),
    ] {
        let found = asked(&text).verdict("j");
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn ans_01_the_smallest_cluster_of_each_code_about_nodes() {
    let config = conf("allocate", "gang predicates");
    for (text, expected) in [
        (
            "node n cpu=4\njob j\n task a cpu=5",
            "NeverFits: no eligible node is large enough: 5 cpu asked, 4 on the largest",
        ),
        (
            "node n cpu=4\njob j\n task a cpu=3\njob k running\n task a cpu=2 @n running",
            "NoRoom: 1 cpu short: 3 needed, 2 free on eligible nodes",
        ),
        (
            "node n cpu=4\njob j min=2\n task a cpu=3 x2",
            "GangShort: 1 of 2 needed pods finds a node; the others: 2 cpu short: 3 needed, 1 free \
             on eligible nodes",
        ),
    ] {
        assert_eq!(Asked::new(&config, text).verdict("j"), expected, "{text}");
    }
}

/// Returns the events of these objects. Pods with one of these names cannot be read.
fn events_with_unreadable(objects: &str, names: &[&str]) -> Vec<ClusterEvent> {
    let mut events = events_of(objects);
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && names.contains(&&*pod.key.name)
        {
            pod.invalid = Some("spec.priority: not a number".into());
        }
    }
    events
}

#[test]
fn ans_01_an_object_that_cannot_be_read() {
    let mut it = asked("node n cpu=4");
    it.cycle(events_with_unreadable("job j\n task a cpu=1", &["j-a"]));
    assert_eq!(it.verdict("j"), "Invalid: default/j-a: spec.priority: not a number");
    assert_eq!(it.why("j").verdict.code.stage(), "object");
    // The others suffice.
    it.engine.apply(events_with_unreadable("job k\n task a cpu=1\n task b cpu=1", &["k-a"]));
    assert_eq!(it.verdict("k"), "NextCycle: it is placed in the next cycle");
}

/// Runs cycles over objects with a queue `q` and a job `j` of it, whose bind to node `n` is refused.
fn refused_bind(objects: &str) -> Asked {
    let mut it = asked(objects);
    let (uid, node) = ("default-j-a".into(), "n".into());
    let error = "pods \"j-a\" is forbidden".to_owned();
    it.cycle(vec![ClusterEvent::BindFailed { uid, node, error, pauses: true }]);
    // The edge reads the pod again and shows it without a node.
    let pods = events_of(objects).into_iter().filter_map(|event| match event {
        ClusterEvent::PodApplied(pod) => {
            Some(ClusterEvent::PodRead { pod, after: ReadAfter::Bind })
        }
        _ => None,
    });
    it.engine.apply(pods.collect());
    it
}

#[test]
fn ans_01_a_refused_bind() {
    let mut it = refused_bind("node n cpu=4\nqueue q\njob j queue=q\n task a cpu=1");
    let found = it.verdict("j");
    assert!(found.starts_with("BindFailed: "), "{found}");
    assert!(found.contains("is forbidden"), "{found}");
    assert_eq!(it.why("j").verdict.also, []);
    it.apply("queue q state=Closed");
    let verdict = it.why("j").verdict;
    assert_eq!((verdict.code, verdict.also), (WaitCode::BindFailed, vec![WaitCode::QueueNotOpen]));
    it.engine.apply(vec![ClusterEvent::QueueDeleted { name: "q".into() }]);
    let verdict = it.why("j").verdict;
    assert_eq!((verdict.code, verdict.also), (WaitCode::BindFailed, vec![WaitCode::QueueMissing]));
}

#[test]
fn ans_01_room_that_is_being_freed_and_who_holds_it() {
    let text = "node n cpu=4\njob old running\n task a cpu=4 @n releasing
        job first created=1\n task a cpu=4\njob second created=2\n task a cpu=4";
    let it = Asked::new(&conf("allocate", "gang predicates"), text);
    assert_eq!(it.verdict("first"), "WaitsForRelease: room on n is being freed");
    assert_eq!(
        it.verdict("second"),
        "HeldBack: default/first is first: it waits for room on these nodes"
    );
}

#[test]
fn ans_01_a_fifo_queue_waits_for_its_first_job() {
    let text = "node n cpu=4\nqueue q fifo\njob first queue=q created=1\n task a cpu=5
        job second queue=q created=2\n task a cpu=1";
    assert_eq!(asked(text).verdict("second"), "HeldBack: default/first is first: head of line");
    let config = conf("allocate", "gang predicates");
    let both = text.replace("a cpu=1", "a cpu=9");
    assert_eq!(
        Asked::new(&config, &both).verdict("second"),
        "NeverFits: no eligible node is large enough: 9 cpu asked, 4 on the largest"
    );
}

#[test]
fn ans_01_victims_have_yet_to_leave() {
    let text = "node n cpu=4\njob low min=1 running\n task a cpu=2 @n running x2
        job high priority=9 min=1\n task a cpu=2 priority=9";
    let it = Asked::new(&conf("allocate, preempt", "priority gang predicates"), text);
    assert_eq!(it.verdict("high"), "AwaitsVictims: 1 of 1 victim still terminates on n");
}

#[test]
fn ans_01_stages_are_those_of_the_table() {
    assert_eq!(WaitCode::QueueFull.stage(), "share");
    assert_eq!(WaitCode::Fragmented.stage(), "nodes");
    let names: Vec<&str> = WaitCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!((names.len(), names[0]), (21, "NotOurs"));
}

#[test]
fn ans_02_later_stages_follow() {
    let text = "node n cpu=4\nqueue q state=Closed\njob k running\n task a cpu=4 @n running
        job j queue=q\n task a cpu=4";
    assert_eq!(asked(text).verdict("j"), "QueueNotOpen: queue q is Closed also QueueFull NoRoom");
    let gated = text.replace("j queue=q\n task a cpu=4", "j queue=q\n task a cpu=4 gate=x");
    assert_eq!(
        asked(&gated).verdict("j"),
        "Gated: 1 of 1 pod has scheduling gates: x also QueueNotOpen QueueFull NoRoom"
    );
}

#[test]
fn ans_02_later_stages_follow_where_no_pod_is_tried() {
    let invalid = "Invalid: default/j-a: spec.priority: not a number";
    let gated = "1 of 1 pod has scheduling gates: x";
    for (job, names, expected) in [
        (
            "min=3 queue=closed\n task a cpu=1",
            vec!["j-a"],
            format!("{invalid} also QueueNotOpen NotValid"),
        ),
        (
            "min=3 queue=none\n task a cpu=1 gate=x",
            vec!["j-a"],
            format!("{invalid} also Gated QueueMissing NotValid"),
        ),
        ("queue=none\n task a cpu=1 gate=x", vec![], format!("Gated: {gated} also QueueMissing")),
        (
            "queue=none min=2\n task a cpu=9",
            vec![],
            "QueueMissing: queue none does not exist also NotValid".to_owned(),
        ),
    ] {
        let mut it = asked("node n cpu=4\nqueue closed state=Closed");
        it.cycle(events_with_unreadable(&format!("job j {job}"), &names));
        assert_eq!(it.verdict("j"), expected);
        let of_list = it.all().iter().map(crate::support::text_of).collect::<Vec<String>>();
        assert_eq!(of_list, [expected]);
    }
}

#[test]
fn ans_02_later_stages_follow_where_there_is_no_group() {
    let missing = "the pod names no PodGroup: annotation scheduling.k8s.io/group-name is missing";
    let mut it = asked("node n cpu=4");
    it.cycle(events_with_unreadable("pod p cpu=1 gate=x\npod r cpu=1", &["r"]));
    assert_eq!(it.verdict("p"), format!("NoGroup: {missing} also Gated"));
    let invalid = "Invalid: default/r: spec.priority: not a number also NoGroup";
    assert_eq!(it.verdict("r"), invalid);
    let mut events = events_of("job g\n task a cpu=1 gate=x\njob h\n task a cpu=1 @n running");
    events.retain(|event| !matches!(event, ClusterEvent::PodGroupApplied(_)));
    it.cycle(events);
    assert_eq!(it.verdict("g"), "NoGroup: PodGroup default/g does not exist also Gated");
    assert_eq!(it.verdict("h"), "Placed: its pod has a node");
}

/// Returns the events of these objects. Pods with one of these names are of another scheduler.
fn events_with_others(objects: &str, names: &[&str], scheduler: &str) -> Vec<ClusterEvent> {
    let mut events = events_of(objects);
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && names.contains(&&*pod.key.name)
        {
            pod.scheduler_name = scheduler.into();
        }
    }
    events
}

#[test]
fn ans_03_another_scheduler_decides_about_pods_on_nodes() {
    let mut it = asked("node n cpu=9");
    let objects = "job theirs min=3\n task a cpu=1 @n running x2
        job both min=1 running\n task a cpu=1 @n running x2\npod lone cpu=1 @n running
        pod kept cpu=1 @n succeeded";
    let others = ["theirs-a-0", "theirs-a-1", "both-a-0", "lone", "kept"];
    it.cycle(events_with_others(objects, &others, "default-scheduler"));
    let not_ours = "NotOurs: scheduler default-scheduler decides about it";
    for (name, expected) in [
        ("lone", not_ours),
        ("kept", not_ours),
        ("theirs", not_ours),
        ("theirs-a-0", not_ours),
        ("both-a-0", not_ours),
        ("both-a-1", "Placed: pod default/both-a-1 has node n"),
        ("both", "Placed: all 2 pods have a node"),
    ] {
        assert_eq!(it.verdict(name), expected, "{name}");
        assert!(!it.why(name).waits(), "{name}");
    }
    assert_eq!(it.why("lone").verdict.code.stage(), "ours");
    assert!(it.all().is_empty(), "{:?}", it.all());
    // An object may lack the name that an API server would have written.
    it.cycle(events_with_others("pod nameless cpu=1 @n running", &["nameless"], ""));
    assert_eq!(it.verdict("nameless"), not_ours);
}

#[test]
fn ans_03_another_scheduler_of_the_division_decides_about_a_pod_on_a_node() {
    let division = Division::new("s-0", 2);
    let mut names = (0..).map(|number: u32| format!("x-{number}"));
    let mut name = |is_ours: bool| names.find(|name| division.owns(name) == is_ours).unwrap();
    let (ours, theirs, group) = (name(true), name(false), name(false));
    let objects = format!(
        "node {ours} cpu=9\npod {theirs} cpu=1 @{ours} running\njob {group}
        pod {ours} cpu=1 annotation.scheduling.k8s.io/group-name={group}"
    );
    let settings = Settings { division: Some(division), ..Settings::default() };
    let config = conf("allocate", EXAMPLE);
    let it = Asked::with_options(EngineOptions::from(settings), &config, &objects);
    assert_eq!(
        it.verdict(&theirs),
        "NotOurs: scheduler s-1 decides about it, by the division of work of MULTI_SCHEDULER_ENABLE"
    );
    let missing = format!(
        "NoGroup: PodGroup default/{group} does not exist, or falls to another scheduler of \
         MULTI_SCHEDULER_ENABLE"
    );
    assert_eq!(it.verdict(&ours), missing);
}

#[test]
fn ans_04_the_next_cycle_decides_by_the_present_state() {
    let mut it = asked("node n cpu=4\njob j\n task a cpu=5");
    it.cycle(Vec::new());
    it.apply("node m cpu=8");
    let why = it.why("j");
    assert_eq!(why.verdict.code, WaitCode::NextCycle);
    assert_eq!(why.verdict.text, "it is placed in the next cycle");
    assert!(why.last_condition.unwrap().message.contains("1/1 tasks in gang unschedulable"));
    let effects = it.engine.cycle(Vec::new(), vc_engine::CycleTime { unix_micros: i64::MAX / 2 }).0;
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Bind { .. })));
}

#[test]
fn ans_09_a_condition_that_says_the_same_is_not_given() {
    let mut it = asked("node n cpu=4\njob j\n task a cpu=5");
    it.cycle(Vec::new());
    assert_eq!(it.why("j").last_condition, None);
    let mut it = asked("node n cpu=4\njob j queue=q\n task a cpu=5");
    assert_eq!(it.why("j").last_condition, None);
    it.apply("queue q");
    let condition = it.why("j").last_condition.unwrap();
    assert_eq!(&*condition.message, "queue q does not exist");
}

#[test]
fn ans_10_a_limit_on_a_resource_that_the_cluster_lacks() {
    let tiers = "gang predicates capacity";
    let text = "node n cpu=4\nqueue q cap.gpu=0\njob j queue=q minres.gpu=1\n task a gpu=1";
    let it = Asked::new(&conf("enqueue, allocate", tiers), text);
    let why = it.why("j");
    assert_eq!(why.verdict.code, WaitCode::NotAdmitted);
    let row = &why.quota[0];
    assert_eq!((row.plugin, row.resource.as_str()), ("capacity", "nvidia.com/gpu"));
    assert!(why.quota.iter().all(|row| row.resource == "nvidia.com/gpu"), "{:?}", why.quota);
}

#[test]
fn ans_11_a_queue_with_all_that_it_deserves() {
    let text = "node n cpu=64 gpu=8\nqueue q\nqueue other guarantee.gpu=1 guarantee.cpu=1
        job k queue=q running\n task a gpu=7 cpu=63 @n running\njob j queue=q\n task a gpu=1 cpu=1";
    let it = asked(text);
    let why = it.why("j");
    assert_eq!(why.verdict.code, WaitCode::QueueFull, "{}", it.verdict("j"));
    let gpus = why.quota.iter().find(|row| row.resource == "nvidia.com/gpu").unwrap();
    assert_eq!((gpus.plugin, gpus.limit.as_str()), ("proportion", "deserved"));
    assert_eq!([&gpus.amount, &gpus.used, &gpus.asked, &gpus.short], ["7", "7", "1", "1"]);
}

/// The vote turns when the limit is raised by `short`, and does not when by one unit less. Random
/// limits are in `limits.rs`.
#[test]
fn ans_14_short_is_what_the_vote_turns_on() {
    let text = |words: &str, cap: &str| {
        format!(
            "node n cpu=64\nqueue q {cap}\njob k queue=q running\n task a cpu=3 @n running
             job j queue=q {words}\n task a cpu=5"
        )
    };
    let config = conf("enqueue, allocate", "gang predicates capacity");
    for words in ["min=1", "min=1 minres.cpu=5", "min=1 minres.cpu=7"] {
        for cap in ["cap.cpu=3", "cap.cpu=4500m", "cap.cpu=7999m"] {
            let why = Asked::new(&config, &text(words, cap)).why("j");
            let (refused, Some(row)) = (why.verdict.code, why.quota.first()) else {
                panic!("{words} {cap}")
            };
            let amount = |quantity: &str| match quantity.strip_suffix('m') {
                Some(milli) => milli.parse::<i64>().unwrap(),
                None => quantity.parse::<i64>().unwrap() * 1_000,
            };
            let enough = amount(&row.amount) + amount(&row.short);
            assert_eq!(enough, amount(&row.used) + amount(&row.asked));
            let code = |cap: i64| {
                let why = Asked::new(&config, &text(words, &format!("cap.cpu={cap}m"))).why("j");
                why.verdict.code
            };
            // Behind the vote on admission there is that on the share.
            assert_eq!(code(enough - 1), refused, "{words} {cap}");
            assert_ne!(code(enough), refused, "{words} {cap}");
        }
    }
}

#[test]
fn ans_16_pods_and_groups_without_each_other() {
    let it = asked("node n cpu=4\npod p cpu=1\njob empty min=2 minres.cpu=1");
    assert_eq!(
        it.verdict("p"),
        "NoGroup: the pod names no PodGroup: annotation scheduling.k8s.io/group-name is missing"
    );
    assert_eq!(it.verdict("empty"), "NotValid: 0 of 2 needed pods exist");
    assert_eq!(["empty", "p"].map(|name| it.why(name).has_unknown_pods), [true, false]);
    let mut events = events_of("node n cpu=4\nqueue default\njob g\n task a cpu=1");
    events.retain(|event| !matches!(event, ClusterEvent::PodGroupApplied(_)));
    let mut it = asked("");
    it.cycle(events);
    assert_eq!(it.verdict("g-a"), "NoGroup: PodGroup default/g does not exist");
}

#[test]
fn ans_17_admission_alone_before_the_pods_exist() {
    let it = asked("node n cpu=4\njob j min=2 minres.cpu=9");
    assert_eq!(
        it.verdict("j"),
        "NotAdmitted: proportion: queue default holds 0 of 4 cpu, 9 more asked"
    );
    let mut it = asked("node n cpu=4\njob j min=2 minres.cpu=9");
    it.apply("node m cpu=8");
    assert_eq!(it.verdict("j"), "NextCycle: it is admitted in the next cycle");
}

#[test]
fn ans_17_the_sub_group_that_fails_first_is_named() {
    let text = "node n cpu=4\njob j min=4
          policy p keys=idx size=2 min=2
          task a cpu=2 x2 label.idx=0\n task b cpu=3 x2 label.idx=1";
    let found = asked(text).verdict("j");
    assert!(found.starts_with("GangShort: "), "{found}");
    assert!(found.contains("the others: sub-group default/j/p-1: "), "{found}");
}
