//! The cases by name, and the clusters that they are measured on.

use vc_engine::{Engine, Evaluator};

use crate::cohorts;
use crate::evictions;
use crate::load::{load_empty, load_full, load_idle, load_refused};
use crate::{denied, leftovers, plugins, queues, stress, topology, wants};

/// 2026-06-01T00:00:00Z, when the measured cycles begin.
pub(crate) const START_MICROS: i64 = 1_780_272_000_000_000;

/// A cluster and the cycles to measure on it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) n_nodes: u64,
    /// Pods that wait.
    pub(crate) n_pending: u64,
    /// With the plain evaluator, where it would take too long otherwise.
    pub(crate) n_pending_plain: u64,
    pub(crate) n_running: u64,
    /// HyperNodes of tier 1. 0: their number follows from that of the nodes.
    pub(crate) n_hyper_nodes: u64,
    /// Pods of a gang that waits.
    pub(crate) gang_size: u64,
    /// The text of the configuration; `None`: that of the chart.
    pub(crate) conf: Option<&'static str>,
    /// Whether the pods that wait find a node.
    pub(crate) fits: bool,
    /// Pods that go for each of them.
    pub(crate) n_victims: u64,
    /// Pods that come before every cycle after the second, and find a node.
    pub(crate) n_arriving: u64,
    /// Numbers of the cycles that are measured; nothing else changes before the second.
    pub(crate) cycles: &'static [u32],
    pub(crate) load: fn(&Case, &mut Engine),
}

/// How many times the size of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) nodes: u64,
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) hyper_nodes: u64,
}

impl Times {
    pub(crate) const ONE: Self = Self { nodes: 1, pending: 1, running: 1, hyper_nodes: 1 };
}

const IDLE: Case = Case {
    name: "idle/10k-200k",
    n_nodes: 10_000,
    n_pending: 0,
    n_pending_plain: 0,
    n_running: 200_000,
    n_hyper_nodes: 0,
    gang_size: 0,
    conf: None,
    fits: true,
    n_victims: 0,
    n_arriving: 0,
    cycles: &[2],
    load: load_idle,
};

const UNSCHEDULABLE: Case = Case {
    name: "unschedulable/5k-5k",
    n_nodes: 5_000,
    n_pending: 5_000,
    n_pending_plain: 5_000,
    n_running: 20_000,
    gang_size: 10,
    fits: false,
    cycles: &[1, 2],
    load: load_full,
    ..IDLE
};

