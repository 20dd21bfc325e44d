//! Random objects as the text of `support::text` and of `edge`.

use proptest::prelude::*;

use super::cards::{CARDS, SHARES};
use super::networks::{POLICIES, topology, topology_of_gang};
use super::story::pick;
use crate::evictions::{Shape, With, clusters};

/// What pods of a story want most.
#[derive(Clone, Copy, Debug)]
pub(super) enum Theme {
    Room,
    Neighbours,
    Volumes,
    Devices,
    Networks,
    /// Node groups, and strategies of resources.
    Groups,
    /// Cards that pods share.
    Cards,
    /// What monitoring says of nodes.
    Loads,
    /// Roles of a job that belong together.
    Roles,
    /// CPUs that pods have to themselves.
    Numa,
    /// Usage of namespaces over time.
    Usages,
}

impl Theme {
    /// The theme of this name, in lower case.
    pub(super) fn of(name: &str) -> Self {
        let all = [
            Self::Room,
            Self::Neighbours,
            Self::Volumes,
            Self::Devices,
            Self::Networks,
            Self::Groups,
            Self::Cards,
            Self::Loads,
            Self::Roles,
            Self::Numa,
            Self::Usages,
        ];
        let is_it = |theme: &Self| format!("{theme:?}").eq_ignore_ascii_case(name);
        all.into_iter().find(is_it).unwrap_or_else(|| panic!("unknown theme: {name}"))
    }
}

/// How large a story is, and what it is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) theme: Theme,
    /// Numbers of names.
    pub(super) nodes: u32,
    pub(super) queues: u32,
    pub(super) jobs: u32,
    /// Jobs at the beginning, less than so many.
    pub(super) n_jobs: usize,
    /// Places of pods.
    pub(super) pods: usize,
    /// Lines at the beginning, less than so many.
    pub(super) lines: usize,
    pub(super) turns: (usize, usize),
    /// Nodes of few kinds at the beginning, at least and less than so many.
    pub(super) alike: (u32, u32),
    /// Few different objects, so that many are alike.
    is_tame: bool,
}

/// As it was for long: most faults show here, and fast.
pub(super) const SMALL: Size = Size {
    theme: Theme::Room,
    nodes: 5,
    queues: 3,
    jobs: 8,
    n_jobs: 6,
    pods: 12,
    lines: 4,
    turns: (3, 9),
    alike: (1, 4),
    is_tame: false,
};

pub(super) const MEDIUM: Size = Size {
    theme: Theme::Room,
    nodes: 10,
    queues: 5,
    jobs: 12,
    n_jobs: 9,
    pods: 24,
    lines: 6,
    turns: (4, 12),
    alike: (2, 9),
    is_tame: true,
};

/// Up to 30 nodes, about 60 pods, 20 cycles.
pub(super) const LARGE: Size = Size {
    theme: Theme::Room,
    nodes: 29,
    queues: 8,
    jobs: 24,
    n_jobs: 20,
    pods: 60,
    lines: 8,
    turns: (8, 21),
    alike: (10, 30),
    is_tame: true,
};

/// More nodes than one block has, of which few change at a time.
pub(super) const WIDE: Size = Size {
    theme: Theme::Room,
    nodes: 150,
    queues: 5,
    jobs: 16,
    n_jobs: 10,
    pods: 60,
    lines: 6,
    turns: (5, 11),
    alike: (100, 150),
    is_tame: true,
};

impl Size {
    pub(super) fn about(self, theme: Theme) -> Self {
        Self { theme, ..self }
    }

