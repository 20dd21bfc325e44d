//! What tests of the gang actions share.

use vc_conf::Config;

use super::{Cycle, World, conf, with_arguments};

/// UnifiedEvictable has no switch: conformance, gang and priority answer.
pub(crate) const TIERS: &str = "conformance gang{jobReady jobPipelined jobStarving} \
    priority{jobOrder taskOrder jobStarving}";

pub(crate) fn gang_preempt() -> Config {
    conf("gangpreempt", TIERS)
}

pub(crate) fn gang_reclaim() -> Config {
    conf("gangreclaim", TIERS)
}

/// Whole gangs may not go.
pub(crate) fn only_safe() -> Config {
    with_arguments(gang_preempt(), "gangpreempt", "{allowWholeBundle: false}")
}

/// Who is evicted in the first cycle, by name.
pub(crate) fn evicted(config: &Config, text: &str) -> String {
    victims(&World::new(config, text).cycle())
}

/// Who is evicted, by name.
pub(crate) fn victims(cycle: &Cycle) -> String {
    let text = cycle.only(&["evict"]);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}
