//! Shared devices over cycles: what a bind writes, what a restart reads, what an undone attempt
//! leaves, and who gets the devices of pods that leave. Specification: plugins-nodes.md 16.

use std::sync::Arc;

use vc_conf::Config;
use vc_engine::{Effect, Sample};

use crate::support::*;

const VGPU: &str =
    "volcano.sh/vgpu-number=20 volcano.sh/vgpu-memory=40000 volcano.sh/vgpu-cores=200";
const CARDS: &str =
    "GPU-0,10,20000,NVIDIA-A,true,hami-core:GPU-1,10,20000,NVIDIA-A,true,hami-core:";
const IDS: &str = "volcano.sh/vgpu-ids-new";

fn config(actions: &str, arguments: &str) -> Config {
    conf(actions, &format!("priority gang conformance | predicates deviceshare{{* {arguments}}}"))
}

fn vgpu(actions: &str) -> Config {
    config(actions, "deviceshare.VGPUEnable=true")
}

/// A node with two cards of 20000 MiB.
fn node(name: &str) -> String {
    format!("node {name} cpu=64 {VGPU} annotation.volcano.sh/node-vgpu-register={CARDS}\n")
}

fn memory(mib: u32) -> String {
    format!("cpu=1 volcano.sh/vgpu-memory={mib}")
}

fn annotations(cycle: &Cycle, pod: &str) -> Vec<(Arc<str>, Arc<str>)> {
    let mut binds = cycle.effects.iter().filter_map(|effect| match effect {
        Effect::Bind { pod, annotations, .. } => Some((pod, annotations)),
        _ => None,
    });
    let (_, annotations) = binds.find(|(bound, _)| &*bound.name == pod).expect("a bind");
    annotations.clone()
}

/// The devices of a pod by its annotation, `-` without one.
fn devices(world: &World, pod: &str) -> String {
    world.pod(pod).annotations.get(IDS).map_or("-", |devices| &**devices).to_owned()
}

#[test]
fn a_bind_names_the_devices() {
    let text = format!("{}job j\n task a {}", node("n1"), memory(5000));
    let mut world = World::new(&vgpu("allocate"), &text);
    let seconds = (world.now_micros() / 1_000_000).to_string();
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind j-a n1");
    let written = annotations(&cycle, "j-a");
    let written: Vec<(&str, &str)> =
        written.iter().map(|(key, value)| (&**key, &**value)).collect();
    let expected = [
        ("volcano.sh/bind-phase", "allocating"),
        ("volcano.sh/bind-time", seconds.as_str()),
        ("volcano.sh/devices-to-allocate", "GPU-1,NVIDIA,5000,0:"),
        (IDS, "GPU-1,NVIDIA,5000,0:"),
        ("volcano.sh/vgpu-node", "n1"),
        ("volcano.sh/vgpu-time", seconds.as_str()),
    ];
    assert_eq!(written, expected);
}

#[test]
fn a_restart_reads_the_devices_of_pods() {
    let config =
        config("allocate", "deviceshare.VGPUEnable=true deviceshare.SchedulePolicy=binpack");
    let gang =
        |name: &str, mib| format!("job {name} min=2\n task a {0}\n task b {0}\n", memory(mib));
    let mut world = World::new(&config, &format!("{}{}", node("n1"), gang("old", 12000)));
    assert_eq!(world.cycle().decisions(), "bind old-a n1\nbind old-b n1");
    world.kubelets();
    for restarts in [false, true] {
        let (new, more) = (format!("new{restarts}"), format!("more{restarts}"));
        if restarts {
            world.restart(&config);
        }
        // 8000 MiB are left of each card.
        world.add(&gang(&new, 9000));
        assert_eq!(world.cycle().decisions(), "");
        world.add(&format!("job {more}\n task a {}", memory(3000)));
        assert_eq!(world.cycle().decisions(), format!("bind {more}-a n1"));
        assert_eq!(devices(&world, &format!("{more}-a")), "GPU-0,NVIDIA,3000,0:");
        world.delete_pod(&format!("{more}-a"));
    }
}

/// Case 154: the third pod of the gang has no card, and the next job gets the cards of the others.
#[test]
fn nodes_154_a_discarded_gang_leaves_the_devices() {
    let wide = format!("job wide min=3 priority=9\n task a {} x3\n", memory(13000));
    let next = format!("job next min=2\n task a {} x2", memory(18000));
    let mut world = World::new(&vgpu("allocate"), &format!("{}{wide}{next}", node("n1")));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind next-a-0 n1\nbind next-a-1 n1");
    let reason = "1 hami-vgpuDeviceSharing error: not enough gpu fitted on this node.";
    assert!(cycle.lines.iter().any(|line| line.contains(reason)), "{:#?}", cycle.lines);
}

