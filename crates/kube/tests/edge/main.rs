//! The edge against an API server that is a function: every request and every outcome.
//! Specification: rust-ecosystem.md "Test cases", core.md 7.

mod connect;
mod fake;
mod feeds;
mod start;
mod writes;
