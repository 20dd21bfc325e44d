//! Laws of the cluster state under random events: every sum and index is right after each one, and
//! what came and went leaves no trace.

use proptest::collection::vec;
use proptest::prelude::*;
use vc_model::{
    Cluster, ClusterEvent, ContainerRecord, Labels, NodeRecord, ObjectKey, PodGroupPhase,
    PodGroupRecord, PodGroupStatus, PodPhase, PodRecord, PriorityClassRecord, QueueRecord,
    ResourceList, Settings, SubGroupPolicy, TaskStatus,
};

const PHASES: [PodPhase; 5] = [
    PodPhase::Pending,
    PodPhase::Running,
    PodPhase::Succeeded,
    PodPhase::Failed,
    PodPhase::Unknown,
];

/// What happens: an event, or what a session leaves behind.
#[derive(Clone, Debug)]
enum Step {
    Event(ClusterEvent),
    /// The task of this number is handed to the binder.
    Bind(u8, u8),
    /// Its eviction is sent.
    Evict(u8),
    /// A phase of the job of this number is on its way.
    Decide(u8, bool),
    Recycle,
}

fn list(amounts: [u8; 3]) -> ResourceList {
    let names = ["cpu", "memory", "nvidia.com/gpu"].into_iter().zip(amounts);
    // 0 is absent, 1 an explicit 0.
    let entry = |(name, n): (&str, u8)| (n != 0).then(|| (name.into(), n - 1));
    let listed = names.filter_map(entry);
    listed.map(|(name, n)| (name, n.to_string().parse().expect("a number"))).collect()
}

fn amounts() -> impl Strategy<Value = ResourceList> {
    [0..4u8, 0..4u8, 0..3u8].prop_map(list)
}

fn labels() -> impl Strategy<Value = Labels> {
    (0..3u8).prop_map(|n| Labels::from([("idx".into(), n.to_string().into())]))
}

prop_compose! {
    fn pod()(
        name in 0..6u8, uid in 0..2u8, job in 0..4u8, node in 0..4u8, phase in 0..5usize,
        deleting in any::<bool>(), requests in amounts(), init in amounts(),
        labels in labels(), role in 0..2u8, gates in 0..3u8, ours in 0..4u8,
    ) -> PodRecord {
        let role = role.to_string().into();
        let mut annotations = Labels::from([("volcano.sh/task-spec".into(), role)]);
        if 0 < job {
            annotations.insert("scheduling.k8s.io/group-name".into(), format!("j{job}").into());
        }
        let container = |requests| ContainerRecord { requests, ..ContainerRecord::default() };
        let both = ["scheduling.volcano.sh/queue-allocation-gate", "x"];
        let gates = both.into_iter().take(gates.into());
        PodRecord {
            key: ObjectKey::new("ns", &format!("p-{name}")),
            uid: format!("{name}/{uid}").into(),
            deleting,
            labels,
            annotations,
            scheduler_name: if ours == 0 { "other" } else { "volcano" }.into(),
            node_name: (0 < node).then(|| format!("n{node}").into()),
            phase: PHASES[phase],
            priority: Some(i32::from(name)),
            containers: vec![container(requests)],
            init_containers: vec![container(init)],
            scheduling_gates: gates.map(Into::into).collect(),
            ..PodRecord::default()
        }
    }
}

prop_compose! {
    fn node()(name in 1..4u8, allocatable in amounts(), selected in 0..4u8) -> NodeRecord {
        let selected = if selected == 0 { "no" } else { "yes" };
        NodeRecord {
            name: format!("n{name}").into(),
            labels: Labels::from([("pool".into(), selected.into())]),
            capacity: allocatable.clone(),
            allocatable,
            ..NodeRecord::default()
        }
    }
}

