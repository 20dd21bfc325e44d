//! `vcsim what-if`. Specification: answers.md 9, 13, 16, cases 51, 52.

use crate::common::{Called, file, vcsim, vcsim_with_input};

const TAINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/why/taint.yaml");
const CONF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/why/scheduler.conf");
const CHANGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/why/what-if.yaml");

fn what_if(words: &[&str]) -> Called {
    vcsim(&[&["what-if", "--scheduler-conf", CONF], words, &[TAINT]].concat())
}

/// Calls it with a document of these changes on standard input.
fn with_changes(changes: &str) -> Called {
    let document =
        format!("apiVersion: answers.volcano.sh/v1\nkind: WhatIf\nspec:\n  changes:\n{changes}");
    let words = ["what-if", "--scheduler-conf", CONF, "-f", "-", TAINT];
    vcsim_with_input(&words, &document)
}

#[test]
fn ans_48_flags_are_changes() {
    let called = what_if(&["--add-nodes", "g1=1"]);
    let out = &called.stdout;
    assert!(out.contains("+ placed   ml/train-worker-0 → g1-whatif-1\n"), "{out}{}", called.stderr);
    assert!(out.contains("  queue    research cpu 24 → 40"), "{out}");
    assert!(out.ends_with("2 placed, 0 evicted, 0 wait (3 cycles, settled)\n"), "{out}");
    assert_eq!(called.code, 0, "nothing was applied");
    let drained = what_if(&["--drain", "g1", "-o", "json"]).json();
    assert_eq!(drained["kind"], "WhatIfResult");
    assert_eq!(drained["evicted"][0]["pod"], "ml/eval-0");
    assert_eq!(drained["evicted"][0]["action"], "drain");
    assert_eq!(drained["asOf"]["cycle"], 1);
    let queue = what_if(&["--set-queue", "research.state=Closed", "--add-nodes", "g1=1"]);
    assert!(queue.stdout.contains("0 placed"), "{}{}", queue.stdout, queue.stderr);
}

#[test]
fn ans_48_a_document() {
    let called = what_if(&["-f", CHANGES]);
    assert!(called.stdout.contains("+ evicted  ml/eval-0 (drain)\n"), "{}", called.stdout);
    assert!(called.stdout.contains("→ g3-whatif-1\n"), "{}{}", called.stdout, called.stderr);
    let by_name =
        with_changes("  - finish: {jobs: [ml/eval]}\n  - setJob: {job: ml/train, minMember: 1}\n");
    assert!(
        by_name.stdout.contains("+ placed   ml/train-worker-0 → g1\n"),
        "{}{}",
        by_name.stdout,
        by_name.stderr
    );
    let deleted = with_changes(
        "  - delete: [{kind: Job, namespace: ml, name: eval}]\n  - setJob: {job: ml/train, minMember: 1}\n",
    );
    assert!(
        deleted.stdout.contains("+ placed   ml/train-worker-0 → g1\n"),
        "{}{}",
        deleted.stdout,
        deleted.stderr
    );
    let of_pod = with_changes(
        "  - delete: [{kind: po, namespace: ml, name: eval-0}]\n  - setJob: {job: ml/train, minMember: 1}\n",
    );
    let placed = "+ placed   ml/train-worker-0 → g1\n";
    assert!(of_pod.stdout.contains(placed), "{}{}", of_pod.stdout, of_pod.stderr);
    let tolerate = "  - setPods: {job: ml/train, tolerations: [{key: team, value: vision, effect: NoSchedule}]}\n";
    let tolerated = with_changes(tolerate);
    assert!(
        tolerated.stdout.contains("+ placed   ml/train-worker-1 → g4\n"),
        "{}{}",
        tolerated.stdout,
        tolerated.stderr
    );
    let advanced = with_changes("  - advance: 40m\n");
    assert!(
        advanced.stdout.contains("+ placed   ml/train-worker-0 → g1\n"),
        "{}{}",
        advanced.stdout,
        advanced.stderr
    );
}