    /// Of words: where few differ, most are the first one.
    fn pick(self, words: &[(u32, &'static str)]) -> impl Strategy<Value = &'static str> + use<> {
        let (first, rest) = words.split_first().expect("there are words");
        let weight = if self.is_tame { 3 * first.0 } else { first.0 };
        pick(&[&[(weight, first.1)], rest].concat())
    }
}

/// Clusters whose nodes hold what runs on them.
pub(super) fn full(size: Size) -> impl Strategy<Value = String> {
    let shape = |with| Shape {
        // Those that are beside it in a wide cluster are empty.
        nodes: 1..usize::try_from(size.nodes.min(30)).unwrap_or_default() / 2 + 2,
        copies: 1..if size.is_tame { 6 } else { 3 },
        slots: 2..9,
        best_effort: true,
        ports: true,
        with,
    };
    let text = prop_oneof![
        4 => clusters(&shape(With::Nothing)),
        2 => clusters(&shape(With::Guarantees)),
        1 => clusters(&shape(With::Budget)),
        1 => clusters(&shape(With::Cooldown)),
        1 => clusters(&shape(With::Zones)),
        1 => clusters(&shape(With::Quota)),
    ];
    text.prop_map(|text| text.lines().map(labelled).collect())
}

/// With labels, if it is a node.
fn labelled(line: &str) -> String {
    let number = line.strip_prefix("node n").and_then(|rest| rest.split(' ').next());
    let number = number.and_then(|number| number.parse::<u32>().ok());
    let labels = number.map(|number| format!(" zone=z{} host=h{number}", number % 3));
    format!("{line}{}\n", labels.unwrap_or_default())
}

/// Nodes of few kinds.
pub(super) fn nodes_alike(size: Size) -> impl Strategy<Value = String> {
    let kind = (amounts(size), more_of_node(size), group_of_node(size));
    let kinds = prop::collection::vec(kind, 1..4);
    (size.alike.0..size.alike.1, kinds).prop_map(|(n_nodes, kinds)| {
        let node = |index: u32| {
            let kind = usize::try_from(index / 3).unwrap_or_default() % kinds.len();
            let (amounts, more, group) = &kinds[kind];
            let zone = index % 3;
            format!("node n{index} {amounts} zone=z{zone} host=h{index} {more} {group}\n")
        };
        (0..n_nodes).map(node).collect()
    })
}

fn amounts(size: Size) -> BoxedStrategy<String> {
    let few = pick(&[
        (3, "cpu=4 memory=8Gi pods=5"),
        (2, "cpu=6 memory=8Gi pods=9"),
        (1, "cpu=2 memory=4Gi pods=3 gpu=1"),
    ]);
    let any = (0_u32..7, 1_u32..6, 0_u32..3, 0_u32..2).prop_map(|(cpu, pods, memory, gpu)| {
        let memory = if memory == 0 { String::new() } else { format!("memory={memory}Gi") };
        let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
        format!("cpu={cpu} pods={pods} {memory} {gpu}")
    });
    match size.is_tame {
        true => few.prop_map(str::to_owned).boxed(),
        false => any.boxed(),
    }
}

fn more_of_node(size: Size) -> impl Strategy<Value = &'static str> {
    let cards: &[(u32, &str)] = match size.theme {
        Theme::Cards => &CARDS,
        _ => &[],
    };
    let usual = &[
        (8, ""),
        (1, "taint=dedicated:NoSchedule"),
        (1, "taint=dedicated:PreferNoSchedule"),
        (1, "taint=dedicated:NoExecute"),
        (1, "unschedulable"),
        (1, "revocable=rz1"),
        (2, "disk=ssd"),
        (1, "disk=hdd image=web:300"),
        (1, "image=web:900 image=db:200"),
    ];
    size.pick(&[&usual[..], cards].concat())
}

fn group_of_node(size: Size) -> impl Strategy<Value = &'static str> {
    match size.theme {
        Theme::Groups => pick(&[(3, "group=g0"), (3, "group=g1"), (1, "group=g2"), (1, "")]),
        _ => pick(&[(12, ""), (1, "group=g0")]),
    }
}

/// What a queue says about node groups.
fn groups_of_queue(size: Size) -> impl Strategy<Value = &'static str> {
    match size.theme {
        Theme::Groups => pick(&[
            (2, "groups.required=g0,g1"),
            (2, "groups.required=g0 groups.preferred=g1,g2 limit.g0.cpu=3"),
            (2, "groups.preferred=g0,g1,g2 limit.g0.cpu=2 limit.g1.memory=2Gi"),
            (2, "groups.preferred=g1,g0 groups.disliked=g2 limit.g1.pods=2"),
            (1, "groups.avoided=g0,g1 groups.disliked=g1"),
            (1, "groups.required=g0,g1 limits=unreadable"),
            (1, "groups"),
            (1, "limit.g0.cpu=1"),
            (2, ""),
        ]),
        Theme::Devices => pick(&[
            (4, ""),
            (3, "cap.deviceclass/gpu=1"),
            (3, "cap.deviceclass/gpu=2"),
            (1, "cap.deviceclass/gpu=0"),
            (1, "cap.deviceclass/nic=1"),
        ]),
        _ => {
            pick(&[(12, ""), (1, "groups.required=g0"), (1, "groups.preferred=g0 limit.g0.cpu=2")])
        }
    }
}

