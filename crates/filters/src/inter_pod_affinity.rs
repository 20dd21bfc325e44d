//! InterPodAffinity: required terms of the pod and anti-affinity of existing pods as a filter,
//! preferences of both sides as a score. It reads live counts of pods by topology domain, so its
//! cost depends on the terms, not on the pods.
//! Specification: plugins-nodes.md 4.5, 7.7.

use std::collections::BTreeMap;

use vc_model::{
    Code, Domains, Finding, Id, KeyId, NodeDomains, NodeId, Reason, Term, TermCount, TermId, Wants,
};

use crate::rule::{Pod, PreFilter};

const NO_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Runs the pre-filter. It skips pods without required terms that no existing pod's anti-affinity
/// concerns.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    if let Some(problem) = pod.class.pod_affinity.as_ref().and_then(|own| own.malformed()) {
        let reason = Reason::Owned(format!("parsing pod: {problem}").into());
        return PreFilter::Refuse(Finding { code: Code::Unresolvable, reason });
    }
    match rules(pod) {
        Some(rules) => PreFilter::Ask(Box::new(move |node| rules.find(node))),
        None => PreFilter::Skip,
    }
}

/// A rule of the filter that refuses a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffinityRefusal {
    /// A required affinity term of the pod.
    Affinity,
    /// A required anti-affinity term of the pod.
    AntiAffinity,
    /// A required anti-affinity term of an existing pod.
    ExistingAntiAffinity,
}

/// Returns the rules that refuse a node, all of them where the filter names the first alone.
/// Returns `None` if the filter skips the pod.
pub fn refusals<'a>(pod: Pod<'a>) -> Option<impl Fn(NodeId) -> Vec<AffinityRefusal> + 'a> {
    let rules = rules(pod)?;
    Some(move |node| {
        let holds = [
            (rules.is_near(node), AffinityRefusal::Affinity),
            (!rules.is_too_near(node), AffinityRefusal::AntiAffinity),
            (!rules.is_unwanted(node), AffinityRefusal::ExistingAntiAffinity),
        ];
        holds.into_iter().filter(|(holds, _)| !holds).map(|(_, refusal)| refusal).collect()
    })
}

/// Returns the terms that decide for a pod. Returns `None` if there are none.
fn rules(pod: Pod<'_>) -> Option<AffinityRules<'_>> {
    let domains = &pod.cluster.domains;
    let class = pod.cluster.tasks[pod.task].class;
    let meaning = domains.terms_meaning(class);
    let existing: Vec<&Term> = meaning.filter(|term| 0 < term.total.away).collect();
    let (near, away) = match domains.wants(class) {
        Some(Wants { near, away, .. }) => (near.as_slice(), away.as_slice()),
        None => (&[][..], &[][..]),
    };
    if existing.is_empty() && near.is_empty() && away.is_empty() {
        return None;
    }
    let terms = |ids: &[TermId]| -> Vec<&Term> { ids.iter().map(|&id| domains.term(id)).collect() };
    Some(AffinityRules {
        domains,
        is_first: near.first().is_some_and(|&all| {
            domains.means(all, class) && near.iter().all(|&id| domains.term(id).total.meant == 0)
        }),
        near: terms(near),
        away: terms(away),
        existing,
    })
}

/// The terms that decide for a pod.
struct AffinityRules<'a> {
    domains: &'a Domains,
    /// True if no pod matches the affinity terms and the pod itself matches them.
    is_first: bool,
    near: Vec<&'a Term>,
    away: Vec<&'a Term>,
    existing: Vec<&'a Term>,
}

impl AffinityRules<'_> {
    fn find(&self, node: NodeId) -> Option<Finding> {
        if !self.is_near(node) {
            return Some(Finding::new(Code::Unresolvable, NO_AFFINITY));
        }
        if self.is_too_near(node) {
            return Some(Finding::new(Code::Unschedulable, ANTI_AFFINITY));
        }
        self.is_unwanted(node).then(|| Finding::new(Code::Unschedulable, EXISTING_ANTI_AFFINITY))
    }

    /// True if all affinity terms of the pod hold on the node.
    fn is_near(&self, node: NodeId) -> bool {
        self.near.iter().all(|term| {
            let value = self.domains.value(term.key, node);
            value.is_some_and(|value| self.is_first || 0 < term.at(value).meant)
        })
    }

    /// True if an anti-affinity term of the pod means a pod in the node's domain.
    fn is_too_near(&self, node: NodeId) -> bool {
        self.away.iter().any(|term| 0 < count(self.domains, term, node).meant)
    }

    /// True if an anti-affinity term of a pod in the node's domain means this pod.
    fn is_unwanted(&self, node: NodeId) -> bool {
        self.existing.iter().any(|term| 0 < count(self.domains, term, node).away)
    }
}