/// Sums have room, but no single card has, until the pod on it is gone.
#[test]
fn a_pod_is_bound_only_when_the_devices_are_free() {
    let text = format!("{}job low\n task a {} pre=true x2", node("n1"), memory(12000));
    let mut world = World::new(&vgpu("allocate, preempt"), &text);
    assert_eq!(world.cycle().decisions(), "bind low-a-0 n1\nbind low-a-1 n1");
    world.kubelets();
    world.cycle();
    world.add(&format!("job high priority=9\n task a {}", memory(16000)));
    let cycle = world.cycle();
    assert_eq!(
        cycle.decisions(),
        "evict low-a-1 preempt\npipeline high-a n1",
        "{:#?}",
        cycle.lines
    );
    // The victim terminates: 16000 MiB are idle in the sums, but its card is not.
    assert_eq!(world.cycle().decisions(), "pipeline high-a n1");
    assert_eq!(devices(&world, "high-a"), "-");
    let freed = devices(&world, "low-a-1").replace("12000", "16000");
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind high-a n1");
    assert_eq!(devices(&world, "high-a"), freed);
}

#[test]
fn a_broken_register_takes_the_devices_away_and_says_so_once() {
    let broken = node("n1").replace("GPU-1,10,20000", "GPU-1,10,?");
    let text = format!("{broken}{}job j\n task a {} x2", node("n2"), memory(15000));
    let mut world = World::new(&vgpu("allocate"), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind j-a-0 n2\nbind j-a-1 n2");
    let warning = "node n1: annotation volcano.sh/node-vgpu-register: memory of device 2 is not a \
        number: \"?\", its devices are not used\nhint: restart the vGPU device plugin of the node, \
        which writes the annotation";
    assert_eq!(cycle.report.warnings, [warning]);
    world.add(&format!("job k\n task a {}", memory(15000)));
    let cycle = world.cycle();
    assert_eq!((cycle.decisions().as_str(), &cycle.report.warnings[..]), ("", &[][..]));
    let reason = "1 hami-vgpuDeviceSharing error: no vGPU is registered on this node";
    assert!(cycle.lines.iter().any(|line| line.contains(reason)), "{:#?}", cycle.lines);
    world.add(&node("n1"));
    assert_eq!(world.cycle().decisions(), "bind k-a n1");
}

/// The samples about devices: node, device, users, memory, cores, and the pods.
fn samples(cycle: &Cycle) -> Vec<String> {
    let mut lines = Vec::new();
    for sample in &cycle.report.samples {
        let Sample::NodeDevices(node) = sample else { continue };
        lines.push(format!("{}: {} devices", node.node, node.devices.len()));
        for it in &node.devices {
            let pods: Vec<String> = it
                .pods
                .iter()
                .map(|(pod, memory, cores)| format!("{pod} {memory} {cores}"))
                .collect();
            let (n_users, memory, cores, limit) =
                (it.n_users, it.memory, it.cores, it.memory_limit);
            let device = format!("{} {n_users} {memory}/{limit} {cores}", it.device);
            lines.push(format!("{device} {}", pods.join(", ")));
        }
    }
    lines
}

#[test]
fn the_use_of_devices_is_reported_when_it_changes() {
    let mut world = World::new(&vgpu("allocate"), &node("n1"));
    let idle = ["n1: 2 devices", "GPU-0 0 0/20000 0 ", "GPU-1 0 0/20000 0 "];
    assert_eq!(samples(&world.cycle()), idle);
    assert_eq!(samples(&world.cycle()), [""; 0]);
    let words = format!("{} volcano.sh/vgpu-cores=30", memory(5000));
    world.add(&format!("job j min=2\n task a {words}\n task b {words}"));
    let busy = "GPU-1 2 10000/20000 60 j-a 5000 30, j-b 5000 30";
    assert_eq!(samples(&world.cycle()), ["n1: 2 devices", "GPU-0 0 0/20000 0 ", busy]);
    world.kubelets();
    assert_eq!(samples(&world.cycle()), [""; 0]);
    world.delete_pod("j-a");
    let less = "GPU-1 1 5000/20000 30 j-b 5000 30";
    assert_eq!(samples(&world.cycle()), ["n1: 2 devices", "GPU-0 0 0/20000 0 ", less]);
    world.configure(&vgpu("allocate"));
    assert_eq!(samples(&world.cycle()), [""; 0]);
    world.delete_node("n1");
    assert_eq!(samples(&world.cycle()), ["n1: 0 devices"]);
}

/// Case 155.
#[test]
fn nodes_155_a_locked_node_is_refused_for_five_minutes() {
    let config = config("allocate", "deviceshare.VGPUEnable=true deviceshare.NodeLockEnable=true");
    let since = |world: &World, minutes: i64| {
        let at = world.now_micros() - minutes * 60_000_000;
        vc_framework::rfc3339(at)
    };
    let job = |name: &str| format!("job {name}\n task a {}\n", memory(1000));
    let mut world = World::new(&config, &job("j"));
    let locked = format!("{} annotation.hamivgpu={}", node("n1").trim(), since(&world, 1));
    world.add(&locked);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let reason = "1 node n1 has been locked within 5 minutes.";
    assert!(cycle.lines.iter().any(|line| line.contains(reason)), "{:#?}", cycle.lines);
    // Nothing happens but that the time passes.
    world.tick(239);
    assert_eq!(world.cycle().decisions(), "");
    world.tick(1);
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
}

/// The second pod is bound when the device plugin has served the first one.
#[test]
fn nodes_155_pods_that_lock_a_node_are_bound_one_after_the_other() {
    let config = config("allocate", "deviceshare.VGPUEnable=true deviceshare.NodeLockEnable=true");
    let jobs =
        format!("job a\n task p {0}\njob b\n task p {0}\njob c\n task p cpu=1", memory(1000));
    let mut world = World::new(&config, &format!("{}{jobs}", node("n1")));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind a-p n1\nbind c-p n1");
    let locks: Vec<Option<(String, i64)>> = { cycle.effects.iter() }
        .filter_map(|effect| match effect {
            Effect::Bind { node_lock, .. } => Some(node_lock.as_ref()),
            _ => None,
        })
        .map(|lock| lock.map(|lock| (lock.annotation.to_string(), lock.now_micros)))
        .collect();
    assert_eq!(locks, [Some(("hamivgpu".to_owned(), world.now_micros())), None]);
    // The edge has locked the node, and the pod is bound.
    let lock = vc_framework::rfc3339(world.now_micros());
    world.add(&format!("{} annotation.hamivgpu={lock}", node("n1").trim()));
    assert_eq!(world.cycle().decisions(), "");
    world.add(&node("n1"));
    assert_eq!(world.cycle().decisions(), "bind b-p n1");
}

/// A gang that is given up leaves no lock, and takes a node for each of its pods.
#[test]
fn nodes_155_a_discarded_gang_locks_nothing() {
    let config = config("allocate", "deviceshare.VGPUEnable=true deviceshare.NodeLockEnable=true");
    let gang = format!("job gang min=3 priority=9\n task a {} x3\n", memory(1000));
    let single = format!("job single\n task a {}", memory(1000));
    let text = format!("{}{}{gang}{single}", node("n1"), node("n2"));
    let mut world = World::new(&config, &text);
    assert_eq!(world.cycle().decisions(), "bind single-a n1");
    // The device plugin has served that pod.
    world.add(&node("n3"));
    assert_eq!(world.cycle().decisions(), "bind gang-a-0 n1\nbind gang-a-1 n2\nbind gang-a-2 n3");
}

/// A node with two NPUs, which offers their number only.
fn npu_node(name: &str) -> String {
    let npu = |id: &str, index: u32| {
        format!(
            "{{\"id\":\"{id}\",\"index\":{index},\"count\":7,\"devmem\":21527,\"devcore\":8,\
             \"type\":\"Ascend310P\",\"health\":true}}"
        )
    };
    let register = format!("[{},{}]", npu("A", 0), npu("B", 1));
    let key = "annotation.hami.io/node-register-Ascend310P";
    format!("node {name} cpu=64 huawei.com/Ascend310P=14 {key}={register}\n")
}

/// No node offers the memory of NPUs: the choice of the NPU counts it, also after a restart.
#[test]
fn nodes_151_memory_of_npus_is_counted_by_the_choice_alone() {
    let config = config(
        "allocate",
        "deviceshare.AscendHAMiVNPUEnable=true deviceshare.SchedulePolicy=binpack",
    );
    let asked = "cpu=1 huawei.com/Ascend310P=1 huawei.com/Ascend310P-memory=12000";
    let text = format!("{}job j min=2\n task a {asked} x2\njob k\n task a {asked}", npu_node("n1"));
    let mut world = World::new(&config, &text);
    assert_eq!(world.cycle().decisions(), "bind j-a-0 n1\nbind j-a-1 n1");
    let key = "hami.io/Ascend310P-devices-allocated";
    for (pod, devices) in [("j-a-0", "A,Ascend310P,12288,0:;"), ("j-a-1", "B,Ascend310P,12288,0:;")]
    {
        assert_eq!(&*world.pod(pod).annotations[key], devices);
    }
    world.kubelets();
    world.restart(&config);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let reason = "1 no ascend device available: the request needs 1 Ascend310P with enough memory";
    assert!(cycle.lines.iter().any(|line| line.contains(reason)), "{:#?}", cycle.lines);
    world.delete_pod("j-a-0");
    assert_eq!(world.cycle().decisions(), "bind k-a n1");
}

/// The instances of a GPU that is divided, over cycles and after a restart.
#[test]
fn nodes_148_a_restart_reads_the_slots_of_a_gpu() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
        - name: deviceshare\n    arguments:\n      deviceshare.VGPUEnable: true\n      \
        deviceshare.DeviceConfig: {nvidia: {knownMigGeometries: [{models: [NVIDIA-A], \
        allowedGeometries: [{group: g, geometries: [{name: s, memory: 8000, count: 2}]}]}]}}\n";
    let config = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).unwrap().config;
    let node = node("n1").replace("hami-core", "mig");
    let mut world = World::new(&config, &format!("{node}job j min=3\n task a {} x3", memory(5000)));
    assert_eq!(world.cycle().decisions(), "bind j-a-0 n1\nbind j-a-1 n1\nbind j-a-2 n1");
    let slots = ["j-a-0", "j-a-1", "j-a-2"].map(|pod| devices(&world, pod));
    let slot = |card: u32, number: u32| format!("GPU-{card}[g-{number}],NVIDIA,8000,0:");
    assert_eq!(slots, [slot(1, 0), slot(1, 1), slot(0, 0)]);
    world.kubelets();
    world.restart(&config);
    world.delete_pod("j-a-0");
    world.add(&format!("job k\n task a {}", memory(5000)));
    assert_eq!(world.cycle().decisions(), "bind k-a n1");
    assert_eq!(devices(&world, "k-a"), slot(1, 0));
}

