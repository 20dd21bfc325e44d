//! Messages for a job with a network topology, as long as jobs are not placed by HyperNodes.
//! Specification: actions.md 4.2, row 4; A45.

use vc_model::{HyperNodes, Job, NetworkTopology};

/// Returns why a job with a network topology waits. The first text is Volcano's.
pub(crate) fn why_not_placed(hyper_nodes: &HyperNodes) -> &'static str {
    match (hyper_nodes.is_listed(), hyper_nodes.is_empty()) {
        (false, _) => "network topology: hyperNodes are not ready",
        (true, true) => "network topology: no HyperNode exists",
        (true, false) => "network topology: placement by HyperNodes is not built into this version",
    }
}

/// Returns why the job waits, the remedy, and the topologies that it asks for. Returns `None` if it
/// asks for none.
pub(crate) fn message(hyper_nodes: &HyperNodes, job: &Job) -> Option<String> {
    let group = job.pod_group.as_ref()?;
    let own = group.network_topology.iter();
    let own = own.map(|topology| format!("PodGroup {} asks for {}", job.key, wanted(topology)));
    let of_policies = group.policies.iter().filter_map(|policy| {
        let topology = policy.network_topology.as_ref()?;
        Some(format!("sub-group policy {} asks for {}", policy.name, wanted(topology)))
    });
    let asked: Vec<String> = own.chain(of_policies).collect();
    if asked.is_empty() {
        return None;
    }
    let remedy = "Remove networkTopology to place the pods without";
    Some(format!("{}. {remedy}. {}.", why_not_placed(hyper_nodes), asked.join("; ")))
}

fn wanted(topology: &NetworkTopology) -> String {
    let tier = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        (Some(tier), _) => format!("a HyperNode of tier {tier} at most"),
        (None, "") => "HyperNodes of any tier".to_owned(),
        (None, name) => format!("a HyperNode of tier {name} at most"),
    };
    format!("{tier} (mode {})", if topology.soft { "soft" } else { "hard" })
}
