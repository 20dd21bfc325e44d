//! Laws of the cluster state under random events: every sum and index is right after each one, and
//! what came and went leaves no trace.

use proptest::collection::vec;
use proptest::prelude::*;
use vc_model::{
    Cluster, ClusterEvent, ContainerRecord, InclusionPolicy, LabelSelector, Labels, NodeRecord,
    ObjectKey, Operator, PodAffinity, PodGroupPhase, PodGroupRecord, PodGroupStatus, PodPhase,
    PodRecord, PodSelector, PodTerm, PreferredPodTerm, PriorityClassRecord, QueueRecord, ReadAfter,
    Requirement, ResourceList, Settings, SpreadConstraint, SubGroupPolicy, Taint, TaintEffect,
    TaskStatus, Unsatisfiable,
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
enum ModelStep {
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

fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
    let rule = |operator, values: &[&str]| Requirement {
        key: "idx".into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    };
    (0..6u8, 0..3u8).prop_map(move |(kind, n)| {
        let n = n.to_string();
        let expressions = match kind {
            0 => return None,
            1 => vec![],
            2 => vec![rule(Operator::NotIn, &[&n])],
            3 => vec![rule(Operator::In, &[&n, "9"])],
            4 => vec![rule(Operator::In, &[])],
            _ => vec![rule(Operator::In, &["0", "1"]), rule(Operator::In, &[&n])],
        };
        Some(LabelSelector { match_expressions: expressions, ..LabelSelector::default() })
    })
}

fn topology_key() -> impl Strategy<Value = std::sync::Arc<str>> {
    (0..3usize).prop_map(|n| ["zone", "kubernetes.io/hostname", ""][n].into())
}

fn terms() -> impl Strategy<Value = Vec<PodTerm>> {
    let in_namespace = (0..3u8).prop_map(|n| {
        let env =
            Requirement { key: "env".into(), operator: Operator::NotIn, values: vec!["1".into()] };
        let selector = LabelSelector { match_expressions: vec![env], ..LabelSelector::default() };
        (1 < n).then_some(selector)
    });
    let term = (selector(), topology_key(), in_namespace).prop_map(|(labels, topology_key, by)| {
        let namespaces = if by.is_none() { vec!["ns".into()] } else { vec![] };
        let pods = PodSelector { namespaces, namespace_selector: by, labels };
        PodTerm { pods, topology_key }
    });
    vec(term, 0..3)
}

fn affinity() -> impl Strategy<Value = PodAffinity> {
    let preferred = || {
        terms().prop_map(|terms| {
            let weighted = |(n, term)| PreferredPodTerm { weight: n as i32 + 1, term };
            terms.into_iter().enumerate().map(weighted).collect()
        })
    };
    (terms(), terms(), preferred(), preferred()).prop_map(
        |(required, anti_required, preferred, anti_preferred)| PodAffinity {
            required,
            anti_required,
            preferred,
            anti_preferred,
        },
    )
}

fn spread() -> impl Strategy<Value = Vec<SpreadConstraint>> {
    let policy = |honor| if honor { InclusionPolicy::Honor } else { InclusionPolicy::Ignore };
    let hard = |hard| match hard {
        true => Unsatisfiable::DoNotSchedule,
        false => Unsatisfiable::ScheduleAnyway,
    };
    let flags = [any::<bool>(), any::<bool>(), any::<bool>()];
    let constraint =
        (selector(), topology_key(), flags).prop_map(move |(labels, topology_key, flags)| {
            SpreadConstraint {
                topology_key,
                labels,
                when: hard(flags[0]),
                node_affinity: policy(flags[1]),
                node_taints: policy(flags[2]),
                ..SpreadConstraint::default()
            }
        });
    vec(constraint, 0..3)
}

prop_compose! {
    fn pod()(
        name in 0..6u8, uid in 0..2u8, job in 0..4u8, node in 0..4u8, phase in 0..5usize,
        deleting in any::<bool>(), requests in amounts(), init in amounts(),
        labels in labels(), role in 0..2u8, gates in 0..3u8, ours in 0..4u8,
        affinity in affinity(), spread in spread(), wants in 0..4u8,
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
            pod_affinity: (wants & 1 == 1).then(|| affinity.into()),
            spread: if wants & 2 == 2 { spread } else { vec![] },
            node_selector: (wants == 3).then(|| [("zone".into(), "a".into())].into()),
            priority: Some(i32::from(name)),
            containers: vec![container(requests)],
            init_containers: vec![container(init)],
            scheduling_gates: gates.map(Into::into).collect(),
            ..PodRecord::default()
        }
    }
}

