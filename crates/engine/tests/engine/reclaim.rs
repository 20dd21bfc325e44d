//! actions.md "reclaim (TR)" and what of "Across cycles" needs reclaim. The cases with HyperNodes are
//! in `hyper_node_evictions`.

use vc_conf::Config;
use vc_model::{
    ClusterEvent, HostPort, NodeShardRecord, Protocol, Settings, Sharding, ShardingMode,
};

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
fn reclaim__closed_capacity() {
    let text = "node n1 cpu=2
        queue q1
        queue q2 state=Closed deserved.cpu=2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    let capacity = TR.replace("proportion", "capacity");
    assert_eq!(evicted(&tr(&capacity), text), "");
    assert_eq!(evicted(&tr(&capacity), &text.replace("state=Closed", "")).len(), "j1-v-0".len());
}

/// 11 slots make 5.5 each: who has 5 must not take a sixth, or the two take turns for ever.
#[test]
fn reclaim__an_odd_number_of_slots_is_not_fought_over() {
    let config = conf("allocate, reclaim", "gang{jobStarving} conformance proportion predicates");
    for (n_of_q1, n_of_q2, expected) in [(6, 5, 0), (7, 4, 1)] {
        let text = format!(
            "node n1 cpu=64 pods=11
             queue q1
             queue q2
             job j1 queue=q1 min=10
               task v cpu=1 x{n_of_q1} @n1 running
               task w cpu=1 x5
             job j2 queue=q2 min=10
               task v cpu=1 x{n_of_q2} @n1 running
               task w cpu=1 x6"
        );
        let mut world = World::new(&config, &text);
        let mut n_evicted = 0;
        for _ in 0..8 {
            n_evicted += victims(&world.cycle()).split_whitespace().count();
            world.kubelets_and_controllers();
        }
        assert_eq!(n_evicted, expected, "{n_of_q1} {n_of_q2}");
    }
}

/// Both want the cpu of n1, of which neither has too much; elsewhere q1 has too many gpus and q2 too
/// much memory, which is no reason to give cpu away.
#[test]
fn reclaim__what_a_queue_has_too_much_of_is_taken_and_nothing_else() {
    let config = conf("allocate, reclaim", "gang{jobStarving} conformance proportion predicates");
    let text = "node n1 cpu=4 disk=ssd
        node n2 cpu=40 memory=20Gi nvidia.com/gpu=4
        queue q1
        queue q2
        job j1 queue=q1 min=12
          task v cpu=1 x4 @n1 running selector.disk=ssd
          task g nvidia.com/gpu=1 x3 @n2 running
          task w cpu=1 x5 selector.disk=ssd
        job j2 queue=q2 min=12
          task m memory=5Gi x3 @n2 running
          task g nvidia.com/gpu=1 @n2 running
          task h nvidia.com/gpu=1 never
          task w cpu=1 x7 selector.disk=ssd
        job j3 queue=q1 min=0
          task m memory=5Gi @n2 running
          task n memory=5Gi x2";
    let mut world = World::new(&config, text);
    let mut evicted = Vec::new();
    for _ in 0..8 {
        evicted.extend(victims(&world.cycle()).split_whitespace().map(str::to_owned));
        world.kubelets_and_controllers();
    }
    assert_eq!(evicted, [""; 0]);
}

/// q1 has too much memory and q2 too much cpu: each may take by the dimension that it has too
/// little of, and the other could take back at once.
#[test]
fn reclaim__queues_that_exceed_different_dimensions_do_not_take_turns() {
    let config = conf("allocate, reclaim", "gang{jobStarving} conformance capacity predicates");
    let deserved = "deserved.cpu=10 deserved.memory=10Gi";
    for (second, expected) in [(deserved, 0), ("", 1)] {
        let text = format!(
            "node n1 cpu=20 memory=20Gi
             queue q1 {deserved}
             queue q2 {second}
             job j1 queue=q1 min=6
               task v cpu=1 memory=3Gi x5 @n1 running
               task w cpu=1 memory=1Gi
             job j2 queue=q2 min=6
               task v cpu=3 memory=1Gi x5 @n1 running
               task w cpu=1 memory=1Gi"
        );
        let mut world = World::new(&config, &text);
        let mut n_evicted = 0;
        for _ in 0..20 {
            n_evicted += victims(&world.cycle()).split_whitespace().count();
            world.kubelets_and_controllers();
        }
        assert_eq!(n_evicted, expected, "{second}");
    }
}

