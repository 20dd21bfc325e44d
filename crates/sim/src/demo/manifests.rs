//! The workload of the demo: the manifests of `config/demo`, or a directory of the user's, and when
//! each object is applied.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::field::{text, title_of};
use crate::input::{self, Input, InputError, Unreadable};
use crate::serve::RUN_SECONDS;

/// Seconds after the start of the demo at which an object is applied; without it, at the start.
pub const APPLY_AT: &str = "vcsim/apply-at";

/// What `vcsim demo` shows when no directory is given, by file name.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("elastic.yaml", include_str!("../../../../config/demo/elastic.yaml")),
    ("gangs.yaml", include_str!("../../../../config/demo/gangs.yaml")),
    ("never-fits.yaml", include_str!("../../../../config/demo/never-fits.yaml")),
    ("queues.yaml", include_str!("../../../../config/demo/queues.yaml")),
    ("waits-for-room.yaml", include_str!("../../../../config/demo/waits-for-room.yaml")),
];

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
    /// The plan of a directory or file, or of the embedded manifests. Times, of pods too, are
    /// divided by `speed`.
    ///
    /// # Errors
    /// The path does not exist or may not be read.
    pub fn read(path: Option<&Path>, speed: f64) -> Result<ManifestPlan, InputError> {
        let input = match path {
            Some(path) => input::read(&[path.to_owned()])?,
            None => embedded(),
        };
        Ok(ManifestPlan::of(input, speed))
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
                    plan.unreadable.push(Unreadable { source: object.source, message });
                }
            }
        }
        plan.steps.sort_by_key(|step| (step.at, rank(&step.object)));
        plan
    }
}

fn embedded() -> Input {
    let mut input = Input::default();
    for (name, text) in EMBEDDED {
        input.add_text(&Arc::from(format!("config/demo/{name}")), text);
    }
    input
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
        "Node" | "Queue" | "PriorityClass" => 1,
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
