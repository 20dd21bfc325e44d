//! Scenarios without clock ticks through the real path: their objects stored as they are, the binary
//! with the shipped rights, and what the API server has afterwards against what the file expects.
//! Each further cycle is that of a scheduler that starts anew: what it has to know, the API server
//! knows. With SCENARIOS=all every such file, with SCENARIOS=PREFIX those of this name, else a few
//! of each area, and all that are about HyperNodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use vc_engine::Evaluator;
use vc_sim::KubeletMode;
use vc_sim::scenario::{GroupState, Scenario, ScenarioOutcome};
use vc_sim::serve::{POD_GROUPS, PODS, QUEUES, ServedKind, VOLUMES};

use crate::api::{POLL, text};
use crate::audit::{Asked, Audit};
use crate::cluster::Cluster;
use crate::objects::{name, node_of};
use crate::process::Scheduler;
use crate::volumes;

/// Of each folder, when not all are wanted.
const A_FEW: usize = 2;
/// Folders of which all are run.
const WHOLE: [&str; 2] = ["network-topology", "subgroup"];
const PERIOD: [&str; 3] =
    ["--leader-elect=false", "--schedule-trigger=period", "--schedule-period=1h"];
/// Stored under another name than their plural.
const STORED: [(&str, &str); 3] = [
    ("nodes", "minions"),
    ("replicationcontrollers", "controllers"),
    ("services", "services/specs"),
];
/// Scenarios that wait for what others write in between (claims, volumes): they run as an
/// operator runs them, with controllers beside them, until it has come out as expected.
const WITH_OTHERS: &[&str] = &[
    "allocate/dra-claim-satisfied",
    "own/bad-input-of-filters",
    "own/volumes",
    "own/volumes-without-capacity",
];
/// Only so that what never comes fails the test.
const PATIENCE: Duration = Duration::from_secs(180);

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let wanted = std::env::var("SCENARIOS").ok();
    let prefix = wanted.as_deref().map(|wanted| if wanted == "all" { "" } else { wanted });
    let skipped = fs::read_to_string(root.join("skip.txt")).unwrap_or_default();
    let skipped: Vec<&str> =
        skipped.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let mut taken = BTreeMap::<PathBuf, usize>::new();
    let is_wanted = |file: &PathBuf| {
        // One that cannot be read is on the list, or a fault of `tests/scenarios.rs`.
        let Ok(scenario) = Scenario::read(file) else { return false };
        let is_skipped = |pattern: &&&str| match pattern.strip_suffix('*') {
            Some(prefix) => scenario.name.starts_with(prefix),
            None => scenario.name == **pattern,
        };
        if scenario.has_ticks() || skipped.iter().any(|one| is_skipped(&one)) {
            return false;
        }
        if let Some(prefix) = prefix {
            return scenario.name.starts_with(prefix);
        }
        let folder = file.parent().unwrap();
        let count = taken.entry(folder.to_owned()).or_default();
        *count += 1;
        *count <= A_FEW || WHOLE.iter().any(|whole| folder.ends_with(whole))
    };
    vc_objects::input::scenario_files(&[root]).unwrap().into_iter().filter(is_wanted).collect()
}

/// Where the API server keeps an object.
fn key(object: &Value) -> String {
    let kind = ServedKind::of(text(&object["apiVersion"]), text(&object["kind"])).unwrap();
    let plural = kind.plural;
    let place = STORED.iter().find(|(name, _)| *name == plural).map_or(plural, |(_, place)| place);
    let namespace = text(&object["metadata"]["namespace"]);
    let path = [place, namespace, name(object)].into_iter().filter(|part| !part.is_empty());
    let path = path.collect::<Vec<_>>().join("/");
    // Custom resources are below their group, which those of Kubernetes do not show.
    match kind.group.ends_with("volcano.sh") {
        true => format!("/registry/{}/{path}", kind.group),
        false => format!("/registry/{path}"),
    }
}

/// Moves every time of an object on by so much: the clock of the scenario stands elsewhere.
fn shift(value: &mut Value, micros: i64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| shift(item, micros)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| {
            let is_time = name.ends_with("Timestamp") || name.ends_with("Time");
            match field.as_str().and_then(vc_wire::parse_time).filter(|_| is_time) {
                Some(time) => *field = json!(vc_wire::format_time(time + micros)),
                None => shift(field, micros),
            }
        }),
        _ => {}
    }
}

/// Every change of a pod is refused that has a container without image; scenarios leave it out.
fn complete(object: &mut Value) {
    for field in ["containers", "initContainers"] {
        let containers = object.pointer_mut(&format!("/spec/{field}"));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            if !container["image"].is_string() {
                container["image"] = json!("none");
            }
        }
    }
}

