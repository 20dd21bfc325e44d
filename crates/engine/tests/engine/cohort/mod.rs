//! cohort.md T.6: the plugin in the whole engine, in the notation of "Test cases".

mod actions;
mod admission;
mod bad_input;
mod cycles;
mod laws;
mod notation;
mod targets;
