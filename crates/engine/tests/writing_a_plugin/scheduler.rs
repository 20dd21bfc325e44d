//! A scheduler with one plugin beside those that are built: what it decides about a cluster.

use vc_conf::{KnownNames, parse};
use vc_engine::{CycleTime, Effect, Engine, EngineOptions, Evaluator, KNOWN};
use vc_framework::PluginEntry;
use vc_model::{ObjectKey, fixture};

/// Returns what the first cycle decides, one line per bind, eviction and waiting pod. Both
/// evaluators run two cycles and must agree on every line.
pub(crate) fn decide(plugin: PluginEntry, conf: &str, cluster: &str) -> Vec<String> {
    let fast = cycles(plugin, conf, cluster, Evaluator::Fast);
    let plain = cycles(plugin, conf, cluster, Evaluator::Plain);
    assert_eq!(fast, plain, "the plugin reads more than it declares");
    let [first, _second] = fast;
    first
}

pub(crate) fn cycles(
    plugin: PluginEntry,
    conf: &str,
    cluster: &str,
    evaluator: Evaluator,
) -> [Vec<String>; 2] {
    let plugins = [vc_plugins::ALL, &[plugin]].concat().leak();
    let declared: Vec<_> = plugins.iter().map(|entry| entry.declaration).collect();
    let known = KnownNames { plugins: &declared, ..KNOWN };
    let loaded = parse("test.conf", conf, &known).expect("a configuration");
    let options = EngineOptions { evaluator, plugins, ..EngineOptions::default() };
    let (mut engine, warnings) = Engine::new(options, &loaded.config);
    assert_eq!(warnings, []);
    engine.explain(true);
    let now = CycleTime { unix_micros: fixture::START_MICROS };
    let mut events = fixture::events_of(cluster);
    [(); 2].map(|()| {
        let (effects, report) = engine.cycle(std::mem::take(&mut events), now);
        let decided = effects.iter().filter_map(line);
        let waits = report.waiting.iter().map(|it| format!("{} waits: {}", it.pod, it.message));
        decided.chain(waits).collect()
    })
}

fn line(effect: &Effect) -> Option<String> {
    let name = |pod: &ObjectKey| pod.name.clone();
    match effect {
        Effect::Bind { pod, node, .. } => Some(format!("bind {} to {node}", name(pod))),
        Effect::Evict { pod, .. } => Some(format!("evict {}", name(pod))),
        _ => None,
    }
}