/// What is stored, and what is taken away that an earlier one has left.
fn seeds(scenario: &Scenario) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let later = i64::try_from(now).unwrap() - scenario.now_micros();
    let (mut put, mut namespaces) = (Map::new(), BTreeSet::new());
    for object in scenario.objects() {
        let mut object = object.clone();
        shift(&mut object, later);
        complete(&mut object);
        namespaces.insert(text(&object["metadata"]["namespace"]).to_owned());
        put.insert(key(&object), object);
    }
    for name in namespaces.into_iter().filter(|name| !name.is_empty()) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"phase": "Active"}});
        put.entry(key(&object)).or_insert(object);
    }
    json!({"delete": [], "put": put})
}

/// The collections that a scenario and its schedulers fill.
fn collections(scenario: &Scenario) -> BTreeSet<String> {
    let of = |object: &Value| {
        ServedKind::of(text(&object["apiVersion"]), text(&object["kind"])).unwrap()
    };
    let kinds = scenario.objects().map(of).chain([&PODS, &QUEUES, &POD_GROUPS, &VOLUMES]);
    let path = |kind: &ServedKind| {
        let prefix =
            if kind.group.is_empty() { "/api".into() } else { format!("/apis/{}", kind.group) };
        format!("{prefix}/{}/{}", kind.version, kind.plural)
    };
    kinds.map(path).collect()
}

/// Stores past the API server, and waits until it has noticed: a list is as new as the store, and the
/// next one, which may be older than that, is no older than this one.
async fn store(cluster: &mut Cluster, wanted: &Value, collections: &BTreeSet<String>) {
    cluster.seed(wanted);
    for collection in collections {
        cluster.api.list(collection).await;
    }
}

/// What happens between cycles: bound pods run, those that are being deleted are gone.
async fn run_kubelets(cluster: &mut Cluster, collections: &BTreeSet<String>) {
    let (mut put, mut delete) = (Map::new(), Vec::new());
    for mut pod in cluster.api.list("/api/v1/pods").await {
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        if node_of(&pod).is_empty() {
            continue;
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            delete.push(key(&pod));
        } else if text(&pod["status"]["phase"]) == "Pending" {
            pod["status"]["phase"] = json!("Running");
            put.insert(key(&pod), pod);
        }
    }
    store(cluster, &json!({"delete": delete, "put": put}), collections).await;
}

/// What must be gone before the next scenario.
fn leftovers(seeds: &Value) -> Value {
    let made =
        ["queues/", "podgroups/"].map(|kind| format!("/registry/scheduling.volcano.sh/{kind}"));
    let keys = seeds["put"].as_object().unwrap().keys().cloned();
    let keys = keys.filter(|key| !key.starts_with("/registry/namespaces/"));
    let made_since = ["/registry/events/", "/registry/persistentvolumes/"].map(str::to_owned);
    let all: Vec<String> = made.into_iter().chain(keys).chain(made_since).collect();
    json!({"delete": all, "put": {}})
}

fn args(file: &Path, conf: &Path) -> Vec<String> {
    let raw: Value = serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    fs::write(conf, text(&raw["schedulerConf"])).unwrap();
    let mut args: Vec<String> = PERIOD.iter().map(|&arg| arg.to_owned()).collect();
    // What the shipped manifests set and a scenario does not expect.
    args.push("--bare-pods=ignore".to_owned());
    args.push(format!("--scheduler-conf={}", conf.display()));
    for (name, value) in raw["flags"].as_object().into_iter().flatten() {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        args.extend(values.iter().map(|value| match value.as_str() {
            Some(text) => format!("--{name}={text}"),
            None => format!("--{name}={value}"),
        }));
    }
    args
}

/// What the scheduler has asked for, and the pod groups that there are now.
async fn outcome(cluster: &Cluster, audit: &Audit, scenario: &Scenario) -> ScenarioOutcome {
    let pod = |asked: &Asked| format!("{}/{}", asked.namespace, asked.name);
    let mut outcome = ScenarioOutcome::default();
    for asked in audit.all().into_iter().filter(Asked::is_done) {
        if asked.is_binding() {
            let node = text(&asked.body["target"]["name"]).to_owned();
            outcome.binds.push((pod(&asked), node));
        } else if asked.is("delete", "pods") {
            outcome.evictions.push(pod(&asked));
        }
    }
    for group in cluster.api.list("/apis/scheduling.volcano.sh/v1beta1/podgroups").await {
        let phase = match text(&group["status"]["phase"]) {
            "" => "Pending",
            phase => phase,
        };
        let conditions = group["status"]["conditions"].as_array().into_iter().flatten();
        let of = |one: &Value, field: &str| text(&one[field]).to_owned();
        let conditions =
            conditions.map(|one| (of(one, "type"), (of(one, "status"), of(one, "reason"))));
        let state = GroupState { phase: phase.to_owned(), conditions: conditions.collect() };
        let key = format!("{}/{}", text(&group["metadata"]["namespace"]), name(&group));
        outcome.pod_groups.insert(key, state);
    }
    // Who waits for room that is not free yet is in no object.
    let simulated = scenario.run(Evaluator::Plain).unwrap();
    outcome.pipelined = simulated.pipelined;
    // Texts are compared by the tests of each of them.
    outcome.messages = simulated.messages;
    outcome
}