prop_compose! {
    fn node()(
        name in 1..4u8, allocatable in amounts(), selected in 0..4u8, zone in 0..3usize,
        tainted in any::<bool>(), images in vec(0..3u8, 0..4),
    ) -> NodeRecord {
        let zone = ["a", "b", "c"][zone];
        let host = ("kubernetes.io/hostname".into(), name.to_string().into());
        let effect = TaintEffect::NoSchedule;
        let taint = Taint { key: "k".into(), value: "v".into(), effect };
        let selected = if selected == 0 { "no" } else { "yes" };
        NodeRecord {
            name: format!("n{name}").into(),
            labels: [("pool".into(), selected.into()), ("zone".into(), zone.into()), host].into(),
            images: images.iter().map(|n| (n.to_string().into(), i64::from(name))).collect(),
            taints: if tainted { vec![taint] } else { vec![] },
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
            controller_uid: None,
            controller_kind: None,
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

fn read_after() -> impl Strategy<Value = ReadAfter> {
    prop_oneof![Just(ReadAfter::Bind), Just(ReadAfter::Eviction), Just(ReadAfter::Nomination)]
}

fn events() -> impl Strategy<Value = ClusterEvent> {
    let key = |of: &str, n: u8| ObjectKey::new("ns", &format!("{of}{n}"));
    prop_oneof![
        12 => pod().prop_map(|pod| ClusterEvent::PodApplied(Box::new(pod))),
        1 => (pod(), read_after()).prop_map(|(pod, after)| ClusterEvent::PodRead {
            pod: Box::new(pod),
            after,
        }),
        3 => (0..6u8, 0..2u8).prop_map(move |(name, uid)| ClusterEvent::PodDeleted {
            key: key("p-", name),
            uid: format!("{name}/{uid}").into(),
        }),
        4 => node().prop_map(|node| ClusterEvent::NodeApplied(Box::new(node))),
        2 => (0..3u8).prop_map(|env| ClusterEvent::NamespaceApplied {
            name: "ns".into(),
            labels: Labels::from([("env".into(), env.to_string().into())]),
        }),
        1 => Just(ClusterEvent::NamespaceDeleted { name: "ns".into() }),
        2 => (1..4u8).prop_map(|n| ClusterEvent::NodeDeleted { name: format!("n{n}").into() }),
        4 => group().prop_map(|group| ClusterEvent::PodGroupApplied(Box::new(group))),
        1 => (1..4u8).prop_map(move |n| ClusterEvent::PodGroupDeleted { key: key("j", n) }),
        1 => (1..4u8, 1..9u32).prop_map(move |(n, version)| ClusterEvent::PodGroupWritten {
            key: key("j", n),
            resource_version: version.to_string().into(),
            status: Box::default(),
        }),
        1 => (1..4u8).prop_map(move |n| ClusterEvent::PodGroupFailed {
            key: key("j", n),
            status: Box::default(),
        }),
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

fn steps() -> impl Strategy<Value = ModelStep> {
    prop_oneof![
        20 => events().prop_map(ModelStep::Event),
        2 => (0..6u8, 1..4u8).prop_map(|(task, node)| ModelStep::Bind(task, node)),
        2 => (0..6u8).prop_map(ModelStep::Evict),
        1 => (1..4u8, any::<bool>()).prop_map(|(job, admit)| ModelStep::Decide(job, admit)),
        1 => Just(ModelStep::Recycle),
    ]
}

fn new_cluster() -> Cluster {
    let node_selector = vec![("pool".into(), "yes".into())];
    Cluster::new(Settings { node_selector, bare_pods: true, ..Settings::default() })
}

fn take(cluster: &mut Cluster, step: ModelStep) {
    let task =
        |cluster: &Cluster, n: u8| cluster.task_named(&ObjectKey::new("ns", &format!("p-{n}")));
    match step {
        ModelStep::Event(event) => cluster.apply(event),
        ModelStep::Recycle => cluster.recycle(),
        ModelStep::Decide(job, admit) => {
            let job = cluster.job(&ObjectKey::new("ns", &format!("j{job}")));
            let phase = if admit { PodGroupPhase::Inqueue } else { PodGroupPhase::Running };
            if let Some(job) = job {
                cluster.set_phase(job, phase);
                if let Some(group) = &mut cluster.jobs[job].pod_group {
                    group.status_in_flight = true;
                }
            }
        }
        ModelStep::Bind(n, node) => {
            let (task, node) = (task(cluster, n), cluster.node(&format!("n{node}")));
            let (Some(task), Some(_)) = (task, node) else { return };
            if cluster.tasks[task].status == TaskStatus::Pending {
                cluster.set_task(task, TaskStatus::Binding, node);
            }
        }
        ModelStep::Evict(n) => {
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
        for name in ["default", "q1", "q2"] {
            cluster.apply(ClusterEvent::QueueDeleted { name: name.into() });
        }
        prop_assert_eq!(cluster.check(), Ok(()));
        cluster.recycle();
        prop_assert_eq!(cluster.check(), Ok(()));
        prop_assert!(cluster.queues.is_empty() && cluster.queue("q1").is_none());
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
                (TaskStatus::Pending, Some(_), 2) => {
                    cluster.set_task(task, TaskStatus::Allocated, node);
                    cluster.set_task(task, TaskStatus::Binding, node);
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
        // Counts by domain are a function of the rows, which the check makes again.
        prop_assert_eq!(cluster.check(), Ok(()));
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
