//! More of something than anybody has: slower is allowed, quadratic is not, and nothing breaks.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase, SubGroupPolicy};
use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS};
use crate::load::{apply, base, events, gang, pending_gangs};
use crate::objects::{Gang, Shape, queue};
use crate::queues::{in_turn, name};

/// Of every node: 200 on 5,000 nodes are a million.
const N_LABELS: usize = 200;
/// Different ones, of which each node has one.
const N_RESOURCES: u64 = 500;
/// Label by whose values the pods of a job are in sub-groups.
const SUB_GROUP: &str = "example.com/sub-group";
/// Pods of a sub-group.
const SUB_GROUP_SIZE: u64 = 2;

const SMALL: Shape = Shape { cpu_milli: 100, memory_gi: 1 };

/// Nodes have many labels, and pods ask for one of them.
pub(crate) fn load_labels(case: &Case, engine: &mut Engine) {
    let labelled = |mut event: ClusterEvent| {
        if let ClusterEvent::NodeApplied(node) = &mut event {
            for index in 0..N_LABELS {
                node.labels.insert(format!("example.com/label-{index}").into(), "yes".into());
            }
        }
        event
    };
    let asking = |mut event: ClusterEvent| {
        if let ClusterEvent::PodApplied(pod) = &mut event {
            let label = format!("example.com/label-{}", pod.key.name.len() % N_LABELS);
            pod.node_selector = Some([(label.into(), "yes".into())].into());
        }
        event
    };
    let gangs = pending_gangs(case, PodGroupPhase::Pending, |_| SMALL);
    apply(engine, base(case).map(labelled).chain(gangs.map(asking)));
}

/// No two gangs are alike.
pub(crate) fn load_shapes(case: &Case, engine: &mut Engine) {
    let shape = |number: u64| Shape {
        cpu_milli: 100 + (number % 100) as i64,
        memory_gi: 1 + (number / 100 % 50) as i64,
    };
    apply(engine, base(case).chain(pending_gangs(case, PodGroupPhase::Pending, shape)));
}

/// Each node has one of many resources.
pub(crate) fn load_resources(case: &Case, engine: &mut Engine) {
    let with_resource = |mut event: ClusterEvent| {
        if let ClusterEvent::NodeApplied(node) = &mut event {
            let number = node.name.rsplit('-').next().and_then(|text| text.parse::<u64>().ok());
            let name = format!("example.com/device-{}", number.unwrap_or(0) % N_RESOURCES);
            node.allocatable.push((name.into(), Quantity::from_value(8)));
        }
        event
    };
    let gangs = pending_gangs(case, PodGroupPhase::Pending, |_| SMALL);
    apply(engine, base(case).map(with_resource).chain(gangs));
}

/// One node runs all the pods there are.
pub(crate) fn load_one_node(case: &Case, engine: &mut Engine) {
    let large = |mut event: ClusterEvent| {
        if let ClusterEvent::NodeApplied(node) = &mut event
            && &*node.name == "node-00000"
        {
            for (name, amount) in &mut node.allocatable {
                let value = if &**name == "memory" { 1 << 50 } else { 1 << 20 };
                *amount = Quantity::from_value(value);
            }
        }
        event
    };
    let created_micros = START_MICROS - 86_400_000_000;
    let running = gang(0, case.n_running, SMALL, PodGroupPhase::Running, created_micros);
    let running = events(&running, |_| Some(0));
    let gangs = pending_gangs(case, PodGroupPhase::Pending, |_| SMALL);
    apply(engine, base(case).map(large).chain(running).chain(gangs));
}

/// All pods are of one gang.
pub(crate) fn load_one_gang(case: &Case, engine: &mut Engine) {
    apply(engine, base(case).chain(pending_gangs(case, PodGroupPhase::Pending, |_| SMALL)));
}

/// All pods are of one job that begins with any of them and grows as it can; where it does not fit, each
/// of them is too large for every node.
pub(crate) fn load_one_job(case: &Case, engine: &mut Engine) {
    let shape = if case.fits { SMALL } else { Shape { cpu_milli: 1_000_000, ..SMALL } };
    let created_micros = START_MICROS - 3_600_000_000;
    let job = gang(0, case.n_pending, shape, PodGroupPhase::Pending, created_micros);
    let job = events(&Gang { min_member: 1, ..job }, |_| None);
    let without_roles = job.into_iter().map(|mut event| {
        if let ClusterEvent::PodGroupApplied(group) = &mut event {
            group.min_task_member = Default::default();
        }
        event
    });
    apply(engine, base(case).chain(without_roles));
}

/// Half of a job runs, and there is room for the other half.
pub(crate) fn load_grown_job(case: &Case, engine: &mut Engine) {
    let created_micros = START_MICROS - 3_600_000_000;
    let n_pods = case.n_running + case.n_pending;
    let job = gang(0, n_pods, SMALL, PodGroupPhase::Running, created_micros);
    let node = |index| (index < case.n_running).then_some(index % case.n_nodes);
    let job = events(&Gang { min_member: 1, ..job }, node);
    apply(engine, base(case).chain(job));
}

/// All pods are of one job, which grows by one sub-group after the other.
pub(crate) fn load_sub_groups(case: &Case, engine: &mut Engine) {
    apply(engine, base(case).chain(in_sub_groups(case, SUB_GROUP_SIZE)));
}

/// The same where the job needs them all.
pub(crate) fn load_all_sub_groups(case: &Case, engine: &mut Engine) {
    apply(engine, base(case).chain(in_sub_groups(case, case.n_pending)));
}

fn in_sub_groups(case: &Case, min_member: u64) -> impl Iterator<Item = ClusterEvent> {
    let created_micros = START_MICROS - 3_600_000_000;
    let job = gang(0, case.n_pending, SMALL, PodGroupPhase::Pending, created_micros);
    let mut n_pods = 0;
    events(&Gang { min_member, ..job }, |_| None).into_iter().map(move |mut event| {
        match &mut event {
            ClusterEvent::PodGroupApplied(group) => {
                group.min_task_member = Default::default();
                group.sub_group_policies = vec![policy()];
            }
            ClusterEvent::PodApplied(pod) => {
                let value = (n_pods / SUB_GROUP_SIZE).to_string();
                pod.labels.insert(SUB_GROUP.into(), value.into());
                n_pods += 1;
            }
            _ => {}
        }
        event
    })
}

fn policy() -> SubGroupPolicy {
    SubGroupPolicy {
        name: "group".into(),
        network_topology: None,
        sub_group_size: i32::try_from(SUB_GROUP_SIZE).ok(),
        min_sub_groups: 1,
        label_selector: None,
        match_label_keys: vec![SUB_GROUP.into()],
    }
}

/// As many queues as gangs.
pub(crate) fn load_queues(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_pending / case.gang_size;
    let queues =
        (0..n_queues).map(|number| ClusterEvent::QueueApplied(Box::new(queue(&name(number)))));
    let gangs = pending_gangs(case, PodGroupPhase::Pending, |_| SMALL);
    apply(engine, base(case).chain(queues).chain(in_turn(gangs, n_queues)));
}