prop_compose! {
    fn group()(
        name in 1..4u8, uid in 0..2u8, version in 1..9u32, min_member in 0..4i32, queue in 0..3u8,
        class in 0..3u8, policies in 0..3usize, phase in any::<bool>(),
    ) -> PodGroupRecord {
        let policy = |n: usize| SubGroupPolicy {
            name: format!("s{n}").into(),
            match_label_keys: vec!["idx".into()],
            ..SubGroupPolicy::default()
        };
        let phase = if phase { PodGroupPhase::Inqueue } else { PodGroupPhase::Pending };
        PodGroupRecord {
            key: ObjectKey::new("ns", &format!("j{name}")),
            uid: uid.to_string().into(),
            resource_version: version.to_string().into(),
            created_micros: 0,
            labels: Labels::default(),
            annotations: Labels::default(),
            owner_name: None,
            min_member,
            min_task_member: [("1".into(), min_member)].into(),
            queue: if queue == 0 { "".into() } else { format!("q{queue}").into() },
            priority_class_name: format!("c{class}").into(),
            min_resources: None,
            network_topology: None,
            sub_group_policies: (1..=policies).map(policy).collect(),
            status: PodGroupStatus { phase, ..PodGroupStatus::default() },
        }
    }
}

fn events() -> impl Strategy<Value = ClusterEvent> {
    let key = |of: &str, n: u8| ObjectKey::new("ns", &format!("{of}{n}"));
    prop_oneof![
        12 => pod().prop_map(|pod| ClusterEvent::PodApplied(Box::new(pod))),
        1 => pod().prop_map(|pod| ClusterEvent::PodResynced(Box::new(pod))),
        3 => (0..6u8, 0..2u8).prop_map(move |(name, uid)| ClusterEvent::PodDeleted {
            key: key("p-", name),
            uid: format!("{name}/{uid}").into(),
        }),
        4 => node().prop_map(|node| ClusterEvent::NodeApplied(Box::new(node))),
        2 => (1..4u8).prop_map(|n| ClusterEvent::NodeDeleted { name: format!("n{n}").into() }),
        4 => group().prop_map(|group| ClusterEvent::PodGroupApplied(Box::new(group))),
        1 => (1..4u8).prop_map(move |n| ClusterEvent::PodGroupDeleted { key: key("j", n) }),
        1 => (1..4u8, 1..9u32).prop_map(move |(n, version)| ClusterEvent::PodGroupWritten {
            key: key("j", n),
            resource_version: version.to_string().into(),
        }),
        1 => (1..4u8).prop_map(move |n| ClusterEvent::PodGroupFailed { key: key("j", n) }),
        1 => (1..3u8).prop_map(|n| {
            let name = format!("q{n}").into();
            ClusterEvent::QueueApplied(Box::new(QueueRecord { name, ..QueueRecord::default() }))
        }),
        1 => (1..3u8).prop_map(|n| ClusterEvent::QueueDeleted { name: format!("q{n}").into() }),
        1 => (0..3u8, 0..3i32, any::<bool>()).prop_map(|(n, value, global_default)| {
            let name = format!("c{n}").into();
            let class = PriorityClassRecord { name, value, global_default };
            ClusterEvent::PriorityClassApplied(class)
        }),
        1 => (0..3u8).prop_map(|n| {
            ClusterEvent::PriorityClassDeleted { name: format!("c{n}").into() }
        }),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => events().prop_map(Step::Event),
        2 => (0..6u8, 1..4u8).prop_map(|(task, node)| Step::Bind(task, node)),
        2 => (0..6u8).prop_map(Step::Evict),
        1 => (1..4u8, any::<bool>()).prop_map(|(job, admit)| Step::Decide(job, admit)),
        1 => Just(Step::Recycle),
    ]
}

fn new_cluster() -> Cluster {
    let node_selector = vec![("pool".into(), "yes".into())];
    Cluster::new(Settings { node_selector, bare_pods: true, ..Settings::default() })
}