/// Where the clock on the wall shows now what it shows in the scenario, as `TZ` names it: windows of
/// a day are told by that.
fn zone(scenario: &Scenario) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let ahead = (scenario.now_micros() / 1_000_000 - i64::try_from(now).unwrap()).rem_euclid(86400);
    format!("<wall>-{}:{:02}:{:02}", ahead / 3600, ahead / 60 % 60, ahead % 60)
}

/// A scheduler for each cycle.
async fn cycle_by_cycle(
    cluster: &mut Cluster,
    audit: &Audit,
    scenario: &Scenario,
    args: &[&str],
) -> ScenarioOutcome {
    for cycle in 0..scenario.cycles() {
        if cycle > 0 && scenario.kubelet() == KubeletMode::Instant {
            run_kubelets(cluster, &collections(scenario)).await;
        }
        drop(fs::remove_file(cluster.scheduler_log()));
        let scheduler = Scheduler::start_in(&zone(scenario), cluster, args).await;
        scheduler.one_cycle(cluster).await;
    }
    outcome(cluster, audit, scenario).await
}

/// One scheduler that goes on until all is as expected.
async fn with_others(
    cluster: &Cluster,
    audit: &Audit,
    scenario: &Scenario,
    args: &[&str],
) -> ScenarioOutcome {
    let controllers = tokio::spawn(volumes::controllers(cluster.api.clone()));
    let args = [args, &["--schedule-trigger=change"]].concat();
    let scheduler = Scheduler::start_in(&zone(scenario), cluster, &args).await;
    let deadline = Instant::now() + PATIENCE;
    let mut reached = outcome(cluster, audit, scenario).await;
    while !scenario.judge(&reached).is_empty() && Instant::now() < deadline {
        tokio::time::sleep(POLL).await;
        reached = outcome(cluster, audit, scenario).await;
    }
    assert!(scheduler.terminate().await.success());
    controllers.abort();
    reached
}

/// One line for each difference.
async fn differences(cluster: &mut Cluster, file: &Path, scenario: &Scenario) -> Vec<String> {
    let (seeds, collections) = (seeds(scenario), collections(scenario));
    store(cluster, &seeds, &collections).await;
    let audit = cluster.audit_from_now();
    let conf = cluster.dir().join("scenario.conf");
    let args = args(file, &conf);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match WITH_OTHERS.contains(&scenario.name.as_str()) {
        true => with_others(cluster, &audit, scenario, &args).await,
        false => cycle_by_cycle(cluster, &audit, scenario, &args).await,
    };
    let mut found = scenario.judge(&outcome);
    for pod in cluster.api.list("/api/v1/pods").await {
        let key = format!("{}/{}", text(&pod["metadata"]["namespace"]), name(&pod));
        let bound = outcome.binds.iter().find(|(pod, _)| *pod == key);
        if let Some((_, node)) = bound.filter(|(_, node)| *node != node_of(&pod)) {
            found.push(format!("{key}: bound to {node}, is on {:?}", node_of(&pod)));
        }
    }
    store(cluster, &leftovers(&seeds), &collections).await;
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenarios_come_out_the_same_on_a_real_api_server() {
    let mut cluster = Cluster::take("scenarios", 0).await;
    cluster.without_kubelet();
    let (files, mut failed) = (files(), Vec::new());
    for file in &files {
        let scenario = Scenario::read(file).unwrap();
        let found = differences(&mut cluster, file, &scenario).await;
        eprintln!("{} {}", if found.is_empty() { "ok   " } else { "FAIL " }, scenario.name);
        if !found.is_empty() {
            failed.push(format!("{}:\n  {}", scenario.name, found.join("\n  ")));
        }
    }
    let numbers = format!("{} of {} scenarios differ", failed.len(), files.len());
    assert!(failed.is_empty(), "{numbers}\n{}", failed.join("\n"));
}
