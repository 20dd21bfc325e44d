//! What is worked out once for all pods: the pools, compiled selectors, and which device which
//! selector takes. Valid until a slice or class changes; no decision depends on what is kept, so that
//! what takes too much room is worked out again. Specification: plugins-nodes.md 6.9.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use vc_cel::{Selector, SelectorError};
use vc_model::{ByteLruCache, Cluster, Device, Devices, ResourceClaim};

use super::pools::Pools;
use super::refusals::{DeviceRefusalCache, DeviceRefusals};

/// Bytes that selectors and what they say may take together: claims with texts of their own come and
/// go for months, and each is asked about every device.
const MOST_BYTES: usize = 64 << 20;

/// About what a selector takes, as measured: the tree of it is so many times as long as its text.
const BYTES_OF_SELECTOR: usize = 512;
const BYTES_OF_TEXT: usize = 16;

/// About what an answer takes, with its place in the table.
const BYTES_OF_ANSWER: usize = 2 * size_of::<(usize, DeviceMatch)>();

/// Results that are the same for every pod.
#[derive(Debug, Default)]
pub struct DeviceCache(Mutex<DeviceCacheState>);

/// The device is held, so that its address stays its own.
type DeviceMatch = (Arc<Device>, Result<bool, SelectorError>);

#[derive(Debug, Default)]
struct DeviceCacheState {
    version: Option<u64>,
    pools: Arc<Pools>,
    selectors: SelectorCache,
    refusals: DeviceRefusalCache,
}

/// Selectors by their texts.
#[derive(Debug, Default)]
struct SelectorCache {
    known: ByteLruCache<Arc<str>, CachedSelector>,
}

#[derive(Debug)]
struct CachedSelector {
    compiled: Result<Selector, SelectorError>,
    /// By address of the device.
    answers: FxHashMap<usize, DeviceMatch>,
    n_bytes: usize,
}

impl DeviceCache {
    /// The pools of the cluster as it is.
    pub(super) fn pools(&self, devices: &Devices) -> Arc<Pools> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.version != Some(devices.version()) {
            state.version = Some(devices.version());
            state.pools = Arc::new(Pools::new(devices));
            state.selectors = SelectorCache::default();
        }
        state.pools.clone()
    }

    /// Where no devices were found for the requests of these claims, as things are.
    pub(super) fn refusals(
        &self,
        cluster: &Cluster,
        claims: &[&ResourceClaim],
        steps: Option<u64>,
    ) -> Arc<DeviceRefusals> {
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
        state.selectors.answer(selector, driver, device, MOST_BYTES)
    }
}

impl SelectorCache {
    fn answer(
        &mut self,
        text: &Arc<str>,
        driver: &str,
        device: &Arc<Device>,
        most_bytes: usize,
    ) -> Result<bool, SelectorError> {
        if !self.known.contains(text) {
            let known = CachedSelector::new(text);
            let n_bytes = known.n_bytes;
            self.known.put(text.clone(), known, n_bytes);
        }
        let known = self.known.get_mut(text).expect("it was entered if it was not there");
        let address = Arc::as_ptr(device) as usize;
        if let Some((_, answer)) = known.answers.get(&address) {
            return answer.clone();
        }
        let answer = match &known.compiled {
            Ok(selector) => selector.matches(driver, device),
            Err(error) => Err(error.clone()),
        };
        known.n_bytes += BYTES_OF_ANSWER + answer.as_ref().err().map_or(0, text_len);
        known.answers.insert(address, (device.clone(), answer.clone()));
        self.known.recount_newest(|known| known.n_bytes);
        while most_bytes < self.known.n_bytes() {
            self.known.pop_oldest();
        }
        answer
    }
}

impl CachedSelector {
    fn new(text: &Arc<str>) -> Self {
        let compiled = Selector::compile(text);
        let n_bytes = BYTES_OF_SELECTOR + BYTES_OF_TEXT * text.len();
        Self { compiled, answers: FxHashMap::default(), n_bytes }
    }
}

fn text_len(error: &SelectorError) -> usize {
    match error {
        SelectorError::Compile(text) | SelectorError::Runtime(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_goes_and_every_answer_stays_the_same() {
        let most_bytes = 20 * (BYTES_OF_SELECTOR + 50 * BYTES_OF_TEXT);
        let devices: Vec<Arc<Device>> = (0..4).map(|_| Arc::new(Device::default())).collect();
        let mut selectors = SelectorCache::default();
        let often: Arc<str> = "device.driver == 'a.example.com'".into();
        let (mut most_known, mut n_lost) = (0, 0);
        for step in 0..500 {
            let text: Arc<str> = match step % 3 {
                0 => format!("device.driver == 'a.example.com' && {step} == {step}").into(),
                1 => format!("device.driver == '{step}'").into(),
                _ => format!("no expression {step}").into(),
            };
            n_lost += usize::from(0 < step && !selectors.known.contains(&often));
            for device in &devices {
                let answer = selectors.answer(&text, "a.example.com", device, most_bytes);
                let fresh = Selector::compile(&text);
                let fresh = fresh.and_then(|fresh| fresh.matches("a.example.com", device));
                assert_eq!(answer, fresh, "{text}");
                assert_eq!(answer, selectors.answer(&text, "a.example.com", device, most_bytes));
            }
            assert_eq!(
                selectors.answer(&often, "a.example.com", &devices[step % 4], most_bytes),
                Ok(true)
            );
            let n_bytes = selectors.known.n_bytes();
            assert!(n_bytes <= most_bytes, "{n_bytes} bytes");
            most_known = most_known.max(selectors.known.len());
        }
        assert_eq!(n_lost, 0, "the one that is asked for all the time is kept");
        assert!((5..=50).contains(&most_known), "{most_known} selectors");
    }

    #[test]
    fn one_that_is_larger_than_all_that_is_kept_goes() {
        let device = Arc::new(Device::default());
        let mut selectors = SelectorCache::default();
        let text: Arc<str> = "device.driver == 'a'".into();
        assert_eq!(selectors.answer(&text, "a", &device, 1), Ok(true));
        assert_eq!((selectors.known.len(), selectors.known.n_bytes()), (0, 0));
        assert_eq!(selectors.answer(&text, "b", &device, 1), Ok(false));
    }
}
