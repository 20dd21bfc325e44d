//! The sizes of what the engine keeps from cycle to cycle, to see whether something grows.

use std::collections::BTreeMap;

use super::Engine;
use crate::n_values::{CountError, n_values, n_values_by_field};

impl Engine {
    /// Returns the sizes of all tables that are kept across cycles, by name. Tables of the cluster and of
    /// the memory count values, with empty places; caches count entries or bytes. Costs a walk through the
    /// whole self.
    ///
    /// # Errors
    /// A table or the state of a plugin cannot be counted; the text says which and why.
    pub fn table_sizes(&self) -> Result<BTreeMap<String, usize>, String> {
        let mut sizes = BTreeMap::new();
        let text = |error: CountError| error.to_string();
        let mut add = |group: &str, (name, size): (&str, usize)| {
            sizes.insert(format!("{group}.{name}"), size);
        };
        let rows = [
            ("nodes", self.cluster.nodes.len()),
            ("pods", self.cluster.tasks.len()),
            ("jobs", self.cluster.jobs.len()),
            ("queues", self.cluster.queues.len()),
        ];
        rows.into_iter().for_each(|rows| add("rows", rows));
        let of_cluster = n_values_by_field(&self.cluster).map_err(text)?;
        of_cluster.into_iter().for_each(|field| add("cluster", field));
        let of_memory = n_values_by_field(&self.memory).map_err(text)?;
        of_memory.into_iter().for_each(|field| add("memory", field));
        add("memory", ("eviction_holds", n_values(&self.eviction_holds).map_err(text)?));
        add("memory", ("not_written", self.not_written.len()));
        add("memory", ("refusals", n_values(&self.refusals).map_err(text)?));
        add("memory", ("topology_problems", n_values(&self.topology_problems).map_err(text)?));
        add("memory", ("overwrites", n_values(&self.overwrites).map_err(text)?));
        add("memory", ("pending", self.pending.len()));
        self.caches.sizes().into_iter().for_each(|cache| add("cache", cache));
        add("cache", ("active_jobs", self.active_jobs.n_rows()));
        for (plugin, bytes) in self.plugin_set.store_memory()? {
            add("plugin", (&plugin, bytes.len()));
        }
        Ok(sizes)
    }
}
