//! Answers about jobs that wait: why, by how much, who is before them, and what would happen if.
//! Everything is a function of the engine's state and the question; nothing is changed.
//! Specification: answers.md.

#![deny(missing_docs)]

mod admissions;
mod amounts;
mod blocking;
mod changed_copy;
mod closed;
mod code;
mod comparisons;
mod controllers;
mod cycle_remedies;
mod end_queue;
mod ended_jobs;
mod ends;
mod evict;
mod explain;
mod explanation;
mod gang_numbers;
mod gone;
mod history;
mod job_spans;
mod known_answers;
mod known_failures;
mod known_trials;
mod last_condition;
mod learned_runs;
mod limit_places;
mod line;
mod missing_queue;
mod new_nodes;
mod nodes;
mod obstacles;
mod outside;
mod pod_classes;
mod pod_spans;
mod predictions;
mod queue_minutes;
mod quota;
mod raised_quota;
mod remedy_change;
mod running_jobs;
mod shared_names;
mod shortage;
mod stage_rows;
mod state_tables;
mod stop;
mod subject;
mod supposed_remedies;
mod timeline;
mod tree_quota;
mod trial_counts;
mod trials;
mod unblock;
mod verdict;
mod what_if;
mod when;

pub use closed::{ClosedFigures, OutsideStory, WaitTimes, closed_run};
pub use code::WaitCode;
pub use cycle_remedies::add_cycle_remedies;
pub use ends::{EndSource, ExpectedEnd, ExpectedEnds};
pub use evict::EvictionAnswer;
pub use explain::{
    AnswerState, Depth, explain, explain_line, explain_not_ours, explain_waiting, place_in_line,
    try_lifted, waiting_line,
};
pub use explanation::{
    AnswerTime, AskedSubject, BlockingAtom, BlockingSet, BlockingSets, ComparedValues, Explanation,
    FailingClass, GangNumbers, JobsAhead, LastCondition, LeftOut, LineNeighbour, LinePlace,
    NearestNode, NodeNumbers, PodClassNumbers, QuotaRow, RefusedNodes, Remedy, RemedyKind,
    Responsible, RoleNumbers, ShortResource, SubGroupNumbers, Verdict, time_text,
};
pub use gone::{FoundSubject, GoneSubject};
pub use history::JobHistory;
pub use job_spans::{BindsByJob, CycleBinds, JobSpan};
pub use learned_runs::{LearnedRun, LearnedRuns, RunQuantile};
pub use pod_spans::PodSpan;
pub use predictions::PredictionOutcome;
pub use remedy_change::{RaisedQuota, RemedyChange};
pub use running_jobs::{RunningFilter, RunningJob, running_jobs};
pub use shared_names::SharedNames;
pub use stop::{QuestionStopped, StopCondition};
pub use subject::{Subject, SubjectError, SubjectKind, SubjectQuery, close_texts, find_subject};
pub use timeline::{
    CycleEntry, EvictionEntry, Timeline, TimelineFilter, TimelineSample, TimelineStep,
};
pub use what_if::{
    Change, CycleLimit, DecidedCycle, EvictedPod, KnownBaselines, LiveObject, MOST_CHANGES,
    MOST_CYCLES, MOST_NEW_NODES, MOST_NEW_PODS, MovedPod, NewNodes, NodePatch, NodeSelection,
    PlacedPod, PodChange, PodGroupChange, QueueChange, QueueDifference, SupposedKubelet,
    WaitingJob, WhatIf, WhatIfBound, WhatIfError, WhatIfResult, WhatIfState, compare_cycles,
    what_if,
};
pub use when::{AwaitedJob, EndlessPods, StartAnswer, StartUnknown, add_start, add_start_alone};