#[test]
fn ans_16_changes_that_are_wrong() {
    let kinds = "addNodes, removeNodes, cordon, uncordon, patchNodes, apply, delete, finish, \
                 setQueue, setJob, setPods, conf, advance";
    let cases = [
        (
            "  - addNode: {like: g1}\n",
            "spec.changes[0].addNode: unknown; did you mean addNodes?".to_owned(),
        ),
        ("  - {}\n", format!("spec.changes[0]: one of {kinds} wanted, 0 given")),
        (
            "  - {advance: 1m, conf: x}\n",
            format!("spec.changes[0]: one of {kinds} wanted, 2 given"),
        ),
        (
            "  - addNodes: {like: g1}\n  - removeNodes: {names: [g1, g9]}\n",
            "spec.changes[1].removeNodes.names[1]: no node g9".to_owned(),
        ),
        (
            "  - addNodes: {like: g1, count: 0}\n",
            "spec.changes[0].addNodes.count: must be 1 or more".to_owned(),
        ),
        (
            "  - addNodes: {like: g1, count: 10001}\n",
            "spec.changes[0]: 10000 new nodes at most".to_owned(),
        ),
        (
            "  - advance: soon\n",
            "spec.changes[0].advance: must be a duration such as 30m or 1h30m".to_owned(),
        ),
        (
            "  - setQueue: {name: q9, weight: 1}\n",
            "spec.changes[0].setQueue.name: no queue q9".to_owned(),
        ),
        (
            "  - setQueue: {name: research, capability: {cpu: 1x}}\n",
            "spec.changes[0].setQueue.capability.cpu: unknown quantity suffix".to_owned(),
        ),
        (
            "  - setPods: {job: ml/nobody}\n",
            "spec.changes[0].setPods.job: no job ml/nobody".to_owned(),
        ),
        (
            "  - setJob: {job: ml/train, priorityClassName: no}\n",
            "spec.changes[0].setJob.priorityClassName: no PriorityClass no".to_owned(),
        ),
        (
            "  - cordon: {}\n",
            "spec.changes[0].cordon: names or selector.matchLabels is wanted".to_owned(),
        ),
        (
            "  - patchNodes: {names: [g1], addTaints: [{key: a, effect: Never}]}\n",
            "spec.changes[0].patchNodes.addTaints[0]: needs a key".to_owned(),
        ),
        (
            "  - delete: [{kind: Secret, name: a}]\n",
            "spec.changes[0].delete[0].name: no Secret default/a controls pods".to_owned(),
        ),
        ("  - delete: [{name: a}]\n", "spec.changes[0].delete[0].kind: must be Pod,".to_owned()),
        (
            "  - delete: [{kind: pod, namespace: ml, name: eval}]\n",
            "spec.changes[0].delete[0].name: no pod ml/eval".to_owned(),
        ),
    ];
    for (changes, expected) in cases {
        let called = with_changes(changes);
        let expected = format!("error: -:1: {expected}");
        assert!(
            called.stderr.starts_with(&expected),
            "{changes}: {}{}",
            called.stdout,
            called.stderr
        );
        assert_eq!(called.code, 1, "{changes}");
    }
    let flag = what_if(&["--drain", "g9"]).stderr;
    assert_eq!(flag, "error: --drain g9: removeNodes.names[0]: no node g9\n");
    assert_eq!(what_if(&["--add-nodes", "g1=x"]).code, 2);
    assert_eq!(what_if(&["--set-queue", "weight=1"]).code, 2);
    assert_eq!(what_if(&[]).code, 2, "no change");
    let cycles = vcsim_with_input(
        &["what-if", "-f", "-", TAINT],
        "{apiVersion: answers.volcano.sh/v1, kind: WhatIf, spec: {cycles: 21}}",
    );
    assert_eq!(
        cycles.stderr,
        "error: -:1: spec.cycles: must be settled, or a number from 1 to 20\n"
    );
}