/// One of the two reclaimers may have nobody evicted.
const NEVER_THEN_OK: &str = "node n1 cpu=2
    queue q1
    queue q2
    job j1 queue=q1 min=1
      task e1 cpu=1 @n1 running pre=false
      task e2 cpu=1 @n1 running pre=true
    job j2 queue=q2 min=2
      task a cpu=1 never
      task b cpu=1";

#[test]
fn reclaim__never_then_ok() {
    assert_eq!(evicted(&tr(TR), NEVER_THEN_OK), "j1-e2");
}

#[test]
fn reclaim__never_then_ok_gang() {
    assert_eq!(evicted(&tr(TR_GANG), NEVER_THEN_OK), "");
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

/// Who loses what is not asked by shares, so that a case can be about something else.
const ANYONE: &str = "conformance{reclaimable} gang{reclaimable jobStarving jobPipelined}";

#[test]
fn reclaim__idle_counts() {
    let text = "node n1 cpu=10 memory=2Gi
        queue q1 priority=1
        queue q2 priority=2
        queue q3 priority=3 weight=4
        job j1 queue=q1 min=0
          task v cpu=1 memory=1Gi @n1 running
        job j2 queue=q2 min=0
          task v cpu=1 memory=1Gi @n1 running
        job j3 queue=q3
          task p cpu=2 memory=1Gi";
    assert_eq!(evicted(&tr(TR), text), "j1-v");
}

#[test]
fn reclaim__bound() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 bound
        job j2 queue=q2
          task p cpu=1";
    assert_eq!(evicted(&tr(TR), text), "");
    let with_bound = with_arguments(tr(TR), "reclaim", "{reclaimBoundTasks: true}");
    assert_eq!(evicted(&with_bound, text), "j1-v-1");
}

#[test]
fn reclaim__overused() {
    let text = "node n1 cpu=4 pods=4
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job r queue=q2 min=0
          task v cpu=1 x2 @n1 running
        job j2 queue=q2
          task p cpu=1";
    let tiers = format!("{ANYONE} proportion{{queueOrder overused}}");
    assert_eq!(evicted(&tr(&tiers), text), "");
    assert_eq!(evicted(&tr(&tiers.replace(" overused", "")), text), "j1-v-1");
}

#[test]
fn reclaim__one_job_per_pop() {
    let text = "node n1 cpu=4 pods=4
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x4 @n1 running
        job first queue=q2 min=2 created=0
          task p cpu=1 x2
        job second queue=q2 created=1
          task p cpu=1";
    let tiers = format!("{ANYONE} proportion{{queueOrder overused}}");
    assert_eq!(evicted(&tr(&tiers), text), "j1-v-2 j1-v-3");
    assert_eq!(evicted(&tr(&tiers.replace(" overused", "")), text), "j1-v-1 j1-v-2 j1-v-3");
}

#[test]
fn reclaim__second_member() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=2 @n1 running
        job j2 queue=q2 min=2
          task p cpu=1 x2";
    let decided = "evict j1-v reclaim\npipeline j2-p-0 n1\npipeline j2-p-1 n1";
    assert_eq!(decide(&tr(ANYONE), text), decided);
    let free_node = "node n1 cpu=1
        node n2 cpu=1
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 @n1 running
        job j2 queue=q2 min=2
          task p cpu=1 x2";
    let decided = "evict j1-v reclaim\npipeline j2-p-0 n2\npipeline j2-p-1 n1";
    assert_eq!(decide(&tr(ANYONE), free_node), decided);
}

#[test]
fn reclaim__filter_again() {
    // v2 goes first, v1 holds the port that is needed.
    let text = |v1: u32| {
        format!(
            "node n1 cpu={}
            queue q1
            queue q2
            job j1 queue=q1 min=0
              task v-1 cpu={v1} @n1 running
              task v-2 cpu=2 @n1 running
            job j2 queue=q2
              task p cpu=2",
            v1 + 2
        )
    };
    let reclaim = |v1: u32, trim: bool| {
        let config = tr(&format!("{ANYONE} predicates"));
        let config = with_arguments(config, "reclaim", &format!("{{trimVictims: {trim}}}"));
        let mut world = World::new(&config, &text(v1));
        for pod in ["j1-v-1", "j2-p"] {
            world.edit(pod, |pod| pod.containers[0].host_ports.push(host_port()));
        }
        victims(&world.cycle())
    };
    assert_eq!(reclaim(1, true), "j1-v-1 j1-v-2");
    assert_eq!(reclaim(2, false), "j1-v-1 j1-v-2");
    assert_eq!(reclaim(2, true), "j1-v-1");
}

