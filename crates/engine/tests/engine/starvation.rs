//! Options against starvation (actions.md 4.11): cycle/repair, cycle/head-of-line.

use crate::support::*;

fn config(arguments: &str) -> vc_conf::Config {
    let text = format!(
        "actions: allocate
tiers:
- plugins:
  - name: priority
  - name: gang
configurations:
- name: allocate
  arguments: {{{arguments}}}
"
    );
    vc_conf::parse("test.conf", &text, &vc_engine::KNOWN).expect("it is valid").config
}

/// One free slot; an old gang that lost a member, and a fresh job of more priority.
const BROKEN_GANG: &str = "node n1 cpu=4
    job old min=4 created=0
      task a cpu=1 @n1 running x3
      task b cpu=1
    job fresh priority=100 created=1
      task a cpu=1";

#[test]
fn cycle__repair() {
    assert_eq!(decide(&config("gangRepairFirst: false"), BROKEN_GANG), "bind fresh-a n1");
    assert_eq!(decide(&config("gangRepairFirst: true"), BROKEN_GANG), "bind old-b n1");
}

const BIG_HEAD: &str = "node n1 cpu=8
    job holder created=0
      task a cpu=4 @n1 running
    job big created=1
      task a cpu=8
    job small created=2
      task a cpu=1 x2";

#[test]
fn cycle__head_of_line() {
    assert_eq!(
        decide(&config("headOfLine: off"), BIG_HEAD),
        "bind small-a-0 n1\nbind small-a-1 n1"
    );
    let cycle = World::new(&config("headOfLine: queue"), BIG_HEAD).cycle();
    assert_eq!(cycle.decisions(), "");
    let reported = "waiting behind job default/big of the same queue";
    assert!(cycle.all().contains(reported), "{}", cycle.all());
}

#[test]
fn cycle__head_of_line_that_can_never_run_blocks_nobody() {
    let too_big = BIG_HEAD.replace("cpu=8\n    job small", "cpu=9\n    job small");
    assert_ne!(too_big, BIG_HEAD);
    let decided = decide(&config("headOfLine: queue"), &too_big);
    assert_eq!(decided, "bind small-a-0 n1\nbind small-a-1 n1");
}
