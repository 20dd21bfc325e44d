//! Quotas of device classes, which are not built: each queue that has one is named once, so that nobody
//! relies on it. Specification: plugins-jobs-queues.md 6.10, core.md C-40.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{Ask, Outbox};

/// What a name of a quota contains, at its beginning or behind the dimension and a dot.
const CLASS: &str = "deviceclass/";

/// Queues with such a quota.
#[derive(Default)]
pub(super) struct DeviceQuotas {
    /// The configuration switches these quotas off, in Volcano too.
    is_off: bool,
    /// Names of the queues with a quota of device classes that a warning was made for.
    found: BTreeSet<Arc<str>>,
    /// Warnings that were not handed out yet.
    warnings: Vec<String>,
}

impl DeviceQuotas {
    pub(super) fn new(is_off: bool) -> Self {
        Self { is_off, ..Self::default() }
    }

    /// Looks through the queues; needed only when one of them has changed.
    pub(super) fn look(&mut self, ask: Ask<'_>) {
        if self.is_off {
            return;
        }
        for &id in &ask.facts.queues {
            let queue = &ask.cluster.queues[id];
            let names = queue.capability.scalars().map(|dim| ask.cluster.dims.name(dim));
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

    /// Hands out what was found since the last call.
    pub(super) fn tell(&mut self, out: &mut Outbox) {
        out.warnings.append(&mut self.warnings);
    }
}
