//! Warnings about quotas of device classes, which are not built. Each queue with such a quota is
//! named once, so that nobody relies on it.
//! Specification: plugins-jobs-queues.md 6.10, core.md C-40.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{Outbox, SessionView};

/// Marks a quota of a device class, at the beginning of the resource name or after a dot.
const CLASS: &str = "deviceclass/";

/// The queues with quotas of device classes.
#[derive(Default)]
pub(super) struct DeviceQuotas {
    /// True if the configuration switches these quotas off, as it can in Volcano.
    is_off: bool,
    /// Names of the queues with such a quota for which a warning was made.
    found: BTreeSet<Arc<str>>,
    /// Warnings that were not emitted yet.
    warnings: Vec<String>,
}

impl DeviceQuotas {
    pub(super) fn new(is_off: bool) -> Self {
        Self { is_off, ..Self::default() }
    }

    /// Searches the queues for such quotas. It need only be called when a queue has changed.
    pub(super) fn look(&mut self, view: SessionView<'_>) {
        if self.is_off {
            return;
        }
        for &id in &view.info.queues {
            let queue = &view.cluster.queues[id];
            let names = queue.capability.scalars().map(|dim| view.cluster.dims.name(dim));
            let is_quota = |name: &&str| name.split('.').any(|part| part.starts_with(CLASS));
            let quotas: Vec<&str> = names.filter(is_quota).collect();
            if !quotas.is_empty() && self.found.insert(queue.name.clone()) {
                let (name, quotas) = (&queue.name, quotas.join(", "));
                let cause = "quotas of device classes are not built into this version";
                self.warnings
                    .push(format!("queue {name}: spec.capability {quotas} limits nobody: {cause}"));
            }
        }
    }

    /// Emits the warnings that are new since the last call.
    pub(super) fn tell(&mut self, out: &mut Outbox) {
        out.warnings.append(&mut self.warnings);
    }
}
