//! Answers about clusters from text. Names of tests are the numbers of the cases in answers.md 20.
#![allow(clippy::unwrap_used)]

mod blocking;
mod closed;
mod codes;
mod evict;
mod examples;
mod known;
mod line;
mod numbers;
mod subjects;
mod support;
mod timeline;
mod unblock;
mod what_if;
mod when;
