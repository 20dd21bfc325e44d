//! Loading a file: grammar, actions, switches, arguments, defaults (core.md 2, cases 5-13).

// The slugs of the specification have a double underscore.
#![allow(non_snake_case)]

use serde_json::json;
use vc_conf::{ActionSettings, AllowMissing, Argument, Config, LoadedConfig, Switch, parse};

use crate::support::{all, known};

fn load(text: &str) -> LoadedConfig {
    parse("test.conf", text, &all()).unwrap_or_else(|error| panic!("{error}"))
}

fn clean(text: &str) -> Config {
    let loaded = load(text);
    assert_eq!(loaded.warnings, [], "{text}");
    loaded.config
}

fn refuse(text: &str) -> String {
    match parse("test.conf", text, &all()) {
        Ok(loaded) => panic!("accepted: {loaded:?}"),
        Err(error) => error.to_string(),
    }
}

/// A file with one plugin whose entry has these further lines.
fn one_plugin(name: &str, lines: &str) -> String {
    let indented: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("actions: allocate\ntiers:\n- plugins:\n  - name: {name}\n{indented}")
}

fn names(config: &Config) -> Vec<Vec<&str>> {
    let tiers = config.tiers.iter();
    tiers.map(|tier| tier.plugins.iter().map(|plugin| plugin.name.as_str()).collect()).collect()
}

#[test]
fn core_5_the_built_in_default() {
    let config = clean(vc_conf::BUILT_IN);
    assert_eq!(config.actions, ["enqueue", "allocate", "backfill"]);
    let second = vec!["overcommit", "drf", "predicates", "proportion", "nodeorder"];
    assert_eq!(names(&config), [vec!["priority", "gang", "conformance"], second]);
}

#[test]
fn the_default_of_the_chart() {
    let config = clean(vc_conf::CHART);
    let second = vec!["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"];
    assert_eq!(names(&config), [vec!["priority", "gang", "conformance"], second]);
    let plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let off = plugins.filter(|plugin| !plugin.switches.on(Switch::Preemptable));
    let off: Vec<&str> = off.map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(off, ["gang", "drf"]);
}

#[test]
fn core_6_an_unknown_or_empty_action_refuses_the_file() {
    let cases = [
        ("actions: \"enqueue, allocate,\"", "failed to find Action : name 3 is empty"),
        ("actions: \"elect\"", "failed to find Action elect"),
        ("actions: \"allocate, reserve\"", "failed to find Action reserve"),
        ("actions: \"\"", "failed to find Action : the list is empty"),
        ("actions:", "failed to find Action : the list is empty"),
        ("actions: 5", "failed to find Action 5"),
        ("tiers: []", "failed to find Action : the file names no actions"),
    ];
    for (text, problem) in cases {
        let error = refuse(text);
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.contains("\nhint: "), "{text}: {error}");
    }
}

#[test]
fn args__unknown_action() {
    assert!(refuse("actions: \"enqueue, foo\"").contains("failed to find Action foo"));
    assert!(refuse("actions: allocat").contains("hint: did you mean allocate?"));
    let config = clean("actions: \"GangPreempt, ALLOCATE ,  allocate\"");
    assert_eq!(config.actions, ["gangpreempt", "allocate", "allocate"]);
}

#[test]
fn core_7_hierarchical_drf_and_proportion_in_one_tier() {
    let hierarchical = "  - name: drf\n    enableHierarchy: true\n";
    let head = "actions: allocate\ntiers:\n- plugins:\n";
    let same = format!("{head}{hierarchical}  - name: proportion\n");
    let error = refuse(&same);
    let expected = "test.conf:3: tiers[0].plugins: proportion and drf with hierarchy enabled \
        conflicts\nhint: remove one of the two, or enableHierarchy";
    assert_eq!(error, expected);
    clean(&format!("{head}{hierarchical}- plugins:\n  - name: proportion\n"));
    clean(&format!("{head}  - name: drf\n  - name: proportion\n    enableHierarchy: true\n"));
}

