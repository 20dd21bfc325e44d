//! The workload of the demo: manifests that ship, or a directory of the user's, and when each object
//! is applied.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::serve::RUN_SECONDS;
use vc_objects::field::{text, title_of};
use vc_objects::input::{self, Input, InputError, Unreadable};

/// Seconds after the start of the demo at which an object is applied; without it, at the start.
pub const APPLY_AT: &str = "vcsim/apply-at";

/// Which workload is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Gangs in two queues.
    #[default]
    Gangs,
    /// Gangs with a network topology in racks and halls.
    Topology,
    /// The manifests of a directory or file.
    Given(PathBuf),
}

/// The manifests of a workload that ships, by file name.
type Embedded = &'static [(&'static str, &'static str)];

/// The manifests of [`Workload::Gangs`].
const GANGS: Embedded = &[
    ("elastic.yaml", include_str!("../../../../config/demo/elastic.yaml")),
    ("gangs.yaml", include_str!("../../../../config/demo/gangs.yaml")),
    ("never-fits.yaml", include_str!("../../../../config/demo/never-fits.yaml")),
    ("queues.yaml", include_str!("../../../../config/demo/queues.yaml")),
    ("waits-for-room.yaml", include_str!("../../../../config/demo/waits-for-room.yaml")),
];

/// The manifests of [`Workload::Topology`].
const TOPOLOGY: Embedded = &[
    ("gangs.yaml", include_str!("../../../../config/demo-topology/gangs.yaml")),
    ("hypernodes.yaml", include_str!("../../../../config/demo-topology/hypernodes.yaml")),
    ("sub-groups.yaml", include_str!("../../../../config/demo-topology/sub-groups.yaml")),
    ("too-large.yaml", include_str!("../../../../config/demo-topology/too-large.yaml")),
];

impl Workload {
    /// Returns the directory of the repository in which the manifests are, and the manifests by
    /// file name. `None` for those of a user.
    pub fn embedded(&self) -> Option<(&'static str, Embedded)> {
        match self {
            Self::Gangs => Some(("config/demo", GANGS)),
            Self::Topology => Some(("config/demo-topology", TOPOLOGY)),
            Self::Given(_) => None,
        }
    }

    /// Returns the configuration of the scheduler that ships for it.
    pub(super) fn configuration(&self) -> &'static str {
        match self {
            Self::Topology => include_str!("../../../../config/volcano-scheduler-topology.conf"),
            Self::Gangs | Self::Given(_) => {
                include_str!("../../../../config/volcano-scheduler.conf")
            }
        }
    }

    fn read(&self) -> Result<Input, InputError> {
        if let Self::Given(path) = self {
            return input::read(std::slice::from_ref(path));
        }
        let mut input = Input::default();
        let (directory, files) = self.embedded().unwrap_or_default();
        for (name, text) in files {
            input.add_text(&Arc::from(format!("{directory}/{name}")), text);
        }
        Ok(input)
    }
}

/// An object and when it is applied, from the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestStep {
    /// Its time.
    pub at: Duration,
    /// As it is posted.
    pub object: Value,
}

/// The objects in the order in which they are applied, and what cannot be applied.
#[derive(Clone, Debug, Default)]
pub struct ManifestPlan {
    /// By time; what others refer to comes first.
    pub steps: Vec<ManifestStep>,
    /// Each with its place.
    pub unreadable: Vec<Unreadable>,
}

impl ManifestPlan {
    /// The plan of a workload. Times, of pods too, are divided by `speed`.
    ///
    /// # Errors
    /// The path does not exist or may not be read.
    pub fn read(workload: &Workload, speed: f64) -> Result<ManifestPlan, InputError> {
        Ok(ManifestPlan::of(workload.read()?, speed))
    }

    /// The plan of what has been read.
    pub fn of(input: Input, speed: f64) -> ManifestPlan {
        let mut plan = ManifestPlan { steps: Vec::new(), unreadable: input.unreadable };
        for object in input.objects {
            match apply_at(&object.value, speed) {
                Ok(at) => {
                    let mut object = object.value;
                    hurry(&mut object, speed);
                    plan.steps.push(ManifestStep { at, object });
                }
                Err(message) => {
                    plan.unreadable.push(Unreadable::of_object(object.source, message));
                }
            }
        }
        plan.steps.sort_by_key(|step| (step.at, rank(&step.object)));
        plan
    }
}

fn apply_at(object: &Value, speed: f64) -> Result<Duration, String> {
    let given = &object["metadata"]["annotations"][APPLY_AT];
    if given.is_null() {
        return Ok(Duration::ZERO);
    }
    let seconds = given.as_str().and_then(|text| text.parse::<f64>().ok());
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds / speed).ok());
    let problem = || format!("{}: {APPLY_AT}: not a number of seconds: {given}", title_of(object));
    span.ok_or_else(problem)
}

/// What other objects refer to goes first.
fn rank(object: &Value) -> u8 {
    match text(object, "/kind") {
        "Namespace" => 0,
        "Node" | "HyperNode" | "Queue" | "PriorityClass" => 1,
        _ => 2,
    }
}

/// Divides the run times of pods, in templates too.
fn hurry(value: &mut Value, speed: f64) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let seconds = field.as_str().and_then(|text| text.parse::<f64>().ok());
                match seconds {
                    Some(seconds) if name == RUN_SECONDS => {
                        *field = (seconds / speed).to_string().into();
                    }
                    _ => hurry(field, speed),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hurry(item, speed)),
        _ => {}
    }
}