fn take(cluster: &mut Cluster, step: Step) {
    let task =
        |cluster: &Cluster, n: u8| cluster.task_named(&ObjectKey::new("ns", &format!("p-{n}")));
    match step {
        Step::Event(event) => cluster.apply(event),
        Step::Recycle => cluster.recycle(),
        Step::Decide(job, admit) => {
            let job = cluster.job(&ObjectKey::new("ns", &format!("j{job}")));
            let phase = if admit { PodGroupPhase::Inqueue } else { PodGroupPhase::Running };
            if let Some(job) = job {
                cluster.set_phase(job, phase);
                if let Some(group) = &mut cluster.jobs[job].pod_group {
                    group.status_in_flight = true;
                }
            }
        }
        Step::Bind(n, node) => {
            let (task, node) = (task(cluster, n), cluster.node(&format!("n{node}")));
            let (Some(task), Some(_)) = (task, node) else { return };
            if cluster.tasks[task].status == TaskStatus::Pending {
                cluster.set_task(task, TaskStatus::Binding, node);
            }
        }
        Step::Evict(n) => {
            let Some(task) = task(cluster, n) else { return };
            if cluster.tasks[task].status.is_preemptable() {
                cluster.evict_task(task);
                assert_eq!(cluster.check(), Ok(()));
                cluster.tasks[task].evicting = true;
                cluster.reveal_task(task);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_sum_and_index_is_right_after_every_event(steps in vec(steps(), 1..60)) {
        let mut cluster = new_cluster();
        for step in steps {
            let shown = format!("{step:?}");
            take(&mut cluster, step);
            prop_assert_eq!(cluster.check(), Ok(()), "after {}", shown);
        }
    }

    #[test]
    fn what_came_and_went_leaves_no_trace(steps in vec(steps(), 1..60)) {
        let mut cluster = new_cluster();
        steps.into_iter().for_each(|step| take(&mut cluster, step));
        for name in 0..6 {
            let key = ObjectKey::new("ns", &format!("p-{name}"));
            cluster.apply(ClusterEvent::PodDeleted { key, uid: "".into() });
        }
        for n in 1..4 {
            let key = ObjectKey::new("ns", &format!("j{n}"));
            cluster.apply(ClusterEvent::PodGroupDeleted { key });
            cluster.apply(ClusterEvent::NodeDeleted { name: format!("n{n}").into() });
        }
        prop_assert_eq!(cluster.check(), Ok(()));
        prop_assert!(cluster.tasks.is_empty() && cluster.jobs.is_empty());
        prop_assert!(cluster.nodes.is_empty() && cluster.classes.is_empty());
        prop_assert_eq!(cluster.total_allocatable(), Default::default());
    }

    #[test]
    fn placing_and_taking_back_restores_every_sum(
        steps in vec(steps(), 1..40),
        places in vec((0..6u8, 1..4u8, 0..4u8), 1..10),
    ) {
        let mut cluster = new_cluster();
        steps.into_iter().for_each(|step| take(&mut cluster, step));
        let before = cluster.clone();
        let mut undo = Vec::new();
        for (n, node, how) in places {
            let task = cluster.task_named(&ObjectKey::new("ns", &format!("p-{n}")));
            let (Some(task), node) = (task, cluster.node(&format!("n{node}"))) else { continue };
            let (status, on) = (cluster.tasks[task].status, cluster.tasks[task].node);
            match (status, node, how) {
                (TaskStatus::Pending, Some(_), 0 | 1) => {
                    let placed = [TaskStatus::Allocated, TaskStatus::Pipelined][usize::from(how)];
                    cluster.set_task(task, placed, node);
                }
                (TaskStatus::Bound | TaskStatus::Running, ..) => cluster.evict_task(task),
                _ => continue,
            }
            undo.push((task, status, on));
            prop_assert_eq!(cluster.check(), Ok(()));
        }
        for (task, status, on) in undo.into_iter().rev() {
            match cluster.tasks[task].hidden {
                true => cluster.unevict_task(task, status),
                false => cluster.set_task(task, status, on),
            }
        }
        for (id, node) in cluster.nodes.iter() {
            prop_assert_eq!(node, &before.nodes[id]);
        }
        for (id, job) in cluster.jobs.iter() {
            let old = &before.jobs[id];
            prop_assert_eq!(&job.counts, &old.counts);
            prop_assert_eq!(&job.roles, &old.roles);
            prop_assert_eq!(&job.sub_jobs, &old.sub_jobs);
            prop_assert_eq!(&job.allocated, &old.allocated);
            prop_assert_eq!(&job.pending_request, &old.pending_request);
        }
    }
}
