//! Case 96 of plugins-jobs-queues.md: rescheduling; example 18.6.

use serde_json::{Value, json};
use vc_conf::{ActionSettings, Config, PluginOption, Switches, Tier, Warning};
use vc_framework::{PluginSet, Session};
use vc_model::{Cluster, TaskStatus, fixture};

use crate::support::{names, opening};

const MINUTE: i64 = 60;

/// Returns the configuration with the plugin and its arguments, and its warnings.
fn plugins(arguments: &Value) -> (PluginSet, Vec<Warning>) {
    let arguments = arguments.as_object().expect("a map").clone().into_iter().collect();
    let name = "rescheduling".to_owned();
    let option = PluginOption { name, switches: Switches::default(), arguments };
    let tiers = vec![Tier { plugins: vec![option] }];
    PluginSet::new(&Config { tiers, ..Config::default() }, vc_plugins::ALL)
}

/// Returns the pods that are named in a session so many seconds after the start.
fn victims_at(cluster: &mut Cluster, plugins: &mut PluginSet, seconds: i64) -> Vec<String> {
    let settings = ActionSettings::default();
    let session = Session::open(cluster, plugins, &settings, opening(seconds));
    let running: Vec<_> = session.tasks.ids().collect();
    let running: Vec<_> = running
        .into_iter()
        .filter(|&task| session.tasks[task].status == TaskStatus::Running)
        .collect();
    let victims = session.plugins().victim_tasks(session.view(), &running);
    let victims = names(&session, &victims);
    session.finish();
    victims
}

/// Returns the pods of the first run, five minutes after the first session.
fn victims(text: &str, arguments: &Value) -> Vec<String> {
    let (mut cluster, (mut plugins, _)) = (fixture::cluster(text), plugins(arguments));
    assert_eq!(victims_at(&mut cluster, &mut plugins, 0), [""; 0], "the clock starts");
    victims_at(&mut cluster, &mut plugins, 5 * MINUTE)
}

fn low_node_utilization(thresholds: &Value, targets: &Value) -> Value {
    let params = json!({"thresholds": thresholds, "targetThresholds": targets});
    json!({"strategies": [{"name": "lowNodeUtilization", "params": params}]})
}

fn usual() -> Value {
    low_node_utilization(&json!({"cpu": 20, "memory": 20}), &json!({"cpu": 50, "memory": 50}))
}

/// Example 18.6: a node with room, a hot node with four pods.
const EXAMPLE: &str = "node low cpu=10 memory=100Gi\n node high cpu=10 memory=100Gi
    load low cpu=10 memory=10 at=60\n load high cpu=80 memory=80 at=60
    job j
      task p1 @high running
      task p2 cpu=2 memory=10Gi @high running
      task p3 cpu=2 memory=10Gi @high running priority=10
      task p4 cpu=2 memory=10Gi @high running priority=20";

#[test]
fn jobs_96_pods_leave_a_hot_node_while_there_is_room() {
    assert_eq!(victims(EXAMPLE, &usual()), ["j-p1", "j-p2", "j-p3"]);
    // D28: averages exist for one period, whatever the argument says.
    let mut other = usual();
    other["metricsPeriod"] = json!("10m");
    assert_eq!(victims(EXAMPLE, &other).len(), 3);
}

#[test]
fn jobs_96_nobody_goes_by_default_or_without_contrast() {
    assert_eq!(victims(EXAMPLE, &json!({})), [""; 0]);
    let all_low = EXAMPLE.replace("cpu=80 memory=80", "cpu=15 memory=15");
    assert_eq!(victims(&all_low, &usual()), [""; 0]);
    let none_high = EXAMPLE.replace("cpu=80 memory=80", "cpu=50 memory=50");
    assert_eq!(victims(&none_high, &usual()), [""; 0]);
    let none_low = EXAMPLE.replace("cpu=10 memory=10 at", "cpu=20 memory=10 at");
    assert_eq!(victims(&none_low, &usual()), [""; 0]);
    let closed = EXAMPLE.replace("node low cpu=10", "node low unschedulable cpu=10");
    assert_eq!(victims(&closed, &usual()), [""; 0]);
    // Old readings tell nothing: neither where pods are to go nor whence.
    for node in ["low", "high"] {
        let old = EXAMPLE.replace(&format!("load {node} "), &format!("load {node} at=-1 "));
        let old = old.replace(" at=60", "");
        assert_eq!(victims(&old, &usual()), [""; 0], "{node}");
    }
}

