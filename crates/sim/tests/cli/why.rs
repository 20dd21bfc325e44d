//! `vcsim why`: names, output, exit codes. Specification: answers.md 13, 16; cases 3, 84 of 20.

use crate::common::{Called, vcsim, vcsim_with_input};

const TAINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/why/taint.yaml");
const CONF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/why/scheduler.conf");

fn why(words: &[&str]) -> Called {
    vcsim(&[&["why", "--scheduler-conf", CONF], words, &[TAINT]].concat())
}

#[test]
fn ans_84_names_of_all_kinds_mean_the_same_job() {
    let expected = why(&["train"]).stdout;
    assert!(expected.starts_with("ml/train (job, PodGroup train-7f3c, "), "{expected}");
    for name in ["job/train", "vcjob/train", "podgroup/train-7f3c", "pg/train-7f3c", "train-7f3c"] {
        assert_eq!(why(&[name]).stdout, expected, "{name}");
    }
    let of_pod = why(&["pod/train-worker-0", "-n", "ml"]).stdout;
    assert!(of_pod.starts_with("ml/train (pod train-worker-0, job, PodGroup "), "{of_pod}");
    assert_eq!(of_pod.lines().nth(1), expected.lines().nth(1));
}

#[test]
fn ans_84_the_pods_of_a_deployment_are_found_by_its_name() {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, \
        selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: \
        {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: \"8\"}}}]}}}}\n";
    for name in ["deployment/web", "deploy/web", "Deployments.apps/web", "web"] {
        let called = vcsim_with_input(&["why", name, "-"], deployment);
        let head = "default/web-";
        assert!(called.stdout.starts_with(head), "{name}: {}{}", called.stdout, called.stderr);
        assert!(called.stdout.contains(" (replicaset, PodGroup podgroup-deployment-"), "{name}");
    }
    let other = vcsim_with_input(&["why", "statefulset/web", "-"], deployment);
    assert_eq!(other.stderr, "error: no job, PodGroup or pod statefulset/web\n");
}

/// Returns the documents of a file as the one object that `kubectl get -o yaml` prints.
fn dump(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let items = text.split("---\n").filter(|document| document.contains("kind: "));
    let item = |document: &str| {
        let lines = document.lines().filter(|line| !line.starts_with('#'));
        let lines = lines
            .enumerate()
            .map(|(at, line)| format!("{}{line}\n", if at == 0 { "- " } else { "  " }));
        lines.collect::<String>()
    };
    let items: String = items.map(item).collect();
    format!("apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n")
}

#[test]
fn ans_83_a_dump_of_kubectl_get_is_explained_as_the_files_are() {
    let of_files = why(&["train"]).stdout;
    assert!(of_files.contains("UNBLOCK"), "{of_files}");
    let of_dump = vcsim_with_input(&["why", "--scheduler-conf", CONF, "train", "-"], &dump(TAINT));
    assert_eq!(of_dump.stdout, of_files, "{}", of_dump.stderr);
    assert_eq!(of_dump.code, 0);
}

#[test]
fn ans_87_exit_codes() {
    let cases: &[(&[&str], i32)] = &[
        (&["train"], 0),
        (&["train", "--exit-code"], 3),
        (&["--exit-code"], 3),
        (&["eval", "--exit-code"], 0),
        (&["trian"], 1),
        (&["train", "-n", "other"], 1),
        (&["train", "--cycles", "0"], 1),
        (&["train", "--until-settled", "--kubelet", "none"], 2),
    ];
    for (words, code) in cases {
        let called = why(words);
        assert_eq!(called.code, *code, "{words:?}: {}{}", called.stdout, called.stderr);
        assert_eq!(called.stderr.is_empty(), matches!(code, 0 | 3), "{words:?}");
    }
    assert_eq!(vcsim(&["why", "train"]).code, 2, "no path");
}

#[test]
fn ans_16_unknown_and_ambiguous_names() {
    let unknown = "error: no job, PodGroup or pod trian\nhint: did you mean train?\n";
    assert_eq!(why(&["trian"]).stderr, unknown);
    assert_eq!(why(&["nothing"]).stderr, "error: no job, PodGroup or pod nothing\n");
    let in_namespace = why(&["pod/x", "-n", "ml"]).stderr;
    assert_eq!(in_namespace, "error: no job, PodGroup or pod ml/pod/x\n");
    let pod = |namespace: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: {namespace}}}, spec: \
             {{schedulerName: volcano, containers: [{{name: c}}]}}}}\n"
        )
    };
    let called = vcsim_with_input(&["why", "p", "-"], &(pod("a") + &pod("b")));
    assert_eq!(called.code, 1);
    assert!(
        called.stderr.starts_with("error: p means several: a/p, b/p\nhint: "),
        "{}",
        called.stderr
    );
    assert_eq!(vcsim_with_input(&["why", "p", "-n", "a", "-"], &(pod("a") + &pod("b"))).code, 0);
}