#[test]
fn core_8_an_entry_without_switches() {
    let config = clean(&one_plugin("gang", ""));
    assert_eq!(config.tiers[0].plugins[0].switches, vc_conf::Switches::default());
}

#[test]
fn core_9_an_unknown_plugin_is_skipped() {
    let loaded = load("actions: allocate\ntiers:\n- plugins:\n  - name: foo\n  - name: gang\n");
    assert_eq!(names(&loaded.config), [["gang"]]);
    let text = loaded.missing[0].in_file("f");
    let expected = "f:4: tiers[0].plugins[0]: unknown plugin foo, it is skipped\nhint: known are: ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn core_9_a_quoted_switch_refuses_the_file() {
    let expected = "test.conf:5: tiers[0].plugins[0].enableJobOrder: expected true or false, \
        found a string\nhint: write enableJobOrder: true without quotes";
    assert_eq!(refuse(&one_plugin("gang", "enableJobOrder: \"true\"")), expected);
    for value in ["1", "[true]", "{a: b}", "truth"] {
        let error = refuse(&one_plugin("gang", &format!("enableJobOrder: {value}")));
        assert!(error.contains("expected true or false"), "{value}: {error}");
    }
}

#[test]
fn core_9_booleans_of_yaml_1_1() {
    let cases = [
        ("y Y yes Yes YES on On ON true True TRUE", true),
        ("n N no No NO off Off OFF false False FALSE", false),
    ];
    for (words, expected) in cases {
        for word in words.split(' ') {
            let config = clean(&one_plugin("gang", &format!("enableJobOrder: {word}")));
            let switches = config.tiers[0].plugins[0].switches;
            assert_eq!(switches.on(Switch::JobOrder), expected, "{word}");
        }
    }
}

#[test]
fn core_10_argument_values_have_their_yaml_type() {
    let lines = "arguments:\n  a: 15\n  b: \"15\"\n  c: 0x1F\n  d: 010\n  e: 1_000\n  f: 0b11\n  \
        g: yes\n  h: \"yes\"\n  i: 1e3\n  j: .inf\n  k: ~\n  l: text\n  m: [1, {x: 2}]\n";
    let config = load(&one_plugin("gang", lines)).config;
    let arguments = &config.tiers[0].plugins[0].arguments;
    let values: Vec<_> = arguments.iter().map(|(key, value)| (key, value.clone())).collect();
    let expected = vec![
        ("a", json!(15)),
        ("b", json!("15")),
        ("c", json!(31)),
        ("d", json!(8)),
        ("e", json!(1000)),
        ("f", json!(3)),
        ("g", json!(true)),
        ("h", json!("yes")),
        ("i", json!(1000.0)),
        ("j", json!(".inf")),
        ("k", json!(null)),
        ("l", json!("text")),
        ("m", json!([1, {"x": 2}])),
    ];
    assert_eq!(values, expected);
}

#[test]
fn core_11_a_load_depends_on_its_text_only() {
    let good = load(vc_conf::CHART);
    assert!(parse("test.conf", "actions: elect", &all()).is_err());
    assert_eq!(load(vc_conf::CHART), good);
}

#[test]
fn core_12_action_arguments_of_an_earlier_file_do_not_stay() {
    let entry = "- name: preempt\n  arguments:\n    enableTopologyAwarePreemption: true\n";
    let with = clean(&format!("actions: preempt\nconfigurations:\n{entry}"));
    let without = clean("actions: preempt\n");
    let topology_aware =
        |config: &Config| ActionSettings::from(config, &mut Vec::new()).preempt.topology_aware;
    assert!(topology_aware(&with) && !topology_aware(&without));
}

#[test]
fn core_13_the_first_entry_of_an_action_counts() {
    let text = "actions: allocate, backfill\nconfigurations:\n\
        - name: Allocate\n  arguments: {claimFirst: false}\n\
        - name: allocate\n  arguments: {claimFirst: true}\n";
    let loaded = load(text);
    let arguments = loaded.config.action_arguments("allocate");
    assert_eq!(arguments.get("claimFirst"), Some(&json!(false)));
    assert!(loaded.config.action_arguments("backfill").is_empty());
    assert_eq!(loaded.warnings.len(), 1);
    let message = "second entry for action allocate, it is ignored";
    assert_eq!((loaded.warnings[0].line, loaded.warnings[0].message.as_str()), (Some(5), message));
}

