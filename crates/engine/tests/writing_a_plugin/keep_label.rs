//! `keep-label`: pods with the label `example.com/keep: "true"` are never evicted.

use vc_framework::{Depends, Inputs, Plugin, PluginEntry, Points, SessionView, VictimFilter};
use vc_model::TaskId;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("keep-label", |_, _| Box::new(KeepLabel));

const KEEP: &str = "example.com/keep";

struct KeepLabel;

impl Plugin for KeepLabel {
    /// The three ways in which a pod can become a victim.
    fn points(&self) -> Points {
        Points::PREEMPTABLE.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE)
    }

    /// What the rule reads: the pods in question, and nothing else of the cluster.
    fn depends(&self) -> Depends {
        Depends::of(&[(self.points(), Inputs::CANDIDATE_ROW)])
    }

    /// The plugin has no vote: what it protects is taken out before the tiers vote.
    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        Some(self)
    }
}

impl VictimFilter for KeepLabel {
    /// The rule.
    fn protects(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        let labels = &view.cluster.class(candidate).labels;
        labels.get(KEEP).is_some_and(|value| &**value == "true")
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::scheduler::decide;

    const CONF: &str = r#"
        actions: "allocate, preempt"
        tiers:
        - plugins:
          - name: priority
          - name: gang
          - name: keep-label
    "#;

    /// Two pods of one job run on the only node; one has to go for a job of higher priority.
    fn evicted(label_of_a: &str, label_of_b: &str) -> Option<String> {
        let cluster = format!(
            "queue default
             node n1 cpu=2
             job low priority=1
               task a cpu=1 @n1 running preemptable {label_of_a}
               task b cpu=1 @n1 running preemptable {label_of_b}
             job high priority=100
               task c cpu=1"
        );
        decide(ENTRY, CONF, &cluster).into_iter().find(|line| line.starts_with("evict"))
    }

    #[test]
    fn a_pod_with_the_label_stays() {
        let keep = "label.example.com/keep=true";
        assert_eq!(evicted(keep, ""), Some("evict low-b".to_owned()));
        assert_eq!(evicted("", keep), Some("evict low-a".to_owned()));
        assert_eq!(evicted(keep, keep), None);
    }
}
