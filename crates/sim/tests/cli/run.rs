//! `vcsim run`: reading, expansion of workloads, output.

use serde_json::Value;

use crate::common::{Called, file, folder, vcsim, vcsim_with_input};

const NODE: &str = "
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 16, memory: 64Gi, pods: 110}}
";

fn run(objects: &str) -> Value {
    let text = format!("{objects}\n{NODE}");
    let called = vcsim_with_input(&["run", "-o", "json", "-"], &text);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    called.json()
}

fn bound(result: &Value) -> Vec<String> {
    let mut pods = texts(&result["binds"], "pod");
    pods.sort();
    pods
}

fn texts(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

/// What monitoring says of nodes stands among the objects, as `kubectl get nodes.metrics.k8s.io` prints
/// it.
#[test]
fn node_metrics_are_the_loads_of_nodes() {
    let conf = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
        - name: usage\n";
    let conf = file("node_metrics", "x.conf", conf);
    let run = |metrics: &str| {
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: \
            {scheduling.k8s.io/group-name: g}}, spec: {schedulerName: volcano, containers: \
            [{name: c, resources: {requests: {cpu: 100m}}}]}}";
        let group = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: \
            {name: g}, spec: {minMember: 1}, status: {phase: Inqueue}}";
        let node = "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: \
            {cpu: 4, memory: 4Gi, pods: 9}, allocatable: {cpu: 4, memory: 4Gi, pods: 9}}}";
        let text = format!("{node}\n---\n{group}\n---\n{pod}\n---\n{metrics}\n");
        vcsim_with_input(&["run", "-o", "json", "--scheduler-conf", &conf, "-"], &text)
    };
    let metrics = |name: &str, cpu: &str, time: &str| {
        format!(
            "{{apiVersion: metrics.k8s.io/v1beta1, kind: NodeMetrics, metadata: {{name: {name}}}, \
             timestamp: {time:?}, window: 10s, usage: {{cpu: {cpu}, memory: 1Gi}}}}"
        )
    };
    // A time to come counts as now.
    let time = "2099-01-01T00:00:00Z";
    let list = format!("{{apiVersion: v1, kind: List, items: [{}]}}", metrics("n", "3300m", time));
    for (text, is_bound) in [
        (metrics("n", "3100m", time), true),
        (metrics("n", "3300m", time), false),
        (list, false),
        (metrics("n", "3300m", "2001-01-01T00:00:00Z"), true),
    ] {
        let called = run(&text);
        assert_eq!((called.code, &*called.stderr), (0, ""), "{text}");
        assert_eq!(bound(&called.json()).len(), usize::from(is_bound), "{text}");
    }
    for (text, problem) in [
        (metrics("n9", "1", time), "NodeMetrics n9: there is no node of this name"),
        (metrics("n", "much", time), "NodeMetrics n: .usage.cpu: must be a quantity"),
        (metrics("n", "-1", time), "NodeMetrics n: usage: must not be below 0"),
        (metrics("n", "1", "noon"), "NodeMetrics n: timestamp: is no time: \"noon\""),
    ] {
        let called = run(&text);
        assert!(called.stderr.contains(problem), "{}", called.stderr);
        assert_eq!(bound(&called.json()).len(), 1, "{text}");
    }
}

/// The manifest of Volcano's own examples.
const VOLCANO_JOB: &str = "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: test-job
spec:
  minAvailable: 3
  schedulerName: volcano
  policies:
    - event: PodEvicted
      action: RestartJob
  plugins:
    ssh: []
    env: []
    svc: []
  maxRetry: 5
  queue: default
  tasks:
    - replicas: 4
      name: \"default-nginx\"
      template:
        metadata:
          name: web
        spec:
          containers:
            - image: nginx
              imagePullPolicy: IfNotPresent
              name: nginx
              resources:
                requests:
                  cpu: \"1\"
          restartPolicy: OnFailure
";

