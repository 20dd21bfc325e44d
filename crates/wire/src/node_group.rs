//! What a queue says about node groups: `spec.affinity`, and an annotation with limits.
//! Specification: plugins-nodes.md 11.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use vc_model::{Labels, NodeGroupAffinity, NodeGroupLimits, ResourceList};
use vc_resource::Quantity;

use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientList, LenientMap, object};

const LIMITS: &str = "volcano.sh/nodegroup-resource-limits";

/// `spec.affinity` of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimQueueAffinity {
    pub node_group_affinity: LenientField<SlimNodeGroups>,
    pub node_group_anti_affinity: LenientField<SlimNodeGroups>,
}

/// Required and preferred names of node groups.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeGroups {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: LenientList<Arc<str>>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: LenientList<Arc<str>>,
}

object!(SlimQueueAffinity, SlimNodeGroups);

/// The affinity of a queue to node groups. `None` if the field is absent.
pub(crate) fn affinity(
    field: LenientField<SlimQueueAffinity>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<NodeGroupAffinity> {
    let slim = problems.read(field, path)?;
    let near = path.field("nodeGroupAffinity");
    let [required, preferred] = lists(slim.node_group_affinity, &near, problems);
    let away = path.field("nodeGroupAntiAffinity");
    let [anti_required, anti_preferred] = lists(slim.node_group_anti_affinity, &away, problems);
    Some(NodeGroupAffinity { required, preferred, anti_required, anti_preferred })
}

/// The required and the preferred names.
fn lists(
    field: LenientField<SlimNodeGroups>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> [Vec<Arc<str>>; 2] {
    let groups = problems.or_default(field, path);
    let required = path.field("requiredDuringSchedulingIgnoredDuringExecution");
    let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    [problems.texts(groups.required, &required), problems.texts(groups.preferred, &preferred)]
}

/// The limits in the annotation. Whatever cannot be read makes all of it unreadable: a limit that
/// silently does not hold is worse than a queue that waits.
pub(crate) fn limits(annotations: &Labels) -> NodeGroupLimits<ResourceList> {
    let Some(text) = annotations.get(LIMITS) else { return NodeGroupLimits::default() };
    let (path, mut problems) = (FieldPath::root(LIMITS), Problems::default());
    let groups = serde_json::from_str(text).unwrap_or_else(|error| {
        problems.add(&path, &format!("is not valid JSON: {error}"));
        LenientField::Absent
    });
    let LenientMap(groups): LenientMap<LenientMap<Quantity>> = problems.or_default(groups, &path);
    let mut limits = BTreeMap::new();
    for (group, amounts) in groups {
        let amounts = problems.map(amounts, &path.key(&group));
        limits.insert(group, amounts);
    }
    match problems.worst() {
        Some(problem) => NodeGroupLimits::Unreadable(problem),
        None => NodeGroupLimits::ByGroup(limits),
    }
}