/// The capability of a queue limits the memory of vGPUs that its pods request.
#[test]
fn a_queue_has_a_quota_of_vgpu_memory() {
    let plugins = "priority gang | predicates capacity deviceshare{* deviceshare.VGPUEnable=true}";
    let config = conf("allocate", plugins);
    let jobs = format!("job a queue=q\n task p {0}\njob b queue=q\n task p {0}\n", memory(6000));
    let queue = "queue q cap.volcano.sh/vgpu-memory=10000\n";
    let mut world = World::new(&config, &format!("{queue}{}{jobs}", node("n1")));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind a-p n1");
    let reason = "insufficient volcano.sh/vgpu-memory";
    assert!(cycle.lines.iter().any(|line| line.contains(reason)), "{:#?}", cycle.lines);
}

/// Amounts of a queue as last written, of memory and of cores.
fn queue_amounts(cycle: &Cycle, queue: &str) -> Option<[String; 2]> {
    let of_queue = |effect: &Effect| match effect {
        Effect::QueueStatus { queue: name, allocated } if **name == *queue => {
            let amount = |wanted: &str| {
                let found = allocated.iter().find(|(name, _)| **name == *wanted);
                found.map_or_else(|| "-".to_owned(), |(_, amount)| amount.to_string())
            };
            Some(["volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"].map(amount))
        }
        _ => None,
    };
    cycle.effects.iter().rev().find_map(of_queue)
}

