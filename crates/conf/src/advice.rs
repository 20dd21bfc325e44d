//! What works as written and yet surprises: actions that evict never see the jobs that enqueue keeps
//! out of their queues, and a plugin that reads node loads has no source of them. Specification:
//! actions.md 3.3, C3; core.md 2.5.

use crate::error::Warning;
use crate::file::Config;
use crate::registry::{EnqueueVote, KnownNames};
use crate::switches::Switch;

/// Actions that make room for jobs that were admitted.
const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];

/// The plugin that reads the loads of nodes.
const LOAD_READER: &str = "usage";

/// Returns a warning if a plugin reads the loads of nodes, and the configuration names no source.
pub(crate) fn load_source(config: &Config) -> Option<Warning> {
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let has_reader = plugins.any(|plugin| plugin.name == LOAD_READER);
    let has_source = config.metrics.get("type").is_some_and(|source| !source.is_empty());
    (has_reader && !has_source).then(|| {
        let message =
            format!("plugin {LOAD_READER} has no source of node loads, it decides nothing");
        let remedy = "name one, as in metrics: {type: prometheus, address: http://prometheus:9090}";
        Warning::new(None, "metrics.type", message, remedy)
    })
}

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
        "{} cannot help a job that is not admitted to its queue, on which {} vote",
        evicting.join(", "),
        voters.join(", "),
    );
    let remedy = "if jobs wait as Pending in a full cluster: leave minResources unset, raise \
                  overcommit-factor, set enableJobEnqueued: false, or take enqueue out of actions";
    Some(Warning::new(line, "actions", message, remedy))
}