pub(super) fn node(size: Size) -> impl Strategy<Value = String> {
    let zone = pick(&[(4, "zone=z0"), (4, "zone=z1"), (3, "zone=z2"), (1, "")]);
    let host = prop::bool::weighted(0.7);
    let more = (more_of_node(size), group_of_node(size));
    (0..size.nodes, amounts(size), zone, host, more).prop_map(
        |(index, amounts, zone, host, (more, group))| {
            let host = if host { format!("host=h{index}") } else { String::new() };
            format!("node n{index} {amounts} {zone} {host} {more} {group}\n")
        },
    )
}

pub(super) fn queue(size: Size) -> impl Strategy<Value = String> {
    let amount = || prop::option::weighted(0.4, 1_u32..9);
    let guarantee = prop::option::weighted(0.15, 1_u32..4);
    let more = size.pick(&[
        (8, ""),
        (2, "state=Closed"),
        (1, "state=Closing"),
        (1, "fifo"),
        (1, "reclaimable=false"),
        (1, "priority=5"),
        (1, "deserved.memory=2Gi"),
        (1, "cap.pods=3"),
        (1, "annotation.withinClusterQueue=LowerPriority"),
        (1, "annotation.reclaimWithinCohort=Never"),
        (1, "annotation.fairSharing.weight=2"),
        (1, "note.volcano.sh/hierarchy=root/a/x note.volcano.sh/hierarchy-weights=1/2/3"),
        (1, "note.volcano.sh/hierarchy=root/a/y note.volcano.sh/hierarchy-weights=1/2/1"),
        (1, "note.volcano.sh/hierarchy=root/b note.volcano.sh/hierarchy-weights=1/3"),
    ]);
    // The last names are those of parents.
    let parent = pick(&[(5, ""), (1, "parent=p0"), (1, "parent=p1"), (1, "parent=root")]);
    let index = prop_oneof![
        9 => (0..size.queues).prop_map(|index| format!("q{index}")),
        1 => pick(&[(2, "p0"), (1, "p1"), (1, "root")]).prop_map(str::to_owned),
    ];
    let more = (more, groups_of_queue(size));
    (index, 1_u32..4, amount(), amount(), guarantee, parent, more).prop_map(
        |(name, weight, cap, deserved, guarantee, parent, (more, groups))| {
            let word = |name: &str, cpu: Option<u32>| {
                cpu.map_or(String::new(), |cpu| format!("{name}.cpu={cpu} "))
            };
            let amounts =
                word("cap", cap) + &word("deserved", deserved) + &word("guarantee", guarantee);
            let parent = if name.starts_with(['p', 'r']) { "" } else { parent };
            format!("queue {name} weight={weight} {amounts}{parent} {more} {groups}\n")
        },
    )
}

/// What a pod wants beside cpu, more of the theme than of the rest; most want nothing.
fn wants(size: Size) -> impl Strategy<Value = &'static str> + use<> {
    let more: &[(u32, &str)] = match size.theme {
        Theme::Room | Theme::Networks | Theme::Roles | Theme::Usages => &[],
        Theme::Groups => &STRATEGIES,
        Theme::Neighbours => &NEIGHBOURS,
        Theme::Volumes => &[(12, "pvc=c0"), (12, "pvc=c1"), (12, "pvc=c2"), (6, "pvc=c3")],
        Theme::Devices => &[(20, "device=d0"), (12, "device=d1")],
        Theme::Cards => &SHARES,
        Theme::Loads => &LIMITS,
        Theme::Numa => &OWN_CPUS,
    };
    size.pick(&[WANTS, more].concat())
}

