//! PodTopologySpread: `DoNotSchedule` constraints as a filter, `ScheduleAnyway` constraints as a
//! score. It reads live counts of pods by topology domain.
//! Specification: plugins-nodes.md 4.8, 7.8.

use vc_model::{
    Code, Domains, Finding, Id, NodeDomains, NodeId, Reason, Spread, Spreading, Unsatisfiable,
};

use crate::normalize::MAX_SCORE;
use crate::rule::{Pod, PreFilter};

const NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";
const SKEWED: &str = "node(s) didn't match pod topology spread constraints";

/// Runs the pre-filter. It skips pods without a `DoNotSchedule` constraint.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    if let Some(problem) = malformed(pod, Unsatisfiable::DoNotSchedule) {
        let reason = Reason::Owned(problem.into());
        return PreFilter::Refuse(Finding { code: Code::Error, reason });
    }
    let domains = &pod.cluster.domains;
    let hard = domains.wants(pod.cluster.tasks[pod.task].class);
    let hard = hard.map_or(&[][..], |wants| wants.hard.as_slice());
    if hard.is_empty() {
        return PreFilter::Skip;
    }
    let rules: Vec<HardConstraint<'_>> =
        hard.iter().map(|spreading| HardConstraint::new(domains, spreading)).collect();
    PreFilter::Ask(Box::new(move |node| rules.iter().find_map(|rule| rule.find(domains, node))))
}

/// Returns what is malformed in a selector of a constraint of this kind. An API server would not
/// have stored it. Returns `None` if all selectors are valid.
fn malformed(pod: Pod<'_>, kind: Unsatisfiable) -> Option<String> {
    let constraints = pod.class.spread.iter().filter(|constraint| constraint.when == kind);
    let mut selectors = constraints.filter_map(|constraint| constraint.labels.as_ref());
    selectors.find_map(|selector| selector.malformed())
}

/// A `DoNotSchedule` constraint, with the values that are equal for all nodes.
struct HardConstraint<'a> {
    spreading: Spreading,
    spread: &'a Spread,
    /// Largest number of pods that a domain may have before the pod is placed.
    room: i64,
}

impl<'a> HardConstraint<'a> {
    fn new(domains: &'a Domains, spreading: &Spreading) -> Self {
        let least = i64::from(domains.least(spreading));
        let room = i64::from(spreading.max_skew) + least - i64::from(spreading.selects_self);
        Self { spreading: *spreading, spread: domains.spread(spreading.spread), room }
    }

    fn find(&self, domains: &Domains, node: NodeId) -> Option<Finding> {
        let Some(value) = domains.value(self.spreading.key, node) else {
            return Some(Finding::new(Code::Unresolvable, NO_LABEL));
        };
        let skewed = self.room < i64::from(self.spread.at(value));
        skewed.then(|| Finding::new(Code::Unschedulable, SKEWED))
    }
}

/// True if the pod has no `ScheduleAnyway` constraint.
pub fn skips_score(pod: Pod<'_>) -> bool {
    soft(pod).is_empty()
}

fn soft(pod: Pod<'_>) -> &[Spreading] {
    let wants = pod.cluster.domains.wants(pod.cluster.tasks[pod.task].class);
    wants.map_or(&[], |wants| wants.soft.as_slice())
}

/// Writes the scores of the candidates, from 0 to 100.
///
/// # Errors
///
/// A selector is malformed.
pub fn score(pod: Pod<'_>, nodes: &[NodeId], scores: &mut [i64]) -> Result<(), String> {
    if let Some(problem) = malformed(pod, Unsatisfiable::ScheduleAnyway) {
        return Err(problem);
    }
    let domains = &pod.cluster.domains;
    let mut rules: Vec<SoftConstraint<'_>> =
        soft(pod).iter().map(|soft| SoftConstraint::new(domains, soft)).collect();
    // With default constraints, no node is ignored (section 7.8).
    let may_ignore = !pod.class.spread.is_empty();
    let counts =
        |rules: &[SoftConstraint<'_>], node| !may_ignore || rules.iter().all(|rule| rule.has(node));
    let counted: Vec<NodeId> = nodes.iter().copied().filter(|&node| counts(&rules, node)).collect();
    rules.iter_mut().for_each(|rule| rule.weigh(&counted));
    let raw = |&node: &NodeId| counts(&rules, node).then(|| raw_score(&rules, node));
    let raw: Vec<Option<i64>> = nodes.iter().map(raw).collect();
    normalize(&raw, scores);
    Ok(())
}

/// A `ScheduleAnyway` constraint, with the values that are equal for all nodes.
struct SoftConstraint<'a> {
    spreading: Spreading,
    values: NodeDomains<'a>,
    /// Number of pods by domain.
    n_pods: Vec<i32>,
    weight: f64,
}

impl<'a> SoftConstraint<'a> {
    fn new(domains: &'a Domains, spreading: &Spreading) -> Self {
        let values = domains.values(spreading.key);
        let n_pods = values.table(0, domains.spread(spreading.spread).each());
        Self { spreading: *spreading, values, n_pods, weight: 0.0 }
    }

    fn has(&self, node: NodeId) -> bool {
        self.values.of(node).is_some()
    }

    /// Sets the weight from the number of domains among the counted nodes.
    fn weigh(&mut self, counted: &[NodeId]) {
        let n_domains = match self.spreading.by_host {
            true => counted.len(),
            false => {
                let mut table = self.values.table(false, std::iter::empty());
                let values = counted.iter().filter_map(|&node| self.values.of(node));
                values.for_each(|value| table[value.index()] = true);
                table.into_iter().filter(|&is_counted| is_counted).count()
            }
        };
        self.weight = ((n_domains + 2) as f64).ln();
    }

    fn part(&self, node: NodeId) -> Option<f64> {
        let n_pods = self.n_pods[self.values.of(node)?.index()];
        Some(f64::from(n_pods) * self.weight + f64::from(self.spreading.max_skew - 1))
    }
}

fn raw_score(rules: &[SoftConstraint<'_>], node: NodeId) -> i64 {
    rules.iter().filter_map(|rule| rule.part(node)).sum::<f64>().round() as i64
}

/// Normalizes raw scores: the fewest pods become 100, ignored nodes 0 (section 7.8).
fn normalize(raw: &[Option<i64>], scores: &mut [i64]) {
    let most = raw.iter().flatten().copied().max().unwrap_or(0).max(0);
    let least = raw.iter().flatten().copied().min().unwrap_or(0);
    for (score, raw) in scores.iter_mut().zip(raw) {
        *score = match raw {
            None => 0,
            Some(_) if most == 0 => MAX_SCORE,
            Some(raw) => MAX_SCORE * (most + least - raw) / most,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn nodes_92_the_least_skew_is_best() {
        let normalized = |raw: &[Option<i64>]| {
            let mut scores = vec![7; raw.len()];
            normalize(raw, &mut scores);
            scores
        };
        assert_eq!(normalized(&[Some(4), Some(2), Some(0)]), [0, 50, 100]);
        assert_eq!(normalized(&[Some(4), None, Some(3)]), [75, 0, 100]);
        assert_eq!(normalized(&[Some(0), None, Some(0)]), [100, 0, 100]);
        assert_eq!(normalized(&[None]), [0]);
    }
}