#[test]
fn a_volcano_job_becomes_a_pod_group_and_pods() {
    let result = run(VOLCANO_JOB);
    let names = (0..4).map(|n| format!("default/test-job-default-nginx-{n}"));
    assert_eq!(bound(&result), names.collect::<Vec<_>>());
    let group = serde_json::json!({
        "podGroup": "default/test-job-default-test-job", "queue": "default", "phase": "Inqueue",
        "minMember": 3, "pods": 4, "placed": 4,
    });
    assert_eq!(result["podGroups"], serde_json::json!([group]));
}

#[test]
fn a_volcano_job_without_a_minimum_needs_all_its_pods() {
    let job = |fields: &str| {
        format!(
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  \
             tasks:\n  - {{replicas: 2, name: a, {fields} template: {{spec: {{containers: \
             [{{name: c}}]}}}}}}\n  - {{replicas: 3, template: {{spec: {{containers: \
             [{{name: c}}]}}}}}}\n"
        )
    };
    let result = run(&job(""));
    assert_eq!(result["podGroups"][0]["minMember"], 5);
    // The second task has no name; Volcano numbers it.
    assert!(bound(&result).contains(&"default/j-default1-2".to_owned()));
    assert_eq!(run(&job("minAvailable: 1,"))["podGroups"][0]["minMember"], 4);
}

#[test]
fn a_dump_of_a_volcano_job_is_completed_not_doubled() {
    let dump = format!(
        "{VOLCANO_JOB}---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: test-job-1234, ownerReferences: [{{uid: default-test-job, controller: true}}]}}
spec: {{minMember: 3, queue: default}}
status: {{phase: Running}}
---
apiVersion: v1
kind: Pod
metadata:
  name: test-job-default-nginx-1
  annotations: {{scheduling.k8s.io/group-name: test-job-1234}}
  ownerReferences: [{{uid: default-test-job, controller: true}}]
spec: {{schedulerName: volcano, nodeName: n1, containers: [{{name: c}}]}}
status: {{phase: Running}}
"
    );
    let result = run(&dump);
    let names = [0, 2, 3].map(|n| format!("default/test-job-default-nginx-{n}"));
    assert_eq!(bound(&result), names);
    assert_eq!(texts(&result["podGroups"], "podGroup"), ["default/test-job-1234"]);
    assert_eq!(result["podGroups"][0]["placed"], 4);
    let finished = format!("{VOLCANO_JOB}status: {{state: {{phase: Completed}}}}\n");
    assert_eq!(bound(&run(&finished)), [""; 0]);
}

fn workload(api_version: &str, kind: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: w, uid: u1}}\nspec:\n  \
         {spec}\n  template:\n    spec: {{schedulerName: volcano, containers: [{{name: c, \
         resources: {{limits: {{cpu: 1}}}}}}]}}\n"
    )
}

#[test]
fn kubernetes_workloads_become_pods_with_a_group_each() {
    let result = run(&workload("apps/v1", "StatefulSet", "replicas: 2"));
    assert_eq!(bound(&result), ["default/w-0", "default/w-1"]);
    assert_eq!(result["podGroups"][0]["podGroup"], "default/podgroup-u1");
    assert_eq!(result["podGroups"][0]["minMember"], 1);
    // The limit is the request of a container that has none.
    assert_eq!(result["queues"][0]["allocated"]["cpu"], "2");

    let result = run(&workload("apps/v1", "ReplicaSet", "replicas: 3"));
    assert_eq!(bound(&result), ["default/w-0", "default/w-1", "default/w-2"]);

    let result = run(&workload("apps/v1", "Deployment", "replicas: 2"));
    assert_eq!(bound(&result).len(), 2);
    assert!(bound(&result)[0].starts_with("default/w-"), "{result}");

    let result = run(&workload("batch/v1", "Job", "parallelism: 3\n  completions: 2"));
    assert_eq!(bound(&result), ["default/w-0", "default/w-1"]);
    let suspended = workload("batch/v1", "Job", "suspend: true");
    assert_eq!(bound(&run(&suspended)), [""; 0]);
}

