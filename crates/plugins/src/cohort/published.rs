//! Writes the weighted share as an annotation of the Queue, which has no field for it.
//! Specification: cohort.md B.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{Effect, Outbox, SessionView};

use super::quota_ledger::QuotaLedger;

const SHARE: &str = "cohort.volcano.sh/weightedShare";

/// Time of the last write by queue name, in microseconds since 1970.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Published(BTreeMap<Arc<str>, i64>);

impl Published {
    /// Writes the shares that differ from the queues' annotations, each at most once per period. A
    /// failed write is repeated, because the share still differs.
    pub(super) fn write(
        &mut self,
        view: SessionView<'_>,
        quota_ledger: &QuotaLedger,
        period_micros: i64,
        out: &mut Outbox,
    ) {
        let now = view.now_micros();
        for &queue in &view.info.queues {
            let Some(node) = quota_ledger.role(queue).node() else { continue };
            let row = &view.cluster.queues[queue];
            let value = quota_ledger.forest().share(node).published().to_string();
            // A queue that never borrowed needs no annotation.
            if row.annotations.get(SHARE).map_or("0", |written| written) == value {
                continue;
            }
            let due = |&written: &i64| written.saturating_add(period_micros) <= now;
            if self.0.get(&row.name).is_none_or(due) {
                self.0.insert(row.name.clone(), now);
                let queue = row.name.clone();
                out.effects.push(Effect::QueueAnnotation { queue, key: SHARE, value });
            }
        }
        let exists = |name: &Arc<str>| view.cluster.queue(name).is_some();
        self.0.retain(|name, _| exists(name));
    }
}
