//! What a job with a network topology is told as long as jobs are not placed by HyperNodes.
//! Specification: actions.md 4.2, row 4; A45.

use vc_model::{Job, NetworkTopology};

/// Why a job with a topology waits as long as there are no HyperNodes. Volcano's words.
pub(crate) const NOT_READY: &str = "network topology: hyperNodes are not ready";

/// Whose topology is not there, and which it is. `None`: the job asks for none.
pub(crate) fn not_ready(job: &Job) -> Option<String> {
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
    let remedy = "HyperNodes are not read yet: remove networkTopology to place the pods without";
    Some(format!("{NOT_READY}. {}. {remedy}", asked.join("; ")))
}

fn wanted(topology: &NetworkTopology) -> String {
    let tier = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        (Some(tier), _) => format!("a HyperNode of tier {tier} at most"),
        (None, "") => "HyperNodes of any tier".to_owned(),
        (None, name) => format!("a HyperNode of tier {name} at most"),
    };
    format!("{tier} (mode {})", if topology.soft { "soft" } else { "hard" })
}
