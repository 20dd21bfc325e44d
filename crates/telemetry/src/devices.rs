//! Series of shared devices: they vanish with the devices and pods that they name. Specification:
//! core.md 9.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_engine::{DeviceUse, Sample};

use crate::text;

/// What is known of the devices, by node.
#[derive(Debug, Default)]
pub(crate) struct DeviceSeries(BTreeMap<Arc<str>, Vec<DeviceUse>>);

/// A gauge of a device.
type DeviceGauge = (&'static str, fn(&DeviceUse) -> i64);

const DEVICES: [DeviceGauge; 4] = [
    ("volcano_vgpu_device_shared_number", |device| device.n_users),
    ("volcano_vgpu_device_allocated_memory", |device| device.memory),
    ("volcano_vgpu_device_allocated_cores", |device| device.cores),
    ("volcano_vgpu_device_memory_limit", |device| device.memory_limit),
];

/// A gauge of a pod on a device.
type PodGauge = (&'static str, fn(&(Arc<str>, i64, i64)) -> i64);

const PODS: [PodGauge; 2] = [
    ("volcano_vgpu_device_memory_allocation_for_a_certain_pod", |&(_, memory, _)| memory),
    ("volcano_vgpu_device_core_allocation_for_a_certain_pod", |&(_, _, cores)| cores),
];

impl DeviceSeries {
    pub(crate) fn take(&mut self, sample: &Sample) {
        let Sample::NodeDevices(devices) = sample else { return };
        match devices.devices.is_empty() {
            true => drop(self.0.remove(&devices.node)),
            false => drop(self.0.insert(devices.node.clone(), devices.devices.clone())),
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        for (name, value) in DEVICES {
            self.begin(out, name, |_| true);
            for (node, device) in self.devices() {
                let labels = [("NodeName", &**node), ("devID", &*device.device)];
                text::series(out, name, &labels, value(device) as f64);
            }
        }
        for (name, value) in PODS {
            self.begin(out, name, |device| !device.pods.is_empty());
            for (node, device) in self.devices() {
                for pod in &device.pods {
                    let labels =
                        [("NodeName", &**node), ("devID", &*device.device), ("podName", &*pod.0)];
                    text::series(out, name, &labels, value(pod) as f64);
                }
            }
        }
    }

    /// Begins a family, if it has a series.
    fn begin(&self, out: &mut String, name: &str, has_series: impl Fn(&DeviceUse) -> bool) {
        if self.devices().any(|(_, device)| has_series(device)) {
            text::begin(out, name);
        }
    }

    fn devices(&self) -> impl Iterator<Item = (&Arc<str>, &DeviceUse)> {
        self.0.iter().flat_map(|(node, devices)| devices.iter().map(move |device| (node, device)))
    }
}