#[test]
fn the_last_of_duplicate_keys_wins() {
    let text = one_plugin("gang", "enableJobOrder: true\nenableJobOrder: false");
    let loaded = load(&text);
    assert!(!loaded.config.tiers[0].plugins[0].switches.on(Switch::JobOrder));
    let expected = "line 6: tiers[0].plugins[0].enableJobOrder: duplicate key enableJobOrder, \
        also on line 5\nhint: remove one of them: the last one wins";
    assert_eq!(loaded.warnings[0].to_string(), expected);
    let actions = load("actions: allocate\nactions: backfill\n");
    assert_eq!((actions.config.actions, actions.warnings.len()), (vec!["backfill".into()], 1));
}

#[test]
fn anchors_aliases_and_merge_keys() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - &off\n    name: gang\n    \
        enableJobOrder: off\n  - <<: *off\n    name: drf\n- plugins: [*off]\n";
    let config = load(text).config;
    assert_eq!(names(&config), [vec!["gang", "drf"], vec!["gang"]]);
    for plugin in config.tiers.iter().flat_map(|tier| &tier.plugins) {
        assert!(!plugin.switches.on(Switch::JobOrder), "{}", plugin.name);
    }
}

#[test]
fn only_the_first_document_is_read() {
    assert_eq!(clean("actions: allocate\n---\n: : [").actions, ["allocate"]);
    assert_eq!(clean("\u{feff}---\nactions: allocate\n...\n").actions, ["allocate"]);
}

#[test]
fn metrics_values_keep_their_source_text() {
    let text = "actions: allocate\nmetrics:\n  type: prometheus\n  address: \"http://p:9090\"\n  \
        interval: 1_0\n  tls.insecureSkipVerify: yes\n  elasticsearch.index: ~\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("# é\n\u{20}\n{text}")] {
        let metrics = clean(&text).metrics;
        assert_eq!(metrics["interval"], "1_0", "{text:?}");
        assert_eq!(metrics["tls.insecureSkipVerify"], "yes");
        assert_eq!(metrics["elasticsearch.index"], "");
    }
}

#[test]
fn metrics_that_collect_nothing_warn() {
    let cases = [
        ("type: influx", "metrics.type: unknown source influx, no node load is collected"),
        ("type: prometheus_adapt", "collected\nhint: did you mean prometheus_adaptor?"),
        ("type: prometheus", "metrics.address: prometheus has no address"),
        ("adress: x", "metrics.adress: unknown key adress, it is ignored\nhint: did you mean a"),
    ];
    for (line, expected) in cases {
        let loaded = load(&format!("actions: allocate\nmetrics:\n  {line}\n"));
        let text = loaded.warnings[0].to_string();
        assert!(text.contains(expected), "{text}");
    }
}

/// Volcano's documents nest these keys, which neither Volcano nor this reads.
#[test]
fn nested_metrics_are_refused_with_the_flat_key() {
    let text = "actions: allocate\nmetrics:\n  tls:\n    insecureSkipVerify: true\n";
    let error = refuse(text);
    let remedy = "hint: write it in one line, as in tls.insecureSkipVerify: \"...\"";
    assert!(error.contains("metrics.tls") && error.contains(remedy), "{error}");
}

