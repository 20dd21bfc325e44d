//! What follows when the API server does not let us read a kind, or does not have it: an optional
//! kind counts as "there are none", a required one is waited for. The cause is logged with its
//! remedy, and once more when it is over. Specification: core.md 1.5 (C-06), 1.9.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::observe::Observer;
use crate::slim::Slim;

/// Pause before an optional kind that cannot be read is asked for again, and between two log lines
/// about a required one (C-06).
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(60);
/// How long objects of an optional kind that were read before stay in use when they are refused. A
/// ClusterRole that is replaced is missing for some seconds.
const GRACE: Duration = Duration::from_secs(60);

/// A kind that cannot be read, and what was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindRefusal {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural name of the kind, as in RBAC rules.
    pub resource: &'static str,
    /// Verb that was refused, as in RBAC rules.
    pub verb: &'static str,
    /// HTTP status: 403 or 404.
    pub code: u16,
    /// True if nothing can be decided without the kind. False if it counts as "there are none".
    pub is_required: bool,
}

impl KindRefusal {
    /// The missing right or kind, and what to do about it.
    pub fn remedy(&self) -> String {
        let Self { group, resource, .. } = self;
        match self.code {
            403 => format!(
                "add to the ClusterRole of the scheduler: {{apiGroups: [\"{group}\"], \
                 resources: [{resource}], verbs: [list, watch]}}"
            ),
            _ if group.ends_with("volcano.sh") => {
                format!("install Volcano's CustomResourceDefinition {resource}.{group}")
            }
            _ => format!("the API server is too old, or does not serve {group} {resource}"),
        }
    }
}

/// `no right to watch nodes in the core API group (403)`.
impl fmt::Display for KindRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, verb, code, .. } = self;
        match self.code {
            403 => write!(out, "no right to {verb} {resource} in ")?,
            _ => write!(out, "the API server has no {resource} in ")?,
        }
        match self.group {
            "" => write!(out, "the core API group ({code})"),
            group => write!(out, "API group {group} ({code})"),
        }
    }
}

/// Whether a kind can be read, as far as its last answers tell.
pub(crate) struct Readability {
    observer: Arc<dyn Observer>,
    /// The refusal that was logged last, and when. `None`: the kind can be read.
    logged: Option<(KindRefusal, Instant)>,
    /// When the refusals in a row began. `None`: the last answer was none.
    since: Option<Instant>,
}

impl Readability {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, logged: None, since: None }
    }

    /// Takes in a refusal of a required kind. Logged at once, and once a minute while it lasts.
    pub(crate) fn required<S: Slim>(&mut self, verb: &'static str, code: u16) {
        let refusal = refusal::<S>(verb, code);
        if self.is_new(&refusal, ASK_AGAIN) {
            tracing::error!(
                "{} cannot be read: {refusal}. Nothing can be decided without them; asked again \
                 every second\nhint: {}",
                plural(S::NAME),
                refusal.remedy()
            );
            self.log(refusal);
        }
    }

    /// Takes in a refusal of an optional kind. `are_known`: some objects of it were read before. True if
    /// the kind counts as "there are none" from now on, false if what is known stays in use for now.
    pub(crate) fn optional<S: Slim>(
        &mut self,
        verb: &'static str,
        code: u16,
        are_known: bool,
    ) -> bool {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let keeps = code == 403 && are_known && now.duration_since(since) < GRACE;
        let refusal = refusal::<S>(verb, code);
        // Logged once: what is asked for again each minute is no news.
        if self.is_new(&refusal, Duration::MAX) {
            tracing::warn!("{}", text_of_optional(S::NAME, S::WITHOUT, &refusal, keeps));
            self.log(refusal);
        }
        !keeps
    }

    /// Takes in that a watch of the kind is open.
    pub(crate) fn readable<S: Slim>(&mut self) {
        self.since = None;
        if self.logged.take().is_some() {
            tracing::info!("{} can be read from now on", plural(S::NAME));
            self.observer.kind_readable(S::PLURAL);
        }
    }

    fn is_new(&self, refusal: &KindRefusal, repeat: Duration) -> bool {
        match &self.logged {
            Some((before, at)) => before != refusal || repeat <= at.elapsed(),
            None => true,
        }
    }

    fn log(&mut self, refusal: KindRefusal) {
        self.observer.kind_refused(&refusal);
        self.logged = Some((refusal, Instant::now()));
    }
}