pub(crate) const CASES: &[Case] = &[
    Case { n_nodes: 1_000, ..allocate("allocate/1k-10k") },
    Case { n_nodes: 5_000, ..allocate("allocate/5k-10k") },
    Case { n_nodes: 10_000, n_pending: 100_000, ..allocate("allocate/10k-100k") },
    Case {
        n_nodes: 5_000,
        conf: Some(plugins::ZONES),
        load: plugins::load_zones,
        ..allocate("allocate/zones")
    },
    Case {
        n_nodes: 10_000,
        n_pending: 100_000,
        n_pending_plain: 1_000,
        conf: Some(plugins::ALL),
        ..allocate("allocate/all-plugins")
    },
    Case {
        n_nodes: 10_000,
        n_pending: 100_000,
        n_pending_plain: 1_000,
        conf: Some(plugins::ACCOUNTS),
        load: plugins::load_accounts,
        ..allocate("allocate/accounts")
    },
    Case {
        n_nodes: 1_000,
        n_pending_plain: 500,
        conf: Some(plugins::SHARES),
        load: plugins::load_shares,
        ..allocate("deviceshare/10k")
    },
    IDLE,
    Case { name: "idle/all-plugins", conf: Some(plugins::ALL), ..IDLE },
    UNSCHEDULABLE,
    Case {
        name: "arrival/wants",
        n_arriving: 1,
        cycles: &[1, 4],
        load: wants::load_full,
        ..UNSCHEDULABLE
    },
    Case { name: "arrival/10k-200k", n_arriving: 1, cycles: &[4], ..IDLE },
    Case { name: "arrival/5k-5k", n_arriving: 1, cycles: &[4], ..UNSCHEDULABLE },
    Case {
        name: "arrival/10k-groups",
        n_pending: 10_000,
        n_pending_plain: 10_000,
        gang_size: 1,
        n_arriving: 1,
        cycles: &[4],
        load: load_refused,
        ..UNSCHEDULABLE
    },
    Case {
        name: "arrival/elastic",
        n_pending: 4_500,
        n_pending_plain: 4_500,
        gang_size: 9,
        n_arriving: 1,
        cycles: &[4],
        load: leftovers::load_elastic,
        ..UNSCHEDULABLE
    },
    Case {
        name: "arrival/partly",
        n_arriving: 1,
        cycles: &[4],
        load: leftovers::load_partly,
        ..UNSCHEDULABLE
    },
    Case {
        name: "partly/64-of-1k",
        n_nodes: 999,
        n_pending: 64_000,
        n_pending_plain: 2_000,
        n_running: 0,
        gang_size: 1_000,
        cycles: &[1],
        load: leftovers::load_one_too_many,
        ..UNSCHEDULABLE
    },
    Case { load: load_full, ..denied("arrival/preempt", evictions::PREEMPT) },
    Case { load: plugins::load_budgets, ..denied("arrival/preempt-budgets", plugins::BUDGETS) },
    Case { load: denied::load_too_few, ..denied("arrival/preempt-too-few", evictions::PREEMPT) },
    Case { load: denied::load_partly, ..denied("arrival/preempt-partly", evictions::PREEMPT) },
    Case { load: denied::load_reclaim, ..denied("arrival/reclaim", evictions::RECLAIM) },
    Case { load: denied::load_both, ..denied("arrival/both", denied::BOTH) },
    Case {
        load: denied::load_both_by_quota,
        ..denied("arrival/both-by-quota", denied::BOTH_BY_QUOTA)
    },
    Case {
        name: "arrival/tree",
        n_nodes: 500,
        n_pending: 2_500,
        n_pending_plain: 2_500,
        n_running: 2_000,
        gang_size: 5,
        fits: false,
        n_arriving: 1,
        conf: Some(queues::HIERARCHY_RECLAIM),
        cycles: &[1, 4],
        load: queues::load_full_tree,
        ..IDLE
    },
    Case {
        name: "arrival/4k-queues",
        n_nodes: 5_000,
        n_running: 20_000,
        n_arriving: 1,
        cycles: &[1, 4],
        load: queues::load_many,
        ..IDLE
    },
    Case {
        name: "arrival/4k-quotas",
        n_nodes: 5_000,
        n_running: 20_000,
        n_arriving: 1,
        conf: Some(queues::QUOTAS),
        cycles: &[1, 4],
        load: queues::load_many,
        ..IDLE
    },
    shapes("shapes/4k-500", 4_000, 500),
    shapes("shapes/5k-5k", 5_000, 5_000),
    Case { n_pending: 1_000, load: stress::load_labels, ..stress("stress/1m-labels") },
    Case { gang_size: 1, load: stress::load_shapes, ..stress("stress/5k-shapes") },
    Case { load: stress::load_resources, ..stress("stress/500-resources") },
    Case {
        n_nodes: 100,
        n_running: 10_000,
        load: stress::load_one_node,
        ..stress("stress/node-of-10k")
    },
    Case {
        n_pending: 50_000,
        gang_size: 50_000,
        load: stress::load_one_gang,
        ..stress("stress/gang-of-50k")
    },
    Case {
        n_pending: 50_000,
        gang_size: 50_000,
        load: stress::load_one_job,
        ..stress("stress/job-of-50k")
    },
    Case {
        n_pending: 50_000,
        gang_size: 50_000,
        fits: false,
        load: stress::load_one_job,
        ..stress("stress/job-of-50k-that-fits-nowhere")
    },
    Case { gang_size: 5, load: stress::load_queues, ..stress("stress/1k-queues") },
    Case {
        gang_size: 5,
        conf: Some(queues::HIERARCHY),
        load: queues::load_tree,
        ..stress("stress/tree-of-1k-queues")
    },
    Case {
        n_nodes: 500,
        n_pending: 500,
        n_running: 2_000,
        gang_size: 1,
        fits: false,
        conf: Some(queues::HIERARCHY_RECLAIM),
        load: queues::load_full_tree,
        ..stress("stress/reclaim-in-tree-of-1k-queues")
    },
    Case {
        n_pending: 10_000,
        gang_size: 10_000,
        load: stress::load_sub_groups,
        ..stress("stress/5k-sub-groups")
    },
    Case {
        n_pending: 10_000,
        gang_size: 10_000,
        load: stress::load_all_sub_groups,
        ..stress("stress/5k-sub-groups-at-once")
    },
    Case {
        n_pending: 10_000,
        n_running: 10_000,
        gang_size: 10_000,
        load: stress::load_grown_job,
        ..stress("stress/grown-job")
    },
    preempt("preempt/100-1k", 100, 100),
    preempt("preempt/5k-50k", 5_000, 512),
    reclaim("reclaim/100-1k", 100, 100),
    reclaim("reclaim/5k-50k", 5_000, 512),
    Case {
        conf: Some(evictions::GANG_PREEMPT),
        n_pending_plain: 10,
        ..preempt("gangpreempt/5k-50k", 5_000, 512)
    },
    Case {
        conf: Some(evictions::GANG_RECLAIM),
        n_pending_plain: 10,
        ..reclaim("gangreclaim/5k-50k", 5_000, 512)
    },
    Case {
        n_running: 1_000,
        conf: Some(cohorts::SEARCH),
        load: cohorts::load_search,
        ..preempt("cohort/search-1k", 100, 10)
    },
    Case {
        conf: Some(cohorts::SEARCH),
        load: cohorts::load_search,
        ..preempt("cohort/search-10k", 1_000, 10)
    },
    Case {
        conf: Some(cohorts::FAIR),
        load: cohorts::load_search,
        ..preempt("cohort/fair-10k", 1_000, 10)
    },
    Case {
        n_pending: 1_000,
        n_pending_plain: 1_000,
        gang_size: 1,
        fits: false,
        conf: Some(cohorts::SEARCH),
        load: cohorts::load_heads,
        ..preempt("cohort/heads-1k", 1_000, 0)
    },
    Case {
        name: "cohort/arrival-10k",
        n_nodes: 1_000,
        n_running: 10_000,
        n_arriving: 1,
        conf: Some(cohorts::SEARCH),
        cycles: &[4],
        load: cohorts::load_idle,
        ..IDLE
    },
    Case {
        n_nodes: 4_000,
        n_pending: 50_000,
        n_pending_plain: 500,
        gang_size: 1,
        conf: Some(cohorts::ADMIT),
        load: cohorts::load_admit,
        ..allocate("cohort/admit-50k")
    },
    Case {
        n_pending: 5_000,
        n_pending_plain: 5_000,
        gang_size: 10,
        fits: false,
        n_victims: 0,
        cycles: &[1, 2],
        load: evictions::load_equals,
        ..preempt("preempt/none-5k", 100, 0)
    },
    Case {
        n_running: 10_000,
        n_pending_plain: 10,
        load: evictions::load_one_node,
        ..preempt("stress/preempt-on-node-of-10k", 1, 100)
    },
    Case { n_pending_plain: 500, ..preempt("stress/preempt-for-gang-of-50k", 6_000, 50_000) },
    fragments("stress/gang-fragments", 1_000, 256),
    Case {
        load: evictions::load_one_victim,
        ..fragments("stress/gang-fragments-of-one", 500, 100)
    },
    Case {
        n_nodes: 1_000,
        n_pending: 1_000,
        n_pending_plain: 200,
        gang_size: 1_000,
        conf: Some(topology::ALLOCATE),
        load: topology::load_sub_groups,
        ..allocate("topology/100x10")
    },
    Case {
        fits: false,
        load: topology::load_masters_beside,
        ..beside("topology/100x10-none", 1_000)
    },
    beside("topology/100x10-half", 2_000),
    Case {
        n_nodes: 10_000,
        n_pending: 6_400,
        n_pending_plain: 64,
        gang_size: 64,
        conf: Some(topology::ALLOCATE),
        load: topology::load_gangs,
        ..allocate("topology/10k")
    },
    Case {
        n_nodes: 10_000,
        n_pending: 10_000,
        n_pending_plain: 100,
        conf: Some(topology::ALLOCATE),
        load: topology::load_small_gangs,
        ..allocate("topology/10k-small")
    },
    Case {
        n_nodes: 10_000,
        n_hyper_nodes: 80,
        n_pending_plain: 100,
        gang_size: 10,
        conf: Some(topology::ALLOCATE),
        load: topology::load_flat_tree,
        ..allocate("topology/10k-flat")
    },
    Case {
        n_nodes: 8_000,
        n_pending: 1_000,
        n_pending_plain: 100,
        gang_size: 1_000,
        conf: Some(topology::ALLOCATE),
        load: topology::load_sub_groups,
        ..allocate("topology/8k-sub-groups")
    },
    Case {
        n_nodes: 10_000,
        n_pending: 32_500,
        n_pending_plain: 650,
        gang_size: 65,
        fits: false,
        n_arriving: 1,
        cycles: &[1, 4],
        conf: Some(topology::ALLOCATE),
        load: topology::load_gangs,
        ..allocate("topology/none")
    },
    Case {
        conf: Some(topology::GANG_PREEMPT),
        n_pending_plain: 10,
        load: topology::load_urgent,
        ..preempt("topology/gangpreempt-5k-50k", 5_000, 512)
    },
    Case {
        n_nodes: 130_000,
        n_pending: 1_000_000,
        n_pending_plain: 100,
        conf: Some(topology::ALLOCATE),
        load: topology::load_small_gangs,
        ..allocate("mega/130k")
    },
    mega("mega/idle", 0, &[2]),
    mega("mega/arrival", 1, &[4]),
    Case {
        n_pending: 39_000,
        n_pending_plain: 100,
        gang_size: 100,
        conf: Some(topology::GANG_PREEMPT),
        load: topology::load_urgent_gangs,
        ..preempt("mega/preempt-39k", 130_000, 100)
    },
    Case {
        n_pending: 500,
        n_pending_plain: 50,
        load: evictions::load_queues,
        ..reclaim("stress/reclaim-between-1k-queues", 1_000, 1)
    },
];

