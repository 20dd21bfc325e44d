//! A cluster as text, one line per object; a `task` belongs to the `job` above it. Unlike the
//! fixture of vc-model it gives the objects, which the world of a test keeps and changes as an API
//! server would.
//!
//! ```text
//! node n1 cpu=4 memory=8Gi pods=10 zone=a taint=x:NoSchedule image=web:300 annotation.KEY=text
//! queue q1 weight=2 cap.cpu=4 parent=root priority=5 state=Closed fifo note.KEY=annotation
//! job j0 topology=hard:2 policy.group=2x1:hard:name=rack    # a tier by number, one by name
//! job j1 queue=q1 min=2 role.ps=1 priority=10 minres.cpu=4 policy.group=2x1 pending
//!   task a cpu=2 @n1 running role=ps
//!   task b cpu=2 x3 nominated=n1      # three pending tasks b-0, b-1, b-2
//! pod dns cpu=1 @n1 running port=80 near=zone:db away=zone:web like=zone:db
//! pod web cpu=1 label.app=web spread=zone:1:web even=zone:1:web tolerate=x require.zone=a,b
//! pod sql near=zone:db:ns1 away=zone:db:* dislike=zone:web spread=zone:1:sql:3 image=sql
//! pod gpu pvc=claim device=resourceclaim
//! budget b label.app=a allowed=1 healthy=2
//! quota q hard.cpu=4
//! ```
//!
//! Terms of pod affinity mean the pod's namespace unless they name another or, with `*`, all. The
//! last number of `spread` is `minDomains`, that of an image its size in MiB.
//!
//! Words about node groups and strategies are those of `vc_model::fixture::node_groups`.
//!
//! Unless stated a node has 10 pod slots, a PodGroup is Inqueue with minMember 1 in queue
//! `default`, and everything was created at [`START_MICROS`].

use vc_model::*;
use vc_resource::Quantity;

/// 2026-01-01T00:00:00Z.
pub(crate) const START_MICROS: i64 = 1_767_225_600_000_000;

pub(crate) enum Object {
    Node(NodeRecord),
    Queue(QueueRecord),
    Class(PriorityClassRecord),
    Group(PodGroupRecord),
    Pod(Box<PodRecord>),
    Budget(BudgetRecord),
    Quota(QuotaRecord),
}

pub(crate) fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    let mut job: Option<ObjectKey> = None;
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
        let words: Vec<(&str, &str)> = words.map(split).collect();
        match kind {
            "node" => objects.push(Object::Node(node(name, &words))),
            "queue" => objects.push(Object::Queue(queue(name, &words))),
            "budget" => objects.push(Object::Budget(budget(name, &words))),
            "quota" => objects.push(Object::Quota(quota(name, &words))),
            "pod" => objects.extend(pods(name, &words, None)),
            "task" => objects.extend(pods(name, &words, job.as_ref())),
            "job" => {
                let (class, group) = group(name, &words);
                job = Some(group.key.clone());
                objects.extend(class.map(Object::Class));
                objects.push(Object::Group(group));
            }
            _ => panic!("unknown kind: {line}"),
        }
    }
    objects
}

/// `name`, or `namespace/name`.
pub(crate) fn key(name: &str) -> ObjectKey {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    ObjectKey::new(namespace, name)
}

fn split(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text:?}"))
}

fn micros(seconds: &str) -> i64 {
    START_MICROS + number::<i64>(seconds) * 1_000_000
}

/// Enters an amount if the word is one.
fn amount(list: &mut ResourceList, name: &str, value: &str) -> bool {
    let name = if name == "gpu" { "nvidia.com/gpu" } else { name };
    let is_device = ["volcano.sh/vgpu-", "volcano.sh/gpu-"].iter().any(|it| name.starts_with(it));
    let is_ours = name.contains("volcano.sh/") && !is_device;
    let is_extended = name.contains('/') && !is_ours && !name.starts_with("annotation.");
    let known = matches!(name, "cpu" | "memory" | "pods") || is_extended;
    if known {
        let quantity: Quantity = value.parse().unwrap_or_else(|error| panic!("{value}: {error}"));
        list.push((name.into(), quantity));
    }
    known
}

