//! Starts that were told to somebody, and how many of them held. Specification: answers.md 7 (ANS-41).

use std::collections::{BTreeMap, VecDeque};

use vc_model::ObjectKey;

use crate::when::StartAnswer;

/// The most jobs that wait whose told start is kept. Beyond, the one told first is forgotten.
const MOST_OPEN: usize = 4_096;
/// The number of outcomes that is kept: the share of those that held goes with each new prediction.
const MOST_OUTCOMES: usize = 50;
/// The time by which a start may miss what was told: the old pod is removed, and the new one bound.
const TOLERANCE_MICROS: i64 = 60_000_000;
/// The time before a start at which the last prediction that counts was told, if the job waited long enough.
const LAST_BEFORE_MICROS: i64 = 3_600_000_000;
/// The least time between two predictions that are kept of a job.
const SPACING_MICROS: i64 = 300_000_000;

/// A start that was told.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    asked_micros: i64,
    earliest_micros: i64,
    expected_micros: i64,
    latest_micros: i64,
}

/// What was told of a job that waits.
#[derive(Clone, Debug)]
struct JobPredictions {
    first: Prediction,
    /// Later ones in their order. Those that are too old to be the last one that counts are dropped.
    later: VecDeque<Prediction>,
}

impl JobPredictions {
    fn add(&mut self, prediction: Prediction) {
        let last = self.later.back().unwrap_or(&self.first);
        if prediction.asked_micros < last.asked_micros.saturating_add(SPACING_MICROS) {
            return;
        }
        self.later.push_back(prediction);
        let until_micros = self.counts_until(prediction.asked_micros);
        while self.later.get(1).is_some_and(|it| it.asked_micros <= until_micros) {
            self.later.pop_front();
        }
    }

    /// Returns the time until which the last prediction must have been told to count for this start: an hour before it,
    /// or half of the wait.
    fn counts_until(&self, start_micros: i64) -> i64 {
        let waited = start_micros.saturating_sub(self.first.asked_micros).max(0);
        start_micros.saturating_sub(LAST_BEFORE_MICROS.min(waited / 2))
    }

    /// Returns the first prediction, and the last one that counts for this start, if that is another one.
    fn that_count(&self, start_micros: i64) -> impl Iterator<Item = &Prediction> {
        let until_micros = self.counts_until(start_micros);
        let last = self.later.iter().rev().find(|it| it.asked_micros <= until_micros);
        std::iter::once(&self.first).chain(last)
    }
}

/// What became of a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionOutcome {
    /// True if the start was between the earliest and the latest one told, give or take a minute.
    pub is_covered: bool,
    /// (start − expected) ÷ (expected − asked): 0 is exact, 1 twice as late. `None` if the start was
    /// expected at once.
    pub error_ratio: Option<f64>,
}

/// The predictions for each job that waits, and the last outcomes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predictions {
    open: BTreeMap<ObjectKey, JobPredictions>,
    outcomes: VecDeque<bool>,
    /// Outcomes that nobody has taken yet.
    news: Vec<PredictionOutcome>,
}

impl Predictions {
    /// Takes note of a start that is told of a job.
    pub(crate) fn told(&mut self, job: &ObjectKey, start: &StartAnswer, asked_micros: i64) {
        let Some(expected_micros) = start.expected_micros else { return };
        let prediction = Prediction {
            asked_micros,
            earliest_micros: start.earliest_micros.unwrap_or(expected_micros),
            expected_micros,
            latest_micros: start.latest_micros.unwrap_or(i64::MAX),
        };
        if let Some(known) = self.open.get_mut(job) {
            return known.add(prediction);
        }
        if MOST_OPEN <= self.open.len() {
            let first = self.open.iter().min_by_key(|(_, told)| told.first.asked_micros);
            if let Some(first) = first.map(|(job, _)| job.clone()) {
                self.open.remove(&first);
            }
        }
        let told = JobPredictions { first: prediction, later: VecDeque::new() };
        self.open.insert(job.clone(), told);
    }

    /// Compares what was told of a job with its start.
    pub(crate) fn started(&mut self, job: &ObjectKey, start_micros: i64) {
        let Some(told) = self.open.remove(job) else { return };
        told.that_count(start_micros).for_each(|told| self.compare(told, start_micros));
    }

    fn compare(&mut self, told: &Prediction, start_micros: i64) {
        let earliest = told.earliest_micros.saturating_sub(TOLERANCE_MICROS);
        let latest = told.latest_micros.saturating_add(TOLERANCE_MICROS);
        let is_covered = (earliest..=latest).contains(&start_micros);
        let told_wait = told.expected_micros.saturating_sub(told.asked_micros);
        let error = start_micros.saturating_sub(told.expected_micros);
        let error_ratio = (0 < told_wait).then(|| error as f64 / told_wait as f64);
        self.outcomes.push_back(is_covered);
        if MOST_OUTCOMES < self.outcomes.len() {
            self.outcomes.pop_front();
        }
        self.news.push(PredictionOutcome { is_covered, error_ratio });
    }

    /// Returns how many of the last predictions held, and the number of these. Returns `None` if
    /// nothing that was predicted has started yet.
    pub(crate) fn held(&self) -> Option<(usize, usize)> {
        let held = self.outcomes.iter().filter(|is_covered| **is_covered).count();
        (!self.outcomes.is_empty()).then_some((held, self.outcomes.len()))
    }

    /// Returns the outcomes since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<PredictionOutcome> {
        std::mem::take(&mut self.news)
    }
}