const OWN_CPUS: [(u32, &str); 4] = [
    (30, "guaranteed"),
    (8, "guaranteed annotation.volcano.sh/numa-topology-policy=single-numa-node"),
    (8, "guaranteed annotation.volcano.sh/numa-topology-policy=restricted"),
    (8, "guaranteed annotation.volcano.sh/numa-topology-policy=best-effort"),
];

const STRATEGIES: [(u32, &str); 4] = [
    (8, "gpu=1"),
    (8, "strategy=MostAllocated strategy.cpu=2 strategy.gpu=1"),
    (4, "strategy=LeastAllocated strategy.cpu=1 strategy.memory=3"),
    (4, "strategy=MostAllocated"),
];

const LIMITS: [(u32, &str); 3] =
    [(9, "memory=1Gi"), (9, "memory=2Gi limit.memory=3Gi"), (9, "memory=1Gi limit.cpu=4")];

const NEIGHBOURS: [(u32, &str); 9] = [
    (8, "prefer.disk=ssd prefer.zone=z0"),
    (8, "prefer.zone=z0 prefer.zone=z1"),
    (8, "near=zone:a"),
    (8, "away=host:a"),
    (8, "away=zone:b"),
    (8, "spread=zone:1:a"),
    (8, "spread=host:1:b"),
    (8, "even=zone:1:b"),
    (8, "like=zone:b dislike=host:a"),
];

const WANTS: &[(u32, &str)] = &[
    (50, ""),
    (1, "near=zone:a"),
    (1, "near=host:b"),
    (1, "near=zone:a:other"),
    (1, "away=zone:a"),
    (2, "away=host:a"),
    (1, "away=zone:b:*"),
    (1, "away=zone:b like=zone:a"),
    (1, "dislike=host:a"),
    (1, "like=zone:b"),
    (1, "spread=zone:1:a"),
    (1, "spread=host:1:b"),
    (1, "spread=zone:1:a:3"),
    (1, "even=zone:1:b"),
    (1, "even=host:1:a even=zone:1:a"),
    (1, "port=80"),
    (1, "gpu=1"),
    (1, "memory=2Gi"),
    (1, "memory=1Gi limit.memory=3Gi limit.cpu=4"),
    (1, "selector.disk=ssd"),
    (1, "require.zone=z0"),
    (1, "require.disk=ssd,hdd"),
    (1, "prefer.disk=ssd"),
    (1, "prefer.zone=z1 prefer.disk=hdd"),
    (1, "pre=false"),
    (1, "pre=true"),
    (2, "never"),
    (1, "strategy=MostAllocated strategy.cpu=2"),
    (1, "pvc=none"),
    (1, "pvc=c0"),
    (1, "pvc=c1"),
    (1, "pvc=c2"),
    (1, "pvc=c3"),
    (1, "device=d0"),
    (1, "device=d1"),
    (1, "gate=example.com/later"),
    (1, "gate=scheduling.volcano.sh/queue-allocation-gate"),
    (1, "class=system-node-critical"),
    (1, "tolerate=dedicated"),
    (1, "image=web"),
    (1, "annotation.volcano.sh/revocable-zone=*"),
    (1, "scheduled=3590 annotation.volcano.sh/cooldown-time=1h"),
];

fn place(size: Size) -> impl Strategy<Value = String> {
    prop_oneof![
        10 => Just(String::new()),
        6 => (0..size.nodes).prop_map(|node| format!("@n{node} running")),
        2 => (0..size.nodes, 3500_u32..3600)
            .prop_map(|(node, started)| format!("@n{node} running started={started}")),
        1 => (0..size.nodes).prop_map(|node| format!("@n{node} bound")),
        2 => (0..size.nodes).prop_map(|node| format!("@n{node} running deleting")),
        2 => (0..size.nodes).prop_map(|node| format!("nominated=n{node}")),
    ]
}

