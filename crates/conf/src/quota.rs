//! Plugins that cannot stand beside each other because both decide about queues.
//! Specification: core.md 2.3, plugins-jobs-queues.md 17, cohort.md B.1 (Q1).

use crate::error::Warning;
use crate::file::{PluginOption, Tier};
use crate::registry::{EnqueueVote, KnownNames, QueueRule};
use crate::switches::{SWITCHES, Switch};

/// The problem and the remedy of plugins that exclude each other.
pub(crate) type QueueConflict = (String, &'static str);

fn rule_of(known: &KnownNames<'_>, plugin: &PluginOption) -> QueueRule {
    known.built(&plugin.name).map_or(QueueRule::None, |declared| declared.queue_rule)
}

/// Checks all tiers together.
pub(crate) fn check(
    tiers: &[Tier],
    known: &KnownNames<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<(), QueueConflict> {
    let all = || tiers.iter().flat_map(|tier| &tier.plugins);
    let mut alone = all().filter(|plugin| rule_of(known, plugin) == QueueRule::ExclusiveQuota);
    let Some(first) = alone.next() else { return Ok(()) };
    let name = &first.name;
    if alone.next().is_some() {
        let problem = format!("plugin \"{name}\" is configured twice");
        return Err((problem, "keep one of the two entries"));
    }
    for plugin in all() {
        let (other, what) = match rule_of(known, plugin) {
            QueueRule::Quota => (format!("\"{}\"", plugin.name), "quota"),
            QueueRule::Shares { switch, .. } if plugin.switches.on(switch) => {
                let key = SWITCHES.iter().find(|row| row.1 == switch).map_or("", |row| row.0);
                (format!("\"{}\" ({key})", plugin.name), "shares")
            }
            _ => continue,
        };
        let problem =
            format!("plugins \"{name}\" and {other} both decide queue {what}; keep one of them");
        return Err((problem, "remove one of the two"));
    }
    warnings.extend(hidden(tiers, known, first));
    Ok(())
}

/// Checks the plugins of one tier.
pub(crate) fn check_tier(
    plugins: &[PluginOption],
    known: &KnownNames<'_>,
) -> Result<(), QueueConflict> {
    let conflict = plugins.iter().find_map(|plugin| match rule_of(known, plugin) {
        QueueRule::Shares { switch, excludes } if plugin.switches.on(switch) => {
            plugins.iter().any(|other| other.name == excludes).then_some((excludes, &plugin.name))
        }
        _ => None,
    });
    conflict.map_or(Ok(()), |(excludes, name)| {
        let problem = format!("{excludes} and {name} with hierarchy enabled conflicts");
        Err((problem, "remove one of the two, or enableHierarchy"))
    })
}

/// A rejection at enqueue has no effect where an earlier tier permits (B.5.1).
fn hidden(tiers: &[Tier], known: &KnownNames<'_>, alone: &PluginOption) -> Vec<Warning> {
    let is_here = |tier: &Tier| tier.plugins.iter().any(|plugin| plugin.name == alone.name);
    let place = tiers.iter().position(is_here).unwrap_or_default();
    let before = tiers[..place].iter().flat_map(|tier| &tier.plugins);
    let votes = |plugin: &&PluginOption| {
        let declared = known.built(&plugin.name);
        declared.is_some_and(|declared| declared.enqueue_vote != EnqueueVote::None)
            && plugin.switches.on(Switch::JobEnqueued)
    };
    let warning = |plugin: &PluginOption| {
        let (name, alone_name) = (&plugin.name, &alone.name);
        let message = format!(
            "{name} stands in an earlier tier: what it admits, {alone_name} cannot hold back"
        );
        let remedy = format!("list {name} in the tier of {alone_name}");
        Warning::new(None, alone.arguments.path(), message, remedy)
    };
    before.filter(votes).map(warning).collect()
}
