//! `vcsim test`: strict files, exact comparison, readable differences, `--write`.

use crate::common::{Called, file, folder, vcsim};

/// A scenario in which two pods of one PodGroup fit one node.
const SCENARIO: &str = r#"# A comment that stays.
name: own/two-pods
about: two pods fit
schedulerConf: |
  actions: "allocate"
  tiers:
  - plugins:
    - name: gang
    - name: predicates
objects:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: pg, namespace: c1}
  spec: {queue: default, minMember: 2}
  status: {phase: Inqueue}
- apiVersion: v1
  kind: Pod
  metadata: {name: p1, namespace: c1, annotations: {scheduling.k8s.io/group-name: pg}}
  spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: p2, namespace: c1, annotations: {scheduling.k8s.io/group-name: pg}}
  spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
- apiVersion: v1
  kind: Service
  metadata: {name: s, namespace: c1}
expect:
  binds: {c1/p1: [n1, n2], c1/p2: []}
  bindCount: 2
  evictions: []
  evictionCount: 0
  pipelined: {}
  podGroups: {c1/pg: {phase: Inqueue, conditions: {Scheduled: {status: "True"}}}}
"#;

/// Runs a scenario text; the file is named after the test.
fn tested(test: &str, text: &str) -> Called {
    vcsim(&["test", &file(test, "scenario.yaml", text)])
}

#[test]
fn a_scenario_that_holds() {
    let called = tested("holds", SCENARIO);
    assert_eq!(called.stdout, "ok    own/two-pods\n1 passed, 0 failed\n");
    assert_eq!((called.code, &*called.stderr), (0, ""));
}

#[test]
fn either_evaluator_can_be_asked_or_both() {
    let path = file("evaluators", "scenario.yaml", SCENARIO);
    for evaluator in ["plain", "fast", "both"] {
        let called = vcsim(&["test", "--evaluator", evaluator, &path]);
        assert_eq!(called.stdout, "ok    own/two-pods\n1 passed, 0 failed\n", "{evaluator}");
    }
    assert_eq!(vcsim(&["test", "--evaluator", "other", &path]).code, 2);
}