/// The sub-groups of pods in stories about HyperNodes. A pod with both labels is in that of the policy
/// that comes first.
const IN_SUB_GROUPS: [(u32, &str); 6] = [
    (3, ""),
    (5, "label.g=0"),
    (5, "label.g=1"),
    (1, "label.g=2"),
    (2, "label.h=0"),
    (2, "label.g=0 label.h=1"),
];

/// How many pods, and the words of each.
fn task(size: Size) -> impl Strategy<Value = (u32, String)> {
    let role = match size.theme {
        Theme::Roles => pick(&[(1, ""), (4, "role=ps"), (4, "role=w"), (1, "role=chief")]).boxed(),
        _ => size.pick(&[(8, ""), (2, "role=ps"), (2, "role=w")]).boxed(),
    };
    let group = size.pick(match size.theme {
        Theme::Networks => &IN_SUB_GROUPS[..],
        _ => &[(6, ""), (1, "label.g=0"), (1, "label.g=1")],
    });
    let most = if size.is_tame { 5 } else { 4 };
    let parts = (0_u32..4, 0_u32..3, place(size), wants(size), any::<bool>(), 1_u32..most);
    (parts, role, group).prop_map(|((cpu, priority, place, wants, is_a, n_equal), role, group)| {
        let app = if is_a { "a" } else { "b" };
        let cpu = if cpu == 0 { String::new() } else { format!("cpu={cpu}") };
        let words =
            format!("{cpu} priority={priority} label.app={app} {wants} {role} {group} {place}");
        (n_equal, words)
    })
}

/// A job, or some that are alike.
pub(super) fn job(size: Size) -> impl Strategy<Value = String> {
    prop_oneof![5 => mixed_job(size), 2 => gangs(size)]
}

/// Gangs all of whose members have to be placed: alike, or each smaller than the one before. Some
/// have sub-groups.
fn gangs(size: Size) -> impl Strategy<Value = String> {
    let head = (0..size.jobs, 0..size.queues, 0_u32..3, 1_u32..5, topology_of_gang(size));
    let less = prop_oneof![3 => Just(0_u32), 1 => Just(1)];
    (head, 1_u32..4, 2_u32..6, less, any::<u16>()).prop_map(
        move |((index, queue, priority, n_gangs, topology), cpu, n_pods, less, mark)| {
            let one = |number: u32| {
                let index = (index + number) % size.jobs;
                let n_pods = n_pods.saturating_sub(number * less).max(1);
                let tasks = tasks_of_gang(&format!("t{mark}"), cpu, n_pods, topology);
                format!(
                    "job j{index} queue=q{queue} min={n_pods} priority={priority} {topology}\n{tasks}"
                )
            };
            (0..n_gangs).map(one).collect()
        },
    )
}

/// The pods of a gang. If the job has a policy for the label `g`, they are in sub-groups of its size;
/// the last one may have fewer.
fn tasks_of_gang(name: &str, cpu: u32, n_pods: u32, topology: &str) -> String {
    let policy = topology.split("policy.g=").nth(1);
    let Some(policy) = policy else { return format!("  task {name} cpu={cpu} x{n_pods}\n") };
    let of_one = policy.split('x').next().and_then(|size| size.parse::<u32>().ok());
    let of_one = of_one.expect("a size");
    let task = |group: u32| {
        let n_pods = of_one.min(n_pods - group * of_one);
        format!("  task {name}-{group} cpu={cpu} label.g={group} x{n_pods}\n")
    };
    (0..n_pods.div_ceil(of_one)).map(task).collect()
}

/// The task topology of a job: which of its roles belong together.
fn roles(size: Size) -> impl Strategy<Value = String> {
    let key = "annotation.volcano.sh/task-topology-";
    let some = pick(&[
        (2, ""),
        (4, "affinity=ps,w"),
        (4, "affinity=ps,w KEYanti-affinity=ps"),
        (2, "affinity=ps;w"),
        (3, "anti-affinity=w;ps"),
        (2, "anti-affinity=ps,w KEYtask-order=w,ps"),
        (2, "affinity=ps,w;ps,chief KEYanti-affinity=w,chief"),
    ]);
    let none = pick(&[(1, "")]);
    let words = if let Theme::Roles = size.theme { some.boxed() } else { none.boxed() };
    words.prop_map(move |words| match words {
        "" => String::new(),
        words => format!("{key}{}", words.replace("KEY", key)),
    })
}