fn refusal<S: Slim>(verb: &'static str, code: u16) -> KindRefusal {
    KindRefusal {
        group: S::GROUP,
        resource: S::PLURAL,
        verb,
        code,
        is_required: S::WITHOUT.is_none(),
    }
}

/// The warning about an optional kind. `keeps`: objects that were read before stay in use for now.
pub(crate) fn text_of_optional(
    name: &str,
    without: Option<&str>,
    refusal: &KindRefusal,
    keeps: bool,
) -> String {
    let (name, remedy) = (plural(name), refusal.remedy());
    let consequence = without.unwrap_or("decisions are made without them");
    let meaning = match keeps {
        true => format!(
            "Those that are known stay in use for {} s, then they count as none",
            GRACE.as_secs()
        ),
        false => "They count as none".to_owned(),
    };
    format!(
        "{name} cannot be read: {refusal}. {meaning}: {consequence}; asked again every {} s\n\
         hint: {remedy}",
        ASK_AGAIN.as_secs()
    )
}

/// `StorageClass` → `StorageClasses`.
fn plural(name: &str) -> String {
    match name {
        _ if name.ends_with('s') => format!("{name}es"),
        _ if name.ends_with("ity") => format!("{}ies", name.trim_end_matches('y')),
        _ => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACHMENTS: KindRefusal = KindRefusal {
        group: "storage.k8s.io",
        resource: "volumeattachments",
        verb: "watch",
        code: 403,
        is_required: false,
    };

    #[test]
    fn a_warning_names_the_verb_the_resource_and_the_rule() {
        let without = Some("volumes do not count");
        let text = text_of_optional("VolumeAttachment", without, &ATTACHMENTS, false);
        assert_eq!(
            text,
            "VolumeAttachments cannot be read: no right to watch volumeattachments in API group \
             storage.k8s.io (403). They count as none: volumes do not count; asked again every 60 s\n\
             hint: add to the ClusterRole of the scheduler: {apiGroups: [\"storage.k8s.io\"], \
             resources: [volumeattachments], verbs: [list, watch]}"
        );
        let kept = text_of_optional("VolumeAttachment", without, &ATTACHMENTS, true);
        assert!(kept.contains("stay in use for 60 s, then they count as none: volumes"), "{kept}");
    }

    #[test]
    fn a_kind_that_is_missing_is_no_matter_of_rights() {
        let of = |group, resource| KindRefusal { group, resource, code: 404, ..ATTACHMENTS };
        let shards = of("shard.volcano.sh", "nodeshards");
        let wanted = "the API server has no nodeshards in API group shard.volcano.sh (404)";
        assert_eq!(shards.to_string(), wanted);
        let wanted = "install Volcano's CustomResourceDefinition nodeshards.shard.volcano.sh";
        assert_eq!(shards.remedy(), wanted);
        assert!(
            of("policy", "poddisruptionbudgets").remedy().starts_with("the API server is too old")
        );
    }

    #[test]
    fn rules_of_the_core_group_have_an_empty_group() {
        let nodes = KindRefusal { group: "", resource: "nodes", is_required: true, ..ATTACHMENTS };
        assert_eq!(nodes.to_string(), "no right to watch nodes in the core API group (403)");
        let rule = "{apiGroups: [\"\"], resources: [nodes], verbs: [list, watch]}";
        assert!(nodes.remedy().ends_with(rule));
        let names = ["StorageClass", "CSIStorageCapacity", "PersistentVolumeClaim"].map(plural);
        assert_eq!(names, ["StorageClasses", "CSIStorageCapacities", "PersistentVolumeClaims"]);
    }
}
