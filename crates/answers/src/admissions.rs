//! When PodGroups were admitted to their queues. Specification: answers.md 8 (ANS-115).

use std::collections::{BTreeMap, VecDeque};

use vc_engine::Effect;
use vc_model::{Cluster, ObjectKey, PodGroupPhase};

/// Admissions that are kept: some 1 MiB. Beyond, the oldest one is forgotten.
const MOST_ADMISSIONS: usize = 15_000;

/// The last admissions, by PodGroup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admissions {
    /// The last admission of each PodGroup, in microseconds since 1970.
    at: BTreeMap<ObjectKey, i64>,
    /// All admissions, the oldest one first. A PodGroup that was admitted twice is in it twice.
    order: VecDeque<(ObjectKey, i64)>,
    /// Time from which on every admission is known. `None` before the first call and after a gap.
    complete_since_micros: Option<i64>,
}

impl Admissions {
    /// Takes note that admissions may have been missed until now.
    pub(crate) fn note_gap(&mut self) {
        self.complete_since_micros = None;
    }

    /// Takes note of the PodGroups that these effects admit, and returns them.
    pub(crate) fn note(
        &mut self,
        cluster: &Cluster,
        effects: &[Effect],
        now_micros: i64,
    ) -> Vec<ObjectKey> {
        self.complete_since_micros.get_or_insert(now_micros);
        let mut admitted = Vec::new();
        for effect in effects {
            let Effect::PodGroupStatus { pod_group, status, phase_changed: true, .. } = effect
            else {
                continue;
            };
            let is_admission = match status.phase {
                PodGroupPhase::Inqueue => true,
                PodGroupPhase::Running => self.is_first_phase(cluster, pod_group),
                _ => false,
            };
            if is_admission {
                self.push(pod_group.clone(), now_micros);
                admitted.push(pod_group.clone());
            }
        }
        admitted
    }

    /// True if a PodGroup that runs now was admitted in the same cycle: its whole life was seen, and no
    /// admission.
    fn is_first_phase(&self, cluster: &Cluster, group: &ObjectKey) -> bool {
        let row = cluster.job(group).and_then(|job| cluster.jobs[job].pod_group.as_ref());
        row.is_some_and(|row| {
            self.complete_since_micros.is_some_and(|since| since < row.created_micros)
                && self.of(group, row.created_micros).is_none()
        })
    }

    fn push(&mut self, group: ObjectKey, at_micros: i64) {
        if MOST_ADMISSIONS <= self.order.len()
            && let Some((oldest, at)) = self.order.pop_front()
        {
            self.complete_since_micros = self.complete_since_micros.max(Some(at));
            if self.at.get(&oldest) == Some(&at) {
                self.at.remove(&oldest);
            }
        }
        self.at.insert(group.clone(), at_micros);
        self.order.push_back((group, at_micros));
    }

    /// Returns the last admission of a PodGroup that was created then. Returns `None` if none is remembered.
    pub(crate) fn of(&self, group: &ObjectKey, created_micros: i64) -> Option<i64> {
        self.at.get(group).copied().filter(|&at| created_micros <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_115_the_oldest_admission_is_forgotten_first() {
        let mut admissions = Admissions::default();
        let group = |number: usize| ObjectKey::new("ml", &format!("train-{number}"));
        for number in 0..=MOST_ADMISSIONS {
            admissions.push(group(number), i64::try_from(number).unwrap());
        }
        assert_eq!((admissions.of(&group(0), 0), admissions.of(&group(1), 0)), (None, Some(1)));
        assert_eq!(admissions.of(&group(1), 2), None, "that was another PodGroup of the name");
        assert_eq!(admissions.complete_since_micros, Some(0));
        admissions.push(group(2), 1_000_000);
        assert_eq!(admissions.of(&group(2), 0), Some(1_000_000));
        assert_eq!(admissions.of(&group(1), 0), None);
    }
}