fn node(name: &str, words: &[(&str, &str)]) -> NodeRecord {
    let mut node = NodeRecord { name: name.into(), ..NodeRecord::default() };
    for &(name, value) in words {
        match name {
            "unschedulable" => node.unschedulable = true,
            "group" => {
                node.labels.insert(fixture::node_groups::LABEL.into(), value.into());
            }
            "revocable" => {
                node.labels.insert("volcano.sh/revocable-zone".into(), value.into());
            }
            "taint" => {
                let (key, effect) = value.split_once(':').expect("key:NoSchedule");
                let effect = match effect {
                    "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
                    "NoExecute" => TaintEffect::NoExecute,
                    _ => TaintEffect::NoSchedule,
                };
                node.taints.push(Taint { key: key.into(), value: "".into(), effect });
            }
            "image" => {
                let (image, mib) = value.split_once(':').expect("name:MiB");
                // As nodes list what pods name without a tag.
                node.images.push((format!("{image}:latest").into(), number::<i64>(mib) << 20));
            }
            _ if amount(&mut node.allocatable, name, value) => {}
            _ if name.starts_with("annotation.") => {
                let key = name.trim_start_matches("annotation.");
                node.annotations.insert(key.into(), value.into());
            }
            _ => {
                node.labels.insert(name.into(), value.into());
            }
        }
    }
    if !words.iter().any(|(name, _)| *name == "pods") {
        amount(&mut node.allocatable, "pods", "10");
    }
    node.capacity = node.allocatable.clone();
    node
}

fn queue(name: &str, words: &[(&str, &str)]) -> QueueRecord {
    let mut queue = QueueRecord {
        name: name.into(),
        created_micros: START_MICROS,
        weight: 1,
        reclaimable: true,
        ..QueueRecord::default()
    };
    for &(name, value) in words {
        if fixture::node_groups::enter_queue_word(&mut queue, name, value) {
            continue;
        }
        match name.split_once('.').unwrap_or((name, "")) {
            ("cap", name) => assert!(amount(&mut queue.capability, name, value)),
            ("deserved", name) => assert!(amount(&mut queue.deserved, name, value)),
            ("guarantee", name) => assert!(amount(&mut queue.guarantee, name, value)),
            ("annotation", key) => {
                queue.annotations.insert(format!("cohort.volcano.sh/{key}").into(), value.into());
            }
            ("weight", _) => queue.weight = number(value),
            ("created", _) => queue.created_micros = micros(value),
            ("priority", _) => queue.priority = number(value),
            ("parent", _) => queue.parent = value.into(),
            ("fifo", _) => queue.fifo = true,
            ("reclaimable", _) => queue.reclaimable = value == "true",
            ("note", key) => drop(queue.annotations.insert(key.into(), value.into())),
            ("state", _) if value == "Closed" => queue.state = QueueState::Closed,
            ("state", _) if value == "Closing" => queue.state = QueueState::Closing,
            _ => panic!("unknown word of a queue: {name}={value}"),
        }
    }
    queue
}

fn budget(name: &str, words: &[(&str, &str)]) -> BudgetRecord {
    let mut budget = BudgetRecord { key: key(name), ..BudgetRecord::default() };
    for &(name, value) in words {
        match name.split_once('.').unwrap_or((name, "")) {
            ("allowed", _) => budget.allowed = number(value),
            ("healthy", _) => budget.healthy = number(value),
            ("label", label) => {
                let match_labels = [(label.into(), value.into())].into();
                let selector = LabelSelector { match_labels, ..LabelSelector::default() };
                budget.covers = Covers::Matching(selector);
            }
            _ => panic!("unknown word of a budget: {name}={value}"),
        }
    }
    budget
}

