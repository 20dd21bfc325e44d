//! ResourceQuotas: the status is what counts. Specification: plugins-jobs-queues.md 11.

use serde::Deserialize;
use vc_model::QuotaRecord;
use vc_resource::Quantity;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientMap, object};
use crate::{Kind, WireError, named};

/// A ResourceQuota as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimQuota {
    pub metadata: LenientField<SlimMetadata>,
    pub status: LenientField<SlimQuotaStatus>,
}

/// `status` of a ResourceQuota.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimQuotaStatus {
    pub hard: LenientField<LenientMap<Quantity>>,
    pub used: LenientField<LenientMap<Quantity>>,
}

object!(SlimQuotaStatus);

impl SlimQuota {
    /// The record and what is wrong with the object. A limit that cannot be read does not limit; the
    /// API server, which counts for itself, has the last word when the pods are created.
    ///
    /// # Errors
    /// Namespace or name cannot be read.
    pub fn to_record(self) -> Result<(QuotaRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let key = metadata::read(Kind::ResourceQuota, self.metadata, &mut problems)?.key();
        let path = FieldPath::root("status");
        let status = problems.or_default(self.status, &path);
        let hard = problems.resources(status.hard, &path.field("hard"));
        let used = problems.resources(status.used, &path.field("used"));
        let problems = problems.of(&named(Kind::ResourceQuota, &key.namespace, &key.name));
        Ok((QuotaRecord { key, hard, used }, problems))
    }
}