#[test]
fn controllers_in_a_dump_get_only_their_missing_pods() {
    let deployment = workload("apps/v1", "Deployment", "replicas: 2");
    let replica_set = workload("apps/v1", "ReplicaSet", "replicas: 2").replace(
        "{name: w, uid: u1}",
        "{name: w-abc, uid: u2, ownerReferences: [{uid: u1, controller: true}]}",
    );
    let pod = "---\napiVersion: v1\nkind: Pod\n\
               metadata: {name: w-abc-xyz, ownerReferences: [{uid: u2, controller: true}]}\n\
               spec: {schedulerName: volcano, containers: [{name: c}]}\n";
    let result = run(&format!("{deployment}{replica_set}{pod}"));
    assert_eq!(bound(&result), ["default/w-abc-0", "default/w-abc-xyz"]);
    assert_eq!(texts(&result["podGroups"], "podGroup"), ["default/podgroup-u2"]);
}

#[test]
fn a_bare_pod_gets_a_group_of_its_own() {
    let result = run("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n\
         spec: {schedulerName: volcano, containers: [{name: c}]}\n");
    assert_eq!(texts(&result["binds"], "podGroup"), ["default/podgroup-default-p"]);
}

#[test]
fn pods_of_other_schedulers_are_left_to_them() {
    let other = workload("apps/v1", "ReplicaSet", "replicas: 1").replace("volcano", "other");
    let result = run(&other);
    assert_eq!((bound(&result), result["waiting"].as_array().unwrap().len()), (vec![], 0));
    let warning = "pods of scheduler other without a node are not placed: default/w-0\n\
                   hint: set schedulerName: volcano";
    assert_eq!(result["warnings"], serde_json::json!([warning]));
}

#[test]
fn the_priority_of_a_class_reaches_its_pods() {
    let class = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n\
                 metadata: {name: high}\nvalue: 100\n";
    let job = |name: &str, class: &str| {
        workload("apps/v1", "StatefulSet", "replicas: 1")
            .replace("name: w, uid: u1", &format!("name: {name}, uid: {name}"))
            .replace("cpu: 1", "cpu: 16")
            .replace("schedulerName", &format!("{class}schedulerName"))
    };
    let high = job("z", "priorityClassName: high, ");
    let result = run(&format!("{}{class}{high}", job("a", "")));
    assert_eq!(bound(&result), ["default/z-0"]);
}

#[test]
fn json_lists_and_folders_are_read() {
    let test = "json_lists_and_folders";
    let list = serde_json::json!({"apiVersion": "v1", "kind": "PodList", "items": [
        {"metadata": {"name": "a"}, "spec": {"schedulerName": "volcano", "containers": []}},
        {"metadata": {"name": "b"}, "spec": {"schedulerName": "volcano", "containers": []}},
    ]});
    let folder = folder(test);
    std::fs::create_dir(folder.join("deep")).unwrap();
    let pretty = serde_json::to_string_pretty(&list).unwrap();
    std::fs::write(folder.join("deep/pods.json"), pretty).unwrap();
    std::fs::write(folder.join("node.yml"), NODE).unwrap();
    std::fs::write(folder.join("notes.txt"), "not read").unwrap();
    let called = vcsim(&["run", "-o", "json", folder.to_str().unwrap()]);
    assert_eq!(called.stderr, "");
    assert_eq!(bound(&called.json()), ["default/a", "default/b"]);
}

