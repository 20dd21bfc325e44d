//! I12: what the engine of a leader still keeps when all objects are gone. Its tables are compared
//! with those of an engine that has never seen the objects. What the code keeps on purpose has a
//! limit.

use std::collections::BTreeMap;

use vc_engine::{Config, Engine, EngineOptions, Evaluator};
use vc_model::{Cluster, Settings};

use super::check;
use crate::serve::Store;

/// Tables with a place for each row. A place is used again, so there are as many as there were rows
/// at once.
const BY_ROW: [&str; 12] = [
    "cluster.nodes",
    "cluster.tasks",
    "cluster.jobs",
    "cluster.queues",
    "cluster.classes",
    "cluster.images",
    "cluster.domains",
    "cluster.node_changes",
    "cluster.object_changes",
    "cluster.job_changes",
    "cache.active_jobs",
    "cache.enqueue_refusals",
];
/// Values of such tables beside those of [`VALUES_OF_ROW`]: they grow by 256 places.
const VALUES_OF_PARTS: usize = 1_024;
/// Values for each object that there was at once. A place has two or three, and a list after a
/// restore brings new rows while the earlier ones are still there.
const VALUES_OF_ROW: usize = 8;

/// Tables that keep what was written for some minutes: throttled reports for five, conditions for
/// two, refusals for up to twenty.
const UNTIL_LATER: [&str; 3] = ["memory.report_throttle", "memory.overwrites", "memory.refusals"];
/// Values of such tables for each object that there was at once: seven reports of a PodGroup with
/// four values each.
const VALUES_OF_REPORTS: usize = 32;

/// Caches that are dropped when a thousand entries of one of their parts are not used any more.
const DROPPED_LATE: [&str; 2] = ["cache.signature_failures", "cache.enqueue_refusal_parts"];
/// Entries of such a cache, which has at most four parts.
const CACHE_ENTRIES: usize = 8_192;
/// Bytes of a cache that forgets what was used last when it has reached its budget.
const CACHE_BYTES: usize = 8 << 20;

/// Bytes of the state of a plugin, which names queues and accounts.
const PLUGIN_BYTES: usize = 8_192;

/// Values of any other table: the last object of its kind, or namespaces and quotas that stay.
const VALUES_OF_OBJECT: usize = 256;

/// What an engine keeps, and what makes another engine like it.
pub(super) struct EngineResidue {
    /// Names and numbers of objects that are left. `None`: there are none.
    objects: Option<String>,
    sizes: Result<BTreeMap<String, usize>, String>,
    settings: Settings,
    config: Config,
    evaluator: Evaluator,
}

impl EngineResidue {
    pub(super) fn of(engine: &Engine) -> Self {
        let evaluator = match engine.paths() {
            Some(_) => Evaluator::Fast,
            None => Evaluator::Plain,
        };
        Self {
            objects: objects_left(engine.cluster()),
            sizes: engine.table_sizes(),
            settings: engine.cluster().settings.clone(),
            config: engine.config().clone(),
            evaluator,
        }
    }

    /// Returns one text for each table that is too large. `most_objects`: the largest number of
    /// nodes, pods and PodGroups that there were at once.
    pub(super) fn violations(
        &self,
        store: &Store,
        most_objects: usize,
        now_micros: i64,
    ) -> Vec<String> {
        let left = self.objects.iter().map(|left| format!("I12: {left} are left"));
        let mut violations: Vec<String> = left.collect();
        match (&self.sizes, &self.sizes_of_new(store, now_micros)) {
            (Ok(sizes), Ok(new)) => violations.extend(too_large(sizes, new, most_objects)),
            (Err(why), _) | (_, Err(why)) => {
                violations.push(format!("I12: the tables cannot be counted: {why}"));
            }
        }
        violations
    }

    /// Returns the sizes of the tables of an engine that knows the objects of the server alone.
    fn sizes_of_new(
        &self,
        store: &Store,
        now_micros: i64,
    ) -> Result<BTreeMap<String, usize>, String> {
        let (settings, evaluator) = (self.settings.clone(), self.evaluator);
        let options = EngineOptions { settings, evaluator, ..EngineOptions::default() };
        let mut simulation = check::simulation(store, &self.config, now_micros, options);
        // The second cycle knows what the first one has written.
        (0..2).for_each(|_| drop(simulation.cycle()));
        simulation.engine_after_cycle().table_sizes()
    }
}

/// Returns one text for each table that is larger than it may be beside its size in a new engine.
fn too_large(
    sizes: &BTreeMap<String, usize>,
    new: &BTreeMap<String, usize>,
    most_objects: usize,
) -> Vec<String> {
    let compared = sizes.iter().map(|(table, size)| {
        let of_new = new.get(table).copied().unwrap_or(0);
        (table, *size, of_new + most_more(table, most_objects))
    });
    let grown = compared.filter(|(_, size, most)| most < size);
    let text = |(table, size, most): (&String, usize, usize)| {
        format!("I12: table {table} has {size} values left, at most {most} are right")
    };
    grown.map(text).collect()
}

