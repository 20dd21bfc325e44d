//! Bad and unusual input through `vcsim run`: a clear message with its place, never a panic, never
//! a silent drop.

use crate::common::{Called, file, vcsim, vcsim_with_input};

const NODE: &str = "
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
";

/// A cluster of one node and these objects.
fn with_node(objects: &str) -> Called {
    vcsim_with_input(&["run", "-o", "json", "-"], &format!("{objects}\n{NODE}"))
}

fn pod(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n\
         spec: {{schedulerName: volcano, {spec}}}\n"
    )
}

fn requests(cpu: &str) -> String {
    format!("containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]")
}

fn reason(called: &Called, pod: &str) -> String {
    let json = called.json();
    let waiting = json["waiting"].as_array().unwrap();
    let found = waiting.iter().find(|one| one["pod"] == pod);
    found.unwrap_or_else(|| panic!("{pod} does not wait: {json}"))["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn warnings(called: &Called) -> Vec<String> {
    let json = called.json();
    let texts = json["warnings"].as_array().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn n_binds(called: &Called) -> usize {
    called.json()["binds"].as_array().unwrap().len()
}

#[test]
fn a_malformed_quantity_names_file_line_object_and_field() {
    let objects = format!("{}{}", pod("good", &requests("1")), pod("bad", &requests("1x")));
    let called = with_node(&objects);
    let first_line = "-:7: pod default/bad: spec.containers[0].resources.requests.cpu: \
                      unknown quantity suffix: \"1x\"";
    assert_eq!(called.stderr.lines().next(), Some(first_line));
    assert!(called.stderr.contains("\nhint: "), "{}", called.stderr);
    assert_eq!((called.code, n_binds(&called)), (0, 1));
    assert!(reason(&called, "default/bad").starts_with("spec.containers[0].resources"));
}

#[test]
fn strict_turns_an_unreadable_object_into_a_failure() {
    let text = format!("{}{NODE}", pod("bad", "containers: 5"));
    let lenient = vcsim_with_input(&["run", "-"], &text);
    let strict = vcsim_with_input(&["run", "--strict", "-"], &text);
    assert_eq!((lenient.code, strict.code), (0, 1));
    assert_eq!(strict.stderr, "-:2: pod default/bad: spec.containers: must be a list: 5\n");
}

#[test]
fn a_malformed_selector_is_named() {
    let term = "{matchExpressions: [{key: zone, operator: Is, values: [a]}]}";
    let required = format!("{{nodeSelectorTerms: [{term}]}}");
    let affinity = format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {required}}}}}"
    );
    let called = with_node(&pod("p", &format!("{}, {affinity}", requests("1"))));
    assert!(called.stderr.contains("operator: unknown operator: \"Is\"\nhint: "));
    assert!(reason(&called, "default/p").contains("didn't match Pod's node affinity/selector"));
}

