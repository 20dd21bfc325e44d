//! Rules for GPUs that pods of one kind do not share with each other. Specification: plugins-nodes.md
//! 16.6.

use std::collections::BTreeMap;

use vc_conf::{Arguments, Warning};
use vc_model::Labels;

/// The rules of `deviceshare.GPUExclusiveRules`: labels by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExclusiveRules(Vec<Labels>);

impl ExclusiveRules {
    /// Reads the argument. A rule without labels would be one for all pods, and is left out.
    pub(super) fn read(key: &str, arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let labels = |rule: BTreeMap<String, String>| {
            rule.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
        };
        let mut rules = arguments.structured_text_maps(key).unwrap_or_default();
        if let Some(at) = rules.iter().position(BTreeMap::is_empty) {
            let message = format!("rule {} has no labels, it is left out", at + 1);
            let remedy = "write the labels of the pods, as in [{app: training}]";
            warnings.push(arguments.warning(key, &message, remedy));
            rules.retain(|rule| !rule.is_empty());
        }
        Self(rules.into_iter().map(labels).collect())
    }

    /// True if there is no rule.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules that a pod with these labels matches.
    pub(super) fn of_pod<'a>(&'a self, labels: &Labels) -> Vec<&'a Labels> {
        self.0.iter().filter(|rule| matches(rule, labels)).collect()
    }
}

/// True if the pod has all labels of the rule.
pub(super) fn matches(rule: &Labels, labels: &Labels) -> bool {
    rule.iter().all(|(key, value)| labels.get(key) == Some(value))
}
