//! The waiting members of a job by what they ask for. Specification: answers.md 3 (ANS-15).

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::{SessionState, quantity};
use vc_model::{ClassId, TaskId};
use vc_resource::Dim;

use crate::amounts::positive;
use crate::explanation::PodClassNumbers;

/// Returns the waiting members by what they ask for, in task order.
pub(crate) fn pod_classes(
    session: &SessionState<'_>,
    waiting: &[TaskId],
    placed: &[TaskId],
) -> Vec<PodClassNumbers> {
    let placed: BTreeSet<TaskId> = placed.iter().copied().collect();
    // Pods and placed pods by place, and the place of each request.
    let mut counts: Vec<(u32, u32)> = Vec::new();
    let mut places: BTreeMap<Vec<(String, String)>, usize> = BTreeMap::new();
    // The class of the last task, and its row. Most neighbours are of one class.
    let mut last: Option<(ClassId, usize)> = None;
    for &task in waiting {
        let class = session.tasks[task].class;
        let known = last.filter(|(of_last, _)| *of_last == class).map(|(_, place)| place);
        let place = known.unwrap_or_else(|| {
            *places.entry(asked_amounts(session, task)).or_insert_with(|| {
                counts.push((0, 0));
                counts.len() - 1
            })
        });
        last = Some((class, place));
        counts[place].0 += 1;
        counts[place].1 += u32::from(placed.contains(&task));
    }
    let mut rows: Vec<(usize, PodClassNumbers)> = places
        .into_iter()
        .map(|(request, place)| {
            let (count, placed) = counts[place];
            (place, PodClassNumbers { request, count, placed })
        })
        .collect();
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns what a pod asks for. A best-effort pod asks for a slot alone.
pub(crate) fn asked_amounts(session: &SessionState<'_>, task: TaskId) -> Vec<(String, String)> {
    let amounts = positive(session.request(task), &session.dims);
    match amounts.is_empty() {
        true => {
            let slot = quantity(1, Dim::PODS, &session.dims);
            vec![(session.dims.name(Dim::PODS).to_owned(), slot)]
        }
        false => amounts,
    }
}
