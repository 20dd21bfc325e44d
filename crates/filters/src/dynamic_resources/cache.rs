//! What is worked out once for all pods: the pools, compiled selectors, and which device which
//! selector takes. Valid until a slice or class changes. Specification: plugins-nodes.md 6.9.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use vc_cel::{Selector, SelectorError};
use vc_model::{Cluster, Device, Devices, ResourceClaim};

use super::pools::Pools;
use super::refusals::{AllRefusals, Refusals};

/// Results that are the same for every pod.
#[derive(Debug, Default)]
pub struct DeviceCache(Mutex<State>);

/// The device is held, so that its address stays its own.
type Match = (Arc<Device>, Result<bool, SelectorError>);

#[derive(Debug, Default)]
struct State {
    version: Option<u64>,
    pools: Arc<Pools>,
    selectors: FxHashMap<Arc<str>, Arc<Result<Selector, SelectorError>>>,
    /// By selector and address of the device.
    matches: FxHashMap<(Arc<str>, usize), Match>,
    refusals: AllRefusals,
}

impl DeviceCache {
    /// The pools of the cluster as it is.
    pub(super) fn pools(&self, devices: &Devices) -> Arc<Pools> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.version != Some(devices.version()) {
            state.version = Some(devices.version());
            state.pools = Arc::new(Pools::new(devices));
            state.matches.clear();
            state.selectors.clear();
        }
        state.pools.clone()
    }

    /// Where no devices were found for the requests of these claims, as things are.
    pub(super) fn refusals(
        &self,
        cluster: &Cluster,
        claims: &[&ResourceClaim],
        steps: Option<u64>,
    ) -> Arc<Refusals> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refusals.of(cluster, claims, steps)
    }

    /// Whether the selector takes the device.
    pub(super) fn matches(
        &self,
        selector: &Arc<str>,
        driver: &str,
        device: &Arc<Device>,
    ) -> Result<bool, SelectorError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (selector.clone(), Arc::as_ptr(device) as usize);
        if let Some((_, known)) = state.matches.get(&key) {
            return known.clone();
        }
        let compiled = state.selectors.entry(selector.clone());
        let compiled = compiled.or_insert_with(|| Arc::new(Selector::compile(selector))).clone();
        let answer = match &*compiled {
            Ok(selector) => selector.matches(driver, device),
            Err(error) => Err(error.clone()),
        };
        state.matches.insert(key, (device.clone(), answer.clone()));
        answer
    }
}
