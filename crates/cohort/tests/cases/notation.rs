//! The notation of the cases of cohort.md, "Test cases": queues, running groups, the incoming one
//! and the targets as text.

use std::collections::BTreeMap;

use vc_cohort::{
    AllowAll, AssignmentMode, BorrowWithin, EvictionTarget, Flavor, Group, GroupId, Groups, Policy,
    PreemptionReason, QueueSpec, QuotaDemand, QuotaForest, QuotaPreemptor, ReclaimWithin,
    SearchOptions, SearchRefusal, Slot, Slots, TreeRules, WithinQueue, build,
};
use vc_resource::Dim;

/// Sets of queues that several cases use.
const SETS: &[(&str, &str)] = &[
    ("SA", "sa 6 in:L"),
    ("C12", "c1 6+3Gi/12+6Gi in:L re:L; c2 6+3Gi/12+6Gi re:A"),
    ("D12", "d1 6 in:L re:L; d2 6 re:A"),
    (
        "SH",
        "a-std 1/13 re:L bo:L≤0; b-std 1/13 in:L re:A bo:L≤0; a-be 1/13 re:L bo:L≤0; \
         b-be 0/13 re:L bo:L≤0; shared 10",
    ),
    ("LE", "lend1 6 g2 in:L re:L; lend2 6 g4 in:L re:L"),
    ("T3", "a 2+2Gi in:L re:A; b 2+2Gi; c 2+2Gi"),
    ("F3", "a 3 in:L re:A bo:L≤-3; b 3 in:L re:A bo:L≤-3; c 3 in:L re:A bo:L≤-3; pre 0"),
];

/// What quotas are given for in the cases, in this order.
const DIMS: [Dim; 3] = [Dim::CPU, Dim::MEMORY, Dim::PODS];

/// The slots of the cases; `gpu` stands in the place of pods.
pub(crate) fn slots() -> (Slots, [Slot; 3]) {
    let mut slots = Slots::default();
    let all = DIMS.map(|dim| slots.intern(Flavor::default(), dim).expect("there is room"));
    (slots, all)
}

/// cpu in cores as millicores, memory in Gi, gpus.
type Amounts = [Option<i64>; 3];

/// `3`, `0.5`, `3+1Gi`, `5gpu`, `2+5gpu`, `–`.
fn amounts(text: &str) -> Amounts {
    let mut amounts = Amounts::default();
    for part in text.split('+').filter(|part| *part != "–") {
        let (place, number) = match (part.strip_suffix("Gi"), part.strip_suffix("gpu")) {
            (Some(memory), _) => (1, memory),
            (_, Some(gpu)) => (2, gpu),
            _ => (0, part),
        };
        let number: f64 = number.parse().unwrap_or_else(|_| panic!("not an amount: {text}"));
        amounts[place] = Some((number * if place == 0 { 1000.0 } else { 1.0 }).round() as i64);
    }
    amounts
}

fn within(text: &str) -> WithinQueue {
    match text {
        "L" => WithinQueue::LowerPriority,
        "LN" => WithinQueue::LowerOrNewerEqualPriority,
        _ => panic!("no policy: in:{text}"),
    }
}

fn reclaim(text: &str) -> ReclaimWithin {
    match text {
        "L" => ReclaimWithin::LowerPriority,
        "A" => ReclaimWithin::Any,
        _ => panic!("no policy: re:{text}"),
    }
}

fn borrow(text: &str) -> BorrowWithin {
    let limit = text.strip_prefix("L≤").map(|limit| limit.parse().expect("a threshold"));
    assert!(text == "L" || limit.is_some(), "no policy: bo:{text}");
    BorrowWithin::LowerPriority { max_priority: limit }
}

fn queue(text: &str) -> QueueSpec {
    let mut words = text.split_whitespace();
    let name = words.next().expect("a queue has a name").into();
    let none = || vec![None; DIMS.len()];
    let mut queue = QueueSpec {
        name,
        parent: "".into(),
        deserved: none(),
        capability: none(),
        guarantee: none(),
        weight: 1.0,
        priority: 0,
        policy: Policy::default(),
    };
    for word in words {
        if let Some((kind, policy)) = word.split_once(':') {
            match kind {
                "in" => queue.policy.within_queue = within(policy),
                "re" => queue.policy.reclaim_within = reclaim(policy),
                "bo" => queue.policy.borrow_within = borrow(policy),
                _ => panic!("unknown word: {word}"),
            }
        } else if let Some(parent) = word.strip_prefix('@') {
            queue.parent = parent.into();
        } else if let Some(weight) = word.strip_prefix('w') {
            queue.weight = weight.parse().expect("a weight");
        } else if let Some(guarantee) = word.strip_prefix('g') {
            queue.guarantee = amounts(guarantee).into();
        } else {
            let (deserved, capability) = word.split_once('/').unwrap_or((word, "–"));
            queue.deserved = amounts(deserved).into();
            queue.capability = amounts(capability).into();
        }
    }
    queue
}

/// The queues of a set, or of a text.
pub(crate) fn queues(text: &str) -> Vec<QueueSpec> {
    let set = SETS.iter().find(|(name, _)| *name == text);
    set.map_or(text, |(_, text)| text).split(';').map(queue).collect()
}

/// The trees of a text.
pub(crate) fn trees(text: &str, rules: &TreeRules) -> QuotaForest {
    build(slots().0, &queues(text), rules).expect("queues make no fault")
}

/// What a text asks for.
pub(crate) fn demand(text: &str) -> QuotaDemand {
    let given = slots().1.into_iter().zip(amounts(text));
    QuotaDemand::new(given.filter_map(|(slot, amount)| Some((slot, amount?))))
}

