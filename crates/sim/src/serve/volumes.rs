//! The volume controllers of the simulated cluster in one task: volumes that name a claim are bound
//! to it, claims are provisioned once a node is selected for them (or at once), and ephemeral
//! volumes get their claims. Two annotations of a claim make that slow or fail. Driven by the
//! store's events and one queue of due times. Specification: plugins-nodes.md 3.5, 5.1, 5.7.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    kinds::{CLAIMS, PODS, STORAGE_CLASSES, VOLUMES},
    log::{Change, Subscription},
    object::{Key, items, text},
    store::Store,
    stream::stopped,
};
use crate::storage;

/// Seconds that the provisioner takes for a claim; `never`: it does not come to it.
pub const PROVISION_SECONDS: &str = "vcsim/provision-seconds";
/// How often the provisioner fails for a claim and asks for another node.
pub const PROVISION_FAILURES: &str = "vcsim/provision-failures";
/// Nobody provisions for this one.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

struct VolumeControllers {
    store: Arc<Store>,
    due: BTreeMap<(Instant, u64), PendingClaim>,
    /// Numbers the entries, so that two of one instant differ.
    entries: u64,
}

/// A claim that is to be provisioned, if it still is the same one.
struct PendingClaim {
    key: Key,
    uid: String,
}

/// Works until the server stops.
pub(super) async fn run(store: Arc<Store>, mut stop: watch::Receiver<bool>) {
    let mut controllers = VolumeControllers { store, due: BTreeMap::new(), entries: 0 };
    let [mut pods, mut claims, mut volumes] = controllers.start_over();
    loop {
        let next = controllers.due.keys().next().map(|(at, _)| *at);
        let read = tokio::select! {
                biased;
            read = pods.next() => read,
            read = claims.next() => read,
            read = volumes.next() => read,
            () = until(next) => {
                controllers.work_off(Instant::now());
                continue;
            }
            () = stopped(&mut stop) => return,
        };
        match read {
            Ok(events) => {
                let alive = events.iter().filter(|event| event.change != Change::Deleted);
                alive.for_each(|event| controllers.observe(&event.object.value));
            }
            // Too slow for the log: look at everything again.
            Err(_expired) => [pods, claims, volumes] = controllers.start_over(),
        }
    }
}

