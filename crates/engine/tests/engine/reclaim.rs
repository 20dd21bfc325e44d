//! actions.md "reclaim (TR)" and what of "Across cycles" needs reclaim. The cases that need HyperNodes or a
//! capacity plugin come with those.

use vc_conf::Config;

use crate::support::*;

/// Legend TR with proportion, without priorities.
const TR: &str = "conformance{reclaimable} gang{reclaimable jobStarving} \
    proportion{reclaimable queueOrder preemptive}";
/// TR for cases that name priorities.
const TR_PRIORITY: &str = "conformance{reclaimable} gang{reclaimable jobStarving} \
    proportion{reclaimable queueOrder preemptive} priority{reclaimable jobOrder taskOrder}";
/// TR with the roll-back of gangs.
const TR_GANG: &str = "conformance{reclaimable} gang{reclaimable jobStarving jobPipelined} \
    proportion{reclaimable queueOrder preemptive}";

fn tr(tiers: &str) -> Config {
    conf("reclaim", tiers)
}

/// Who is evicted, by name.
fn evicted(config: &Config, text: &str) -> String {
    victims(&World::new(config, text).cycle())
}

fn victims(cycle: &Cycle) -> String {
    let text = cycle.only(&["evict"]);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn reclaim__basic() {
    let text = "node n1 cpu=3
        queue q1
        queue q2
        job j1 queue=q1 min=1
          task e1 cpu=1 @n1 running pre=false
          task e2 cpu=1 @n1 running pre=true
          task e3 cpu=1 @n1 running pre=false
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "j1-e2");
}

#[test]
fn reclaim__job_priority() {
    let text = "node n1 cpu=4
        queue q1
        queue q2
        queue q3
        job j1 queue=q1 min=1 priority=50
          task e cpu=1 x2 @n1 running
        job j2 queue=q2 min=1 priority=10
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=false
        job j3 queue=q3 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tr(TR_PRIORITY), text), "j2-e1");
}

#[test]
fn reclaim__queue_priority() {
    let text = "node n1 cpu=4
        queue q1 priority=5
        queue q2 priority=10
        queue q3
        job j1 queue=q1 min=1
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=false
        job j2 queue=q2 min=1
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=false
        job j3 queue=q3
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "j1-e1");
}

#[test]
fn reclaim__policy_never() {
    let text = "node n1 cpu=1 pods=1
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 @n1 running
        job j2 queue=q2
          task p cpu=1 never";
    assert_eq!(evicted(&tr(TR), text), "");
}

#[test]
fn reclaim__closed_proportion() {
    let text = "node n1 cpu=2
        queue q1
        queue q2 state=Closed
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "");
}

#[test]
fn reclaim__never_then_ok() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=1
          task e1 cpu=1 @n1 running pre=false
          task e2 cpu=1 @n1 running pre=true
        job j2 queue=q2 min=2
          task a cpu=1 never
          task b cpu=1";
    assert_eq!(evicted(&tr(TR), text), "j1-e2");
}

#[test]
fn reclaim__never_then_ok_gang() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=1
          task e1 cpu=1 @n1 running pre=false
          task e2 cpu=1 @n1 running pre=true
        job j2 queue=q2 min=2
          task a cpu=1 never
          task b cpu=1";
    assert_eq!(evicted(&tr(TR_GANG), text), "");
}

#[test]
fn reclaim__room_first() {
    let text = "node n1 cpu=10
        queue q1
        queue q2 weight=9
        job j1 queue=q1 min=0
          task v cpu=2 @n1 running
        job j2 queue=q2
          task p cpu=3";
    assert_eq!(evicted(&tr(TR), text), "");
}

#[test]
fn reclaim__not_reclaimable() {
    let text = "node n1 cpu=2
        queue q1 reclaimable=false
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "");
}

#[test]
fn reclaim__reclaimable_unless_said() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "j1-v-1");
}

#[test]
fn reclaim__same_queue() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q2 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "");
}

#[test]
fn reclaim__gang_rollback() {
    let text = "node n1 cpu=4
        queue q1
        queue q2 weight=3
        job j1 queue=q1 min=2
          task v cpu=1 x4 @n1 running
        job j2 queue=q2 min=3
          task p cpu=1 x3";
    assert_eq!(evicted(&tr(TR_GANG), text), "");
}
