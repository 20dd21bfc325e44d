//! Laws over several cycles: nobody whom a preemptor takes takes it back at once, and where three or
//! more take turns, they wait longer each time (cohort.md A.9.4, B.7).

use std::collections::BTreeMap;

use proptest::prelude::*;
use vc_cohort::{
    AssignmentMode, Backoff, Group, GroupId, Groups, QueueHead, QuotaNode, SearchOptions,
    SearchRefusal, TreeRules,
};

use crate::notation::{Case, check};
use crate::random::{FAIR, Row, Shape, admitted, decide, group, preemptor, rows, shapes};

/// Cycles without pods: whoever is evicted waits again.
struct Life {
    groups: Groups,
    waiting: Vec<Group>,
    backoff: Backoff,
    now: i64,
    /// Who was evicted for whom.
    story: Vec<(String, String)>,
    /// How often each group had others evicted.
    n_preempted: BTreeMap<String, u32>,
}

impl Life {
    fn new(shape: &Shape, rows: &[Row], backoff: i64) -> Self {
        let built = shape.built();
        let leaves = shape.leaves(&built);
        let groups = Groups::new(built.forest.clone());
        let waiting = rows.iter().enumerate().map(|(at, row)| group(&leaves, at, row)).collect();
        let (story, n_preempted) = (Vec::new(), BTreeMap::new());
        Self { groups, waiting, backoff: Backoff::new(backoff), now: 0, story, n_preempted }
    }

    /// Whether somebody was admitted.
    fn cycle(&mut self, how: &SearchOptions) -> bool {
        self.now += 1;
        let mut left = std::mem::take(&mut self.waiting);
        let n_left = left.len();
        let mut n_skipped = 0;
        while let Some(at) = next(&mut self.groups, &left, how) {
            let group = left.remove(at);
            if !self.serve(&group, how) {
                n_skipped += 1;
                self.waiting.push(group);
            }
        }
        n_skipped < n_left
    }

    fn serve(&mut self, group: &Group, how: &SearchOptions) -> bool {
        let (mode, _, found) = decide(&mut self.groups, &preemptor(group), how);
        let waits = self.backoff.waits_until(&group.uid, self.now).is_some();
        let targets = match (mode, found) {
            (AssignmentMode::Fit, _) => Vec::new(),
            (_, Ok(targets)) if !waits => targets,
            _ => return false,
        };
        if !targets.is_empty() {
            self.backoff.preempted(&group.uid);
            *self.n_preempted.entry(group.uid.to_string()).or_default() += 1;
        }
        for target in targets {
            let victim = self.groups.get(target.group).clone();
            self.backoff.evicted(&victim.uid, self.now);
            self.story.push((victim.uid.to_string(), group.uid.to_string()));
            self.groups.take(target.group);
            self.waiting.push(victim);
        }
        let admitted_micros = 1_000 + self.story.len() as i64;
        self.groups.insert(Group { admitted_micros, ..group.clone() });
        true
    }
}

/// The head of the queue whose turn it is.
fn next(groups: &mut Groups, waiting: &[Group], how: &SearchOptions) -> Option<usize> {
    let mut heads: BTreeMap<QuotaNode, usize> = BTreeMap::new();
    for (at, group) in waiting.iter().enumerate() {
        let key = |at: usize| (-waiting[at].priority, waiting[at].created_micros, at);
        let head = heads.entry(group.queue).or_insert(at);
        if key(at) < key(*head) {
            *head = at;
        }
    }
    let places: Vec<usize> = heads.into_values().collect();
    let head = |&at: &usize| QueueHead {
        queue: waiting[at].queue,
        priority: waiting[at].priority,
        created_micros: waiting[at].created_micros,
        demand: waiting[at].holds.clone(),
    };
    let heads: Vec<QueueHead> = places.iter().map(head).collect();
    groups.next_head(&heads, how.fair_sharing.is_some()).map(|at| places[at])
}