#[test]
fn both_spellings_of_a_switch() {
    let lines = "enableVictim: false\nenabledJobOrder: false\nEnableTaskOrder: false\n\
        enabledOverused: false\nenableQueueOrder: false";
    let loaded = load(&one_plugin("gang", lines));
    let switches = loaded.config.tiers[0].plugins[0].switches;
    for (switch, on) in [
        (Switch::Victim, true),
        (Switch::JobOrder, true),
        (Switch::TaskOrder, true),
        (Switch::Overused, false),
        (Switch::QueueOrder, false),
    ] {
        assert_eq!(switches.on(switch), on, "{switch:?}");
    }
    let warnings: Vec<_> = loaded.warnings.iter().map(|w| (w.line, w.remedy.as_str())).collect();
    let expected = [
        (Some(5), "did you mean enabledVictim?"),
        (Some(6), "did you mean enableJobOrder?"),
        (Some(7), "did you mean enableTaskOrder?"),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn unknown_keys_at_every_level() {
    let cases = [
        ("actions: allocate\ntier: []\n", 2, "tier", "did you mean tiers?"),
        (
            "actions: allocate\ntiers:\n- plugin: []\n",
            3,
            "tiers[0].plugin",
            "did you mean plugins?",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: sla\n    argument: {}\n",
            5,
            "tiers[0].plugins[0].argument",
            "did you mean arguments?",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    binpack.cpu: 5\n",
            5,
            "tiers[0].plugins[0].binpack.cpu",
            "move it under arguments of binpack",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: sla\n    arguments: {sla-wait: 1h}\n",
            5,
            "tiers[0].plugins[0].arguments.sla-wait",
            "known are: sla-waiting-time",
        ),
        (
            "actions: allocate\nconfigurations:\n- name: allocat\n  arguments: {}\n",
            3,
            "configurations[0]",
            "did you mean allocate?",
        ),
        (
            "actions: allocate\nconfigurations:\n- name: enqueue\n  arguments: {explain: yes}\n",
            4,
            "configurations[0].arguments.explain",
            "remove it, nothing is read here",
        ),
        (
            "actions: allocate\nconfigurations:\n- name: preempt\n  arguments:\n    explian: yes\n",
            5,
            "configurations[0].arguments.explian",
            "did you mean explain?",
        ),
    ];
    for (text, line, field, remedy) in cases {
        let warnings = load(text).warnings;
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
        let found = (warnings[0].line, warnings[0].field.as_str(), warnings[0].remedy.as_str());
        assert_eq!(found, (Some(line), field, remedy));
    }
}

#[test]
fn the_same_plugin_twice() {
    let text =
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: gang\n";
    let loaded = load(text);
    assert_eq!(names(&loaded.config), [["gang"], ["gang"]]);
    let expected = "line 6: tiers[1].plugins[0]: plugin gang is listed before, at \
        tiers[0].plugins[0], line 4\n\
        hint: keep one of them: at both places the later one's rules are called";
    assert_eq!(loaded.warnings[0].to_string(), expected);
}

#[test]
fn two_plugins_that_limit_queues() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - name: capacity\n- plugins:\n  \
        - name: proportion\n";
    let loaded = load(text);
    assert_eq!(names(&loaded.config), [["capacity"], ["proportion"]]);
    let expected = "line 6: tiers[1].plugins[0]: proportion beside capacity: queues have to stay \
        within both\nhint: keep one of them, proportion or capacity";
    let texts: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts, [expected]);
}

#[test]
fn plugins_without_a_name() {
    let loaded = load("actions: allocate\ntiers:\n- plugins:\n  -\n  - name:\n- plugins:\n");
    assert_eq!(names(&loaded.config), [Vec::<&str>::new(), Vec::new()]);
    let messages: Vec<&str> = loaded.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(messages, ["plugin without a name, it is skipped"; 2]);
}

#[test]
fn what_is_not_built_is_named_with_its_line() {
    let known = known(&["gang", "mine"], &["allocate", "sweep"]);
    let text = "actions: allocate, Preempt, Sweep\ntiers:\n- plugins:\n  - name: tdm\n  \
        - name: gang\n  - name: mine\n    arguments: {anything: 1}\n";
    let loaded = parse("test.conf", text, &known).unwrap();
    assert_eq!(loaded.config.actions, ["allocate", "sweep"]);
    assert_eq!(names(&loaded.config), [["gang", "mine"]]);
    assert_eq!(loaded.warnings, []);
    let error = loaded.admit("test.conf", &AllowMissing::Nothing).unwrap_err().to_string();
    let expected = "test.conf:1: actions: action preempt of Volcano is not built into this version
hint: remove it, or start with --allow-missing-plugins=preempt if nothing needs its rules
test.conf:4: tiers[0].plugins[0]: plugin tdm of Volcano is not built into this version
hint: remove it, or start with --allow-missing-plugins=tdm if nothing needs its rules";
    assert_eq!(error, expected);
}