#[test]
fn items_of_lists_know_their_lines() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  \
                metadata: {name: a}\n- apiVersion: v1\n  kind: Pod\n  metadata: {}\n";
    let called = vcsim_with_input(&["run", "-"], yaml);
    assert_eq!(called.stderr, "-:7: not a kubernetes object: metadata.name is missing\n");
    let json = "{\"kind\": \"List\", \"items\": [\n{\"apiVersion\": \"v1\"},\n{\"kind\": 5,\n\
                \"apiVersion\": \"v1\"}]}";
    let called = vcsim_with_input(&["run", "-"], json);
    let expected = "-:2: not a kubernetes object: kind is missing\n\
                    -:3: kind: must be a string: 5\n";
    assert_eq!(called.stderr, expected);
}

#[test]
fn cycles_go_on_until_the_cluster_has_settled() {
    let text = format!("{VOLCANO_JOB}{NODE}");
    let called = vcsim_with_input(&["run", "--until-settled", "-o", "json", "-"], &text);
    let result = called.json();
    assert_eq!(result["podGroups"][0]["phase"], "Running");
    assert!(1 < result["cycles"].as_u64().unwrap(), "{result}");
    let one = vcsim_with_input(&["run", "--cycles", "2", "-o", "json", "-"], &text);
    assert_eq!(one.json()["cycles"], 2);
}

#[test]
fn the_table_shows_where_and_why() {
    let text = format!("{VOLCANO_JOB}{NODE}").replace("cpu: \"1\"", "cpu: \"5\"");
    let called = vcsim_with_input(&["run", "-"], &text);
    let line = |start: &str| {
        let found = called.stdout.lines().find(|line| line.trim().starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {}", called.stdout)).to_owned()
    };
    assert!(line("default/test-job-default-nginx-0").ends_with("n1"));
    assert!(line("default/test-job-default-nginx-3").contains("cpu"));
    assert!(line("default  ").contains("cpu=15"), "{}", called.stdout);
    assert_eq!(called.stdout.lines().last(), Some("3 bound, 0 evicted, 1 waiting after 1 cycle"));
}

#[test]
fn yaml_says_the_same_as_json() {
    let text = format!("{VOLCANO_JOB}{NODE}");
    let yaml = vcsim_with_input(&["run", "-o", "yaml", "-"], &text);
    let json = vcsim_with_input(&["run", "-o", "json", "-"], &text);
    let read: Value = serde_yaml::from_str(&yaml.stdout).unwrap();
    assert_eq!(read, json.json());
}

#[test]
fn hyper_nodes_of_the_files_decide_what_a_job_with_a_topology_is_told() {
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
        metadata: {name: g, namespace: default}\nspec: {minMember: 1, networkTopology: \
        {mode: hard, highestTierAllowed: 1}}\nstatus: {phase: Inqueue}\n---\n\
        apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default, annotations: \
        {scheduling.k8s.io/group-name: g}}\nspec: {schedulerName: volcano, containers: \
        [{name: c, resources: {requests: {cpu: 1}}}]}";
    let hyper_node = "---\napiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\n\
        metadata: {name: h}\nspec: {tier: 1}";
    let reason = |objects: &str| texts(&run(objects)["waiting"], "reason").join("");
    let none = reason(group);
    assert!(none.starts_with("network topology: no HyperNode exists. "), "{none}");
    let some = reason(&format!("{group}\n{hyper_node}"));
    let wanted = "network topology: no plugin places by HyperNodes; network-topology-aware does. ";
    assert!(some.starts_with(wanted), "{some}");
}

/// A queue name may come from an annotation, which holds any characters.
#[test]
fn yaml_escapes_what_a_terminal_obeys() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    \
        scheduling.volcano.sh/queue-name: \"x\\n\\r\\tbinds: []\\u202e\\x9b\"\nspec:\n  \
        schedulerName: volcano\n  containers: [{name: c}]\n";
    let text = format!("{pod}{NODE}");
    let yaml = vcsim_with_input(&["run", "-o", "yaml", "-"], &text);
    assert!(yaml.stdout.contains("queue: \"x\\n\\r\\tbinds: []\\u202e\\x9B\""), "{}", yaml.stdout);
    let raw = |character: char| "\r\t\u{202e}\u{9b}".contains(character);
    assert!(!yaml.stdout.contains(raw), "{:?}", yaml.stdout);
    let json = vcsim_with_input(&["run", "-o", "json", "-"], &text);
    let read: Value = serde_yaml::from_str(&yaml.stdout).unwrap();
    assert_eq!(read, json.json());
}

