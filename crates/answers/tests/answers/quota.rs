//! Remedies for jobs of queues that have all that the weights of queues, or a tree of quotas, give them. Specification:
//! answers.md 20, cases 32, 33, 35.

use proptest::prelude::*;
use vc_answers::{Change, LeftOut, RaisedQuota, Remedy, RemedyChange, RemedyKind};
use vc_model::fixture::job;
use vc_resource::{Quantity, amount};

use crate::support::{Asked, conf, random_cases, sets};

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate", "gang predicates proportion"), text)
}

/// Returns how many pods of the job `j` get a node with a change.
fn n_placed(it: &Asked, changes: Vec<Change>) -> usize {
    let result = it.what_if(changes);
    result.placed.iter().filter(|row| row.pod.name.starts_with("j-")).count()
}

/// A queue `a` with the job `j` and two that hold 4 cpu each, and a queue `b` that wants all of the node.
struct SharedNode {
    node: &'static str,
    /// Words of queue `a`, and further queues.
    queues: &'static str,
    /// Words of the jobs that run.
    running: &'static str,
    /// Words of the job.
    words: &'static str,
    cpus: i64,
}

const PLAIN: SharedNode =
    SharedNode { node: "cpu=16", queues: "", running: "", words: "", cpus: 2 };

impl SharedNode {
    fn asked(&self) -> Asked {
        let Self { node, queues, running, words, cpus } = self;
        asked(&format!(
            "node n {node}
             queue b\nqueue a {queues}
             job big queue=b
               task a cpu=4 selector.zone=none x4
             job k0 queue=a running {running}
               task a cpu=2 @n running x2
             job k1 queue=a running {running}
               task a cpu=2 @n running x2
             job j queue=a {words}
               task a cpu={cpus}"
        ))
    }
}

#[test]
fn ans_33_a_queue_gets_more_by_the_field_that_limits_it() {
    let weight = "admin: raise spec.weight of Queue a from 1 to 2";
    let both = "admin: raise spec.capability of Queue a to 10 cpu and spec.weight from 1 to 2";
    let end = "you: end default/k0";
    let node = "admin: 1 more node like n";
    for (cluster, code, expected) in [
        (PLAIN, "QueueFull", vec![end, weight, node]),
        // Its slots are used up, too: the queue is overused.
        (SharedNode { node: "cpu=16 pods=8", ..PLAIN }, "QueueFull", vec![end, weight, node]),
        (
            SharedNode { queues: "weight=3 cap.cpu=9", ..PLAIN },
            "QueueFull",
            vec![end, "admin: raise spec.capability of Queue a to 10 cpu"],
        ),
        (SharedNode { queues: "cap.cpu=9", ..PLAIN }, "QueueFull", vec![end, both]),
        (
            SharedNode {
                queues: "cap.cpu=9",
                running: "minres.cpu=4",
                words: "minres.cpu=2",
                ..PLAIN
            },
            "NotAdmitted",
            vec![end, both],
        ),
        // The whole cluster is more than any weight gives it.
        (
            SharedNode { cpus: 8, ..PLAIN },
            "QueueFull",
            vec![
                "you: end default/k0 and default/k1",
                "admin: raise spec.guarantee.resource of Queue a to 16 cpu",
                node,
            ],
        ),
        // What another queue is guaranteed is nobody's to give away.
        (SharedNode { queues: "\nqueue c guarantee.cpu=8", ..PLAIN }, "QueueFull", vec![end, node]),
    ] {
        let it = cluster.asked();
        let why = it.why("j");
        assert_eq!(why.verdict.code.as_str(), code, "{}", why.verdict.text);
        assert_eq!(it.remedies("j"), expected, "{}", cluster.queues);
        for remedy in why.unblock {
            let changes = remedy.change.unwrap().as_changes();
            assert_eq!(n_placed(&it, changes), 1, "{}", remedy.text);
        }
    }
}

#[test]
fn ans_28_a_raised_queue_is_a_change() {
    let it = SharedNode { queues: "cap.cpu=9", ..PLAIN }.asked();
    let remedies = it.why("j").unblock;
    let raise = remedies.into_iter().find(|it| it.kind == RemedyKind::RaiseQuota).unwrap();
    let capability = vec![("cpu".to_owned(), "10".to_owned())];
    let raised = RaisedQuota { capability, weight: Some(2), ..RaisedQuota::default() };
    assert_eq!(raise.change, Some(RemedyChange::Quota { queue: "a".into(), raised }));
}

