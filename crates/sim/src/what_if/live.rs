//! The objects of a simulation as objects that exist.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::Value;
use vc_model::PriorityClassRecord;
use vc_objects::field::text;
use vc_objects::live::{LiveIdentity, LiveObjects};
use vc_objects::workload::WorkloadContext;
use vc_wire::Kind;

use crate::simulation::Simulation;

/// Uids of controllers by namespace, kind and name.
type ControllerUids = BTreeMap<(String, String, String), String>;

/// The objects of a simulation.
pub(super) struct SimulationObjects<'a> {
    simulation: &'a Simulation,
    /// Made when it is first needed: the objects of a listed cluster are read from a file for it.
    controllers: OnceCell<ControllerUids>,
}

impl<'a> SimulationObjects<'a> {
    pub(super) fn of(simulation: &'a Simulation) -> Self {
        Self { simulation, controllers: OnceCell::new() }
    }

    /// Reads the owners of all objects. Of several with one name the first one counts.
    fn read_controllers(&self) -> ControllerUids {
        let mut uids = ControllerUids::new();
        for object in self.simulation.all_objects() {
            let namespace = text(&object, "/metadata/namespace");
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            for owner in owners.into_iter().flatten() {
                let key = (namespace, text(owner, "/kind"), text(owner, "/name"));
                let key = (key.0.to_owned(), key.1.to_owned(), key.2.to_owned());
                uids.entry(key).or_insert_with(|| text(owner, "/uid").to_owned());
            }
        }
        uids
    }
}

impl LiveObjects for SimulationObjects<'_> {
    fn now_micros(&self) -> i64 {
        self.simulation.now_micros()
    }

    fn context(&self) -> WorkloadContext {
        let mut context = WorkloadContext::default();
        self.simulation.all_objects().for_each(|object| context.add(&object));
        context
    }

    fn priority_classes(&self) -> Vec<PriorityClassRecord> {
        self.simulation.cluster().priority_classes().cloned().collect()
    }

    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<LiveIdentity> {
        let object = self.simulation.object(kind, namespace, name)?;
        let uid = text(&object, "/metadata/uid").to_owned();
        Some(LiveIdentity { uid, status: object.get("status").cloned() })
    }

    fn controller_uid(&self, namespace: &str, kind: &str, name: &str) -> Option<String> {
        let controllers = self.controllers.get_or_init(|| self.read_controllers());
        controllers.get(&(namespace.to_owned(), kind.to_owned(), name.to_owned())).cloned()
    }
}