#[test]
fn warnings_of_action_arguments_have_their_line() {
    let text = "actions: preempt\nconfigurations:\n- name: preempt\n  arguments:\n    \
        explain: \"yes\"\n    maxCandidateNodesAbsolute: 0\n";
    let warnings = load(text).warnings;
    let places: Vec<_> = warnings.iter().map(|w| (w.line, w.field.as_str())).collect();
    let arguments = "configurations[0].arguments";
    let explain = format!("{arguments}.explain");
    let most = format!("{arguments}.maxCandidateNodesAbsolute");
    assert_eq!(places, [(Some(5), explain.as_str()), (Some(6), most.as_str())]);
}

#[test]
fn plugin_arguments_remember_their_line() {
    let text = one_plugin("sla", "arguments:\n  sla-waiting-time: 5");
    let config = clean(&text);
    let mut warnings = Vec::new();
    let argument = Argument::new("sla-waiting-time", "", "");
    argument.read(&config.tiers[0].plugins[0].arguments, &mut warnings);
    let expected = "line 6: tiers[0].plugins[0].arguments.sla-waiting-time: expected a string, \
        found 5\nhint: write a string; until then the default \"\" is in force";
    assert_eq!(warnings[0].to_string(), expected);
}

#[test]
fn c3_actions_that_evict_beside_plugins_that_vote_on_admission() {
    let warnings = |actions: &str, plugins: &str| -> Vec<String> {
        let text = format!("actions: {actions:?}\ntiers:\n- plugins: {plugins}\n");
        load(&text).warnings.iter().map(ToString::to_string).collect()
    };
    let voters = "[{name: gang}, {name: overcommit}, {name: proportion}]";
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    let [warning] = &warnings(all, voters)[..] else { panic!("{:?}", warnings(all, voters)) };
    let told = "preempt, reclaim cannot help a job that is not admitted to its queue, on which \
        overcommit, proportion vote";
    assert!(warning.contains(told), "{warning}");
    assert!(warning.contains("line 1") && warning.contains("hint: "), "{warning}");
    let one = &warnings("enqueue, preempt", "[{name: proportion}]")[0];
    assert!(one.contains("proportion votes\nhint: ") && !one.contains("factor"), "{one}");
    let silent = "[{name: gang}, {name: overcommit, enableJobEnqueued: false}]";
    for (actions, plugins) in [
        ("allocate, preempt, reclaim", voters),
        ("enqueue, allocate, shuffle", voters),
        (all, "[{name: gang}, {name: sla}]"),
        (all, silent),
    ] {
        assert_eq!(warnings(actions, plugins), [""; 0], "{actions} {plugins}");
    }
}

/// plugins-nodes.md 16.1
#[test]
fn only_one_way_to_share_cards_can_be_on() {
    let with = |arguments: &[&str]| {
        let lines: String = arguments.iter().map(|key| format!("\n  {key}: true")).collect();
        one_plugin("deviceshare", &format!("arguments:{lines}"))
    };
    let [sharing, number, vgpu] =
        ["deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable"];
    for (arguments, problem) in [
        ([sharing, number], "can not define true in both gpu sharing and gpu number"),
        ([sharing, vgpu], "gpu-share and vgpu can't be used together"),
        ([number, vgpu], "gpu-share and vgpu can't be used together"),
    ] {
        let error = refuse(&with(&arguments));
        let hint = format!("hint: set {} or {} to false", arguments[0], arguments[1]);
        assert!(error.contains(problem) && error.ends_with(&hint), "{error}");
        clean(&with(&arguments[..1]));
        clean(&with(&arguments[1..]));
    }
}