fn host_port() -> HostPort {
    HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port: 8080 }
}

#[test]
fn reclaim__shard() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job j2 queue=q2
          task p cpu=1";
    for mode in [ShardingMode::Hard, ShardingMode::Soft] {
        for (shard, victim) in [("n1", "j1-a"), ("n2", "j1-b")] {
            let sharding = Sharding { mode, name: "s".into() };
            let options = Settings { sharding, ..Settings::default() };
            let mut all = objects("queue default");
            all.extend(objects(text));
            let mut world = World::with(options, &tr(ANYONE), all);
            world.send(ClusterEvent::NodeShardApplied(Box::new(NodeShardRecord {
                name: "s".into(),
                nodes_desired: vec![shard.into()],
                nodes_in_use: vec![shard.into()],
                ..NodeShardRecord::default()
            })));
            assert_eq!(victims(&world.cycle()), victim, "{mode:?}");
        }
    }
}

/// Numbers of issue 4947: q1 deserves 3 and uses 4, q2 deserves 5, uses 1 and waits with 4.
const ISSUE_4947: &str = "node n1 cpu=8
    queue q1 weight=3
    queue q2 weight=5
    job a queue=q1
      task p cpu=4 @n1 running
    job b queue=q2
      task p cpu=1 @n1 running
    job c queue=q2
      task p cpu=4";

/// Evictions and binds of twelve cycles with kubelets and controllers that do their part.
fn live(config: &Config, text: &str) -> Vec<String> {
    let mut world = World::new(config, text);
    let mut all = Vec::new();
    for _ in 0..12 {
        let decided = world.cycle().only(&["evict", "bind"]);
        all.extend(decided.lines().map(str::to_owned));
        world.kubelets_and_controllers();
        world.tick(1);
    }
    all
}

#[test]
fn cycle__claim() {
    let tiers = "gang{jobReady jobPipelined jobStarving} conformance{reclaimable} \
        priority{jobOrder} proportion{reclaimable queueOrder preemptive} predicates";
    let config = conf("allocate, reclaim", tiers);
    let story = live(&config, ISSUE_4947);
    assert_eq!(story, ["evict a-p reclaim", "bind c-p n1"]);
    let off = with_arguments(config, "allocate", "{claimFirst: false}");
    let story = live(&off, ISSUE_4947);
    let n_evictions = story.iter().filter(|line| line.starts_with("evict")).count();
    assert!(1 < n_evictions, "{story:?}");
}

#[test]
fn cycle__same_queue_first() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job mine queue=q2 priority=10 min=0
          task v cpu=1 @n1 running
        job theirs queue=q1 priority=10 min=0
          task v cpu=1 @n1 running
        job j queue=q2 priority=100
          task p cpu=1";
    let tiers = "conformance gang priority{jobOrder taskOrder preemptable jobStarving}";
    assert_eq!(evicted(&conf("preempt, reclaim", tiers), text), "mine-v");
    assert_eq!(evicted(&conf("reclaim, preempt", tiers), text), "theirs-v");
}

#[test]
fn log__reclaim() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job j1 queue=q1 min=0
          task v cpu=1 x2 @n1 running
        job huge queue=q2 created=0
          task p cpu=9
        job j2 queue=q2 created=1
          task p cpu=1";
    let logged = |tiers: &str| {
        let mut world = World::new(&tr(tiers), text);
        log_of(|| {
            world.cycle();
        })
    };
    let log = logged(&format!("{ANYONE} proportion{{queueOrder}}"));
    let expected = [
        "5 Enter Reclaim ...",
        "3 No validated victims on Node <n1>: not enough resources: requested <",
        "3 Try to reclaim Task <default/j1-v-1> for Tasks <default/j2-p>",
        "3 Reclaimed <",
        "3 Committing operations ...",
        "4 No preemptors in Queue <q2>, break.",
        "5 Leaving Reclaim ...",
    ];
    let mut lines = log.iter();
    for start in expected {
        assert!(lines.any(|line| line.starts_with(start)), "{start}\n{log:#?}");
    }
    let refused = "3 Queue <q2> cannot reclaim for task <default/huge-p>, skip".to_owned();
    let log = logged(&format!("{ANYONE} proportion{{queueOrder preemptive}}"));
    assert!(log.contains(&refused), "{log:#?}");
}