fn quota(name: &str, words: &[(&str, &str)]) -> QuotaRecord {
    let mut quota = QuotaRecord { key: key(name), ..QuotaRecord::default() };
    for &(name, value) in words {
        match name.split_once('.') {
            Some(("hard", name)) => {
                if !amount(&mut quota.hard, name, value) {
                    quota.hard.push((name.into(), value.parse().expect("a quantity")));
                }
            }
            _ => panic!("unknown word of a quota: {name}={value}"),
        }
    }
    quota
}

fn group(name: &str, words: &[(&str, &str)]) -> (Option<PriorityClassRecord>, PodGroupRecord) {
    let key = key(name);
    let mut class = None;
    let mut group = PodGroupRecord {
        uid: format!("pg-{}-{}", key.namespace, key.name).into(),
        key,
        resource_version: "1".into(),
        created_micros: START_MICROS,
        labels: Labels::default(),
        annotations: Labels::default(),
        owner_name: None,
        controller_uid: None,
        controller_kind: None,
        min_member: 1,
        min_task_member: Default::default(),
        queue: "default".into(),
        priority_class_name: "".into(),
        min_resources: None,
        network_topology: None,
        sub_group_policies: Vec::new(),
        status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
    };
    for &(name, value) in words {
        match name.split_once('.').unwrap_or((name, "")) {
            ("minres", name) => {
                assert!(amount(group.min_resources.get_or_insert_default(), name, value));
            }
            ("role", role) => {
                group.min_task_member.insert(role.into(), number(value));
            }
            ("queue", _) => group.queue = value.into(),
            ("min", _) => group.min_member = number(value),
            ("created", _) => group.created_micros = micros(value),
            ("sla", _) => {
                group.annotations.insert("volcano.sh/sla-waiting-time".into(), value.into());
            }
            ("priority", _) => {
                group.priority_class_name = format!("priority-{value}").into();
                class = Some(PriorityClassRecord {
                    name: group.priority_class_name.clone(),
                    value: number(value),
                    global_default: false,
                });
            }
            ("pending", _) => group.status.phase = PodGroupPhase::Pending,
            ("topology", _) => {
                group.network_topology = Some(topology(value));
            }
            ("pre", _) => {
                group.annotations.insert("volcano.sh/preemptable".into(), value.into());
            }
            ("annotation", name) => {
                group.annotations.insert(name.into(), value.into());
            }
            ("label", name) => {
                group.labels.insert(name.into(), value.into());
            }
            ("policy", name) => group.sub_group_policies.push(policy(name, value)),
            ("running", _) => group.status.phase = PodGroupPhase::Running,
            ("unknown", _) => group.status.phase = PodGroupPhase::Unknown,
            _ => panic!("unknown word of a job: {name}={value}"),
        }
    }
    (class, group)
}

/// `hard:2`, `soft`; without a tier it is 1. `hard:name=hall` is limited by the name of a tier.
fn topology(value: &str) -> NetworkTopology {
    let (mode, tier) = value.split_once(':').unwrap_or((value, "1"));
    let name = tier.strip_prefix("name=");
    NetworkTopology {
        soft: mode == "soft",
        highest_tier_allowed: if name.is_none() { Some(number(tier)) } else { None },
        highest_tier_name: name.unwrap_or_default().into(),
    }
}

/// `policy.workers=2x3`: of the pods with a label `workers`, each value is a sub-group of size 2;
/// 3 of them are needed. `policy.workers=2x3:hard:1` has a topology.
fn policy(name: &str, value: &str) -> SubGroupPolicy {
    let (counts, own) = value.split_once(':').map_or((value, None), |(l, r)| (l, Some(r)));
    let (size, minimum) = counts.split_once('x').expect("size x minimum");
    SubGroupPolicy {
        name: name.into(),
        network_topology: own.map(topology),
        sub_group_size: Some(number(size)),
        min_sub_groups: number(minimum),
        label_selector: None,
        match_label_keys: vec![name.into()],
    }
}

