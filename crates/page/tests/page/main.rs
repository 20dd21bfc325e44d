//! The routes over a cluster as text, with somebody who says what each user may.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod busy;
mod controllers;
mod documents;
mod fuzz;
mod gone;
mod other_schedulers;
mod redaction;
mod rights;
mod running;
mod schema;
mod support;
mod texts;
mod timeline;
mod what_if;