/// A trial is one look at a node and one placement. Two are needed: the capability alone, and the weight.
#[test]
fn ans_31_a_queue_that_is_not_raised_for_lack_of_budget_is_named() {
    let it = SharedNode { queues: "cap.cpu=9", ..PLAIN }.asked();
    for (units, is_raised) in [(0, false), (1, false), (1_001, false), (1_002, true)] {
        let why = it.why_within("j", units);
        let kinds: Vec<RemedyKind> = why.unblock.iter().map(|remedy| remedy.kind).collect();
        assert_eq!(kinds.contains(&RemedyKind::RaiseQuota), is_raised, "{units}: {kinds:?}");
        assert!(kinds.contains(&RemedyKind::EndJobs), "{units}: {kinds:?}");
        let blocking = why.blocking.unwrap();
        let expected = [LeftOut::Remedy(RemedyKind::RaiseQuota)];
        assert_eq!(blocking.left_out, expected[usize::from(is_raised)..], "{units}");
        assert_eq!(blocking.is_complete(), is_raised, "{units}");
    }
}

/// Two queues that share a node, of which one has a gang `j` that waits. Amounts are cpus.
#[derive(Clone, Debug)]
struct SharedCluster {
    cpus: i64,
    /// Weights of the queue of the job and of the other one.
    weights: (i32, i32),
    /// What runs in each of them.
    used: (i64, i64),
    minimum: usize,
    cpus_per_pod: i64,
    /// `spec.capability` of the queue. `None`: unlimited.
    capability: Option<i64>,
    /// What the other queue is guaranteed.
    guarantee: i64,
    /// True if the job needs its amounts to be admitted.
    is_admission: bool,
}

impl SharedCluster {
    fn text(&self) -> String {
        let (own, other) = self.weights;
        let cap = self.capability.map_or_else(String::new, |cap| format!("cap.cpu={cap}"));
        let mut text = format!(
            "node n cpu={}\nqueue q weight={own} {cap}\nqueue other weight={other} guarantee.cpu={}
             job wants queue=other\n task a cpu={} selector.zone=none\n",
            self.cpus, self.guarantee, self.cpus
        );
        for (name, queue, used) in [("k", "q", self.used.0), ("o", "other", self.used.1)] {
            if 0 < used {
                text.push_str(&format!("job {name} queue={queue} running minres.cpu={used}\n"));
                text.push_str(&format!(" task a cpu={used} @n running\n"));
            }
        }
        let all = self.cpus_per_pod * self.minimum as i64;
        let minimum = if self.is_admission { format!("minres.cpu={all}") } else { String::new() };
        let (n_pods, cpus) = (self.minimum, self.cpus_per_pod);
        text.push_str(&format!(
            "job j queue=q min={n_pods} {minimum}\n task a cpu={cpus} x{n_pods}"
        ));
        text
    }
}

/// Returns changes that go less far. A capability goes with a guarantee, below which it must not be.
fn less(raised: &RaisedQuota) -> Vec<RaisedQuota> {
    let mut less = Vec::new();
    let smaller = |(name, text): &(String, String)| {
        let quantity: Quantity = text.parse().unwrap();
        vec![(name.clone(), format!("{}m", amount(name, quantity).unwrap() - 1))]
    };
    for it in raised.capability.iter().filter(|_| raised.guarantee.is_empty()) {
        less.push(RaisedQuota { capability: smaller(it), ..raised.clone() });
    }
    for it in &raised.deserved {
        less.push(RaisedQuota { deserved: smaller(it), ..raised.clone() });
    }
    let weight = raised.weight.map(|weight| weight - 1);
    less.extend(weight.map(|it| RaisedQuota { weight: Some(it), ..raised.clone() }));
    less
}

fn shared_cluster() -> impl Strategy<Value = SharedCluster> {
    let sizes = (8..24_i64, (1..4_i32, 1..4_i32), (0..6_i64, 0..4_i64));
    let gang = (1..4_usize, 1..6_i64);
    let limits = (prop::option::of(1..24_i64), prop::sample::select(vec![0, 0, 0, 2, 5, 8]));
    (sizes, gang, limits, any::<bool>()).prop_map(|(sizes, gang, limits, is_admission)| {
        let (cpus, weights, used) = sizes;
        SharedCluster {
            cpus,
            weights,
            used,
            minimum: gang.0,
            cpus_per_pod: gang.1,
            capability: limits.0,
            guarantee: limits.1,
            is_admission,
        }
    })
}

