//! What task a pod makes: core.md 3.2-3.4, actions.md A46.

use vc_model::{Cluster, Gates, PodPhase, PodRecord, Settings, Task, TaskStatus};

use super::support::{apply_pod, labels, pod, requesting, row, running};

fn task(record: PodRecord) -> Task {
    let mut cluster = Cluster::new(Settings::default());
    let uid = record.uid.clone();
    apply_pod(&mut cluster, record);
    row(&cluster, &uid).clone()
}

fn annotated(text: &str) -> PodRecord {
    PodRecord { annotations: labels(text), ..pod("p") }
}

#[test]
fn core_39_the_priority_annotation_beats_the_spec() {
    let cases = [
        ("volcano.sh/task-priority=7", Some(100), 7),
        ("volcano.sh/task-priority=-7", Some(100), -7),
        ("volcano.sh/task-priority=x", Some(100), 100),
        ("volcano.sh/task-priority=4294967296", Some(100), 100),
        ("", Some(0), 0),
        ("", None, 1),
    ];
    for (annotations, priority, expected) in cases {
        let record = PodRecord { priority, ..annotated(annotations) };
        assert_eq!(task(record).priority, expected, "{annotations} {priority:?}");
    }
}

#[test]
fn core_40_preemptable_is_true_unless_said_otherwise() {
    let key = "volcano.sh/preemptable";
    let cases = [
        ("maybe", "", false),
        ("", "", true),
        ("false", "true", false),
        ("T", "", true),
        ("", "0", false),
    ];
    for (annotation, label, expected) in cases {
        let text = |value: &str| match value.is_empty() {
            true => String::new(),
            false => format!("{key}={value}"),
        };
        let record = PodRecord { labels: labels(&text(label)), ..annotated(&text(annotation)) };
        assert_eq!(task(record).preemptable, expected, "{annotation} {label}");
    }
}

#[test]
fn core_41_a_revocable_zone_is_all_or_none() {
    let cases = [
        ("volcano.sh/revocable-zone=rz1", false),
        ("volcano.sh/revocable-zone=*", true),
        ("volcano.sh/preemptable=true", true),
        ("volcano.sh/preemptable=false", false),
        ("volcano.sh/revocable-zone=rz1 volcano.sh/preemptable=true", false),
        ("", false),
    ];
    for (annotations, expected) in cases {
        let mut cluster = Cluster::default();
        apply_pod(&mut cluster, annotated(annotations));
        let task = cluster.task("p").expect("the pod is there");
        assert_eq!(cluster.class(task).any_revocable_zone, expected, "{annotations}");
    }
}

#[test]
fn core_42_status_of_a_pod() {
    use PodPhase::{Failed, Pending, Running, Succeeded, Unknown};
    let cases = [
        (Running, Some("n"), true, TaskStatus::Releasing),
        (Succeeded, Some("n"), true, TaskStatus::Succeeded),
        (Pending, Some("n"), false, TaskStatus::Bound),
        (Pending, None, false, TaskStatus::Pending),
        (Pending, None, true, TaskStatus::Releasing),
        (Running, Some("n"), false, TaskStatus::Running),
        (Failed, Some("n"), false, TaskStatus::Failed),
        (Unknown, Some("n"), true, TaskStatus::Unknown),
    ];
    for (phase, node, deleting, expected) in cases {
        let node_name = node.map(Into::into);
        let record = PodRecord { phase, node_name, deleting, ..pod("p") };
        assert_eq!(task(record).status, expected, "{phase:?} {node:?} {deleting}");
    }
}

#[test]
fn a_victim_that_ends_well_is_no_finished_member() {
    let ended = PodRecord { phase: PodPhase::Succeeded, ..running(pod("p"), "n") };
    let ended = PodRecord { phase: PodPhase::Succeeded, deleting: true, ..ended };
    assert_eq!(task(ended.clone()).status, TaskStatus::Succeeded);
    let victim = PodRecord { evicted_by_scheduler: true, ..ended };
    assert_eq!(task(victim).status, TaskStatus::Failed);
}

#[test]
fn best_effort_means_that_nothing_but_a_pod_slot_is_asked_for() {
    assert!(task(pod("p")).best_effort);
    assert!(task(requesting(pod("p"), "cpu=0 nvidia.com/gpu=0")).best_effort);
    assert!(!task(requesting(pod("p"), "memory=1")).best_effort);
    assert!(!task(requesting(pod("p"), "nvidia.com/gpu=1")).best_effort);
}

#[test]
fn the_role_is_the_annotation_then_the_label() {
    let key = "volcano.sh/task-spec";
    let with = |annotation: &str, label: &str| PodRecord {
        labels: labels(&format!("{key}={label}")),
        ..annotated(&format!("{key}={annotation}"))
    };
    assert_eq!(&*task(with("ps", "worker")).role, "ps");
    assert_eq!(&*task(with("", "worker")).role, "worker");
    assert_eq!(&*task(pod("p")).role, "");
}

#[test]
fn gates_are_the_queue_gate_alone_or_foreign() {
    let gated = |gates: &[&str]| PodRecord {
        scheduling_gates: gates.iter().map(|&gate| gate.into()).collect(),
        ..pod("p")
    };
    let ours = "scheduling.volcano.sh/queue-allocation-gate";
    assert_eq!(task(gated(&[])).gates, Gates::None);
    assert_eq!(task(gated(&[ours])).gates, Gates::QueueAllocationOnly);
    assert_eq!(task(gated(&[ours, "x"])).gates, Gates::Foreign);
    assert_eq!(task(gated(&["x"])).gates, Gates::Foreign);
    assert!(task(annotated(&format!("{ours}=true"))).manages_queue_gate);
    assert!(!task(annotated(&format!("{ours}=True"))).manages_queue_gate);
}

#[test]
fn a_pod_index_needs_three_parts_and_a_number() {
    let cases = [("job-worker-3", Some(3)), ("a-3", None), ("a-b-c", None), ("a-b-c-10", Some(10))];
    for (name, index) in cases {
        assert_eq!(task(pod(name)).index, index, "{name}");
    }
}
