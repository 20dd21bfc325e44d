//! I4: two jobs do not evict each other's pods by turns while nothing changes that could be the
//! reason.

use std::collections::BTreeMap;

use vc_model::ObjectKey;

/// How often the direction between two jobs may change: each has evicted pods of the other twice
/// then.
const MOST_CHANGES: u64 = 3;

/// The evictions that processes have decided since the last change of what there is or what is
/// asked for.
#[derive(Debug, Default)]
pub(super) struct EvictionTurns {
    /// The life of a process that has decided last. Another one may know other objects.
    process: String,
    /// By the PodGroups of both jobs, in their order.
    pairs: BTreeMap<[ObjectKey; 2], PairTurns>,
}

/// The evictions between two jobs.
#[derive(Debug)]
struct PairTurns {
    /// The job for which pods of the other one were evicted last.
    evictor: ObjectKey,
    /// How often that was another job than before.
    n_changes: u64,
}

impl EvictionTurns {
    /// Something has changed: evictions may follow in any direction.
    pub(super) fn forget(&mut self) {
        self.pairs.clear();
    }

    /// Takes note of the eviction of a pod. Returns a text if both jobs evict by turns.
    pub(super) fn note(
        &mut self,
        process: &str,
        evictor: &ObjectKey,
        victim: &ObjectKey,
    ) -> Option<String> {
        if self.process != process {
            self.forget();
            process.clone_into(&mut self.process);
        }
        if evictor == victim {
            return None;
        }
        let mut pair = [evictor.clone(), victim.clone()];
        pair.sort_unstable();
        let first = || PairTurns { evictor: evictor.clone(), n_changes: 0 };
        let turns = self.pairs.entry(pair).or_insert_with(first);
        if turns.evictor == *evictor {
            return None;
        }
        turns.evictor = evictor.clone();
        turns.n_changes += 1;
        (MOST_CHANGES < turns.n_changes).then(|| {
            format!("I4: {process}: {evictor} and {victim} evict each other's pods by turns")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of texts after evictions by these jobs, each of a pod of the other one.
    fn n_found(turns: &mut EvictionTurns, process: &str, evictors: &str) -> usize {
        let key = |name: char| ObjectKey::new("default", &name.to_string());
        let found = evictors.chars().filter_map(|evictor| {
            let victim = if evictor == 'x' { 'y' } else { 'x' };
            turns.note(process, &key(evictor), &key(victim))
        });
        found.count()
    }

    #[test]
    fn evictions_by_turns_are_found() {
        for (evictors, expected) in [("xxxxxx", 0), ("xxyyxxyy", 0), ("xyxyx", 1), ("xyxyxy", 2)] {
            let mut turns = EvictionTurns::default();
            assert_eq!(n_found(&mut turns, "a", evictors), expected, "{evictors}");
        }
    }

    #[test]
    fn a_change_or_another_process_begins_anew() {
        let mut turns = EvictionTurns::default();
        assert_eq!(n_found(&mut turns, "a", "xyxy"), 0);
        turns.forget();
        assert_eq!(n_found(&mut turns, "a", "xyxy"), 0);
        assert_eq!(n_found(&mut turns, "b", "xyxy"), 0);
        assert_eq!(n_found(&mut turns, "b", "x"), 1);
    }

    #[test]
    fn a_job_may_evict_its_own_pods() {
        let (mut turns, job) = (EvictionTurns::default(), ObjectKey::new("default", "x"));
        assert!((0..9).all(|_| turns.note("a", &job, &job).is_none()));
    }
}
