//! What works as written and yet surprises: actions that evict never see the jobs that enqueue keeps
//! out of their queues. Specification: actions.md 3.3, C3.

use crate::error::Warning;
use crate::file::Config;
use crate::switches::Switch;

/// Actions that make room for jobs that were admitted.
const EVICTING: [&str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];
/// Plugins that may keep a job out of its queue (JobEnqueueable).
const VOTERS: [&str; 5] = ["overcommit", "proportion", "capacity", "resourcequota", "extender"];

/// One warning if both are configured.
pub(crate) fn enqueue_voters(config: &Config, line: Option<usize>) -> Option<Warning> {
    let names = |known: &[&str]| -> Vec<&str> {
        let of = |name: &&String| known.contains(&name.as_str());
        config.actions.iter().filter(of).map(String::as_str).collect()
    };
    let (enqueue, evicting) = (names(&["enqueue"]), names(&EVICTING));
    let plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let votes = plugins.filter(|plugin| plugin.switches.on(Switch::JobEnqueued));
    let voters: Vec<&str> =
        votes.map(|plugin| plugin.name.as_str()).filter(|name| VOTERS.contains(name)).collect();
    if enqueue.is_empty() || evicting.is_empty() || voters.is_empty() {
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
