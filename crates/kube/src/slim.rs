//! Slim types of vc-wire as objects of watches: where the API server keeps them, and which events
//! they become. The kinds are listed in `kinds.rs`. Specification: core.md 4.1.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use vc_model::{ClusterEvent, ObjectKey, PodGroupPhase};
use vc_wire::{Kind, LenientField, OwnKey, ShortText, SlimMetadata, WireError};

use crate::observe::Observer;

/// A slim type and where the API server keeps its objects.
pub(crate) trait Slim: DeserializeOwned + Send + 'static {
    const KIND: Kind;
    const GROUP: &'static str;
    const VERSION: &'static str;
    const NAME: &'static str;
    const PLURAL: &'static str;
    /// What a scheduler without objects of the kind does otherwise. Such a kind is optional: it counts
    /// as "there are none" when the server refuses it or does not have it (C-06). `None`: the kind is
    /// required; it says where pods are and may go, how far apart, or who comes first.
    const WITHOUT: Option<&'static str>;

    /// Its objects are written whole (ARCHITECTURE.md).
    const WRITTEN_WHOLE: bool = matches!(Self::KIND, Kind::PodGroup);

    /// The event that says whether all objects of the kind are known. `None`: no message depends on it.
    fn list_event(is_complete: bool) -> Option<ClusterEvent> {
        let matters = Self::KIND == Kind::HyperNode;
        matters.then_some(ClusterEvent::HyperNodesListed { is_complete })
    }

    /// Returns namespace, name and uid. `None`: they cannot be read.
    fn identity(&self) -> Option<(ObjectKey, Arc<str>)>;

    /// Returns `metadata.resourceVersion`. `None`: it cannot be read.
    fn version(&self) -> Option<ShortText>;

    /// From the text of an object; `None`: in another way than this.
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The event, and what is malformed in an object that is used nevertheless.
    fn event(self) -> Result<(ClusterEvent, Vec<String>), WireError>;
}

/// An object that was decoded.
#[derive(Debug)]
pub(crate) struct DecodedObject {
    /// Namespace, name and uid; `None`: they cannot be read.
    pub(crate) identity: Option<(ObjectKey, Arc<str>)>,
    /// `metadata.resourceVersion`; `None`: it cannot be read.
    pub(crate) version: Option<ShortText>,
    /// What it was decoded from, if it is soon written whole.
    pub(crate) text: Option<Box<str>>,
    decoded: Result<(ClusterEvent, Vec<String>), WireError>,
}

impl DecodedObject {
    pub(crate) fn of<S: Slim>(slim: S) -> Self {
        let (identity, version) = (slim.identity(), slim.version());
        Self { identity, version, text: None, decoded: slim.event() }
    }

    pub(crate) fn with_text<S: Slim>(slim: S, text: &str) -> Self {
        let mut object = Self::of(slim);
        if S::WRITTEN_WHOLE && object.awaits_a_status() {
            object.text = Some(text.into());
        }
        object
    }

    /// Its phase is one that we change.
    fn awaits_a_status(&self) -> bool {
        let Ok((ClusterEvent::PodGroupApplied(group), _)) = &self.decoded else { return false };
        matches!(group.status.phase, PodGroupPhase::Pending | PodGroupPhase::Inqueue)
    }

    /// The event; what is malformed is counted, and logged with its place. `None`: it cannot be used
    /// at all.
    pub(crate) fn event<S: Slim>(self, observer: &dyn Observer) -> Option<ClusterEvent> {
        match self.decoded {
            Ok((event, problems)) => {
                for problem in problems {
                    observer.malformed(S::PLURAL);
                    tracing::warn!(problem, "malformed object");
                }
                Some(event)
            }
            Err(error) => {
                observer.malformed(S::PLURAL);
                tracing::warn!(problem = %error, "object ignored");
                None
            }
        }
    }
}

/// Returns namespace, name and uid. `None`: they cannot be read.
pub(crate) fn identity<A>(
    metadata: &LenientField<SlimMetadata<A>>,
) -> Option<(ObjectKey, Arc<str>)> {
    let LenientField::Good(metadata) = metadata else {
        return None;
    };
    let text = |field: &LenientField<Arc<str>>| match field {
        LenientField::Good(text) => text.clone(),
        _ => Arc::default(),
    };
    let LenientField::Good(OwnKey(name)) = &metadata.name else {
        return None;
    };
    let key = ObjectKey { namespace: text(&metadata.namespace), name: name.clone() };
    (!key.name.is_empty()).then(|| (key, text(&metadata.uid)))
}

/// Returns the resource version. `None`: it cannot be read.
pub(crate) fn version<A>(metadata: &LenientField<SlimMetadata<A>>) -> Option<ShortText> {
    match metadata {
        LenientField::Good(metadata) => match &metadata.resource_version {
            LenientField::Good(version) => Some(version.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Path of all objects of the kind.
pub(crate) fn collection<S: Slim>() -> String {
    match S::GROUP {
        "" => format!("/api/{}/{}", S::VERSION, S::PLURAL),
        group => format!("/apis/{group}/{}/{}", S::VERSION, S::PLURAL),
    }
}
