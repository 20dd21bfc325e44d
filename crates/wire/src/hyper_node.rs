//! HyperNodes: only their names are read. Specification: core.md 3.9, 4.9.

use serde::Deserialize;

use crate::metadata::{self, Metadata, SlimMetadata};
use crate::problems::Problems;
use crate::soft::LenientField;
use crate::{Kind, WireError, finish};

/// A HyperNode as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimHyperNode {
    pub metadata: LenientField<SlimMetadata>,
}

impl SlimHyperNode {
    /// Returns its metadata, which are all that is read.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<Metadata, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::HyperNode, self.metadata, &mut problems)?;
        let name = metadata.name.clone();
        finish(metadata, Kind::HyperNode, "", &name, problems)
    }
}
