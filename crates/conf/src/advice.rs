//! What works as written and yet surprises: actions that evict never see the jobs that enqueue keeps
//! out of their queues. Specification: actions.md 3.3, C3.

use crate::error::Warning;
use crate::file::Config;
use crate::registry::{EnqueueVote, KnownNames};
use crate::switches::Switch;

/// Actions that make room for jobs that were admitted.
const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];

/// Returns a warning if actions that evict stand beside enqueue and plugins whose vote there does
/// not count evictions.
pub(crate) fn enqueue_voters(
    config: &Config,
    known: &KnownNames<'_>,
    line: Option<usize>,
) -> Option<Warning> {
    let evicting = config.actions.iter().map(String::as_str);
    let evicting: Vec<&str> = evicting.filter(|name| EVICTING.contains(name)).collect();
    let has_enqueue = config.actions.iter().any(|name| name == "enqueue");
    let plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let votes = plugins.filter(|plugin| plugin.switches.on(Switch::JobEnqueued));
    let is_voter = |name: &&str| {
        let declared = known.built(name);
        declared.is_some_and(|plugin| plugin.enqueue_vote == EnqueueVote::IgnoresEvictions)
    };
    let voters: Vec<&str> = votes.map(|plugin| plugin.name.as_str()).filter(is_voter).collect();
    if !has_enqueue || evicting.is_empty() || voters.is_empty() {
        return None;
    }
    let message = format!(
        "{} cannot help a job that is not admitted to its queue, on which {} {}",
        evicting.join(", "),
        voters.join(", "),
        if voters.len() == 1 { "votes" } else { "vote" },
    );
    let factor = if voters.contains(&"overcommit") { "raise overcommit-factor, " } else { "" };
    let remedy = format!(
        "if jobs wait as Pending in a full cluster: leave minResources unset, {factor}set \
         enableJobEnqueued: false, or take enqueue out of actions"
    );
    Some(Warning::new(line, "actions", message, remedy))
}
