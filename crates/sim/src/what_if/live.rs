//! The objects of a simulation as objects that exist.

use serde_json::Value;
use vc_model::PriorityClassRecord;
use vc_objects::field::text;
use vc_objects::live::{LiveIdentity, LiveObjects};
use vc_objects::workload::WorkloadContext;
use vc_wire::Kind;

use crate::simulation::Simulation;

/// The objects of a simulation.
pub(super) struct SimulationObjects<'a>(&'a Simulation);

impl<'a> SimulationObjects<'a> {
    pub(super) fn of(simulation: &'a Simulation) -> Self {
        Self(simulation)
    }
}

impl LiveObjects for SimulationObjects<'_> {
    fn now_micros(&self) -> i64 {
        self.0.now_micros()
    }

    fn context(&self) -> WorkloadContext {
        let mut context = WorkloadContext::default();
        self.0.all_objects().for_each(|object| context.add(object));
        context
    }

    fn priority_classes(&self) -> Vec<PriorityClassRecord> {
        self.0.cluster().priority_classes().cloned().collect()
    }

    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<LiveIdentity> {
        let object = self.0.object(kind, namespace, name)?;
        let uid = text(object, "/metadata/uid").to_owned();
        Some(LiveIdentity { uid, status: object.get("status").cloned() })
    }

    fn controller_uid(&self, namespace: &str, kind: &str, name: &str) -> Option<String> {
        let is_it = |owner: &&Value| owner["kind"] == kind && owner["name"] == name;
        let of_owner = |object: &Value| -> Option<String> {
            let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
            let owner = owners.iter().find(is_it)?;
            let is_here = text(object, "/metadata/namespace") == namespace;
            is_here.then(|| text(owner, "/uid").to_owned())
        };
        self.0.all_objects().find_map(of_owner)
    }
}
