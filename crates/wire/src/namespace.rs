//! Namespaces: only their labels are read. Specification: core.md 4.1.

use serde::Deserialize;

use crate::metadata::{self, Metadata, SlimMetadata};
use crate::problems::Problems;
use crate::soft::LenientField;
use crate::{Kind, WireError, finish};

/// A namespace as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNamespace {
    pub metadata: LenientField<SlimMetadata>,
}

impl SlimNamespace {
    /// Its metadata, which are all that is read.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<Metadata, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::Namespace, self.metadata, &mut problems)?;
        let name = metadata.name.clone();
        finish(metadata, Kind::Namespace, "", &name, problems)
    }
}