/// Returns how much larger a table may be than in a new engine.
fn most_more(table: &str, most_objects: usize) -> usize {
    match table {
        // Their numbers are exact.
        _ if table.starts_with("rows.") => 0,
        _ if BY_ROW.contains(&table) => VALUES_OF_PARTS + VALUES_OF_ROW * most_objects,
        _ if UNTIL_LATER.contains(&table) => VALUES_OF_OBJECT + VALUES_OF_REPORTS * most_objects,
        _ if DROPPED_LATE.contains(&table) => CACHE_ENTRIES,
        _ if table.ends_with("_bytes") => CACHE_BYTES,
        _ if table.starts_with("plugin.") => PLUGIN_BYTES,
        _ => VALUES_OF_OBJECT,
    }
}

/// Returns what is left of nodes, pods, PodGroups and HyperNodes. `None`: nothing.
fn objects_left(cluster: &Cluster) -> Option<String> {
    let left = [
        ("nodes", cluster.nodes.len()),
        ("pods", cluster.tasks.len()),
        ("PodGroups", cluster.jobs.len()),
        ("HyperNodes", cluster.hyper_nodes.records().count()),
    ];
    let left = left.iter().filter(|(_, count)| 0 < *count);
    let texts: Vec<String> = left.map(|(what, count)| format!("{count} {what}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vc_wire::Kind;

    use super::*;
    use crate::fuzz::configs;
    use crate::serve::{LOG_CAPACITY, in_process};

    const NOW_MICROS: i64 = 1_800_000_000_000_000;

    #[test]
    fn what_is_left_is_named() {
        let mut cluster = Cluster::default();
        assert_eq!(objects_left(&cluster), None);
        let node = json!({"metadata": {"name": "n"}});
        cluster.apply(vc_wire::decode(Kind::Node, &node).unwrap().event);
        assert_eq!(objects_left(&cluster).as_deref(), Some("1 nodes"));
    }

    #[test]
    fn a_table_that_has_grown_is_named() {
        let sizes = |pairs: &[(&str, usize)]| -> BTreeMap<String, usize> {
            pairs.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
        };
        let new = sizes(&[("rows.pods", 0), ("cluster.tasks", 4), ("cluster.task_by_uid", 0)]);
        let few = [("rows.pods", 0), ("cluster.tasks", 900), ("cluster.task_by_uid", 256)];
        assert_eq!(too_large(&sizes(&few), &new, 10), [""; 0]);
        let many = [("rows.pods", 1), ("cluster.tasks", 2_000), ("cluster.task_by_uid", 257)];
        let expected = [
            "I12: table cluster.task_by_uid has 257 values left, at most 256 are right",
            "I12: table cluster.tasks has 2000 values left, at most 1108 are right",
            "I12: table rows.pods has 1 values left, at most 0 are right",
        ];
        assert_eq!(too_large(&sizes(&many), &new, 10), expected);
    }

    /// Every table that has a limit of its own exists.
    #[test]
    fn limits_are_those_of_tables() {
        let (engine, _warnings) = Engine::new(EngineOptions::default(), &Config::default());
        let sizes = engine.table_sizes().unwrap();
        for table in BY_ROW.iter().chain(&UNTIL_LATER).chain(&DROPPED_LATE) {
            assert!(sizes.contains_key(*table), "{table}: {:?}", sizes.keys());
        }
    }

    #[tokio::test]
    async fn an_engine_that_has_seen_pods_is_like_a_new_one_when_they_are_gone() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let config = configs::read(configs::EVICTING).unwrap().config;
        let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &config);
        let cycle = |engine: &mut Engine, events: Vec<vc_model::ClusterEvent>| {
            drop(engine.cycle(events, vc_engine::CycleTime { unix_micros: NOW_MICROS }));
        };
        let pods: Vec<serde_json::Value> = (0..40)
            .map(|number| {
                json!({
                    "metadata": { "name": format!("p{number}"), "namespace": "default",
                        "uid": format!("u{number}"),
                        "annotations": { "scheduling.k8s.io/group-name": "j" } },
                    "spec": { "schedulerName": "volcano", "containers": [{ "name": "c" }] },
                })
            })
            .collect();
        let came = pods.iter().map(|pod| vc_wire::decode(Kind::Pod, pod).unwrap().event);
        cycle(&mut engine, came.collect());
        let found = EngineResidue::of(&engine).violations(&store, 40, NOW_MICROS);
        assert!(found.iter().any(|text| text == "I12: 40 pods, 1 PodGroups are left"), "{found:?}");
        let gone = pods.iter().flat_map(|pod| vc_wire::decode_deleted(Kind::Pod, pod));
        cycle(&mut engine, gone.collect());
        let found = EngineResidue::of(&engine).violations(&store, 40, NOW_MICROS);
        assert_eq!(found, [""; 0]);
    }
}
