//! What admission plugins of the server refuse, as a real API server says it: webhooks that deny a request or cannot
//! be called, and quotas for new objects.

use std::fmt;

use super::answer::Refusal;
use super::witness::SentWrite;

/// Writes that an admission plugin refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedWrite {
    Binds,
    Evictions,
    /// Conditions and nominations of pods, also those that come before an eviction.
    PodStatus,
    PodGroups,
    Queues,
    Events,
    ConfigMaps,
    /// Every write, also that of the Lease.
    All,
}

/// The admission plugin that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuser {
    /// A webhook that says no with a code of its own.
    Denial,
    /// A webhook that says no without a code.
    DenialWithoutCode,
    /// A webhook that does not answer, and without which the server does nothing.
    DeadWebhook,
    /// A ResourceQuota, which looks at new objects alone.
    Quota,
}

impl RefusedWrite {
    pub(super) const ALL: [Self; 8] = [
        Self::Binds,
        Self::Evictions,
        Self::PodStatus,
        Self::PodGroups,
        Self::Queues,
        Self::Events,
        Self::ConfigMaps,
        Self::All,
    ];

    fn is_it(self, method: &str, path: &str) -> bool {
        let has = |part: &str| path.split('/').any(|it| it == part);
        match self {
            Self::Binds => path.ends_with("/binding"),
            Self::Evictions => method == "DELETE" && has("pods"),
            Self::PodStatus => has("pods") && path.ends_with("/status"),
            Self::PodGroups => has("podgroups"),
            Self::Queues => has("queues"),
            Self::Events => has("events"),
            Self::ConfigMaps => has("configmaps"),
            Self::All => true,
        }
    }
}

impl Refuser {
    pub(super) const ALL: [Self; 4] =
        [Self::Denial, Self::DenialWithoutCode, Self::DeadWebhook, Self::Quota];

    /// Returns the webhook that refuses binds and evictions for so long.
    pub(super) fn webhook(seconds: u64) -> Self {
        match seconds % 3 {
            0 => Self::Denial,
            1 => Self::DenialWithoutCode,
            _ => Self::DeadWebhook,
        }
    }

    /// Returns the answer to this write. `None`: it is not refused.
    pub(super) fn refusal(self, write: RefusedWrite, sent: &SentWrite) -> Option<Refusal> {
        let SentWrite { method, path, .. } = sent;
        if method == "GET" || !write.is_it(method, path) {
            return None;
        }
        let denied = "admission webhook \"all.example\" denied the request: not now";
        match self {
            Self::Denial => Some((403, "Forbidden", denied.into())),
            Self::DenialWithoutCode => Some((400, "", denied.into())),
            Self::DeadWebhook => {
                let message = "Internal error occurred: failed calling webhook \"all.example\": failed to call \
                    webhook: Post \"https://all.example.svc:443/admit?timeout=10s\": context deadline exceeded";
                Some((500, "InternalError", message.into()))
            }
            Self::Quota => exceeded_quota(sent),
        }
    }
}

/// Returns what a quota says to a new object of a namespace. `None`: the request makes none.
fn exceeded_quota(sent: &SentWrite) -> Option<Refusal> {
    let plural = sent.path.rsplit('/').next().unwrap_or_default();
    let is_new = sent.method == "POST" && sent.path.contains("/namespaces/");
    if !is_new || plural == "binding" {
        return None;
    }
    let name = sent.body["metadata"]["name"].as_str().unwrap_or_default();
    let message = format!(
        "{plural} \"{name}\" is forbidden: exceeded quota: objects, requested: count/{plural}=1, \
         used: count/{plural}=9, limited: count/{plural}=9"
    );
    Some((403, "Forbidden", message.into()))
}

impl fmt::Display for RefusedWrite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Binds => "binds",
            Self::Evictions => "evictions",
            Self::PodStatus => "conditions of pods",
            Self::PodGroups => "writes of PodGroups",
            Self::Queues => "writes of queues",
            Self::Events => "events",
            Self::ConfigMaps => "writes of ConfigMaps",
            Self::All => "writes",
        })
    }
}

impl fmt::Display for Refuser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Denial => "a webhook",
            Self::DenialWithoutCode => "a webhook without a code",
            Self::DeadWebhook => "a webhook that cannot be called",
            Self::Quota => "a quota for new objects",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(method: &str, path: &str) -> SentWrite {
        SentWrite {
            process: "a".into(),
            method: method.to_owned(),
            path: path.to_owned(),
            body: json!({ "metadata": { "name": "x" } }),
            pod_group: String::new(),
        }
    }

    #[test]
    fn a_webhook_refuses_its_writes_alone() {
        let code = |refuser: Refuser, write, method, path| {
            refuser.refusal(write, &sent(method, path)).map(|(code, ..)| code)
        };
        let pod = "/api/v1/namespaces/default/pods/p";
        let (bind, status) = (format!("{pod}/binding"), format!("{pod}/status"));
        let (denial, dead) = (Refuser::Denial, Refuser::DeadWebhook);
        assert_eq!(code(denial, RefusedWrite::Binds, "POST", &bind), Some(403));
        assert_eq!(code(denial, RefusedWrite::Evictions, "POST", &bind), None);
        assert_eq!(code(dead, RefusedWrite::Evictions, "DELETE", pod), Some(500));
        assert_eq!(code(dead, RefusedWrite::All, "GET", pod), None);
        let without = Refuser::DenialWithoutCode;
        assert_eq!(code(without, RefusedWrite::PodStatus, "PUT", &status), Some(400));
    }

    #[test]
    fn a_quota_refuses_new_objects_alone() {
        let of = |method, path| Refuser::Quota.refusal(RefusedWrite::All, &sent(method, path));
        let maps = "/api/v1/namespaces/volcano-system/configmaps";
        let (_, _, message) = of("POST", maps).unwrap();
        assert!(
            message.starts_with("configmaps \"x\" is forbidden: exceeded quota: "),
            "{message}"
        );
        assert_eq!(of("PUT", maps), None);
        assert_eq!(of("POST", "/api/v1/namespaces/default/pods/p/binding"), None);
        assert_eq!(of("POST", "/apis/scheduling.volcano.sh/v1beta1/queues"), None);
    }
}