#[test]
fn a_malformed_pod_group_is_named_and_its_pods_wait() {
    let group = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
                 metadata: {name: pg}\nspec: {minMember: \"3\"}\n";
    let member = "---\napiVersion: v1\nkind: Pod\n\
                  metadata: {name: p, annotations: {scheduling.k8s.io/group-name: pg}}\n\
                  spec: {schedulerName: volcano, containers: [{name: c}]}\n";
    let called = with_node(&format!("{group}{member}"));
    let problem = "podgroup default/pg: spec.minMember: must be an integer: \"3\"";
    assert_eq!(called.stderr, format!("-:2: {problem}\n"));
    assert_eq!(reason(&called, "default/p"), "PodGroup default/pg does not exist");
}

#[test]
fn a_broken_document_leaves_the_others() {
    let called = with_node(&format!("{}---\nfoo: [\n", pod("p", &requests("1"))));
    assert!(called.stderr.starts_with("-:"), "{}", called.stderr);
    assert_eq!((n_binds(&called), called.code), (1, 1));
    let text = "{\"kind\": \"Pod\"}\n{\"kind\"";
    let called = vcsim_with_input(&["run", "-o", "json", "-"], text);
    let mut lines = called.stderr.lines();
    assert_eq!(lines.next(), Some("-:1: not a kubernetes object: apiVersion is missing"));
    assert!(lines.next().unwrap().starts_with("-:2:7: EOF while parsing"));
}

#[test]
fn an_unknown_field_of_a_pod_is_a_warning() {
    let called = with_node(&pod("p", "containers: [{name: c, resource: {}}]"));
    let reported = "-:2: pod p: spec.containers[0].resource: unknown field, it is ignored\n\
                hint: did you mean resources?";
    assert_eq!(warnings(&called), [reported]);
    assert_eq!((n_binds(&called), called.code), (1, 0));
}

#[test]
fn deeply_nested_input_is_refused() {
    let called = with_node(&format!("---\na: {}", "[".repeat(100_000)));
    assert!(called.stderr.starts_with("-:2:"), "{}", called.stderr);
    let json = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let called = vcsim_with_input(&["run", "-o", "json", "-"], &json);
    assert!(called.stderr.contains("recursion limit exceeded"), "{}", called.stderr);
}

#[test]
fn a_malformed_workload_is_named_with_its_path() {
    let job = "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: train}\n\
               spec: {tasks: [{name: w, replicas: many, template: {spec: {}}}]}\n";
    let called = with_node(job);
    let problem = "job default/train: spec.tasks[0].replicas: must be an integer: \"many\"";
    assert_eq!(called.stderr, format!("-:2: {problem}\n"));
    let called = with_node(&job.replace("many", "2000000000"));
    assert!(called.stderr.contains("must not be larger than 1000000: 2000000000"));
    let called = with_node(&job.replace("many", "-1"));
    assert!(called.stderr.contains("must not be negative: -1"));
}

#[test]
fn a_pod_larger_than_any_node() {
    let called = with_node(&pod("big", &requests("100")));
    assert!(!reason(&called, "default/big").is_empty());
    let warning = "pod default/big: requests cpu 100, the largest node has 4";
    assert_eq!(warnings(&called), [warning]);
}

/// Their sum leaves 64 bits.
#[test]
fn two_pods_of_seven_exbi_harm_nobody() {
    let memory = "containers: [{name: c, resources: {requests: {memory: 7Ei}}}]";
    let evil = [pod("evil-1", memory), pod("evil-2", memory)].concat();
    let called = with_node(&format!("{evil}{}", pod("good", &requests("1"))));
    assert_eq!(called.json()["binds"][0]["pod"], "default/good", "{}", called.stdout);
    let warning = "pods default/evil-1, default/evil-2: requests memory 7Ei, the largest node has \
                   8Gi";
    assert_eq!(warnings(&called), [warning]);
}

#[test]
fn what_an_api_server_would_refuse_is_a_warning() {
    let less = "containers: [{name: c, resources: {requests: {cpu: -3}}}]";
    let more = "containers: [{name: c, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]";
    let called = with_node(&format!("{}{}", pod("less", less), pod("more", more)));
    let path = "an API server refuses it: spec.containers[0].resources.requests.cpu";
    let expected = [
        format!("pod default/less: {path}: -3: must be greater than or equal to 0"),
        format!("pod default/more: {path}: 2: must be less than or equal to the limit, 1"),
    ];
    assert_eq!(warnings(&called), expected);
    let problem = "pod default/less: spec.containers[0].resources.requests.cpu: is below zero, it \
                   counts as 0: -3";
    assert!(called.stderr.contains(problem), "{}", called.stderr);
    assert_eq!(n_binds(&called), 2);
}

/// What is asked of nothing below zero would make room for others.
#[test]
fn a_minimum_below_zero_counts_as_zero() {
    let group = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
                 metadata: {name: less}\nspec: {minMember: 1, minResources: {cpu: -7E}}\n";
    let called = with_node(&format!("{group}{}", pod("p", &requests("1"))));
    let problem =
        "podgroup default/less: spec.minResources.cpu: is below zero, it counts as 0: -7E";
    assert!(called.stderr.contains(problem), "{}", called.stderr);
    assert_eq!(n_binds(&called), 1);
}

#[test]
fn a_job_with_more_members_than_pods() {
    let job = "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: train}\n\
               spec: {minAvailable: 5, tasks: [{name: w, replicas: 2, template: {spec: \
               {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]}\n";
    let called = with_node(job);
    let warning = "podgroup default/train-default-train: needs 5 members, has 2 pods";
    assert_eq!(warnings(&called), [warning]);
    assert_eq!(n_binds(&called), 0);
    let reason = reason(&called, "default/train-w-0");
    assert!(reason.contains('5') && reason.contains('2'), "{reason}");
}

#[test]
fn a_queue_that_does_not_exist() {
    let group = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
                 metadata: {name: pg}\nspec: {minMember: 1, queue: nowhere}\n";
    let member = "---\napiVersion: v1\nkind: Pod\n\
                  metadata: {name: p, annotations: {scheduling.k8s.io/group-name: pg}}\n\
                  spec: {schedulerName: volcano, containers: [{name: c}]}\n";
    let called = with_node(&format!("{group}{member}"));
    assert_eq!(reason(&called, "default/p"), "queue nowhere does not exist");
}

#[test]
fn a_cycle_in_the_queue_tree() {
    let queue = |name: &str, parent: &str| {
        format!(
            "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n\
             metadata: {{name: {name}}}\nspec: {{weight: 1, parent: {parent}}}\n"
        )
    };
    let queues = [queue("a", "b"), queue("b", "c"), queue("c", "a"), queue("d", "gone")].concat();
    let called = with_node(&format!("{queues}{}", pod("p", &requests("1"))));
    let warnings = warnings(&called);
    let cycle = "queue a: spec.parent: the queue tree has a cycle: a -> b -> c -> a";
    assert!(warnings.iter().any(|text| text == cycle), "{warnings:?}");
    let missing = "queue d: spec.parent: queue gone does not exist";
    assert!(warnings.iter().any(|text| text == missing), "{warnings:?}");
    assert_eq!(n_binds(&called), 1);
}

#[test]
fn ten_thousand_labels_on_a_node() {
    let labels: Vec<String> = (0..10_000).map(|n| format!("\"l{n}\": v{n}")).collect();
    let node = format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{{}}}}}\n\
         status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 110}}}}\n",
        labels.join(", ")
    );
    let near = pod("near", &format!("{}, nodeSelector: {{l9999: v9999}}", requests("1")));
    let far = pod("far", &format!("{}, nodeSelector: {{l9999: v1}}", requests("1")));
    let called = vcsim_with_input(&["run", "-o", "json", "-"], &format!("{node}{near}{far}"));
    assert_eq!(called.json()["binds"][0]["pod"], "default/near");
    assert_eq!(n_binds(&called), 1);
    assert!(reason(&called, "default/far").contains("didn't match Pod's node affinity/selector"));
}