#[test]
fn ans_16_controllers_of_one_name_are_told_by_their_groups() {
    let group = |name: &str, kind: &str| {
        format!(
            "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}, \
             namespace: ml, ownerReferences: [{{apiVersion: x/v1, kind: {kind}, name: db, uid: u-{name}, \
             controller: true}}]}}, spec: {{minMember: 1}}}}\n"
        )
    };
    let groups = group("g-1", "StatefulSet") + &group("g-2", "Job");
    let called = vcsim_with_input(&["why", "db", "-"], &groups);
    let expected = "error: db means several: ml/g-1, ml/g-2\nhint: give -n NAMESPACE, or the name of \
                    the PodGroup\n";
    assert_eq!((called.code, &*called.stderr), (1, expected));
    for (name, head) in
        [("sts/db", "ml/db (statefulset, PodGroup g-1"), ("job/db", "ml/db (job, PodGroup g-2")]
    {
        let called = vcsim_with_input(&["why", name, "-"], &groups);
        assert!(called.stdout.starts_with(head), "{name}: {}{}", called.stdout, called.stderr);
    }
}

#[test]
fn ans_03_a_pod_of_another_scheduler() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}";
    let called = vcsim_with_input(&["why", "p", "--exit-code", "-"], pod);
    let expected =
        "default/p (pod)\nWHY      NotOurs: scheduler default-scheduler decides about it\nas of ";
    assert!(called.stdout.starts_with(expected), "{}{}", called.stdout, called.stderr);
    assert_eq!(called.code, 0);
    let json = vcsim_with_input(&["why", "p", "-o", "json", "-"], pod).json();
    assert_eq!(json["verdict"]["code"], "NotOurs");
    assert_eq!(json["verdict"]["text"], "scheduler default-scheduler decides about it");
    // The same of a pod that has a node.
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4, \
                memory: 4Gi, pods: 9}}}";
    for scheduler in ["", "schedulerName: default-scheduler, "] {
        let placed = pod.replace("spec: {", &format!("spec: {{nodeName: n, {scheduler}"));
        let text = format!("{node}\n---\n{placed}\n");
        let called = vcsim_with_input(&["why", "p", "--exit-code", "-"], &text);
        assert!(called.stdout.starts_with(expected), "{}{}", called.stdout, called.stderr);
        assert_eq!(called.code, 0);
    }
}

#[test]
fn ans_18_a_as_json() {
    let json = why(&["train", "-o", "json"]).json();
    assert_eq!(json["apiVersion"], "answers.volcano.sh/v1");
    assert_eq!(json["subject"]["job"], "train");
    assert_eq!(
        (&json["verdict"]["stage"], &json["verdict"]["code"]),
        (&"nodes".into(), &"Fragmented".into())
    );
    let group = &json["nodes"]["groups"][1];
    assert_eq!((&group["atoms"][0], &group["count"]), (&"room/nvidia.com/gpu".into(), &3.into()));
    let gpus =
        json["short"].as_array().unwrap().iter().find(|row| row["resource"] == "nvidia.com/gpu");
    assert_eq!(gpus.unwrap()["perPod"], "1");
    assert_eq!(json["line"]["behind"]["job"], "ml/sweep");
    let blocking = &json["blocking"];
    assert_eq!((&blocking["evenEmpty"], &blocking["complete"]), (&true.into(), &true.into()));
    let taint = &blocking["sets"][0]["atoms"][0];
    assert_eq!((&taint["in"], &taint["who"]), (&"spec.tolerations".into(), &"you".into()));
    let kinds: Vec<&str> = json["unblock"]
        .as_array()
        .unwrap()
        .iter()
        .map(|remedy| remedy["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["wait", "tolerate", "askLess", "addNodes"]);
    let tolerate = &json["unblock"][1]["change"]["setPods"];
    assert_eq!(
        (&tolerate["job"], &tolerate["tolerations"][0]["key"]),
        (&"ml/train-7f3c".into(), &"team".into())
    );
    let start = &json["start"];
    assert_eq!(start["expected"], "2026-11-23T10:40:00Z");
    assert_eq!(start["waitsFor"][0]["source"], "stated");
    assert_eq!(json["unblock"][0]["at"], start["expected"]);
    let evict = &json["evict"];
    assert_eq!(evict["text"], "nobody: neither preempt nor reclaim is among the actions");
    assert_eq!(evict["notConfigured"].as_array().unwrap().len(), 4);
    let list = why(&["-o", "json"]).json();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&"ExplanationList".into(), 2)
    );
}

