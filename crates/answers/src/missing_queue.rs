//! Blocking sets and the remedy of a job whose queue does not exist. No session has such a job, so its trials are run in a
//! copy of the cluster in which the queue exists. Specification: answers.md 4.1, 4.2 (ANS-21), 5.

use std::sync::Arc;

use vc_engine::Fork;
use vc_framework::Atom;
use vc_model::{ClusterEvent, JobId};

use crate::blocking::{FoundSets, find_sets};
use crate::code::WaitCode;
use crate::explain::Depth;
use crate::explanation::{
    BlockingAtom, BlockingSet, BlockingSets, Explanation, LeftOut, Remedy, RemedyKind, Responsible,
    Verdict,
};
use crate::remedy_change::{RemedyChange, new_queue};
use crate::stop::StopSignal;
use crate::subject::Subject;
use crate::trials::{AtomSet, HeldByOrder, JobTrials};
use crate::unblock::{nodes_of, shared_copy};

/// What is asked about a job whose queue does not exist.
pub(crate) struct MissingQueueQuestion<'a> {
    pub(crate) job: JobId,
    pub(crate) held: HeldByOrder,
    pub(crate) depth: Depth,
    pub(crate) stop: &'a StopSignal,
}

/// Returns the job of the subject if it waits because its queue does not exist, and its pods could be tried.
pub(crate) fn job_without_queue(subject: Subject, verdict: &Verdict) -> Option<JobId> {
    let waits_for_queue = match verdict.code {
        WaitCode::QueueMissing => true,
        WaitCode::Gated => verdict.also.contains(&WaitCode::QueueMissing),
        _ => false,
    };
    subject.job.filter(|_| waits_for_queue)
}

/// Adds the blocking sets to the explanation of the job, and the queue as a remedy if the job gets its places with it.
pub(crate) fn suppose_queue(
    fork: &mut Fork,
    question: MissingQueueQuestion<'_>,
    explanation: &mut Explanation,
) {
    let MissingQueueQuestion { job, held, depth, stop } = question;
    let cluster = fork.cluster();
    let queue = cluster.queues[cluster.jobs[job].queue].name.clone();
    let mut copy = shared_copy(fork);
    copy.apply(ClusterEvent::QueueApplied(Box::new(new_queue(&queue))));
    let (blocking, nodes) = copy.with_session(|session| {
        let mut trials = JobTrials::new(session, job, held).stoppable(stop);
        if let Depth::Within(units) = depth {
            trials.limit(units);
        }
        find_with_queue(&mut trials, &queue)
    });
    explanation.blocking = Some(blocking.into());
    if let Some(nodes) = nodes.filter(|_| depth != Depth::Sets) {
        explanation.unblock.push(Remedy {
            kind: RemedyKind::CreateQueue,
            who: Responsible::Admin,
            text: format!("create the queue {queue}"),
            nodes,
            at_micros: None,
            change: Some(RemedyChange::CreateQueue { queue }),
        });
    }
}

/// Returns the sets of a job in a copy in which its queue exists, each with the atom of the queue. Returns also the
/// nodes that the job gets there, if the queue alone suffices.
fn find_with_queue(
    trials: &mut JobTrials<'_, '_>,
    queue: &Arc<str>,
) -> (BlockingSets, Option<Vec<Arc<str>>>) {
    let placed = trials.try_run(&AtomSet::new()).filter(|answer| answer.succeeds());
    let nodes = placed.map(|answer| nodes_of(trials, &answer));
    let found = match nodes {
        Some(_) => nothing_else(),
        None => find_sets(trials),
    };
    let FoundSets { blocking, sets, present } = found;
    let BlockingSets { mut left_out, mut atoms, sets: mut rows, .. } = blocking;
    let name = Atom::Queue.text(&trials.session().dims);
    atoms.insert(place_of_queue(&present), name.clone());
    for (row, set) in rows.iter_mut().zip(&sets) {
        row.atoms.insert(
            place_of_queue(set),
            BlockingAtom {
                atom: name.clone(),
                place: format!("Queue {queue}"),
                n_nodes: None,
                who: Responsible::Admin,
            },
        );
    }
    // Empty nodes are no queue.
    left_out.retain(|part| *part != LeftOut::EvenEmpty);
    (BlockingSets { even_empty: Some(false), left_out, atoms, sets: rows }, nodes)
}

/// Returns the one set of a job that needs nothing beside its queue, before the queue is added to it.
fn nothing_else() -> FoundSets {
    let set = BlockingSet { atoms: Vec::new(), certified: "all" };
    let blocking = BlockingSets { sets: vec![set], ..BlockingSets::default() };
    FoundSets { blocking, sets: vec![AtomSet::new()], ..FoundSets::default() }
}

/// Returns the place of the atom of the queue among these atoms in rank order.
fn place_of_queue(atoms: &AtomSet) -> usize {
    atoms.iter().take_while(|atom| **atom < Atom::Queue).count()
}
