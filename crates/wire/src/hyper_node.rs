//! HyperNodes. Specification: core.md 3.9, plugins-nodes.md 15.1.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{HyperNodeMember, HyperNodeRecord, LabelSelector, NodePattern};

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientList, object};
use crate::{Kind, WireError, finish_noted};

/// A HyperNode as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimHyperNode {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimHyperNodeSpec>,
}

/// `spec` of a HyperNode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimHyperNodeSpec {
    pub tier: LenientField<i32>,
    pub tier_name: LenientField<Arc<str>>,
    pub members: LenientList<SlimHyperNodeMember>,
}

/// An entry of `members`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimHyperNodeMember {
    #[serde(rename = "type")]
    pub kind: LenientField<Arc<str>>,
    pub selector: LenientField<SlimMemberSelector>,
}

/// `selector` of a member.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimMemberSelector {
    pub exact_match: LenientField<SlimExactMatch>,
    pub regex_match: LenientField<SlimRegexMatch>,
    pub label_match: LenientField<SlimLabelSelector>,
}

/// `exactMatch` of a selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimExactMatch {
    pub name: LenientField<Arc<str>>,
}

/// `regexMatch` of a selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimRegexMatch {
    pub pattern: LenientField<Arc<str>>,
}

object!(
    SlimHyperNode { "metadata" => metadata, "spec" => spec },
    SlimHyperNodeSpec,
    SlimHyperNodeMember,
    SlimMemberSelector,
    SlimExactMatch,
    SlimRegexMatch,
);

impl SlimHyperNode {
    /// The record, and what is wrong with the object besides.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<(HyperNodeRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::HyperNode, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let name = metadata.name;
        let members = problems.list(spec.members, &path.field("members"), member);
        let record = HyperNodeRecord {
            name: name.clone(),
            uid: metadata.uid,
            created_micros: metadata.created_micros,
            tier: problems.or_default(spec.tier, &path.field("tier")),
            tier_name: problems.name(spec.tier_name, &path.field("tierName")),
            members: members.into_iter().flatten().collect(),
            field_problems: problems.found_texts(),
        };
        finish_noted(record, Kind::HyperNode, "", &name, problems)
    }
}

/// The member. `None` if it selects nothing; what is wrong with it is noted.
fn member(
    problems: &mut Problems,
    slim: SlimHyperNodeMember,
    path: &FieldPath<'_>,
) -> Option<HyperNodeMember> {
    let kind = problems.text(slim.kind, &path.field("type"));
    let at = path.field("selector");
    let selector = problems.or_default(slim.selector, &at);
    let (exact, regex) = (at.field("exactMatch"), at.field("regexMatch"));
    let name = problems.read(selector.exact_match, &exact);
    let name = name.map(|slim| problems.name(slim.name, &exact.field("name")));
    let pattern = problems.read(selector.regex_match, &regex);
    let pattern = pattern.map(|slim| problems.text(slim.pattern, &regex.field("pattern")));
    let label_path = at.field("labelMatch");
    let labels = problems.read(selector.label_match, &label_path);
    let labels = labels.map(|slim| label_selector(slim, &label_path, problems));
    match (&*kind, name, pattern, labels) {
        ("Node", Some(name), None, None) => Some(HyperNodeMember::Node(name)),
        ("Node", None, Some(pattern), None) => match NodePattern::new(&pattern) {
            Ok(pattern) => Some(HyperNodeMember::Pattern(pattern)),
            Err(problem) => {
                problems.note(&regex.field("pattern"), &format!("{problem}; no node matches"));
                None
            }
        },
        ("Node", None, None, Some(labels)) if labels == LabelSelector::default() => {
            problems.note(&label_path, "is empty; no node matches");
            None
        }
        ("Node", None, None, Some(labels)) => Some(HyperNodeMember::Labels(labels)),
        ("HyperNode", Some(name), None, None) => Some(HyperNodeMember::HyperNode(name)),
        ("HyperNode", ..) => {
            problems.note(&at, "a member of type HyperNode needs exactMatch, and nothing else");
            None
        }
        ("Node", ..) => {
            problems.note(&at, "needs exactly one of exactMatch, regexMatch and labelMatch");
            None
        }
        _ => {
            problems.note(&path.field("type"), &format!("neither Node nor HyperNode: {kind:?}"));
            None
        }
    }
}
