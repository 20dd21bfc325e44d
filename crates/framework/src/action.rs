//! A step of a cycle. Specification: actions.md 1.

use crate::session::Session;

/// One element of `vc_actions::ALL`.
pub trait Action: Send + Sync {
    /// The name in `actions:`, lower case.
    fn name(&self) -> &'static str;
    /// Runs once on the session.
    fn run(&self, session: &mut Session<'_>);
}