/// A group on the move: queue, priority, size, seconds from the others' admission and creation.
struct Words {
    queue: String,
    priority: i32,
    size: String,
    admitted: i64,
    created: i64,
    evicting: bool,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let mut next = || words.next().unwrap_or_else(|| panic!("too short: {text}"));
        let (queue, priority, size) = (next().to_owned(), next(), next().to_owned());
        let priority = priority.parse().expect("a priority");
        let mut group = Words { queue, priority, size, admitted: 0, created: 0, evicting: false };
        for word in words {
            let seconds = |text: &str| -> i64 {
                text.trim_end_matches('s').parse().unwrap_or_else(|_| panic!("no time: {text}"))
            };
            match (word.strip_prefix("adm"), word.strip_prefix("made"), word) {
                (Some(text), _, _) => group.admitted = seconds(text),
                (_, Some(text), _) => group.created = seconds(text),
                (_, _, "Evicted") => group.evicting = true,
                (_, _, "each") => {}
                _ => panic!("unknown word: {word}"),
            }
        }
        group
    }
}

/// Queues, groups and the incoming group of a case.
pub(crate) struct Case {
    pub(crate) groups: Groups,
    pub(crate) by_name: BTreeMap<String, GroupId>,
    pub(crate) incoming: QuotaPreemptor,
}

impl Case {
    pub(crate) fn new(queues: &str, running: &str, incoming: &str, rules: &TreeRules) -> Self {
        let built = trees(queues, rules);
        let node = |name: &str| *built.by_name.get(name).unwrap_or_else(|| panic!("no {name}"));
        let mut groups = Groups::new(built.forest.clone());
        let mut by_name = BTreeMap::new();
        for (names, words) in running.split(')').filter_map(|text| text.split_once('(')) {
            let words = Words::of(words);
            for name in expand(names.trim()) {
                let id = groups.insert(Group {
                    queue: node(&words.queue),
                    priority: words.priority,
                    created_micros: words.created * 1_000_000,
                    admitted_micros: words.admitted * 1_000_000,
                    uid: name.as_str().into(),
                    evicting: words.evicting,
                    holds: demand(&words.size),
                });
                by_name.insert(name, id);
            }
        }
        let words = Words::of(incoming.trim_matches(['(', ')']));
        let incoming = QuotaPreemptor {
            queue: node(&words.queue),
            priority: words.priority,
            created_micros: words.created * 1_000_000,
            demand: demand(&words.size),
        };
        Self { groups, by_name, incoming }
    }

    /// Mode and, if it is Preempt, what the search says.
    pub(crate) fn decide(
        &mut self,
        how: &SearchOptions,
    ) -> (AssignmentMode, Result<Vec<EvictionTarget>, SearchRefusal>) {
        let fair = how.fair_sharing.is_some();
        let forest = self.groups.forest();
        let class = forest.classify(self.incoming.queue, &self.incoming.demand, fair);
        let before = self.usage();
        let found = match class.mode {
            AssignmentMode::Preempt => {
                how.run(&mut self.groups, &self.incoming, &class.need, &mut AllowAll)
            }
            AssignmentMode::Fit | AssignmentMode::NoFit => Err(SearchRefusal::NoCandidates),
        };
        assert_eq!(self.usage(), before, "the search leaves everything as it was");
        (class.mode, found)
    }

    fn usage(&self) -> Vec<i128> {
        let forest = self.groups.forest();
        let all = forest
            .nodes()
            .flat_map(|node| slots().1.into_iter().map(move |slot| forest.usage(node, slot)));
        all.collect()
    }

    /// Targets with short reasons, by name.
    pub(crate) fn text(&self, targets: &[EvictionTarget]) -> String {
        let name = |target: &EvictionTarget| &*self.groups.get(target.group).uid;
        let mut texts: Vec<String> = targets
            .iter()
            .map(|target| format!("{} {}", name(target), short(target.reason)))
            .collect();
        texts.sort();
        texts.join(", ")
    }
}

/// `b1–b3` are three.
fn expand(names: &str) -> Vec<String> {
    let Some((first, last)) = names.split_once('–') else {
        return vec![names.to_owned()];
    };
    let stem = first.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let number = |name: &str| -> u32 { name[stem.len()..].parse().expect("a number") };
    (number(first)..=number(last)).map(|number| format!("{stem}{number}")).collect()
}

fn short(reason: PreemptionReason) -> &'static str {
    match reason {
        PreemptionReason::InClusterQueue => "OWN",
        PreemptionReason::InCohortReclamation => "REC",
        PreemptionReason::InCohortReclaimWhileBorrowing => "BORR",
        PreemptionReason::InCohortFairSharing => "FAIR",
    }
}

/// One case: the result as in the specification, in the order of the names.
pub(crate) fn check(
    how: &SearchOptions,
    queues: &str,
    running: &str,
    incoming: &str,
    expected: &str,
) {
    check_by(&TreeRules::default(), how, queues, running, incoming, expected);
}

/// The same with other trees.
pub(crate) fn check_by(
    rules: &TreeRules,
    how: &SearchOptions,
    queues: &str,
    running: &str,
    incoming: &str,
    expected: &str,
) {
    let mut case = Case::new(queues, running, incoming, rules);
    let (mode, found) = case.decide(how);
    let text = match (mode, found) {
        (_, Ok(targets)) => case.text(&targets),
        (AssignmentMode::Preempt, Err(_)) => "none".to_owned(),
        (mode, Err(_)) => format!("none ({mode:?})"),
    };
    let expected = match expected.starts_with("none") {
        true => expected.to_owned(),
        false => {
            let mut targets: Vec<&str> = expected.split(", ").collect();
            targets.sort_unstable();
            targets.join(", ")
        }
    };
    assert_eq!(text, expected, "{queues}: {running}. In: {incoming}");
}