#[test]
fn every_difference_is_told() {
    let expect = "expect:\n  binds: {c1/p1: [n2], c1/p3: []}\n  bindCount: 3\n  \
                  evictions: [c1/p1]\n  evictionCount: 1\n  pipelined: {c1/p2: [n1]}\n  \
                  podGroups: {c1/pg: {phase: Running, conditions: {Scheduled: {status: \"False\"}, \
                  Gone: {reason: x}}}, c1/no: {phase: Pending}}\n";
    let text = format!("{}{expect}", &SCENARIO[..SCENARIO.find("expect:").unwrap()]);
    let called = tested("differences", &text);
    assert_eq!(called.code, 1);
    let lines: Vec<&str> = called.stdout.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("FAIL  own/two-pods ("), "{lines:?}");
    let expected = [
        "binds: c1/p1: expected on n2, is on n1",
        "binds: c1/p3: expected on any node, but is not bound",
        "binds: c1/p2: is bound to n1, which is not expected",
        "bindCount: expected 3, is 2",
        "evictions: c1/p1: expected, but is not evicted",
        "evictionCount: expected 1, is 0",
        "pipelined: c1/p2: expected on n1, but is not pipelined",
        "podGroups: c1/no: there is no such PodGroup",
        "podGroups: c1/pg: phase: expected Running, is Inqueue",
        "podGroups: c1/pg: condition Gone: reason: expected x, is absent",
        "podGroups: c1/pg: condition Scheduled: status: expected False, is True",
        "0 passed, 1 failed",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn files_that_cannot_be_run_are_named_with_their_place() {
    let conf = SCENARIO.find("schedulerConf").unwrap();
    let without_conf =
        format!("{}{}", &SCENARIO[..conf], &SCENARIO[SCENARIO.find("objects").unwrap()..]);
    for (name, text, message) in [
        ("unknown_key", format!("{SCENARIO}expekt: {{}}\n"), "expekt"),
        ("unknown_expect", format!("{SCENARIO}  bounds: {{}}\n"), "bounds"),
        ("unknown_kind", SCENARIO.replace("Service", "Servise"), ":28: unknown kind: v1 Servise"),
        (
            "unknown_version",
            SCENARIO.replace("sh/v1beta1", "sh/v1"),
            ":15: unknown kind: scheduling.volcano.sh/v1 PodGroup",
        ),
        ("unknown_flag", format!("flags: {{fly: 1}}\n{SCENARIO}"), "flags.fly: unknown flag"),
        ("bad_clock", format!("now: noon\n{SCENARIO}"), ":1: now: is no time: \"noon\""),
        ("bad_tick", format!("tick: 5\n{SCENARIO}"), ":1: tick: is no duration: \"5\""),
        ("bad_kubelet", format!("kubelet: slow\n{SCENARIO}"), "slow"),
        ("bad_action", SCENARIO.replace("\"allocate\"", "\"fly\""), "actions: "),
        ("no_configuration", without_conf, "schedulerConf"),
        (
            "bad_quantity",
            SCENARIO.replacen("cpu: 1}", "cpu: 1x}", 1),
            ":20: pod c1/p1: spec.containers[0].resources.requests.cpu: unknown quantity suffix",
        ),
        ("no_name", SCENARIO.replace("name: s,", "x: s,"), ":28: not a kubernetes object"),
        ("no_yaml", "name: [\n".to_owned(), "scenario.yaml:"),
        (
            "no_expect",
            SCENARIO[..SCENARIO.find("expect:").unwrap()].to_owned(),
            "expect: is missing",
        ),
    ] {
        let called = tested(name, &text);
        assert_eq!(called.code, 2, "{name}: {}", called.stdout);
        assert!(called.stdout.starts_with("ERROR "), "{name}: {}", called.stdout);
        assert!(called.stdout.contains(message), "{name}: {}", called.stdout);
        assert!(called.stdout.ends_with("0 passed, 1 failed\n"), "{name}: {}", called.stdout);
    }
}

#[test]
fn c40_a_plugin_that_nobody_knows_is_skipped() {
    let unknown = SCENARIO.replace("- name: predicates", "- name: predicates\n    - name: magic");
    assert_eq!(tested("c40_unknown", &unknown).code, 0);
    let text = format!("flags: {{allow-missing-plugins: magic}}\n{unknown}");
    assert_eq!(tested("c40_allowed", &text).code, 0);
}

#[test]
fn a_path_that_does_not_exist_is_unreadable() {
    let called = vcsim(&["test", "/nowhere/at/all"]);
    assert_eq!(called.code, 2);
    assert!(called.stderr.starts_with("error: cannot read /nowhere/at/all: "));
}

#[test]
fn no_scenario_at_all_is_an_error() {
    let folder = folder("no_scenario");
    let called = vcsim(&["test", folder.to_str().unwrap()]);
    assert_eq!((called.code, &*called.stdout), (2, ""));
    assert!(called.stderr.starts_with("error: no scenario was found\nhint: "), "{}", called.stderr);
    let path = file("no_scenario", "scenario.yaml", SCENARIO);
    let called = vcsim(&["test", "--filter", "nothing", &path]);
    assert!(called.code == 2 && called.stderr.contains("--filter"), "{}", called.stderr);
}

#[test]
fn folders_are_searched_and_names_filtered() {
    let folder = folder("folders_and_filter");
    std::fs::create_dir(folder.join("deep")).unwrap();
    std::fs::write(folder.join("deep/a.yaml"), SCENARIO).unwrap();
    let failing =
        SCENARIO.replace("own/two-pods", "other/x").replace("bindCount: 2", "bindCount: 1");
    std::fs::write(folder.join("b.yaml"), failing).unwrap();
    let path = folder.to_str().unwrap();
    let called = vcsim(&["test", path]);
    assert_eq!(called.code, 1);
    assert!(called.stdout.ends_with("1 passed, 1 failed\n"), "{}", called.stdout);
    let called = vcsim(&["test", "--filter", "own/", path]);
    assert_eq!((called.code, &*called.stdout), (0, "ok    own/two-pods\n1 passed, 0 failed\n"));
}

#[test]
fn junit_has_a_case_for_each_scenario() {
    let folder = folder("junit");
    std::fs::write(folder.join("a.yaml"), SCENARIO).unwrap();
    let failing =
        SCENARIO.replace("own/two-pods", "own/a<b").replace("bindCount: 2", "bindCount: 1");
    std::fs::write(folder.join("b.yaml"), failing).unwrap();
    std::fs::write(folder.join("c.yaml"), "x: 1\n").unwrap();
    let called = vcsim(&["test", "-o", "junit", folder.to_str().unwrap()]);
    assert_eq!(called.code, 2);
    let start = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <testsuite name=\"vcsim\" tests=\"3\" failures=\"1\" errors=\"1\">\n  \
                 <testcase classname=\"own\" name=\"own/two-pods\" file=\"";
    assert!(called.stdout.starts_with(start), "{}", called.stdout);
    assert!(called.stdout.contains("name=\"own/a&lt;b\""));
    assert!(called.stdout.contains("<failure>bindCount: expected 1, is 2</failure>"));
    assert!(called.stdout.contains("<error>"));
}

#[test]
fn write_changes_expect_and_nothing_else() {
    let expect = SCENARIO.find("expect:").unwrap();
    let tail = "\n# After it.\nkubelet: none\n";
    let wrong = "expect: # kept keys\n  bindCount: 9\n\n  # inside\n  binds: {}\n  podGroups:\n    \
                 c1/pg: {conditions: {Scheduled: {reason: x}}}\n";
    let path = file("write", "scenario.yaml", &format!("{}{wrong}{tail}", &SCENARIO[..expect]));
    let called = vcsim(&["test", "--write", &path]);
    assert_eq!(called.code, 0);
    assert!(called.stdout.starts_with("wrote own/two-pods ("), "{}", called.stdout);
    let right = "expect:\n  binds: {c1/p1: [n1], c1/p2: [n1]}\n  bindCount: 2\n  podGroups:\n    \
                 c1/pg: {conditions: {Scheduled: {reason: \"tasks in gang are ready to be \
                 scheduled\"}}}\n";
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, format!("{}{right}{tail}", &SCENARIO[..expect]));
    let again = vcsim(&["test", "--write", &path]);
    assert!(again.stdout.starts_with("ok "), "{}", again.stdout);
}

#[test]
fn write_adds_an_expect_that_is_missing() {
    let text = &SCENARIO[..SCENARIO.find("expect:").unwrap()];
    let path = file("write_missing", "scenario.yaml", text.trim_end());
    assert_eq!(vcsim(&["test", "--write", &path]).code, 0);
    let written = std::fs::read_to_string(&path).unwrap();
    let expect = "expect:\n  binds: {c1/p1: [n1], c1/p2: [n1]}\n  evictions: []\n";
    assert_eq!(written, format!("{text}{expect}"));
    assert_eq!(vcsim(&["test", &path]).code, 0);
}

#[test]
fn cycles_see_what_was_decided_before() {
    // One PodGroup is admitted and bound in the first cycle; it runs only with kubelets.
    let text = SCENARIO.replace("{phase: Inqueue, cond", "{phase: Running, cond");
    let text = text.replace("objects:", "cycles: 2\ntick: 1s\nkubelet: instant\nobjects:");
    assert_eq!(tested("cycles", &text).code, 0);
    let text = text.replace("kubelet: instant", "kubelet: none");
    // A bound pod counts as scheduled, too (core.md 7.5).
    assert_eq!(tested("cycles_none", &text).code, 0);
}
