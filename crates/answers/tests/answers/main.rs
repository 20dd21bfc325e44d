//! Answers about clusters from text. Names of tests are the numbers of the cases in answers.md 20.
#![allow(clippy::unwrap_used)]

mod atoms;
mod blocking;
mod closed;
mod codes;
mod comes_true;
mod cycle_remedies;
mod evict;
mod examples;
mod gone;
mod known;
mod limits;
mod line;
mod missing_queue;
mod new_nodes;
mod numbers;
mod predictions;
mod quota;
mod reality;
mod running;
mod stop;
mod subjects;
mod support;
mod timeline;
mod unblock;
mod unchanged;
mod what_if;
mod when;
