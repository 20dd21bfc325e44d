//! Words of PodGroups about network topologies, in stories about HyperNodes.

use proptest::prelude::*;

use super::objects::{Size, Theme};
use super::story::pick;

/// The network topology of a job.
pub(super) fn topology(size: Size) -> impl Strategy<Value = &'static str> {
    match size.theme {
        Theme::Networks => pick(&[
            (5, "topology=hard"),
            (4, "topology=hard:2"),
            (4, "topology=soft"),
            (5, ""),
            (1, "topology=hard:name=rack"),
            (2, "topology=hard:name=hall"),
            (1, "topology=soft:name=hall"),
            (1, "topology=hard:0"),
        ]),
        _ => pick(&[(1, "")]),
    }
}

/// The network topology of a gang, and of its sub-groups.
pub(super) fn topology_of_gang(size: Size) -> impl Strategy<Value = &'static str> {
    match size.theme {
        Theme::Networks => pick(&[
            (6, "topology=hard"),
            (4, "topology=hard:2"),
            (4, "topology=soft"),
            (4, ""),
            (2, "topology=hard:name=hall"),
            (3, "policy.g=1x1:hard"),
            (3, "policy.g=2x2:hard"),
            (3, "policy.g=2x1:hard:2"),
            (2, "policy.g=2x1:soft"),
            (1, "policy.g=2x1:hard:name=rack"),
            (2, "topology=hard:2 policy.g=2x1:hard"),
            (2, "topology=hard:2 policy.g=3x1:soft"),
            (1, "topology=hard policy.g=2x2:hard:2"),
            (1, "topology=soft policy.g=2x0:hard"),
            (1, "topology=soft policy.g=2x1"),
        ]),
        _ => pick(&[(1, "")]),
    }
}

/// What a PodGroup says beside, in stories about HyperNodes.
pub(super) const POLICIES: [(u32, &str); 12] = [
    (4, "policy.g=1x1:hard"),
    (4, "policy.g=2x2:hard"),
    (4, "policy.g=2x1:hard"),
    (4, "policy.g=2x1:hard:2"),
    (3, "policy.g=2x1:soft"),
    (2, "policy.g=2x0:hard"),
    (2, "policy.g=1x2:hard:name=hall"),
    (1, "policy.g=2x1:hard:name=rack"),
    (1, "policy.g=1x1:soft:name=hall"),
    (2, "policy.g=1x1:hard policy.h=2x1:hard:2"),
    (2, "policy.g=2x1 policy.h=1x1:hard"),
    (1, "policy.h=1x1:soft policy.g=2x1:hard"),
];
