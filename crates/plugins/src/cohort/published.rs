//! The weighted share as an annotation of the Queue, which has no field for it. Specification:
//! cohort.md B.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{Ask, Effect, Outbox};

use super::book::Book;

const SHARE: &str = "cohort.volcano.sh/weightedShare";

/// When the share of a queue was written last, in microseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Published(BTreeMap<Arc<str>, i64>);

impl Published {
    /// Writes the shares that differ from what the queues say, each at most once in a period; one
    /// that could not be written differs still.
    pub(super) fn write(
        &mut self,
        ask: Ask<'_>,
        book: &Book,
        period_micros: i64,
        out: &mut Outbox,
    ) {
        let now = ask.facts.now_micros;
        for &queue in &ask.facts.queues {
            let Some(node) = book.standing(queue).node() else { continue };
            let row = &ask.cluster.queues[queue];
            let value = book.forest().share(node).published().to_string();
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
        let exists = |name: &Arc<str>| ask.cluster.queue(name).is_some();
        self.0.retain(|name, _| exists(name));
    }
}