#[test]
fn jobs_96_pods_of_one_name_are_told_apart() {
    let text = "node low cpu=10 memory=10Gi\n node high cpu=10 memory=10Gi
        load low cpu=1 memory=1 at=60\n load high cpu=90 memory=90 at=60
        job a/j\n task p cpu=5 memory=5Gi @low running
        job b/j\n task p cpu=5 memory=5Gi @high running";
    let (mut cluster, (mut plugins, _)) = (fixture::cluster(text), plugins(&usual()));
    victims_at(&mut cluster, &mut plugins, 0);
    let settings = ActionSettings::default();
    let session = Session::open(&mut cluster, &mut plugins, &settings, opening(5 * MINUTE));
    let both = [fixture::task(&session, "a/j/p"), fixture::task(&session, "b/j/p")];
    assert_eq!(session.plugins().victim_tasks(session.view(), &both), [both[1]]);
    // Only pods that shuffle offers go.
    assert_eq!(session.plugins().victim_tasks(session.view(), &both[..1]), []);
}

#[test]
fn d29_pods_are_counted_like_cpu_and_memory() {
    let text = "node low cpu=10 memory=10Gi pods=10\n node high cpu=10 memory=10Gi pods=4
        load low cpu=1 memory=1 at=60\n load high cpu=1 memory=1 at=60
        job j\n task p x4 cpu=1 memory=1Gi @high running\n task q cpu=1 @low running";
    for name in ["pods", "pod"] {
        let arguments = low_node_utilization(&json!({name: 20}), &json!({name: 50}));
        // 100 and 75 percent are at least 50, and so is 50; then 25 is left.
        assert_eq!(victims(text, &arguments).len(), 3, "{name}");
        // Up to 20 percent of ten slots there is room for one more.
        let arguments = low_node_utilization(&json!({name: 20}), &json!({name: 20}));
        assert_eq!(victims(text, &arguments).len(), 1, "{name}");
    }
}

#[test]
fn d30_critical_pods_and_pods_that_may_not_be_preempted_stay() {
    let text = EXAMPLE
        .replace("task p1 ", "task p1 annotation.volcano.sh/preemptable=false ")
        .replace("task p2 ", "task p2 class=system-node-critical ");
    assert_eq!(victims(&text, &usual()), ["j-p3", "j-p4"]);
}

#[test]
fn runs_keep_their_interval_over_a_reload() {
    let mut arguments = usual();
    arguments["interval"] = json!("10m");
    let (mut cluster, (mut first, _)) = (fixture::cluster(EXAMPLE), plugins(&arguments));
    for (minutes, expected) in [(0, 0), (5, 0)] {
        let named = victims_at(&mut cluster, &mut first, minutes * MINUTE);
        assert_eq!(named.len(), expected, "{minutes}");
    }
    let (mut second, _) = plugins(&arguments);
    second.copy_memory(&first);
    fixture::apply(
        &mut cluster,
        "load low cpu=10 memory=10 at=540\n load high cpu=80 memory=80 at=540",
    );
    for (minutes, expected) in [(9, 0), (10, 3), (11, 0), (13, 0)] {
        let named = victims_at(&mut cluster, &mut second, minutes * MINUTE);
        assert_eq!(named.len(), expected, "{minutes}");
    }
}

#[test]
fn d31_what_cannot_be_read_is_a_warning() {
    let warned = |arguments: Value| -> Vec<String> {
        plugins(&arguments).1.iter().map(ToString::to_string).collect()
    };
    assert_eq!(warned(usual()), [""; 0]);
    let fraction = low_node_utilization(&json!({"cpu": 20.5}), &json!({"cpu": 50.5}));
    assert_eq!(warned(fraction), [""; 0]);
    for (arguments, expected) in [
        (low_node_utilization(&json!({"cpu": "x"}), &json!({})), "thresholds.cpu: not a number"),
        (low_node_utilization(&json!(7), &json!({})), "thresholds: not a map: 7"),
        (low_node_utilization(&json!({"disk": 7}), &json!({})), "disk: no such percentage"),
        (json!({"strategies": [{"name": "offlineOnly"}]}), "unknown strategy offlineOnly"),
        (json!({"strategies": [7]}), "no strategy with a name"),
        (json!({"interval": 7}), "not a duration: 7"),
        (json!({"queueSelector": ["q"]}), "it selects nothing"),
    ] {
        let found = warned(arguments);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
    // Without a strategy nothing runs.
    let none = json!({"strategies": [{"name": "offlineOnly"}]});
    assert_eq!(victims(EXAMPLE, &none), [""; 0]);
}
