//! PriorityClasses. Specification: core.md 3.7.

use serde::Deserialize;
use vc_model::PriorityClassRecord;

use crate::metadata::{self, Metadata, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::soft::LenientField;
use crate::{Kind, WireError, finish};

/// A PriorityClass as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPriorityClass {
    pub metadata: LenientField<SlimMetadata>,
    pub value: LenientField<i32>,
    pub global_default: LenientField<bool>,
}

impl SlimPriorityClass {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<PriorityClassRecord, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::PriorityClass, self.metadata, &mut problems)?;
        record(metadata, self.value, self.global_default, problems)
    }
}

/// The record of a PriorityClass whose metadata were decoded elsewhere.
///
/// # Errors
/// A field that is read is malformed.
pub fn priority_class_record(
    metadata: Metadata,
    value: LenientField<i32>,
    global_default: LenientField<bool>,
) -> Result<PriorityClassRecord, WireError> {
    record(metadata, value, global_default, Problems::default())
}

fn record(
    metadata: Metadata,
    value: LenientField<i32>,
    global_default: LenientField<bool>,
    mut problems: Problems,
) -> Result<PriorityClassRecord, WireError> {
    let class = PriorityClassRecord {
        name: metadata.name.clone(),
        value: problems.or_default(value, &FieldPath::root("value")),
        global_default: problems.or_default(global_default, &FieldPath::root("globalDefault")),
    };
    finish(class, Kind::PriorityClass, "", &metadata.name, problems)
}
