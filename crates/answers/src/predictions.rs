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

/// A start that was told.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    asked_micros: i64,
    earliest_micros: i64,
    expected_micros: i64,
    latest_micros: i64,
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

/// The first prediction for each job that waits, and the last outcomes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predictions {
    open: BTreeMap<ObjectKey, Prediction>,
    outcomes: VecDeque<bool>,
    /// Outcomes that nobody has taken yet.
    news: Vec<PredictionOutcome>,
}

impl Predictions {
    /// Takes note of the first start that is told of a job.
    pub(crate) fn told(&mut self, job: &ObjectKey, start: &StartAnswer, asked_micros: i64) {
        let Some(expected_micros) = start.expected_micros else { return };
        if self.open.contains_key(job) {
            return;
        }
        if MOST_OPEN <= self.open.len() {
            let first = self.open.iter().min_by_key(|(_, prediction)| prediction.asked_micros);
            if let Some(first) = first.map(|(job, _)| job.clone()) {
                self.open.remove(&first);
            }
        }
        let prediction = Prediction {
            asked_micros,
            earliest_micros: start.earliest_micros.unwrap_or(expected_micros),
            expected_micros,
            latest_micros: start.latest_micros.unwrap_or(i64::MAX),
        };
        self.open.insert(job.clone(), prediction);
    }

    /// Compares what was told of a job with its start.
    pub(crate) fn started(&mut self, job: &ObjectKey, start_micros: i64) {
        let Some(told) = self.open.remove(job) else { return };
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