/// A job whose pods have names of their own, so that it may come twice.
fn mixed_job(size: Size) -> impl Strategy<Value = String> {
    let topology = topology(size);
    let phase = pick(&[(6, ""), (2, "pending"), (2, "pending minres.cpu=3"), (2, "running")]);
    let policies: &[(u32, &str)] = match size.theme {
        Theme::Networks => &POLICIES,
        _ => &[],
    };
    let usual = [
        (12, ""),
        (1, "role.ps=1"),
        (1, "role.ps=1 role.w=2"),
        (1, "policy.g=1x1"),
        (1, "policy.g=2x2"),
        (2, "sla=60s"),
        (1, "pre=true"),
        (1, "pre=false"),
        (1, "annotation.volcano.sh/jdb-min-available=50%"),
        (1, "annotation.volcano.sh/jdb-max-unavailable=1"),
        (1, "annotation.volcano.sh/jdb-max-unavailable=few"),
    ];
    let more = size.pick(&[&usual[..], policies].concat());
    let tasks = prop::collection::vec(task(size), 0..if size.is_tame { 4 } else { 5 });
    let namespace = pick(&[(9, ""), (1, "other/")]);
    // Some have others beside them that are like them.
    let n_equal_gangs =
        if size.is_tame { pick(&[(6, "1"), (2, "3")]) } else { pick(&[(9, "1"), (1, "2")]) };
    let more = (more, topology, roles(size));
    let more = more.prop_map(|(more, topology, roles)| format!("{more} {topology} {roles}"));
    let head = (0..size.jobs, 0..size.queues, 0_u32..4, 0_u32..3, phase, more, namespace);
    (head, tasks, any::<u16>(), n_equal_gangs).prop_map(
        move |(
            (index, queue, min, priority, phase, more, namespace),
            tasks,
            mark,
            n_equal_gangs,
        )| {
            // Few want more than there are.
            let n_pods: u32 = tasks.iter().map(|(n_equal, _)| n_equal).sum();
            let min = if mark % 8 == 0 { min } else { n_pods.min(min) };
            let task = |(number, (n_equal, words)): (usize, &(u32, String))| match n_equal {
                1 => format!("  task t{mark}-{number} {words}\n"),
                _ => format!("  task t{mark}-{number} x{n_equal} {words}\n"),
            };
            let tasks = tasks.iter().enumerate().map(task).collect::<String>();
            let n_equal_gangs: u32 = n_equal_gangs.parse().expect("a number");
            let one = |index: u32| {
                format!(
                    "job {namespace}j{} queue=q{queue} min={min} priority={priority} {phase} \
                     {more}\n{tasks}",
                    index % size.jobs,
                )
            };
            (index..index + n_equal_gangs).map(one).collect()
        },
    )
}

/// A pod without a PodGroup.
pub(super) fn bare(size: Size) -> impl Strategy<Value = String> {
    let queue = prop::option::of(0..size.queues);
    (0_u32..3, task(size), queue).prop_map(|(index, (_, words), queue)| {
        let name = "annotation.scheduling.volcano.sh/queue-name";
        let queue = queue.map_or(String::new(), |queue| format!("{name}=q{queue}"));
        format!("pod bare{index} {words} {queue}")
    })
}

/// What a PodGroup says instead.
pub(super) fn regroup(size: Size) -> impl Strategy<Value = String> {
    prop_oneof![
        (0_u32..4).prop_map(|min| format!("min={min}")),
        (0_u32..3).prop_map(|priority| format!("priority={priority}")),
        (0..size.queues).prop_map(|queue| format!("queue=q{queue}")),
        Just("pending".to_owned()),
    ]
}
