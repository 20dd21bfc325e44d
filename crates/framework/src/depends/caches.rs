//! Lists the caches that a configuration switches off, because of what its plugins declare to read,
//! with the cost of each. Specification: core.md 5.3, C-40.

use std::fmt;

use vc_conf::{Config, PluginOption, Switch};

use super::{Depends, Inputs, Signature};
use crate::plugin::{Plugin, PluginEntry};
use crate::plugin_set::allowed_points;
use crate::points::Points;

/// A cache that a plugin switches off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOff {
    /// The name of the plugin.
    pub plugin: &'static str,
    /// The argument or switch that switches the cache off. `None` if no single one does.
    pub argument: Option<String>,
    /// Description of what is not cached, and its cost.
    pub cost: &'static str,
}

impl fmt::Display for CacheOff {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "plugin {}", self.plugin)?;
        if let Some(argument) = &self.argument {
            write!(out, " with {argument}")?;
        }
        write!(out, ": {}", self.cost)
    }
}

/// A cache, and the condition under which the inputs of one plugin switch it off.
struct Cache {
    cost: &'static str,
    is_off: fn(&dyn Plugin, &Depends) -> bool,
}

const CACHES: &[Cache] = &[
    Cache {
        cost: "the state of jobs is not kept: every cycle looks at all jobs, also at those that need \
               nothing",
        is_off: |_, depends| {
            let judged = [Points::JOB_VALID, Points::JOB_READY, Points::JOB_STARVING];
            judged.iter().any(|&point| !depends.at(point).is_by_job())
        },
    },
    Cache {
        cost: "failed placements are not kept: a gang that does not fit is tried again in every cycle",
        is_off: |plugin, depends| {
            let reads = depends.at(Points::JOB_PIPELINED);
            !(reads.is_by_job() || reads.is_by_job_and_clock() && has_keys(plugin))
        },
    },
    Cache {
        cost: "results about nodes are not kept: every pod is compared with every node anew",
        is_off: |plugin, depends| {
            let by_row = |point: Points| {
                let keys = plugin.as_cache_keys().and_then(crate::CacheKeys::revision);
                depends.at(point).is_by_shape_and_node(keys.is_some())
            };
            let vectorized = plugin.as_vectorized().is_some();
            let reads = |point: Points| depends.at(point) != Inputs::NONE;
            !by_row(Points::NODE_ORDER)
                || !(vectorized || by_row(Points::PREDICATE))
                || !vectorized && reads(Points::BATCH_NODE_ORDER)
                || reads(Points::BEST_NODE)
                || reads(Points::NODE_MAP)
        },
    },
    Cache {
        cost: "votes about victims are not kept: each search in another state asks for the candidates \
               of every node anew",
        is_off: |plugin, depends| {
            let votes = [Points::PREEMPTABLE, Points::RECLAIMABLE].map(|point| depends.at(point));
            depends.at(Points::JOB_ORDER).moves_jobs()
                || votes.iter().any(|reads| !reads.votes_by_queue(has_keys(plugin)))
        },
    },
    Cache {
        cost: "failed searches for victims are not kept: every pod searches anew in every cycle",
        is_off: |plugin, depends| match depends.signature() {
            Signature::Complete => false,
            Signature::CompleteWithoutOwnState => !has_keys(plugin),
            Signature::Incomplete => true,
        },
    },
    Cache {
        cost: "refusals of enqueue are not kept: every PodGroup that waits is asked for in every cycle",
        is_off: |plugin, depends| {
            let reads = depends.at(Points::JOB_ENQUEUEABLE);
            let has_mark = has_keys(plugin) && !reads.has(Inputs::IDENTITY);
            !reads.admits_by_request() && !has_mark
        },
    },
    Cache {
        cost: "the order of queues is not kept: the next queue is found by comparing all queues",
        is_off: |_, depends| !depends.at(Points::QUEUE_ORDER).orders_by_own_queue(),
    },
    Cache {
        cost: "gang actions find the fewest victims by more trials: further evictions may do harm",
        is_off: |_, depends| {
            let points = [
                Points::OVERUSED,
                Points::ALLOCATABLE,
                Points::PRE_PREDICATE,
                Points::EVENT_HANDLERS,
            ];
            points.iter().any(|&point| !depends.is_eased_by_evictions(point))
        },
    },
    Cache {
        cost: "no cycle is skipped: a cycle in which nothing has changed is run all the same",
        is_off: |plugin, depends| depends.reads_clock() && !has_keys(plugin),
    },
];

fn has_keys(plugin: &dyn Plugin) -> bool {
    plugin.as_cache_keys().is_some()
}

/// Returns the caches that the configuration switches off, in the order of its plugins.
pub fn caches_off(config: &Config, entries: &[PluginEntry]) -> Vec<CacheOff> {
    let options = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let mut found = Vec::new();
    for option in options {
        let Some(entry) = entries.iter().find(|entry| entry.name() == option.name) else {
            continue;
        };
        for cache in CACHES.iter().filter(|cache| is_off(cache, entry, option)) {
            let argument = argument(cache, entry, option);
            let off = CacheOff { plugin: entry.name(), argument, cost: cache.cost };
            if !found.contains(&off) {
                found.push(off);
            }
        }
    }
    found
}

fn is_off(cache: &Cache, entry: &PluginEntry, option: &PluginOption) -> bool {
    let plugin = (entry.build)(option, &mut Vec::new());
    let stated = plugin.points().both(allowed_points(option.switches));
    (cache.is_off)(&*plugin, &plugin.depends().stated_by(stated))
}

/// Returns the argument or switch without which the cache would be on. Returns `None` if there is
/// no such one.
fn argument(cache: &Cache, entry: &PluginEntry, option: &PluginOption) -> Option<String> {
    let is_off_with = |option: &PluginOption| is_off(cache, entry, option);
    let without = |left_out: &str| PluginOption {
        arguments: {
            let others = option.arguments.iter().filter(|(key, _)| *key != left_out);
            others.map(|(key, value)| (key, value.clone())).collect()
        },
        ..option.clone()
    };
    let mut keys = option.arguments.iter().map(|(key, _)| key);
    if let Some(key) = keys.find(|key| !is_off_with(&without(key))) {
        return Some(key.to_owned());
    }
    let flat =
        PluginOption { switches: option.switches.with(Switch::Hierarchy, false), ..option.clone() };
    (option.switches.on(Switch::Hierarchy) && !is_off_with(&flat))
        .then(|| "enableHierarchy".to_owned())
}