/// The target that would have the preemptor evicted in turn, in the state right after.
fn taken_back(shape: &Shape, rows: &[Row], incoming: &Row, how: &SearchOptions) -> Option<String> {
    let (mut groups, _) = admitted(shape, rows, true);
    let incoming = group(&shape.leaves(&shape.built()), rows.len(), incoming);
    let targets = decide(&mut groups, &preemptor(&incoming), how).2.ok()?;
    targets.iter().for_each(|target| groups.take(target.group));
    let newcomer: GroupId = groups.insert(Group { admitted_micros: 1_000, ..incoming });
    targets.into_iter().find_map(|target| {
        let victim = groups.get(target.group).clone();
        let found = decide(&mut groups, &preemptor(&victim), how).2.ok()?;
        let returns = found.iter().any(|other| other.group == newcomer);
        returns.then(|| format!("{} {:?}", victim.uid, target.reason))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nobody_is_taken_back_at_once(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
        fair in any::<bool>(),
    ) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        prop_assert_eq!(taken_back(&shape, &rows, &incoming[0], &how), None);
    }
}

/// Both groups of `b` would go for one that borrows itself; the smaller one then has the advantage
/// within its own quota, takes the room back, and it starts again. A lower priority that borrows
/// still gives way where it cannot return.
#[test]
fn t5_who_would_return_is_not_taken_without_fair_sharing_either() {
    const CLASSIC: SearchOptions = SearchOptions { fair_sharing: None, own: true, others: true };
    let running = "small(b -1 1) large(b 0 2)";
    let queues = "a 2 re:L bo:L; top –; mid – @top; b 1 re:A @mid";
    check(&CLASSIC, queues, running, "(a +1 3)", "none");
    let mut case = Case::new(queues, running, "(a +1 3)", &TreeRules::default());
    let small = case.by_name["small"];
    assert_eq!(
        case.decide(&CLASSIC),
        (AssignmentMode::Preempt, Err(SearchRefusal::WouldReturn(small)))
    );
    let tame = "a 2 re:L bo:L; top –; mid – @top; b 1 @mid";
    check(&CLASSIC, tame, running, "(a +1 3)", "small BORR, large BORR");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Within 300 seconds a group may preempt at first, and after 60 and another 120 seconds, each
    /// time it was evicted in between.
    #[test]
    fn turns_become_rare(shape in shapes(true), rows in rows(1..7), fair in any::<bool>()) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        let mut life = Life::new(&shape, &rows, 60);
        (0..300).for_each(|_| { life.cycle(&how); });
        prop_assert!(life.n_preempted.values().all(|&n_times| n_times <= 3), "{:?}", life.story);
    }

    /// Two groups never take turns, and nobody has to wait for it. Three can: one has the quota of
    /// its own, the next one is older, the third one has the higher priority.
    #[test]
    fn a_pair_comes_to_rest(
        shape in shapes(true),
        rows in rows(2..3),
        fair in any::<bool>(),
    ) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        let mut life = Life::new(&shape, &rows, 0);
        (0..20).for_each(|_| { life.cycle(&how); });
        let n_evicted = life.story.len();
        (0..20).for_each(|_| { life.cycle(&how); });
        prop_assert_eq!(life.story.len(), n_evicted, "{:?}", life.story);
    }

    /// With more of them those that take turns wait longer and longer; between their waits nothing
    /// goes on.
    #[test]
    fn many_queues_come_to_rest_while_some_wait(
        shape in shapes(true),
        rows in rows(1..7),
        fair in any::<bool>(),
    ) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        let mut life = Life::new(&shape, &rows, 1_000);
        (0..20).for_each(|_| { life.cycle(&how); });
        let n_evicted = life.story.len();
        (0..20).for_each(|_| { life.cycle(&how); });
        prop_assert_eq!(life.story.len(), n_evicted, "{:?}", life.story);
    }
}
