//! NodeShards. Specification: core.md 3.9, 4.10.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::NodeShardRecord;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientList, object};
use crate::{Kind, WireError, finish};

/// A NodeShard as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeShard {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimNodeShardSpec>,
    pub status: LenientField<SlimNodeShardStatus>,
}

/// `spec` of a NodeShard.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeShardSpec {
    pub nodes_desired: LenientList<Arc<str>>,
}

/// `status` of a NodeShard.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeShardStatus {
    pub nodes_in_use: LenientList<Arc<str>>,
    pub nodes_to_remove: LenientList<Arc<str>>,
    pub nodes_to_add: LenientList<Arc<str>>,
}

object!(SlimNodeShardSpec, SlimNodeShardStatus);

impl SlimNodeShard {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<NodeShardRecord, WireError> {
        let mut problems = Problems::default();
        let name = metadata::read(Kind::NodeShard, self.metadata, &mut problems)?.name;
        let (path, status_path) = (FieldPath::root("spec"), FieldPath::root("status"));
        let spec = problems.or_default(self.spec, &path);
        let status = problems.or_default(self.status, &status_path);
        let shard = NodeShardRecord {
            name: name.clone(),
            nodes_desired: problems.texts(spec.nodes_desired, &path.field("nodesDesired")),
            nodes_in_use: problems.texts(status.nodes_in_use, &status_path.field("nodesInUse")),
            nodes_to_remove: problems
                .texts(status.nodes_to_remove, &status_path.field("nodesToRemove")),
            nodes_to_add: problems.texts(status.nodes_to_add, &status_path.field("nodesToAdd")),
        };
        finish(shard, Kind::NodeShard, "", &name, problems)
    }
}