#[test]
fn ans_51_configurations_are_checked() {
    let broken = file("ans_51", "broken.conf", "actions: \"enqueue, allocate\ntiers: []\n");
    let called = what_if(&["--conf", &broken]);
    assert_eq!(called.code, 1);
    assert!(called.stderr.contains("--conf "), "{}", called.stderr);
    let odd = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n    arguments: {colour: red}\n";
    let odd = file("ans_51_odd", "odd.conf", odd);
    let called = what_if(&["--conf", &odd, "-o", "json"]);
    let warnings = called.json()["warnings"].to_string();
    assert!(warnings.contains("colour"), "{warnings}");
}

#[test]
fn ans_52_manifests_are_tried_before_they_are_submitted() {
    let template = |cpu: &str| {
        format!(
            "{{spec: {{schedulerName: volcano, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
        )
    };
    let job = |cpu: &str| {
        format!(
            "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: new, namespace: ml}}, spec: {{schedulerName: volcano, queue: research, minAvailable: 2, tasks: [{{name: a, replicas: 2, template: {}}}]}}}}",
            template(cpu)
        )
    };
    let batch = |cpu: &str| {
        format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: new, namespace: ml}}, spec: {{parallelism: 2, completions: 2, template: {}}}}}",
            template(cpu)
        )
    };
    let deployment = |cpu: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: new, namespace: ml}}, spec: {{replicas: 2, template: {}}}}}",
            template(cpu)
        )
    };
    let pod = |cpu: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: new, namespace: ml}}, spec: {{schedulerName: volcano, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
        )
    };
    let manifests = |cpu: &str| [job(cpu), batch(cpu), deployment(cpu), pod(cpu)];
    let (small, large) = (manifests("1"), manifests("65"));
    for ((small, large), n_pods) in small.iter().zip(&large).zip([2, 2, 2, 1]) {
        let call = |manifest: &str| {
            let words = ["what-if", "-o", "json", "--scheduler-conf", CONF, "-f", "-", TAINT];
            vcsim_with_input(&words, manifest)
        };
        let placed = call(small);
        let json = placed.json();
        assert_eq!(json["placed"].as_array().unwrap().len(), n_pods, "{json}");
        assert_eq!((placed.code, json["unplaced"].as_array().unwrap().len()), (0, 0), "{json}");
        let refused = call(large);
        let json = refused.json();
        assert_eq!(
            (refused.code, json["unplaced"].as_array().unwrap().len()),
            (3, n_pods),
            "{json}"
        );
        assert_eq!(json["waiting"][0]["code"], "NeverFits", "{json}");
    }
    let live = "{apiVersion: v1, kind: Pod, metadata: {name: eval-0, namespace: ml}, spec: {containers: [{name: c}]}}";
    let words = ["what-if", "--scheduler-conf", CONF, "-f", "-", TAINT];
    let called = vcsim_with_input(&words, live);
    let note = "  note     pod ml/eval-0 exists and stays as it is; setPods changes it\n";
    assert!(called.stdout.contains(note), "{}{}", called.stdout, called.stderr);
}

#[test]
fn ans_16_objects_that_cannot_be_read() {
    let words = ["what-if", "-f", "-", TAINT];
    let called = vcsim_with_input(&words, "kind: Pod\nmetadata: {}\n");
    assert!(called.stderr.contains("apiVersion is missing"), "{}", called.stderr);
    assert_eq!(called.code, 1);
    let two = "{apiVersion: answers.volcano.sh/v1, kind: WhatIf}\n";
    let called = vcsim_with_input(&words, &format!("{two}---\n{two}"));
    assert!(called.stderr.contains("one WhatIf wanted, 2 given"), "{}", called.stderr);
    let none = vcsim(&["what-if", "--add-nodes", "g1=1", "--cycles", "0", TAINT]);
    assert_eq!(none.stderr, "error: no cycle was run\nhint: leave out --cycles 0\n");
}
