//! What is written about claims for devices: allocation and consumer before a bind, both taken back
//! when it comes to nothing. Each claim is read by LIST, changed and PUT whole; up to five times
//! while others write it. Specification: plugins-nodes.md 6.7.

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, ListParams, PostParams, TypeMeta};
use kube::{Api, Client};
use serde_json::Value;
use vc_model::{Allocation, ClaimPromise, ClusterEvent, DeviceObject, ObjectKey, ResourceClaim};
use vc_wire::{Kind, check_claim, deallocate_claim, protect_claim, reserve_claim, unreserve_claim};

use crate::call::{CallError, call, get, insist, pods, resource};
use crate::client::Clients;
use crate::observe::Observer;
use crate::unreadable::{ASK_AGAIN, KindRefusal};

const ATTEMPTS: u32 = 5;

/// Why a claim could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// The API server did not take it.
    #[error("{what} claim {claim}: {error}")]
    Refused {
        /// What was to be written.
        what: &'static str,
        /// Of the claim.
        claim: ObjectKey,
        /// Its words.
        error: CallError,
    },
    /// It is not known whether the pod needs them.
    #[error("read pod {pod}: {error}")]
    Unread {
        /// Of the pod.
        pod: ObjectKey,
        /// The server's words.
        error: CallError,
    },
    /// Nothing can be written any more.
    #[error("claim {0} {1}")]
    Lost(ObjectKey, vc_wire::ClaimLost),
}

impl ClaimError {
    /// The same write would fail again, so that it is repeated after a pause (core.md 7.2).
    pub(crate) fn pauses(&self) -> bool {
        match self {
            Self::Refused { error, .. } | Self::Unread { error, .. } => error.pauses(),
            Self::Lost(..) => false,
        }
    }
}

/// Reserves the claims for the pod, with the devices that were chosen; answers what is stored.
///
/// # Errors
/// The first claim that cannot be had; earlier ones stay reserved.
pub(crate) async fn reserve(
    client: &Client,
    (pod, uid): (&ObjectKey, &str),
    promises: &[ClaimPromise],
) -> Result<Vec<ResourceClaim>, ClaimError> {
    let mut stored = Vec::new();
    for promise in promises {
        let claim = ClaimWrite::new(client, &promise.key);
        stored.extend(claim.reserve(promise, &pod.name, uid).await?.as_ref().and_then(decoded));
    }
    Ok(stored)
}

/// Takes the pod out of its claims, unless it is bound after all: the answer to a bind may be lost. A
/// claim that is gone needs nothing.
///
/// # Errors
/// The pod could not be read, or a write was refused.
pub(crate) async fn unreserve(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
    claims: &[Arc<str>],
) -> Result<(), ClaimError> {
    let unread = |error| ClaimError::Unread { pod: pod.clone(), error };
    let stored = get(&pods(client, &pod.namespace), &pod.name).await.map_err(unread)?;
    let is_bound = |stored: &DynamicObject| {
        let node = stored.data["spec"]["nodeName"].as_str();
        stored.metadata.uid.as_deref() == Some(uid) && node.is_some_and(|node| !node.is_empty())
    };
    if stored.as_ref().is_some_and(is_bound) {
        return Ok(());
    }
    for name in claims {
        let key = ObjectKey { namespace: pod.namespace.clone(), name: name.clone() };
        let claim = ClaimWrite::new(client, &key);
        claim.change("remove reservation of", |value| unreserve_claim(value, uid)).await?;
    }
    Ok(())
}

/// Takes these devices of a claim away, if it still has them and nobody but this consumer needs them.
///
/// # Errors
/// A write was refused.
pub(crate) async fn deallocate(
    client: &Client,
    (key, uid): (&ObjectKey, &str),
    allocation: &Allocation,
    consumer: &str,
) -> Result<(), ClaimError> {
    let claim = ClaimWrite::new(client, key);
    let change = |value: &mut Value| {
        let is_it = value["metadata"]["uid"].as_str() == Some(uid);
        is_it && deallocate_claim(value, allocation, consumer)
    };
    claim.change("deallocate", change).await.map(drop)
}

const GROUP: &str = "resource.k8s.io";
/// Kinds without which nothing can be said about a claim.
const KINDS: [(&str, &str); 3] = [
    ("ResourceClaim", "resourceclaims"),
    ("ResourceSlice", "resourceslices"),
    ("DeviceClass", "deviceclasses"),
];

/// What the server has of claims for devices (plugins-nodes.md 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceApi {
    /// We may list them, their classes and slices.
    Served,
    /// It is too old.
    Absent,
    /// We may not list this one of them.
    Forbidden(KindRefusal),
}

impl DeviceApi {
    /// Whether claims can be taken into account.
    pub fn are_served(&self) -> bool {
        *self == Self::Served
    }

    /// Without the right, pods are placed as if they had no claims: that must be known.
    fn report(&self, observer: &dyn Observer) {
        if let Self::Forbidden(refusal) = self {
            observer.kind_refused(refusal);
            tracing::warn!(
                "resource claims of pods are ignored: {refusal}; asked again every {} s\nhint: {}",
                ASK_AGAIN.as_secs(),
                refusal.remedy()
            );
        }
    }
}

