//! The action `gangpreempt`: makes room for a starving gang inside its queue, by evicting whole
//! bundles of less important jobs.
//! Specification: actions.md 9.

use vc_framework::{Action, GangEviction, Session, klog};

use crate::gang;

pub(crate) struct GangPreempt;

impl Action for GangPreempt {
    fn name(&self) -> &'static str {
        "gangpreempt"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter GangPreempt ...");
        gang::run(session, GangEviction::Preempt);
        klog!(5; "Leaving GangPreempt ...");
    }
}