/// Gangs starve, nobody goes for them, and one pod arrives.
const fn denied(name: &'static str, conf: &'static str) -> Case {
    Case { name, conf: Some(conf), n_arriving: 1, cycles: &[1, 4], ..UNSCHEDULABLE }
}

/// One gang takes as many places as it has pods, of ten on every node.
const fn preempt(name: &'static str, n_nodes: u64, gang_size: u64) -> Case {
    Case {
        name,
        n_nodes,
        n_pending: gang_size,
        n_pending_plain: gang_size,
        n_running: n_nodes * 10,
        n_hyper_nodes: 0,
        gang_size,
        conf: Some(evictions::PREEMPT),
        fits: true,
        n_victims: 1,
        n_arriving: 0,
        cycles: &[1],
        load: evictions::load_urgent,
    }
}

/// The same between two queues.
const fn reclaim(name: &'static str, n_nodes: u64, gang_size: u64) -> Case {
    let case = preempt(name, n_nodes, gang_size);
    Case { conf: Some(evictions::RECLAIM), load: evictions::load_other_queue, ..case }
}

/// The pods of one gang each need what three others have on one node.
const fn fragments(name: &'static str, n_nodes: u64, gang_size: u64) -> Case {
    Case {
        n_pending_plain: 20,
        conf: Some(evictions::GANG_PREEMPT),
        n_victims: 3,
        load: evictions::load_fragments,
        ..preempt(name, n_nodes, gang_size)
    }
}