/// Asks whether there are claims for devices; any answer but that there are none, or that they are
/// none of our business, leaves it open and is asked for again for a minute.
///
/// # Errors
/// The last failure.
pub async fn devices(clients: &Clients, observer: &dyn Observer) -> Result<DeviceApi, CallError> {
    let found = insist("claims for devices", || ask(&clients.core)).await?;
    found.report(observer);
    Ok(found)
}

async fn ask(client: &Client) -> Result<DeviceApi, CallError> {
    for (kind, plural) in KINDS {
        let kind = resource(GROUP, "v1", kind, plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        match call(api.list(&ListParams::default().limit(1))).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(DeviceApi::Absent),
            Err(error) if error.code() == 403 => {
                return Ok(DeviceApi::Forbidden(forbidden(plural)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(DeviceApi::Served)
}

fn forbidden(resource: &'static str) -> KindRefusal {
    KindRefusal { group: GROUP, resource, verb: "list", code: 403, is_required: false }
}

/// Waits until the server has claims for devices and lets us list them: asks once a minute.
pub async fn devices_appear(clients: &Clients, mut before: DeviceApi, observer: &dyn Observer) {
    while !before.are_served() {
        tokio::time::sleep(ASK_AGAIN).await;
        let Ok(found) = ask(&clients.core).await else { continue };
        if found == before {
            continue;
        }
        if let DeviceApi::Forbidden(refusal) = &before {
            observer.kind_readable(refusal.resource);
        }
        found.report(observer);
        before = found;
    }
}

struct ClaimWrite<'a> {
    api: Api<DynamicObject>,
    kind: ApiResource,
    key: &'a ObjectKey,
}

impl<'a> ClaimWrite<'a> {
    fn new(client: &Client, key: &'a ObjectKey) -> Self {
        let kind = resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims");
        let api = Api::namespaced_with(client.clone(), &key.namespace, &kind);
        Self { api, kind, key }
    }

    async fn reserve(
        &self,
        promise: &ClaimPromise,
        pod: &str,
        uid: &str,
    ) -> Result<Option<Value>, ClaimError> {
        let what = match promise.allocation {
            Some(_) => "add allocation and reservation to",
            None => "add reservation to",
        };
        let lost = |why| ClaimError::Lost(self.key.clone(), why);
        for attempt in 1..=ATTEMPTS {
            let found = self.read().await.map_err(|error| self.refused(what, error))?;
            let mut claim = found.ok_or_else(|| lost(vc_wire::ClaimLost::Deleted))?;
            check_claim(&claim, promise).map_err(lost)?;
            let mut answer = Ok(claim.clone());
            if protect_claim(&mut claim, promise) {
                answer = self.put(&claim, false).await;
                if let Ok(stored) = &answer {
                    claim = stored.clone();
                }
            }
            if answer.is_ok() && reserve_claim(&mut claim, promise, pod, uid) {
                answer = self.put(&claim, true).await;
            }
            match answer {
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
                answer => return answer.map(Some).map_err(|error| self.refused(what, error)),
            }
        }
        Ok(None)
    }

    /// Changes the status of the claim, if it is there and there is something to change.
    async fn change(
        &self,
        what: &'static str,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), ClaimError> {
        for attempt in 1..=ATTEMPTS {
            let found = self.read().await.map_err(|error| self.refused(what, error))?;
            let Some(mut claim) = found else { return Ok(()) };
            if !change(&mut claim) {
                return Ok(());
            }
            match self.put(&claim, true).await {
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
                answer => return answer.map(drop).map_err(|error| self.refused(what, error)),
            }
        }
        Ok(())
    }

    fn refused(&self, what: &'static str, error: CallError) -> ClaimError {
        ClaimError::Refused { what, claim: self.key.clone(), error }
    }

    async fn read(&self) -> Result<Option<Value>, CallError> {
        let name = &*self.key.name;
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let mut found = call(self.api.list(&params)).await?.items.into_iter();
        let found = found.find(|object| object.metadata.name.as_deref() == Some(name));
        Ok(found.and_then(|mut object| {
            let (api_version, kind) = (self.kind.api_version.clone(), self.kind.kind.clone());
            object.types.get_or_insert(TypeMeta { api_version, kind });
            serde_json::to_value(object).ok()
        }))
    }

    async fn put(&self, claim: &Value, status: bool) -> Result<Value, CallError> {
        let malformed = |_| CallError::Overtaken("the claim is malformed");
        let object: DynamicObject = serde_json::from_value(claim.clone()).map_err(malformed)?;
        let (name, params) = (&*self.key.name, PostParams::default());
        let stored = match status {
            true => call(self.api.replace_status(name, &params, &object)).await?,
            false => call(self.api.replace(name, &params, &object)).await?,
        };
        serde_json::to_value(stored).map_err(malformed)
    }
}

/// What the watch will tell, too.
fn decoded(claim: &Value) -> Option<ResourceClaim> {
    match vc_wire::decode(Kind::ResourceClaim, claim).ok()?.event {
        ClusterEvent::DeviceApplied(object) => match *object {
            DeviceObject::Claim(claim) => Some(claim),
            _ => None,
        },
        _ => None,
    }
}
