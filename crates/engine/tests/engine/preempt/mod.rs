//! actions.md "preempt, normal (TP)", "preempt, dry-run (TT)" and what of "Recording" and "Across
//! cycles" needs preempt. Jobs with a network topology are in `hyper_node_evictions`.

mod cycles;
mod dry;
mod log;
mod nominated;
mod normal;

use vc_conf::Config;
use vc_model::{HostPort, Protocol};

use crate::support::*;

/// Legend TP.
pub(super) const TP: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder}";

/// Legend TT, but for capacity beside proportion, of which the configuration warns.
pub(super) const TT: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder predicate} predicates{preemptable predicate}";

/// TP without gang's say on who starves: members beyond the minimum preempt, too.
pub(super) const ELASTIC: &str = "gang{preemptable jobPipelined} \
    priority{taskOrder jobOrder preemptable jobStarving} predicates";

pub(super) fn tp() -> Config {
    conf("preempt", TP)
}

pub(super) fn dry() -> Config {
    dry_with("enableTopologyAwarePreemption: true")
}

pub(super) fn dry_with(arguments: &str) -> Config {
    with_arguments(conf("preempt", TT), "preempt", &format!("{{{arguments}}}"))
}

/// Who is evicted, by name.
pub(super) fn evicted(config: &Config, text: &str) -> String {
    victims(&World::new(config, text).cycle())
}

pub(super) fn victims(cycle: &Cycle) -> String {
    let text = cycle.only(&["evict"]);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}

/// Job `high` and the pod on n1 with the same host port.
pub(super) fn with_ports(config: &Config, text: &str, pods: &[&str]) -> Cycle {
    let mut world = World::new(config, text);
    for pod in pods {
        world.edit(pod, |pod| pod.containers[0].host_ports.push(host_port()));
    }
    world.cycle()
}

pub(super) fn host_port() -> HostPort {
    HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port: 8080 }
}