proptest! {
    #![proptest_config(random_cases(150))]

    /// Cases 32 and 33: jobs that end and a queue that is raised let the engine start the job, and the queue is not
    /// raised further than needed. A job that only its queue keeps waiting has such a remedy.
    #[test]
    fn ans_32_raised_queues_start_the_job_and_no_smaller_change_does(cluster in shared_cluster()) {
        let it = asked(&cluster.text());
        let rows = it.engine.cluster();
        if 0 < rows.jobs[job(rows, "j")].counts.ready() {
            return Ok(());
        }
        let why = it.why("j");
        let is_ours = |kind: RemedyKind| matches!(kind, RemedyKind::RaiseQuota | RemedyKind::EndJobs);
        for remedy in why.unblock.iter().filter(|remedy| is_ours(remedy.kind)) {
            let Some(change) = &remedy.change else { continue };
            let n_started = n_placed(&it, change.as_changes());
            prop_assert_eq!(n_started, cluster.minimum, "{:?}\n{:?}", cluster, remedy);
            let RemedyChange::Quota { queue, raised } = change else { continue };
            for raised in less(raised) {
                let less = RemedyChange::Quota { queue: queue.clone(), raised };
                let n_started = n_placed(&it, less.as_changes());
                prop_assert!(n_started < cluster.minimum, "{:?}\n{:?}", cluster, less);
            }
        }
        let is_of_queue = |set: &String| set.split(" + ").all(|atom| atom.ends_with("/proportion"));
        if cluster.guarantee == 0 && sets(&why).iter().any(is_of_queue) {
            let is_raised = why.unblock.iter().any(|it| it.kind == RemedyKind::RaiseQuota);
            prop_assert!(is_raised, "{:?}\n{:?}", cluster, why.unblock);
        }
    }
}

/// Asks about queues of a tree.
fn asked_in_tree(cohort: &str, text: &str) -> Asked {
    let tiers = format!("priority gang | {cohort} predicates");
    Asked::new(&conf("enqueue, allocate", &tiers), text)
}

/// Returns the remedies that raise a queue.
fn raising(it: &Asked) -> Vec<Remedy> {
    let remedies = it.why("j").unblock.into_iter();
    remedies.filter(|remedy| remedy.kind == RemedyKind::RaiseQuota).collect()
}

#[test]
fn ans_33_a_queue_of_a_tree_gets_more_by_its_own_fields() {
    let nominal = "admin: raise spec.deserved of Queue q to 6 cpu";
    let capability = "admin: raise spec.capability of Queue q to 6 cpu";
    let both = "admin: raise spec.capability of Queue q to 6 cpu and spec.deserved to 6 cpu";
    let of_parent = "admin: raise spec.capability of Queue lab to 6 cpu";
    // The queue holds 4 cpu, and its job asks for 2.
    for (cohort, queues, used_by_other, expected) in [
        // The other one holds all of its own.
        ("cohort", "queue q deserved.cpu=4\nqueue other deserved.cpu=4", 4, nominal),
        ("cohort", "queue q deserved.cpu=4 cap.cpu=5\nqueue other deserved.cpu=4", 0, capability),
        ("cohort", "queue q deserved.cpu=4 cap.cpu=5\nqueue other deserved.cpu=4", 4, both),
        // What it deserves counts as far as its capability.
        ("cohort", "queue q deserved.cpu=9 cap.cpu=5\nqueue other", 0, capability),
        ("cohort", "queue q cap.cpu=5\nqueue other", 0, capability),
        // It is a tree of its own, of which only capabilities are known in the second case.
        ("cohort{rootCohort=false}", "queue q deserved.cpu=4\nqueue other", 0, nominal),
        ("cohort{rootCohort=false}", "queue q cap.cpu=5\nqueue other", 0, capability),
        (
            "cohort",
            "queue lab deserved.cpu=8 cap.cpu=5\nqueue q parent=lab deserved.cpu=8\nqueue other",
            0,
            of_parent,
        ),
    ] {
        let other = match used_by_other {
            0 => String::new(),
            cpus => format!("job o queue=other running\n task a cpu={cpus} @n running\n"),
        };
        let it = asked_in_tree(
            cohort,
            &format!(
                "node n cpu=64\n{queues}\n{other}job k queue=q running
                   task a cpu=4 @n running
                 job j queue=q
                   task a cpu=2"
            ),
        );
        let raising = raising(&it);
        let text = |it: &Remedy| format!("{}: {}", it.who.as_str(), it.text);
        let texts: Vec<String> = raising.iter().map(text).collect();
        assert_eq!(texts, [expected], "{queues}");
        for remedy in raising {
            let changes = remedy.change.unwrap().as_changes();
            assert_eq!(n_placed(&it, changes), 1, "{queues}: {}", remedy.text);
        }
    }
}