/// An evicted pod of the simulation is gone when its own grace period ends.
#[test]
fn ans_18_f_as_json() {
    let example = |name: &str| format!("{}/../../examples/why/{name}", env!("CARGO_MANIFEST_DIR"));
    let (conf, victims) = (example("preempt.conf"), example("victims.yaml"));
    let words = ["why", "serve", "-n", "prod", "-o", "json", "--scheduler-conf", &conf, &victims];
    let json = vcsim(&words).json();
    assert_eq!(json["verdict"]["code"], "AwaitsVictims");
    let (start, wait) = (&json["start"], &json["unblock"][0]);
    let end = "2026-11-23T10:08:00Z";
    let times = ["earliest", "expected", "latest"].map(|name| start[name].as_str());
    assert_eq!(times, [Some(end); 3], "{json}");
    assert_eq!((wait["kind"].as_str(), wait["at"].as_str()), (Some("wait"), Some(end)));
    let awaited = &start["waitsFor"][0];
    let words = ["job", "end", "source"].map(|name| awaited[name].as_str());
    assert_eq!(words, [Some("ml/low"), Some(end), Some("terminating")], "{json}");
    assert_eq!(awaited["nodes"][0], "g2");
}

#[test]
fn names_of_users_do_not_move_the_cursor() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: \
        {scheduling.k8s.io/group-name: \"g\\u202e\"}}, spec: {schedulerName: volcano, containers: \
        [{name: c}]}}";
    let called = vcsim_with_input(&["why", "pod/p", "-"], pod);
    assert!(!called.stdout.contains('\u{202e}'), "{}", called.stdout);
}

#[test]
fn ans_47_who_was_evicted_by_whom() {
    let example =
        |name: &str| format!("{}/../../examples/priority/{name}", env!("CARGO_MANIFEST_DIR"));
    let cluster = format!("{}/../../examples/cluster.yaml", env!("CARGO_MANIFEST_DIR"));
    let (conf, running) = (example("scheduler.conf"), example("running.yaml"));
    let urgent = example("urgent.yaml");
    let ask = |words: &[&str]| {
        let files = ["--scheduler-conf", &conf, &cluster, &running, &urgent];
        vcsim(&[&["why"], words, &files[..]].concat())
    };
    let for_it = ask(&["repair"]).stdout;
    assert!(for_it.contains("EVICTED  default/report-"), "{for_it}");
    assert!(for_it.contains(" by preempt for default/repair, granted by "), "{for_it}");
    assert!(for_it.contains(" (tier 1), each pod needed\n"), "{for_it}");
    let json = ask(&["repair", "-o", "json"]).json();
    let evictions = json["evictions"].as_array().unwrap();
    assert_eq!(evictions.len(), 2, "{json}");
    let victim = evictions[0]["pod"].as_str().unwrap().strip_prefix("default/").unwrap();
    let gone = ask(&[victim, "--until-settled", "--exit-code"]);
    let expected = format!(
        "default/{victim} (pod, PodGroup default/report) is gone\nWHY      Gone: evicted by preempt for default/repair"
    );
    assert!(gone.stdout.starts_with(&expected), "{}{}", gone.stdout, gone.stderr);
    assert_eq!(gone.code, 0);
    let json = ask(&[victim, "--until-settled", "-o", "json"]).json();
    assert_eq!(
        (&json["verdict"]["code"], &json["evictions"][0]["action"]),
        (&"Gone".into(), &"preempt".into())
    );
    let evicted = &json["evictions"][0];
    assert_eq!((&evicted["tier"], &evicted["minimal"]), (&1.into(), &"pod".into()));
}
