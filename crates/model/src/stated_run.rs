//! What objects say about how long a pod runs, and by when a terminating one is gone.
//! Specification: answers.md 7 (ANS-36).

use serde::{Deserialize, Serialize};

use crate::duration::go_duration_micros;
use crate::selector::Labels;

/// Annotation of a pod or PodGroup: how long one pod runs, as a Go duration.
pub const RUNTIME: &str = "reservation.volcano.sh/runtime";
/// Label or annotation of a pod or PodGroup: how many seconds Kueue lets it run.
pub const MAX_EXEC_SECONDS: &str = "kueue.x-k8s.io/max-exec-time-seconds";

/// How long a pod runs, and by when a terminating one is gone, as stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedRun {
    /// `spec.activeDeadlineSeconds`, after which the kubelet ends the pod. `None` if absent.
    pub deadline_micros: Option<i64>,
    /// Annotation [`RUNTIME`]. `None` if it is absent, or no duration above 0.
    pub runtime_micros: Option<i64>,
    /// Label, else annotation [`MAX_EXEC_SECONDS`]. `None` if both are absent, or no number above 0.
    pub max_exec_micros: Option<i64>,
    /// `metadata.deletionTimestamp` of a pod that terminates, at which its grace period ends, in
    /// microseconds since 1970. `None` if the pod is not being deleted, or the time is not known.
    pub deletion_micros: Option<i64>,
}

impl StatedRun {
    /// Reads labels and annotations of an object.
    pub fn of(labels: &Labels, annotations: &Labels) -> Self {
        let seconds = labels.get(MAX_EXEC_SECONDS).or_else(|| annotations.get(MAX_EXEC_SECONDS));
        let runtime = annotations.get(RUNTIME).and_then(|text| go_duration_micros(text));
        Self {
            deadline_micros: None,
            runtime_micros: runtime.filter(|&micros| 0 < micros),
            max_exec_micros: seconds.and_then(|text| micros_of_seconds(text.parse().ok()?)),
            deletion_micros: None,
        }
    }

    /// Sets the deadline in seconds; one of 0 or less counts as absent.
    #[must_use]
    pub fn with_deadline(self, seconds: Option<i64>) -> Self {
        Self { deadline_micros: seconds.and_then(micros_of_seconds), ..self }
    }

    /// Sets the time by which the pod is gone, in microseconds since 1970.
    #[must_use]
    pub fn with_deletion(self, deletion_micros: Option<i64>) -> Self {
        Self { deletion_micros, ..self }
    }

    /// True if nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn micros_of_seconds(seconds: i64) -> Option<i64> {
    seconds.checked_mul(1_000_000).filter(|&micros| 0 < micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_36_labels_come_before_annotations_and_odd_values_count_as_absent() {
        let map = |entries: &[(&str, &str)]| -> Labels {
            entries.iter().map(|&(key, value)| (key.into(), value.into())).collect()
        };
        let both = StatedRun::of(
            &map(&[(MAX_EXEC_SECONDS, "60")]),
            &map(&[(MAX_EXEC_SECONDS, "5"), (RUNTIME, "1h30m")]),
        );
        assert_eq!(both.max_exec_micros, Some(60_000_000));
        assert_eq!(both.runtime_micros, Some(5_400_000_000));
        assert_eq!(both.with_deadline(Some(7)).deadline_micros, Some(7_000_000));
        for odd in ["", "-1h", "0", "soon"] {
            let odd =
                StatedRun::of(&Labels::new(), &map(&[(RUNTIME, odd), (MAX_EXEC_SECONDS, odd)]));
            assert!(odd.with_deadline(Some(0)).is_empty(), "{odd:?}");
        }
    }
}