#[test]
fn a_configuration_of_the_user_is_used() {
    let conf = "actions: \"enqueue\"\ntiers:\n- plugins:\n  - name: gang\n";
    let conf = file("configuration_of_the_user", "x.conf", conf);
    let text = format!("{VOLCANO_JOB}{NODE}");
    let arguments = ["run", "-o", "json", "--scheduler-conf", &conf, "-"];
    let called = vcsim_with_input(&arguments, &text);
    assert_eq!(bound(&called.json()), [""; 0]);
    assert_eq!(called.json()["podGroups"][0]["phase"], "Inqueue");
}

/// A job of lower priority fills the node; one of two that are more important fits in its place.
const EVICTIONS: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 100
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: low, namespace: default}
spec: {minMember: 0, queue: default}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata:
  name: low-0
  namespace: default
  annotations: {scheduling.k8s.io/group-name: low}
spec:
  schedulerName: volcano
  nodeName: n1
  containers: [{name: c, resources: {requests: {cpu: 16}}}]
status: {phase: Running}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: high, namespace: default}
spec: {minMember: 1, queue: default, priorityClassName: high}
status: {phase: Inqueue}
---
apiVersion: v1
kind: Pod
metadata:
  name: high-0
  namespace: default
  annotations: {scheduling.k8s.io/group-name: high}
spec:
  schedulerName: volcano
  containers: [{name: c, resources: {requests: {cpu: 8}}}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: huge, namespace: default}
spec: {minMember: 1, queue: default, priorityClassName: high}
status: {phase: Inqueue}
---
apiVersion: v1
kind: Pod
metadata:
  name: huge-0
  namespace: default
  annotations: {scheduling.k8s.io/group-name: huge}
spec:
  schedulerName: volcano
  containers: [{name: c, resources: {requests: {cpu: 99}}}]
";

/// Runs `vcsim run` on a cluster in which pods are evicted. `test` names the folder of its
/// configuration, which no other test may use.
fn run_with_evictions(test: &str, output: &str) -> Called {
    let conf = "actions: \"allocate, preempt\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  \
        - name: predicates\n";
    let conf = file(&format!("{test}_{output}"), "x.conf", conf);
    let text = format!("{EVICTIONS}{NODE}");
    vcsim_with_input(&["run", "-o", output, "--scheduler-conf", &conf, "-"], &text)
}

#[test]
fn every_eviction_has_its_proof() {
    let result = run_with_evictions("every_eviction_has_its_proof", "json").json();
    let [proof] = &result["certificates"].as_array().unwrap()[..] else { panic!("{result:#}") };
    assert_eq!((&proof["action"], &proof["podGroup"]), (&"preempt".into(), &"default/high".into()));
    assert_eq!(texts(&proof["victims"], "pod"), ["default/low-0"]);
    assert_eq!(proof["victims"][0]["rule"]["plugins"], serde_json::json!(["priority", "gang"]));
    assert_eq!(texts(&proof["placements"], "pod"), ["default/high-0"]);
    assert_eq!(proof["minimal"], "pod");
}

#[test]
fn who_gets_nothing_is_told_why() {
    let result = run_with_evictions("who_gets_nothing_is_told_why", "json").json();
    let [skipped] = &result["skipped"].as_array().unwrap()[..] else { panic!("{result:#}") };
    assert_eq!(skipped["podGroup"], "default/huge");
    // Whom it could have had evicted goes for the other one.
    let cause = "preempt: 1 no pod passed the victim filter";
    assert_eq!(skipped["cause"], cause);
    let table = run_with_evictions("who_gets_nothing_is_told_why", "table").stdout;
    assert!(table.contains("NOTHING EVICTED FOR") && table.contains(cause), "{table}");
}

