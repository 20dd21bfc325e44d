//! The action `gangreclaim`: takes back room for a starving gang from other queues, by evicting
//! whole bundles of their jobs.
//! Specification: actions.md 9.

use vc_framework::{Action, GangEviction, Session, klog};

use crate::gang;

pub(crate) struct GangReclaim;

impl Action for GangReclaim {
    fn name(&self) -> &'static str {
        "gangreclaim"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter GangReclaim ...");
        gang::run(session, GangEviction::Reclaim);
        klog!(5; "Leaving GangReclaim ...");
    }
}
