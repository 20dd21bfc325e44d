//! What `vc-scheduler check` prints.

use vc_conf::{parse, render};

use crate::support::known;

const TEXT: &str = r#"actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
    enableJobOrder: true
    enabledJobReady: false
  - name: pdb
- plugins:
  - name: binpack
    arguments:
      binpack.cpu: 5
      binpack.resources: nvidia.com/gpu
configurations:
- name: allocate
  arguments:
    headOfLine: queue
metrics:
  type: elasticsearch
  address: http://e:9200
  elasticsearch.password: secret
"#;

const EXPECTED: &str = "\
actions, in this order:
  enqueue
  allocate
tier 1:
  gang
    enableJobOrder: true
    enablePreemptable: false
tier 2:
  binpack
    argument binpack.cpu: 5
    argument binpack.resources: \"nvidia.com/gpu\"
arguments of the actions:
  allocate
    predicateErrorCacheEnable: true (default)
    claimFirst: true (default)
    gangRepairFirst: false (default)
    headOfLine: queue
metrics:
  address: http://e:9200
  elasticsearch.password: ***
  type: elasticsearch
2 errors, the file is refused:
  line 1: actions: action preempt of Volcano is not built into this version
    hint: remove it, or start with --allow-missing-plugins=preempt if nothing needs its rules
  line 8: tiers[0].plugins[1]: plugin pdb of Volcano is not built into this version
    hint: remove it, or start with --allow-missing-plugins=pdb if nothing needs its rules
1 warning:
  line 7: tiers[0].plugins[0].enabledJobReady: unknown key enabledJobReady, it is ignored
    hint: did you mean enableJobReady?
";

#[test]
fn what_is_in_force_and_every_warning() {
    let known = known(&["gang", "binpack"], &["enqueue", "allocate"]);
    let loaded = parse("test.conf", TEXT, &known).unwrap();
    assert_eq!(render(&loaded), EXPECTED);
}

#[test]
fn a_bare_file_without_warnings() {
    let known = known(&[], &["enqueue"]);
    let loaded = parse("test.conf", "actions: enqueue\n", &known).unwrap();
    let expected = "actions, in this order:\n  enqueue\ntiers: none, no plugin is in force\n\
        arguments of the actions: none\nno warnings\n";
    assert_eq!(render(&loaded), expected);
}

#[test]
fn the_arguments_of_every_action_are_shown() {
    let known = known(&[], vc_conf::ACTIONS);
    let text = format!("actions: \"{}\"\n", vc_conf::ACTIONS.join(", "));
    let shown = render(&parse("test.conf", &text, &known).unwrap());
    let defaults: Vec<&str> = shown.lines().filter(|line| line.ends_with(" (default)")).collect();
    // allocate 4, backfill 1, preempt 9, reclaim 5, gangpreempt and gangreclaim 6 each.
    assert_eq!(defaults.len(), 31, "{shown}");
}