/// Without memory a pod gets whole cards, and memory is that of each card.
#[test]
fn nodes_161_a_queue_has_the_devices_that_its_pods_have() {
    let text = format!(
        "{}queue a parent=root\nqueue root\njob one queue=a\n task a cpu=1 \
         volcano.sh/vgpu-number=1\njob two queue=a\n task a cpu=1 volcano.sh/vgpu-number=1 \
         volcano.sh/vgpu-memory=500 volcano.sh/vgpu-cores=10",
        node("n1")
    );
    let mut world = World::new(&vgpu("allocate"), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind one-a n1\nbind two-a n1");
    let expected = Some(["20500".to_owned(), "10".to_owned()]);
    assert_eq!(queue_amounts(&cycle, "a"), expected);
    assert_eq!(queue_amounts(&cycle, "root"), expected);
    world.kubelets();
    assert_eq!(queue_amounts(&world.cycle(), "a"), None);
    world.delete_pod("one-a");
    let of_two = Some(["500".to_owned(), "10".to_owned()]);
    assert_eq!(queue_amounts(&world.cycle(), "a"), of_two);
    world.delete_pod("two-a");
    let cycle = world.cycle();
    let nothing = queue_amounts(&cycle, "a").expect("a status");
    assert!(nothing.iter().all(|amount| amount == "-" || amount == "0"), "{nothing:?}");
}