/// A job of a hundred sub-groups, and a hundred HyperNodes of which each is too full for one.
const fn beside(name: &'static str, n_nodes: u64) -> Case {
    Case {
        n_nodes,
        n_pending: 1_000,
        n_pending_plain: 100,
        n_running: 100,
        gang_size: 1_000,
        conf: Some(topology::ALLOCATE),
        load: topology::load_sub_groups_beside,
        ..allocate(name)
    }
}

/// A million pods run on 130,000 nodes in HyperNodes.
const fn mega(name: &'static str, n_arriving: u64, cycles: &'static [u32]) -> Case {
    Case {
        name,
        n_nodes: 130_000,
        n_running: 1_000_000,
        n_arriving,
        cycles,
        conf: Some(topology::ALLOCATE),
        load: topology::load_running_gangs,
        ..IDLE
    }
}

const fn allocate(name: &'static str) -> Case {
    Case {
        name,
        n_nodes: 0,
        n_pending: 10_000,
        n_pending_plain: 10_000,
        n_running: 0,
        n_hyper_nodes: 0,
        gang_size: 100,
        conf: None,
        fits: true,
        n_victims: 0,
        n_arriving: 0,
        cycles: &[1],
        load: load_empty,
    }
}

/// Gangs of five, each of a shape of its own up to a thousand of them.
const fn shapes(name: &'static str, n_nodes: u64, n_pending: u64) -> Case {
    let (n_pending_plain, gang_size, load) = (500, 5, wants::load);
    Case { n_nodes, n_pending, n_pending_plain, gang_size, load, ..allocate(name) }
}