/// One pod, or with `xN` the pods `-0` to `-(N-1)`.
fn pods(name: &str, words: &[(&str, &str)], job: Option<&ObjectKey>) -> Vec<Object> {
    let base = match job {
        Some(job) => ObjectKey::new(&job.namespace, &format!("{}-{name}", job.name)),
        None => key(name),
    };
    let is_count = |word: &str| word.starts_with('x') && word[1..].parse::<u32>().is_ok();
    let n_pods = words.iter().find(|(word, _)| is_count(word)).map(|(word, _)| &word[1..]);
    let keys = match n_pods {
        None => vec![base],
        Some(n_pods) => (0..number::<u32>(n_pods))
            .map(|index| ObjectKey::new(&base.namespace, &format!("{}-{index}", base.name)))
            .collect(),
    };
    let words: Vec<_> = words.iter().filter(|(word, _)| !is_count(word)).collect();
    keys.into_iter().map(|key| Object::Pod(Box::new(pod(key, &words, job)))).collect()
}

fn pod(key: ObjectKey, words: &[&(&str, &str)], job: Option<&ObjectKey>) -> PodRecord {
    let mut pod = new_pod(key);
    if let Some(job) = job {
        pod.annotations.insert("scheduling.k8s.io/group-name".into(), job.name.clone());
    }
    let (mut requests, mut ports, mut image) = (ResourceList::new(), Vec::new(), "".into());
    let mut limits = ResourceList::new();
    let mut is_guaranteed = false;
    for &&(name, value) in words {
        match name.split_once('.').unwrap_or((name, "")) {
            ("guaranteed", _) => is_guaranteed = true,
            _ if amount(&mut requests, name, value) => {}
            _ if fixture::node_groups::enter_pod_word(&mut pod, name, value) => {}
            (word, "") if word.starts_with('@') => pod.node_name = Some(word[1..].into()),
            ("limit", name) if amount(&mut limits, name, value) => {}
            ("selector", label) => {
                let selector = pod.node_selector.get_or_insert_default();
                selector.insert(label.into(), value.into());
            }
            ("label", label) => {
                pod.labels.insert(label.into(), value.into());
            }
            ("prefer", label) => pod.node_affinity.preferred.push(preferred(label, value)),
            ("require", label) => {
                pod.node_affinity.required.get_or_insert_default().push(one_of(label, value));
            }
            ("tolerate", _) => pod.tolerations.push(toleration(value)),
            ("image", _) => image = value.into(),
            ("role", _) => {
                pod.annotations.insert("volcano.sh/task-spec".into(), value.into());
            }
            ("priority", _) => pod.priority = Some(number(value)),
            ("created", _) => pod.created_micros = micros(value),
            ("gate", _) => pod.scheduling_gates.push(value.into()),
            ("nominated", _) => pod.nominated_node = Some(value.into()),
            ("running", _) => pod.phase = PodPhase::Running,
            ("succeeded", _) => pod.phase = PodPhase::Succeeded,
            ("failed", _) => pod.phase = PodPhase::Failed,
            ("bound", _) => pod.phase = PodPhase::Pending,
            ("deleting", _) => pod.deleting = true,
            ("evicted", _) => pod.evicted_by_scheduler = true,
            ("pre", _) => {
                pod.annotations.insert("volcano.sh/preemptable".into(), value.into());
            }
            ("annotation", name) => {
                pod.annotations.insert(name.into(), value.into());
            }
            ("scheduled", _) => pod.scheduled_micros = Some(micros(value)),
            ("never", _) => pod.never_preempts = true,
            ("port", _) => ports.push(host_port(number(value))),
            ("near" | "away" | "like" | "dislike", _) => add_term(&mut pod, name, value),
            ("spread" | "even", _) => pod.spread.push(constraint(name, value)),
            ("class", _) => pod.priority_class_name = value.into(),
            ("pvc", _) => {
                let claim = PodClaim { name: value.into(), ephemeral: false };
                pod.volumes.push(PodVolume::Claim(claim));
            }
            ("device", _) => {
                let source = ClaimSource::Named(value.into());
                pod.resource_claims.push(PodResourceClaim { name: value.into(), source });
            }
            ("started", _) => pod.started_micros = Some(micros(value)),
            _ => panic!("unknown word of a pod: {name}={value}"),
        }
    }
    let host_ports = ports;
    let name = "main".into();
    let container = ContainerRecord {
        name,
        image,
        requests,
        limits,
        host_ports,
        is_guaranteed,
        ..ContainerRecord::default()
    };
    pod.containers.push(container);
    pod
}