async fn until(next: Option<Instant>) {
    match next {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl VolumeControllers {
    fn start_over(&mut self) -> [Subscription; 3] {
        self.due.clear();
        let kinds = [&PODS, &CLAIMS, &VOLUMES];
        kinds.map(|kind| {
            let listing = self.store.list(kind, None);
            listing.objects.iter().for_each(|object| self.observe(&object.value));
            self.store.subscribe_after(kind, listing.revision)
        })
    }

    fn observe(&mut self, value: &Value) {
        match text(value, "/kind") {
            "Pod" => self.make_claims(value),
            "PersistentVolumeClaim" => self.see_claim(value),
            _ => self.see_volume(value),
        }
    }

    /// Claims of the ephemeral volumes of a pod; it owns them.
    fn make_claims(&self, pod: &Value) {
        for volume in items(pod, "/spec/volumes") {
            let template = &volume["ephemeral"]["volumeClaimTemplate"];
            if !template.is_object() {
                continue;
            }
            let (namespace, pod_name) =
                (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
            let name = format!("{pod_name}-{}", text(volume, "/name"));
            if self.store.get(&CLAIMS, namespace, &name).is_some() {
                continue;
            }
            let owner = json!({
                "apiVersion": "v1", "kind": "Pod", "name": pod_name,
                "uid": text(pod, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
            });
            let mut claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": template["metadata"], "spec": template["spec"],
            });
            if !claim["metadata"].is_object() {
                claim["metadata"] = json!({});
            }
            claim["metadata"]["name"] = name.into();
            claim["metadata"]["namespace"] = namespace.into();
            claim["metadata"]["ownerReferences"] = json!([owner]);
            // What the template lacks is said to whoever reads the pod's condition.
            let _refused = self.store.create(&CLAIMS, &claim);
        }
    }

    fn see_claim(&mut self, claim: &Value) {
        let key = Key::of(claim);
        if text(claim, "/status/phase").is_empty() {
            self.change(&CLAIMS, &key, |claim| claim["status"] = json!({ "phase": "Pending" }));
            return;
        }
        if text(claim, "/status/phase") != "Pending" {
            return;
        }
        let volume = text(claim, "/spec/volumeName");
        if !volume.is_empty() {
            return self.bind(&key, volume);
        }
        if let Some(delay) = self.provisioning(claim) {
            let Some(at) = Instant::now().checked_add(delay) else { return };
            self.entries += 1;
            let uid = text(claim, "/metadata/uid").to_owned();
            self.due.insert((at, self.entries), PendingClaim { key, uid });
        }
    }

    /// After how long the claim is provisioned; `None`: it is not, or not yet.
    fn provisioning(&self, claim: &Value) -> Option<Duration> {
        let class = self.store.get(&STORAGE_CLASSES, "", text(claim, "/spec/storageClassName"))?;
        let delayed = text(&class.value, "/volumeBindingMode") == "WaitForFirstConsumer";
        let annotations = &claim["metadata"]["annotations"];
        let selected = annotations[storage::SELECTED_NODE].is_string();
        if text(&class.value, "/provisioner") == NO_PROVISIONER || (delayed && !selected) {
            return None;
        }
        match annotations[PROVISION_SECONDS].as_str() {
            None => Some(Duration::ZERO),
            Some(text) => {
                let seconds = text.parse::<f64>().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }
        }
    }

    /// A volume that names its claim is bound to it; one that names none can be used.
    fn see_volume(&self, volume: &Value) {
        let key = Key::of(volume);
        let phase = text(volume, "/status/phase");
        let claim = text(volume, "/spec/claimRef/name");
        if claim.is_empty() && phase.is_empty() {
            self.change(&VOLUMES, &key, |volume| {
                volume["status"] = json!({ "phase": "Available" })
            });
        }
        if !claim.is_empty() && phase != "Bound" {
            self.bind(&Key::new(text(volume, "/spec/claimRef/namespace"), claim), &key.name);
        }
    }

    /// Binds a claim and a volume to each other, if neither has another partner.
    fn bind(&self, claim_key: &Key, volume: &str) {
        let volume_key = Key::new("", volume);
        let claim = self.store.get(&CLAIMS, &claim_key.namespace, &claim_key.name);
        let volume = self.store.get(&VOLUMES, "", volume);
        let (Some(claim), Some(volume)) = (claim, volume) else { return };
        let reference = &volume.value["spec"]["claimRef"];
        let uid = reference["uid"].as_str().unwrap_or_default();
        let names_claim = text(reference, "/name") == claim_key.name
            && text(reference, "/namespace") == claim_key.namespace
            && (uid.is_empty() || uid == claim.uid());
        let named = text(&claim.value, "/spec/volumeName");
        let is_free = named.is_empty() || named == volume_key.name;
        if (!reference.is_null() && !names_claim) || !is_free {
            return;
        }
        self.change(&VOLUMES, &volume_key, |value| {
            storage::refer(value, &claim.value);
            storage::set_volume_bound(value);
        });
        let name = &volume_key.name;
        self.change(&CLAIMS, claim_key, |value| storage::set_claim_bound(value, name));
    }

    fn work_off(&mut self, now: Instant) {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let PendingClaim { key, uid } = entry.remove();
            let claim = self.store.get(&CLAIMS, &key.namespace, &key.name);
            let Some(claim) = claim.filter(|claim| claim.uid() == uid) else { continue };
            // Selected for another node, or for none, meanwhile: that was told as well.
            if text(&claim.value, "/spec/volumeName").is_empty()
                && self.provisioning(&claim.value).is_some()
                && !self.fails(&key, &claim.value)
            {
                self.provision(&key, &claim.value);
            }
        }
    }

    /// Takes the selected node back as often as the claim asks for it.
    fn fails(&self, key: &Key, claim: &Value) -> bool {
        let failures = claim["metadata"]["annotations"][PROVISION_FAILURES].as_str();
        let left = failures.and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        let Some(left) = left.checked_sub(1) else { return false };
        self.change(&CLAIMS, key, |claim| {
            if let Some(annotations) = claim["metadata"]["annotations"].as_object_mut() {
                annotations.remove(storage::SELECTED_NODE);
                annotations.insert(PROVISION_FAILURES.to_owned(), left.to_string().into());
            }
        });
        true
    }

    fn provision(&self, key: &Key, claim: &Value) {
        let class = self.store.get(&STORAGE_CLASSES, "", text(claim, "/spec/storageClassName"));
        let Some(class) = class else { return };
        let node = claim["metadata"]["annotations"][storage::SELECTED_NODE].as_str();
        let volume = storage::provisioned(claim, text(&class.value, "/provisioner"), node);
        // It may exist from an attempt before.
        let _exists = self.store.create(&VOLUMES, &volume);
        self.bind(key, text(&volume, "/metadata/name"));
    }

    /// An object that is gone needs nothing any more.
    fn change(&self, kind: &'static super::ServedKind, key: &Key, change: impl FnOnce(&mut Value)) {
        let _gone = self.store.update(kind, key, |value| {
            change(value);
            Ok(())
        });
    }
}
