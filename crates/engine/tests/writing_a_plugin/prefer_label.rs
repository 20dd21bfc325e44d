//! `prefer-label`: nodes with a label are better than nodes without it.

use vc_conf::{Argument, PluginOption, Warning};
use vc_framework::{Depends, Inputs, Plugin, PluginEntry, Points, SessionView};
use vc_model::{NodeId, TaskId};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("prefer-label", build).arguments(&[&LABEL, &WEIGHT]);

const LABEL: Argument<&str> =
    Argument::new("prefer-label.label", "", "label of the nodes that are better");
const WEIGHT: Argument<i64> =
    Argument::new("prefer-label.weight", 1, "weight of the score").at_least(0);

/// The score of a node with the label, before `weight`. Scores of plugins are added up.
const BEST: f64 = 100.0;

struct PreferLabel {
    label: String,
    weight: i64,
}

/// Reads the arguments. A value that cannot be read becomes a warning and leaves the default.
fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    let label = LABEL.read(&option.arguments, warnings);
    let weight = WEIGHT.read(&option.arguments, warnings);
    Box::new(PreferLabel { label, weight })
}

impl Plugin for PreferLabel {
    fn points(&self) -> Points {
        Points::NODE_ORDER
    }

    /// What the rule reads: the labels of the node, and nothing of other nodes or pods.
    fn depends(&self) -> Depends {
        Depends::of(&[(Points::NODE_ORDER, Inputs::NODE_OBJECT)])
    }

    /// The rule.
    fn node_order(
        &self,
        view: SessionView<'_>,
        _task: TaskId,
        node: NodeId,
    ) -> Result<f64, String> {
        let has_label = view.cluster.nodes[node].labels.contains_key(self.label.as_str());
        Ok(if has_label { BEST * self.weight as f64 } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use crate::scheduler::decide;

    #[test]
    fn a_node_with_the_label_is_taken_first() {
        let conf = r#"
            actions: "enqueue, allocate"
            tiers:
            - plugins:
              - name: gang
              - name: prefer-label
                arguments:
                  prefer-label.label: example.com/fast-disk
        "#;
        let cluster = "
            queue default
            node n1 cpu=1
            node n2 cpu=1 label.example.com/fast-disk=yes
            job j min=2
              task a cpu=1
              task b cpu=1";
        assert_eq!(decide(ENTRY, conf, cluster), ["bind j-a to n2", "bind j-b to n1"]);
    }
}