/// Returns the count in the node's domain, or zero if the node has no domain.
fn count(domains: &Domains, term: &Term, node: NodeId) -> TermCount {
    domains.value(term.key, node).map_or(TermCount::default(), |value| term.at(value))
}

/// True if neither the pod nor an existing pod has a preference about the other.
pub fn skips_score(pod: Pod<'_>) -> bool {
    own_preferences(pod).is_empty() && their_preferences(pod).next().is_none()
}

fn own_preferences(pod: Pod<'_>) -> &[(TermId, i64)] {
    let wants = pod.cluster.domains.wants(pod.cluster.tasks[pod.task].class);
    wants.map_or(&[], |wants| wants.preferred.as_slice())
}

fn their_preferences(pod: Pod<'_>) -> impl Iterator<Item = &Term> {
    let class = pod.cluster.tasks[pod.task].class;
    pod.cluster.domains.terms_meaning(class).filter(|term| 0 < term.total.preferring)
}

/// Writes the scores of the nodes, from 0 to 100.
pub fn score(pod: Pod<'_>, nodes: &[NodeId], scores: &mut [i64]) {
    let sums = sums_by_domain(pod);
    if let [(values, sums)] = &sums[..] {
        return score_domains(*values, sums, nodes, scores);
    }
    for (score, &node) in scores.iter_mut().zip(nodes) {
        let of_key =
            |(values, sums): &(NodeDomains<'_>, Vec<i64>)| Some(sums[values.of(node)?.index()]);
        *score = sums.iter().filter_map(of_key).sum();
    }
    normalize(scores);
}

/// Writes the scores if there is only one topology key. All nodes of a domain have the score of the
/// domain.
fn score_domains(values: NodeDomains<'_>, sums: &[i64], nodes: &[NodeId], scores: &mut [i64]) {
    // The last entry is for nodes that lack the key.
    let mut is_met = vec![false; sums.len() + 1];
    for (score, &node) in scores.iter_mut().zip(nodes) {
        let domain = values.of(node).map_or(sums.len(), Id::index);
        is_met[domain] = true;
        *score = domain as i64;
    }
    let met: Vec<usize> = (0..is_met.len()).filter(|&domain| is_met[domain]).collect();
    let sum = |&domain: &usize| sums.get(domain).copied().unwrap_or(0);
    let mut of_met: Vec<i64> = met.iter().map(sum).collect();
    normalize(&mut of_met);
    let mut of_domain = vec![0; is_met.len()];
    met.iter().zip(of_met).for_each(|(&domain, score)| of_domain[domain] = score);
    scores.iter_mut().for_each(|score| *score = of_domain[*score as usize]);
}

/// Returns the sum of each domain by topology key. There are far fewer domains with pods than
/// nodes.
fn sums_by_domain(pod: Pod<'_>) -> Vec<(NodeDomains<'_>, Vec<i64>)> {
    let domains = &pod.cluster.domains;
    let none = |key| domains.values(key).table(0, std::iter::empty());
    let mut by_key: BTreeMap<KeyId, Vec<i64>> = BTreeMap::new();
    for &(id, weight) in own_preferences(pod) {
        let term = domains.term(id);
        let sums = by_key.entry(term.key).or_insert_with(|| none(term.key));
        let meant = term.each().map(|(value, count)| (value, i64::from(count.meant)));
        meant.for_each(|(value, n_pods)| sums[value.index()] += weight * n_pods);
    }
    for term in their_preferences(pod) {
        let sums = by_key.entry(term.key).or_insert_with(|| none(term.key));
        term.each().for_each(|(value, count)| sums[value.index()] += count.weight);
    }
    by_key.into_iter().map(|(key, sums)| (domains.values(key), sums)).collect()
}

/// Scales the sums to 0..100, where the smallest becomes 0. Equal sums all become 0 (section 7.7).
fn normalize(scores: &mut [i64]) {
    let (Some(&least), Some(&most)) = (scores.iter().min(), scores.iter().max()) else { return };
    let range = most - least;
    if range == 0 {
        return scores.fill(0);
    }
    for score in scores {
        *score = (100.0 * (*score - least) as f64 / range as f64) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn nodes_91_sums_are_spread_over_the_range() {
        let normalized = |mut scores: Vec<i64>| {
            normalize(&mut scores);
            scores
        };
        assert_eq!(normalized(vec![3, 1, -1]), [100, 50, 0]);
        assert_eq!(normalized(vec![-5, -3]), [0, 100]);
        assert_eq!(normalized(vec![0, 1, 3]), [0, 33, 100]);
        assert_eq!(normalized(vec![7, 7]), [0, 0]);
        assert_eq!(normalized(vec![]), []);
    }
}