pub(crate) fn host_port(port: u16) -> HostPort {
    HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port }
}

/// Pods of this value of the label `app`.
fn app(value: &str) -> Option<LabelSelector> {
    let match_labels = [("app".into(), value.into())].into();
    Some(LabelSelector { match_labels, ..LabelSelector::default() })
}

/// `near=KEY:APP`, `away=KEY:APP`; `like=KEY:APP` and `dislike=KEY:APP` prefer.
fn add_term(pod: &mut PodRecord, kind: &str, value: &str) {
    let mut words = value.split(':');
    let (Some(key), Some(wanted)) = (words.next(), words.next()) else { panic!("KEY:APP") };
    let (namespaces, namespace_selector) = match words.next() {
        None => (vec![pod.key.namespace.clone()], None),
        Some("*") => (Vec::new(), Some(LabelSelector::default())),
        Some(other) => (vec![other.into()], None),
    };
    let pods = PodSelector { namespaces, namespace_selector, labels: app(wanted) };
    let term = PodTerm { pods, topology_key: key.into() };
    let mut affinity = pod.pod_affinity.as_deref().cloned().unwrap_or_default();
    match kind {
        "near" => affinity.required.push(term),
        "away" => affinity.anti_required.push(term),
        "dislike" => affinity.anti_preferred.push(PreferredPodTerm { weight: 10, term }),
        _ => affinity.preferred.push(PreferredPodTerm { weight: 10, term }),
    }
    pod.pod_affinity = Some(affinity.into());
}

/// `spread=KEY:SKEW:APP`; `even` discourages only.
fn constraint(kind: &str, value: &str) -> SpreadConstraint {
    let words: Vec<&str> = value.split(':').collect();
    let [key, skew, wanted, ref rest @ ..] = words[..] else { panic!("KEY:SKEW:APP, is {value}") };
    SpreadConstraint {
        max_skew: number(skew),
        topology_key: key.into(),
        when: match kind {
            "spread" => Unsatisfiable::DoNotSchedule,
            _ => Unsatisfiable::ScheduleAnyway,
        },
        labels: app(wanted),
        min_domains: rest.first().map_or(1, |domains| number(domains)),
        ..SpreadConstraint::default()
    }
}

fn toleration(key: &str) -> Toleration {
    Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
    }
}

fn one_of(label: &str, values: &str) -> NodeSelectorTerm {
    let values = values.split(',').map(Into::into).collect();
    let requirement = Requirement { key: label.into(), operator: Operator::In, values };
    NodeSelectorTerm { match_expressions: vec![requirement], match_fields: Vec::new() }
}

fn preferred(label: &str, value: &str) -> PreferredTerm {
    PreferredTerm { weight: 100, term: one_of(label, value) }
}

fn new_pod(key: ObjectKey) -> PodRecord {
    PodRecord {
        uid: format!("uid-{}-{}", key.namespace, key.name).into(),
        key,
        created_micros: START_MICROS,
        scheduler_name: "volcano".into(),
        phase: PodPhase::Pending,
        ..PodRecord::default()
    }
}
