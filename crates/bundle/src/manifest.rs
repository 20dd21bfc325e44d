//! The first file of a bundle: what it is, and the checksums of the others.
//! Specification: answers.md 15 (ANS-103).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vc_engine::DecidingOptions;

/// Number of the format. A reader refuses files of another number.
pub const FORMAT: u32 = 4;
/// The value of `kind`.
pub(crate) const KIND: &str = "Bundle";
/// Name of the file.
pub(crate) const NAME: &str = "manifest.json";

/// Name of the file with the last state as Kubernetes objects, for people and other versions. A bundle lacks it as a
/// scheduler makes it, and one of an earlier version.
pub const OBJECTS: &str = "objects.yaml";

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// `Bundle`.
    pub kind: String,
    /// [`FORMAT`].
    pub format: u32,
    /// The version that wrote it.
    pub version: String,
    /// The flags of the process.
    pub flags: Vec<String>,
    /// The options of the engine by which it decides from the first state on. `None`: an earlier version wrote the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_options: Option<DecidingOptions>,
    /// The last cycle before the first input.
    pub first_cycle: u64,
    /// The last cycle of the inputs; the same as `first_cycle` if there are none.
    pub last_cycle: u64,
    /// True if numbers stand in the place of names (ANS-102).
    #[serde(default, skip_serializing_if = "is_false")]
    pub anonymized: bool,
    /// SHA-256 of each other file in hexadecimal digits, by name.
    pub files: BTreeMap<String, String>,
}

// serde gives a reference.
fn is_false(value: &bool) -> bool {
    !value
}