/// A gang `j` that waits in the queue `q` of a tree, in which it shares quota with another queue. Amounts are cpus.
#[derive(Clone, Debug)]
struct TreeCluster {
    /// `spec.deserved` of the queue and of the other one. `None`: it is not listed.
    deserved: (Option<i64>, Option<i64>),
    /// `spec.guarantee.resource` of the other one. `None`: it is not listed.
    guarantee: Option<i64>,
    /// `spec.capability` of the queue. `None`: unlimited.
    capability: Option<i64>,
    /// What runs in each of them.
    used: (i64, i64),
    minimum: usize,
    cpus_per_pod: i64,
    /// True if the job needs its amounts to be admitted.
    is_admission: bool,
}

impl TreeCluster {
    fn text(&self) -> String {
        let word = |name: &str, amount: Option<i64>| {
            amount.map_or_else(String::new, |cpus| format!("{name}.cpu={cpus}"))
        };
        let (own, cap) = (word("deserved", self.deserved.0), word("cap", self.capability));
        let other =
            [word("deserved", self.deserved.1), word("guarantee", self.guarantee)].join(" ");
        let mut text = format!("node n cpu=64\nqueue q {own} {cap}\nqueue other {other}\n");
        for (name, queue, used) in [("k", "q", self.used.0), ("o", "other", self.used.1)] {
            if 0 < used {
                text.push_str(&format!("job {name} queue={queue} running minres.cpu={used}\n"));
                text.push_str(&format!(" task a cpu={used} @n running\n"));
            }
        }
        let (n_pods, cpus) = (self.minimum, self.cpus_per_pod);
        let all = cpus * n_pods as i64;
        let minimum = if self.is_admission { format!("minres.cpu={all}") } else { String::new() };
        text + &format!("job j queue=q min={n_pods} {minimum}\n task a cpu={cpus} x{n_pods}")
    }
}

fn tree_cluster() -> impl Strategy<Value = TreeCluster> {
    let deserved = (prop::option::of(0..12_i64), prop::option::of(0..12_i64));
    let limits = (deserved, prop::option::of(1..6_i64), prop::option::of(1..12_i64));
    let gang = (1..4_usize, 1..5_i64, any::<bool>());
    (limits, (0..8_i64, 0..8_i64), gang).prop_map(|(limits, used, gang)| {
        let (deserved, guarantee, capability) = limits;
        let (minimum, cpus_per_pod, is_admission) = gang;
        TreeCluster { deserved, guarantee, capability, used, minimum, cpus_per_pod, is_admission }
    })
}

proptest! {
    #![proptest_config(random_cases(150))]

    /// Cases 32 and 33 with a tree of quotas. A job that only the tree keeps waiting has such a remedy.
    #[test]
    fn ans_32_raised_quotas_of_a_tree_start_the_job_and_no_smaller_ones_do(
        cluster in tree_cluster(),
    ) {
        let it = asked_in_tree("cohort", &cluster.text());
        let rows = it.engine.cluster();
        if 0 < rows.jobs[job(rows, "j")].counts.ready() {
            return Ok(());
        }
        let found = raising(&it);
        for remedy in &found {
            let Some(RemedyChange::Quota { queue, raised }) = &remedy.change else { unreachable!() };
            let of = |raised: RaisedQuota| RemedyChange::Quota { queue: queue.clone(), raised };
            let n_started = n_placed(&it, of(raised.clone()).as_changes());
            prop_assert_eq!(n_started, cluster.minimum, "{:?}\n{:?}", cluster, remedy);
            for raised in less(raised) {
                let less = of(raised);
                let n_started = n_placed(&it, less.as_changes());
                prop_assert!(n_started < cluster.minimum, "{:?}\n{:?}", cluster, less);
            }
        }
        let is_of_tree = |set: &String| set.split(" + ").all(|atom| atom.ends_with("/cohort"));
        if it.sets("j").iter().any(is_of_tree) {
            prop_assert_eq!(found.len(), 1, "{:?}", cluster);
        }
    }
}