/// With few pods for the plain evaluator.
const fn stress(name: &'static str) -> Case {
    Case { n_nodes: 5_000, n_pending: 5_000, n_pending_plain: 100, ..allocate(name) }
}

/// The case of this name.
pub(crate) fn named(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

impl Case {
    /// As this evaluator can do it in reasonable time.
    pub(crate) fn with(&self, evaluator: Evaluator) -> Self {
        let n_pending = match evaluator {
            Evaluator::Plain => self.n_pending_plain,
            Evaluator::Fast => self.n_pending,
        };
        let gang_size = self.gang_size.min(n_pending);
        Self { n_pending, gang_size, ..*self }
    }

    /// With so many times the nodes, pods and HyperNodes; where one gang waits, it is the gang that grows.
    pub(crate) fn times(&self, times: Times) -> Self {
        let (n_nodes, n_pending) = (self.n_nodes * times.nodes, self.n_pending * times.pending);
        let is_one_gang = self.gang_size == self.n_pending;
        let gang_size = if is_one_gang { n_pending } else { self.gang_size };
        let n_running = self.n_running * times.running;
        let n_hyper_nodes = self.n_hyper_nodes * times.hyper_nodes;
        Self { n_nodes, n_pending, gang_size, n_running, n_hyper_nodes, ..*self }
    }

    /// Of these the actions that evict are timed by themselves, which costs others a little.
    pub(crate) fn is_of_quota(&self) -> bool {
        self.name.starts_with("cohort/")
    }

    /// Binds of the first cycle, or the evictions and what waits for their room.
    pub(crate) fn n_decisions(&self) -> u64 {
        if self.fits { (1 + self.n_victims) * self.n_pending } else { 0 }
    }
}