/// Two racks below a hall, and pairs of pods of which each pair stays in one rack.
const RACKS: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: a1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack-a}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: a1}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack-b}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: b1}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: hall}
spec:
  tier: 2
  members:
  - {type: HyperNode, selector: {exactMatch: {name: rack-a}}}
  - {type: HyperNode, selector: {exactMatch: {name: rack-b}}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi, namespace: default}
spec:
  minAvailable: 4
  schedulerName: volcano
  networkTopology: {mode: hard, highestTierAllowed: 2}
  tasks:
  - name: worker
    replicas: 4
    partitionPolicy:
      totalPartitions: 2
      partitionSize: 2
      networkTopology: {mode: hard, highestTierAllowed: 1}
    template:
      spec: {containers: [{name: main, resources: {requests: {cpu: "2"}}}]}
"#;

const BY_HYPER_NODES: &str = r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"#;

fn run_in_racks(output: &str) -> Called {
    let conf = file(&format!("racks-{output}"), "scheduler.conf", BY_HYPER_NODES);
    vcsim_with_input(&["run", "-o", output, "--scheduler-conf", &conf, "-"], RACKS)
}

#[test]
fn the_hyper_nodes_of_a_job_are_drawn() {
    let table = run_in_racks("table").stdout;
    let drawing = "NETWORK TOPOLOGY
  default/mpi-default-mpi: hard, tier 2 at most; sub-groups worker: hard, tier 1 at most; 4 placed
    hall, tier 2: 4 pods
    ├─ rack-a, tier 1: 2 pods on a1
    └─ rack-b, tier 1: 2 pods on b1
";
    assert!(table.contains(drawing), "{table}");
}

#[test]
fn the_json_is_as_its_schema_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vcsim-run.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let big = workload("apps/v1", "StatefulSet", "replicas: 1").replace("cpu: 1", "cpu: 99");
    let results: [Called; 4] = [
        run_in_racks("json"),
        vcsim_with_input(&["run", "-o", "json", "-"], &format!("{VOLCANO_JOB}{big}{NODE}")),
        vcsim_with_input(&["run", "-o", "json", "-"], ""),
        run_with_evictions("the_json_is_as_its_schema_says", "json"),
    ];
    for called in results {
        check(&schema, &called.json(), "$");
    }
    let lacking =
        std::panic::catch_unwind(|| check(&schema, &serde_json::json!({"cycles": 1}), "$"));
    assert!(lacking.is_err(), "the check must notice what is missing");
}

/// The keywords that the schema uses: type, enum, required, properties, additionalProperties,
/// items.
fn check(schema: &Value, value: &Value, place: &str) {
    if let Some(types) = schema.get("type") {
        let types = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
        let is = |name: &Value| match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            other => panic!("{place}: unknown type {other}"),
        };
        assert!(types.iter().any(is), "{place}: {value} is none of {types:?}");
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{place}: {value} is none of {values:?}");
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        if value.is_object() {
            let field = field.as_str().unwrap();
            assert!(value.get(field).is_some(), "{place}: {field} is missing");
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => check(schema, field, &place),
            (None, Some(Value::Bool(false))) => panic!("{place}: is not in the schema"),
            (None, Some(schema)) => check(schema, field, &place),
            (None, None) => {}
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{place}[{index}]"));
    }
}

#[test]
fn until_settled_takes_instant_kubelets_only() {
    let run = |kubelet: &str| {
        vcsim_with_input(&["run", "--until-settled", "--kubelet", kubelet, "-o", "json", "-"], NODE)
    };
    assert_eq!(run("instant").code, 0);
    let refused = run("none");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("--until-settled needs instant kubelets"),
        "{}",
        refused.stderr
    );
}
