//! Objects that exist already, as far as objects that are applied beside them depend on them.

use serde_json::Value;
use vc_model::PriorityClassRecord;
use vc_wire::Kind;

use crate::workload::WorkloadContext;

/// What an applied object takes over from the object that it replaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveIdentity {
    /// `metadata.uid`. Empty if it is not known.
    pub uid: String,
    /// `status`. `None` if there is none.
    pub status: Option<Value>,
}

/// Objects that exist already.
pub trait LiveObjects {
    /// Returns the time, in microseconds since 1970.
    fn now_micros(&self) -> i64;

    /// Returns what controllers look for.
    fn context(&self) -> WorkloadContext;

    /// Returns the PriorityClasses.
    fn priority_classes(&self) -> Vec<PriorityClassRecord>;

    /// Returns an object. The namespace is empty for kinds without one.
    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<LiveIdentity>;

    /// Returns the uid of the controller of this name whose pods or PodGroups exist.
    fn controller_uid(&self, namespace: &str, kind: &str, name: &str) -> Option<String>;
}
