//! Attempts that found places for some members of a gang and gave them up, because others found none:
//! in one and the same state gangs of one shape end alike, so that one of them is tried for all. Which
//! member was on which node is kept, since the pods are told (core.md 3.10). Specification: actions.md
//! 12.2 S1, S7.
//!
//! Exact, because of a task and its job an attempt reads what is in the shape ([`GangShape`]), and of
//! the cluster the state, which has a number; other pods mean none of its members. In another state, and in another session, one gang of
//! the shape is tried; what it ends with is compared with what others ended with before.

use rustc_hash::FxHashMap;
use vc_model::{JobId, TaskId};

use super::Recorded;
use super::kinds::Kinds;
use crate::gang_shape::GangShape;
use crate::records::LastTransaction;
use crate::session::Session;

/// So many shapes may be known that no gang is of any more.
const MOST_UNUSED: usize = 1024;

/// So many members of shapes may be known beside four for each task: a gang that is tried while its
/// pods arrive is of another shape each time, and each shape holds all that there were.
const MOST_UNUSED_MEMBERS: usize = 1 << 14;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Trials {
    places: FxHashMap<GangShape, usize>,
    shapes: Vec<Known>,
    /// Of all shapes.
    n_members: usize,
    /// Of the cluster, when the last shape was added.
    n_tasks: usize,
    n_findings: u64,
    n_sessions: u64,
}

#[derive(Debug)]
struct Known {
    found: Vec<Fate>,
    /// Another number whenever that is another.
    finding: u64,
    state: State,
}

/// The session, and the number of the state in it.
type State = (u64, u64);

/// How a member ended.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Placed(LastTransaction),
    Failed(Recorded),
}

/// How a gang ended.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// The members that were tried.
    tasks: Vec<TaskId>,
    shape: usize,
    /// Of the shape: they may be others without a change of the job.
    marks: u64,
    finding: u64,
}

impl Trial {
    /// Whether they ended alike.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        (self.shape, self.finding) == (other.shape, other.finding) && self.tasks == other.tasks
    }
}

impl Trials {
    /// A session begins.
    pub(super) fn begin(&mut self) {
        self.n_sessions += 1;
    }

    fn state(&self, session: &Session<'_>) -> State {
        (self.n_sessions, session.version())
    }

    /// How an attempt ended in the present state; so many of the tasks were tried. `None`: more is
    /// read of one than of others of its shape, or it was passed over without a word.
    pub(super) fn note(
        &mut self,
        session: &Session<'_>,
        kinds: &mut Kinds,
        job: JobId,
        (tasks, n_tried): (&[TaskId], usize),
    ) -> Option<Trial> {
        let tried = &tasks[..n_tried];
        let found: Option<Vec<Fate>> = tried.iter().map(|&task| fate(session, task)).collect();
        let (found, shape) = (found?, shape(session, kinds, job, tasks)?);
        let marks = shape.marks();
        let state = self.state(session);
        let next = self.shapes.len();
        let place = *self.places.entry(shape).or_insert(next);
        if place == next {
            self.shapes.push(Known { found: Vec::new(), finding: 0, state });
            self.n_members += tasks.len();
            self.n_tasks = session.tasks.len();
        }
        let known = &mut self.shapes[place];
        known.state = state;
        if known.finding == 0 || known.found != found {
            self.n_findings += 1;
            (known.found, known.finding) = (found, self.n_findings);
        }
        Some(Trial { tasks: tried.to_vec(), shape: place, marks, finding: known.finding })
    }

    /// Whether the gang would end as it did; then what it would record is recorded.
    pub(super) fn repeat(&self, session: &mut Session<'_>, job: JobId, trial: &Trial) -> bool {
        let known = &self.shapes[trial.shape];
        if session.hooks().pipeline_marks(session.ask(), job) != Some(trial.marks) {
            return false;
        }
        if known.finding != trial.finding || known.state != self.state(session) {
            return false;
        }
        // Terms of other pods do not change the job, but may mean it by now.
        if !trial.tasks.iter().all(|&task| session.is_plain(task)) {
            return false;
        }
        for (&task, fate) in trial.tasks.iter().zip(&known.found) {
            match fate {
                Fate::Placed(last) => {
                    session.clear_fit_errors(task);
                    session.records.last_transaction.insert(task, *last);
                    session.note_placed(task);
                }
                Fate::Failed(errors) => {
                    session.note_fit_errors(task, errors.clone());
                }
            }
        }
        true
    }

    /// Whether most shapes are of no use beside so many gangs, or most members beside so many tasks.
    pub(super) fn are_many(&self, n_jobs: usize) -> bool {
        2 * n_jobs + MOST_UNUSED < self.shapes.len()
            || 4 * self.n_tasks + MOST_UNUSED_MEMBERS < self.n_members
    }
}

fn fate(session: &Session<'_>, task: TaskId) -> Option<Fate> {
    let records = &session.records;
    match (records.last_transaction.get(&task), records.fit_errors.get(&task)) {
        (Some(&last), None) => Some(Fate::Placed(last)),
        (None, Some(errors)) => Some(Fate::Failed(errors.clone())),
        _ => None,
    }
}

fn shape(
    session: &Session<'_>,
    kinds: &mut Kinds,
    job: JobId,
    tasks: &[TaskId],
) -> Option<GangShape> {
    GangShape::of(session, job, tasks, |task| {
        let class = kinds.shape_of(session, task)?;
        Some(session.asker(task, |_| class)?.of_attempt())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_beyond_four_for_each_task_are_many() {
        let (n_tasks, n_jobs) = (5_000, 1);
        let most = 4 * n_tasks + MOST_UNUSED_MEMBERS;
        let known = |n_members| Trials { n_members, n_tasks, ..Trials::default() };
        assert!(!known(most).are_many(n_jobs));
        // However few the shapes are.
        assert!(known(most + 1).are_many(n_jobs));
    }
}
