//! Messages for a job whose network topology cannot be kept, because it is not known which
//! HyperNodes there are, or because nothing places by them.
//! Specification: actions.md 4.2, row 4; A45.

use vc_framework::{Cause, SessionState};
use vc_model::{JobId, NetworkTopology};

/// Why actions that know no HyperNodes evict nobody for a job with a network topology.
pub(crate) const USE_GANGPREEMPT: &str = "use gangpreempt";

/// The causes that name the network topology begin with this in every message.
const PREFIX: &str = "network topology: ";

/// Returns the cause of a job for which no pod can be evicted. Returns `None` if it can be tried.
pub(crate) fn cause(session: &SessionState<'_>, job: JobId) -> Option<Cause> {
    let text = message(session, job)?;
    Some(Cause::Topology(text.strip_prefix(PREFIX).unwrap_or(&text).into()))
}

/// Returns why a job with a network topology cannot be placed by HyperNodes, if it cannot. The
/// first text is Volcano's. Once the HyperNodes are known, soft mode needs none.
fn why_not_placed(session: &SessionState<'_>, is_hard: bool) -> Option<&'static str> {
    let hyper_nodes = &session.hyper_nodes;
    match (hyper_nodes.is_listed(), is_hard) {
        (false, _) if hyper_nodes.are_lost() => Some(
            "network topology: hyperNodes cannot be read any more; the scheduler's log says why",
        ),
        (false, _) => Some("network topology: hyperNodes are not ready"),
        (true, true) if hyper_nodes.is_empty() => Some("network topology: no HyperNode exists"),
        (true, true) if !session.plugins().places_by_hyper_nodes() => {
            Some("network topology: no plugin places by HyperNodes; network-topology-aware does")
        }
        _ => None,
    }
}

/// Returns why the job waits, the remedy, and the topologies that it asks for. Returns `None` if it
/// asks for none, or if it can be tried.
pub(crate) fn message(session: &SessionState<'_>, job: JobId) -> Option<String> {
    let row = &session.jobs[job];
    let group = row.pod_group.as_ref()?;
    let own = group.network_topology.iter().map(|topology| &**topology);
    let own = own.map(|topology| (format!("PodGroup {}", row.key), topology));
    let of_policies = group.policies.iter().filter_map(|policy| {
        let topology = policy.network_topology.as_ref()?;
        Some((format!("sub-group policy {}", policy.name), topology))
    });
    let asked: Vec<(String, &NetworkTopology)> = own.chain(of_policies).collect();
    if asked.is_empty() {
        return None;
    }
    let is_hard = asked.iter().any(|(_, topology)| !topology.soft);
    let why = why_not_placed(session, is_hard)?;
    let remedy = "Remove networkTopology to place the pods without";
    let asks = |(who, topology): &(String, &NetworkTopology)| {
        format!("{who} asks for {}", wanted(topology))
    };
    let asked: Vec<String> = asked.iter().map(asks).collect();
    Some(format!("{why}. {remedy}. {}.", asked.join("; ")))
}

fn wanted(topology: &NetworkTopology) -> String {
    let tier = match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        (Some(tier), _) => format!("a HyperNode of tier {tier} at most"),
        (None, "") => "HyperNodes of any tier".to_owned(),
        (None, name) => format!("a HyperNode of tier {name} at most"),
    };
    format!("{tier} (mode {})", if topology.soft { "soft" } else { "hard" })
}