#[test]
fn names_of_253_characters() {
    let longest = "p".repeat(253);
    let called = with_node(&pod(&longest, &requests("1")));
    assert_eq!(called.json()["binds"][0]["pod"], format!("default/{longest}"));
    assert_eq!(called.stderr, "");
    let too_long = "p".repeat(254);
    let called = with_node(&pod(&too_long, &requests("1")));
    let problem = format!("metadata.name: is longer than 253 characters: {too_long:?}");
    assert_eq!(called.stderr.lines().next(), Some(&*format!("-:2: pod: {problem}")));
}

#[test]
fn zero_nodes() {
    let text = pod("p", &requests("1"));
    let called = vcsim_with_input(&["run", "-o", "json", "-"], &text);
    assert_eq!(warnings(&called), ["the cluster has no nodes"]);
    assert!(!reason(&called, "default/p").is_empty());
}

#[test]
fn zero_weights() {
    let queue = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n\
                 metadata: {name: default}\nspec: {weight: 0}\n";
    let root = queue.replace("default", "root");
    let called = with_node(&format!("{queue}{root}{}", pod("p", &requests("1"))));
    let problem = "spec.weight: must be between 1 and 65535: 0";
    let both = [format!("queue default: {problem}"), format!("queue root: {problem}")];
    assert_eq!(warnings(&called)[..2], both);
    assert!(!reason(&called, "default/p").is_empty());
}

#[test]
fn a_bad_configuration_names_file_line_field_and_remedy() {
    let conf = file("bad_configuration", "x.conf", "actions: \"allocate, fly\"\n");
    let called = vcsim_with_input(&["run", "--scheduler-conf", &conf, "-"], NODE);
    assert_eq!((called.code, &*called.stdout), (1, ""));
    assert!(called.stderr.starts_with(&format!("error: {conf}:1: actions: ")), "{}", called.stderr);
    assert!(called.stderr.contains("hint: "), "{}", called.stderr);
}

#[test]
fn c40_a_configuration_that_names_what_is_missing() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - name: magic\n";
    let conf = file("missing", "x.conf", text);
    let run = |further: &[&str]| {
        let arguments = [&["run", "--scheduler-conf", &conf], further, &["-"]].concat();
        vcsim_with_input(&arguments, NODE)
    };
    let called = run(&[]);
    assert_eq!(called.code, 0);
    let reported = format!("{conf}:4: tiers[0].plugins[0]: unknown plugin magic, it is skipped\n");
    assert!(called.stderr.starts_with(&reported), "{}", called.stderr);
    assert_eq!(run(&["--allow-missing-plugins=other", "--strict"]).code, 1);
    let called = run(&["--allow-missing-plugins", "--strict"]);
    assert_eq!((called.code, &*called.stderr), (0, ""));
}

#[test]
fn a_path_that_does_not_exist() {
    let called = vcsim(&["run", "/nowhere/at/all"]);
    assert_eq!(called.code, 1);
    assert!(called.stderr.starts_with("error: cannot read /nowhere/at/all: "));
}

#[test]
fn an_object_given_twice() {
    let called = with_node(&format!("{0}{0}", pod("p", &requests("1"))));
    let problem = "pod default/p: is given twice, first in -:2";
    assert_eq!(called.stderr, format!("-:7: {problem}\n"));
    assert_eq!(n_binds(&called), 1);
}
