//! Proportional reservation: a task that requests no scarce resource leaves cpu and memory free for
//! the scarce resources that are idle on the node.
//! Specification: plugins-nodes.md 10.4.

use std::sync::Arc;

use vc_conf::{Argument, ArgumentShape, Arguments, Warning};
use vc_model::{Code, Finding, Node, Reason};
use vc_resource::{Dim, Dims, Resource};

use super::scarce::listed;

pub(super) const PROPORTIONAL: Argument<ArgumentShape> = Argument::new(
    "proportional",
    ArgumentShape::Record(&[
        ("enable", ArgumentShape::Bool),
        ("resources", ArgumentShape::Text),
        ("resourceProportion", ArgumentShape::MapOf(&ArgumentShape::Number)),
    ]),
    "keep room beside scarce resources",
)
.shown_as("off");

/// Bytes to keep free for one thousandth of a scarce resource, at a rate of 1.
const BYTES_PER_MILLI: f64 = 1e6;

/// The scarce resources with their rates, in the order of the configuration.
pub(super) struct Proportional {
    resources: Vec<Rates>,
    /// The dimension of each entry of `resources`. `None` if its name occurs in no object.
    dims: Vec<Option<Dim>>,
}

/// What is kept free for one idle unit of a scarce resource.
struct Rates {
    name: String,
    /// Cores for each unit.
    cpu: f64,
    /// Gigabytes of 1e9 bytes for each unit.
    memory: f64,
    refusal: Arc<str>,
}

impl Proportional {
    /// Reads the argument. Returns `None` if the reservation is off.
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Option<Self> {
        let proportional = arguments.structured(PROPORTIONAL.key);
        if !proportional.field("enable").is_true() {
            return None;
        }
        let given = proportional.field("resourceProportion");
        let mut rate = |name: &str, of: &str| {
            let key = format!("{name}.{of}");
            let rate = given.entries().find(|(other, _)| *other == key)?.1.number()?;
            if rate < 0.0 {
                let problem = format!("resourceProportion.{key}: {rate} is less than 0");
                let remedy = "write 0 or more; until then 1 is in force";
                warnings.push(arguments.warning(PROPORTIONAL.key, &problem, remedy));
            }
            Some(rate).filter(|&rate| 0.0 <= rate)
        };
        let mut resources: Vec<Rates> = Vec::new();
        for name in listed(proportional.field("resources").text()) {
            if resources.iter().all(|known| known.name != name) {
                resources.push(Rates {
                    name: name.to_owned(),
                    cpu: rate(name, "cpu").unwrap_or(1.0),
                    memory: rate(name, "memory").unwrap_or(1.0),
                    refusal: format!("proportional of resource {name} check failed").into(),
                });
            }
        }
        Some(Self { resources, dims: Vec::new() })
    }

    pub(super) fn follow(&mut self, dims: &Dims) {
        self.dims = self.resources.iter().map(|rates| dims.get(&rates.name)).collect();
    }

    /// Returns what is found against a task with this request on the node.
    pub(super) fn check(&self, request: &Resource, node: &Node) -> Option<Finding> {
        let known = || {
            self.dims.iter().zip(&self.resources).filter_map(|(dim, rates)| Some(((*dim)?, rates)))
        };
        if known().any(|(dim, _)| !request.is_zero(dim)) {
            return None;
        }
        // Pods that leave count as gone: what they hold is free for the pods that come.
        let idle = |dim| node.idle.get(dim).saturating_add(node.releasing.get(dim)) as f64;
        let left = |dim| idle(dim) - request.get(dim) as f64;
        let keeps_room = |&(dim, rates): &(Dim, &Rates)| {
            let scarce = idle(dim);
            scarce * rates.cpu <= left(Dim::CPU)
                && scarce * rates.memory * BYTES_PER_MILLI <= left(Dim::MEMORY)
        };
        let is_offered = |&(dim, _): &(Dim, &Rates)| is_scalar(dim) && node.idle.has(dim);
        let failed = known().filter(is_offered).find(|entry| !keeps_room(entry))?;
        let reason = Reason::Owned(failed.1.refusal.clone());
        Some(Finding { code: Code::Unschedulable, reason })
    }
}

fn is_scalar(dim: Dim) -> bool {
    dim != Dim::CPU && dim != Dim::MEMORY
}
