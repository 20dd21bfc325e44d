//! The configurations of stories: some that people have, and random ones of all actions, plugins,
//! switches and arguments.

use std::fmt;
use std::sync::OnceLock;

use proptest::prelude::*;
use vc_conf::{Config, SWITCHES, parse};

use super::story::pick;
use crate::evictions;
use crate::support::*;

/// A configuration of a story.
#[derive(Clone)]
pub(super) enum Choice {
    /// One of [`configs`], modulo their number.
    Usual(usize),
    /// The text of a file.
    Drawn(String),
}

impl fmt::Debug for Choice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual(which) => write!(out, "configuration {}", which % configs().len()),
            Self::Drawn(text) => write!(out, "configuration\n{text}"),
        }
    }
}

impl Choice {
    pub(super) fn config(&self) -> Config {
        let text = match self {
            Self::Usual(which) => return configs()[which % configs().len()].clone(),
            Self::Drawn(text) => text,
        };
        let loaded = parse("drawn.conf", text, &known());
        loaded.unwrap_or_else(|error| panic!("{error}\n{text}")).config
    }
}

/// The places of configurations with network-topology-aware.
pub(super) const NETWORKS: std::ops::Range<usize> = 13..15;
/// The places of configurations with nodegroup or resource-strategy-fit.
pub(super) const GROUPS: std::ops::Range<usize> = 15..19;
/// The places of configurations with fairshare.
pub(super) const USAGES: std::ops::Range<usize> = 35..40;
/// The places of configurations with deviceshare.
pub(super) const CARDS: std::ops::Range<usize> = 19..26;
/// The places of configurations with usage or rescheduling.
pub(super) const LOADS: std::ops::Range<usize> = 26..30;
/// The places of configurations with task-topology.
pub(super) const ROLES: std::ops::Range<usize> = 31..33;
/// The places of configurations with numa-aware.
pub(super) const NUMA: std::ops::Range<usize> = 33..35;

/// What ships, the legends of the specification's cases, every plugin at least twice, and those of
/// the laws of evictions.
fn configs() -> &'static [Config] {
    static CONFIGS: OnceLock<Vec<Config>> = OnceLock::new();
    CONFIGS.get_or_init(make_configs)
}

fn make_configs() -> Vec<Config> {
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    let chart =
        "priority gang conformance | overcommit drf predicates proportion nodeorder binpack";
    let flat = "priority gang conformance pdb sla=1 | drf predicates capacity nodeorder";
    let flat = flat.replace("sla=1", "sla{* sla-waiting-time=90s}");
    let tree = "priority gang conformance cdp | predicates capacity{* hierarchy} binpack nodeorder";
    let paths = "priority gang conformance | drf{* hierarchy} predicates nodeorder";
    let quota = "priority gang | overcommit resourcequota proportion predicates nodeorder";
    let zones = "priority gang conformance tdm{* tdm.revocable-zone.rz1=00:30-23:30} | drf \
        predicates proportion nodeorder";
    let quotas = "priority gang conformance | predicates nodeorder cohort{* \
        withinClusterQueue=LowerPriority reclaimWithinCohort=Any}";
    let networks = format!("{chart} network-topology-aware");
    let cards = "deviceshare{* deviceshare.VGPUEnable=true deviceshare.SchedulePolicy=binpack \
        deviceshare.ScheduleWeight=10}";
    let spread = "deviceshare{* deviceshare.VGPUEnable=true deviceshare.SchedulePolicy=spread}";
    let chips = "deviceshare{* deviceshare.AscendMindClusterVNPUEnable=true \
        deviceshare.ScheduleWeight=2}";
    let dry = with_arguments(conf(all, chart), "preempt", "{enableTopologyAwarePreemption: true}");
    let shared = "priority gang conformance fairshare{* hierarchy \
        fairshare.resourceKey=cpu fairshare.queueOrder=true fairshare.halfLifeMinutes=30 \
        fairshare.enableEnqueueGate=true} | predicates proportion nodeorder";
    let turns = "fairshare{* fairshare.resourceKey=cpu fairshare.entryHorizon=0s} priority gang | \
        drf predicates proportion nodeorder";
    let usages = "priority gang conformance | fairshare{* fairshare.resourceKey=cpu \
        fairshare.preempt=true fairshare.minRunTime=20s fairshare.hysteresis=10s \
        fairshare.halfLifeMinutes=2 fairshare.persistState=true fairshare.flushIntervalSeconds=20} \
        predicates proportion nodeorder";
    let groups = "priority gang conformance | predicates proportion nodegroup{* strict=false} \
        nodeorder binpack";
    let roles = format!("{chart} task-topology{{* task-topology.weight=10}}");
    let numa = format!("{chart} numa-aware{{* weight=3}}");
    let ordered = groups.replace("strict=false", "hierarchy enablePreferredOrder=true");
    let usual = [
        conf("enqueue, allocate, backfill", chart),
        conf(all, chart),
        dry,
        conf(all, &flat),
        conf(all, tree),
        conf(all, paths),
        conf("enqueue, allocate, backfill, shuffle", quota),
        conf("enqueue, allocate, preempt, reclaim, backfill, shuffle", zones),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", chart),
        conf(all, quotas),
        conf(all, &quotas.replace("cohort{*", "cohort{* fairSharing.enable=true")),
        conf("allocate, backfill", TA),
        conf("allocate, preempt", "priority | predicates nodeorder"),
        conf(all, &networks),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", &networks),
        conf(all, groups),
        conf(all, &ordered),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", groups),
        fits(),
        conf(all, &format!("{chart} {cards}")),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", &format!("{chart} {spread}")),
        conf(all, &format!("{chart} deviceshare{{* deviceshare.GPUSharingEnable=true}}")),
        conf(all, &format!("{chart} deviceshare{{* deviceshare.GPUNumberEnable=true}}")),
        conf(
            all,
            &format!("{chart} {}", cards.replace("{*", "{* deviceshare.NodeLockEnable=true")),
        ),
        conf(all, &format!("{chart} deviceshare{{* deviceshare.AscendHAMiVNPUEnable=true}}")),
        conf(all, &format!("{chart} {chips}")),
        conf(all, &format!("{chart} usage")),
        conf(all, &format!("priority gang usage | {}", without_scores(chart))),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", &format!("{chart} usage")),
        rescheduling(),
        conf(all, &format!("{chart} extender{{* {}}}", hooks())),
        conf(all, &roles),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", &roles),
        conf(all, &numa),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", &numa),
        conf(all, shared),
        conf(all, turns),
        conf(all, usages),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", usages),
        conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", turns),
    ];
    usual.into_iter().chain(evictions::configs().iter().cloned()).collect()
}

/// Pods leave hot nodes every minute.
fn rescheduling() -> Config {
    let text = "actions: \"enqueue, allocate, preempt, backfill, shuffle\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: pdb
  - name: rescheduling
    arguments:
      interval: 1m
      strategies:
      - name: lowNodeUtilization
        params: {thresholds: {cpu: 40, memory: 60}, targetThresholds: {cpu: 50, memory: 70}}
- plugins:
  - name: predicates
  - name: proportion
  - name: usage
";
    parse("rescheduling.conf", text, &known()).expect("a configuration").config
}

/// The second tier without scorers, so that other scores decide.
fn without_scores(plugins: &str) -> String {
    let (_, second) = plugins.split_once(" | ").expect("two tiers");
    second.replace(" nodeorder binpack", "")
}

/// Every hook of extender that decides something, with its name as path.
fn hooks() -> String {
    const HOOKS: &[&str] = &[
        "predicate",
        "prioritize",
        "preemptable",
        "reclaimable",
        "queueOverused",
        "jobEnqueueable",
        "jobReady",
        "allocateFunc",
        "deallocateFunc",
    ];
    let entry = |hook: &&str| format!("extender.{hook}Verb={hook}");
    let hooks: Vec<String> = HOOKS.iter().map(entry).collect();
    format!("extender.urlPrefix=http://e {}", hooks.join(" "))
}

/// Every rule of resource-strategy-fit.
fn fits() -> Config {
    let text = "actions: \"enqueue, allocate, preempt, reclaim, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: resource-strategy-fit
    arguments:
      resources: {cpu: {type: MostAllocated, weight: 2}, \"nvidia.com/*\": {weight: 3}}
      sra: {enable: true, resources: nvidia.com/gpu, weight: 3}
      proportional:
        enable: true
        resources: nvidia.com/gpu
        resourceProportion: {nvidia.com/gpu.cpu: 2, nvidia.com/gpu.memory: 1}
";
    parse("fits.conf", text, &known()).expect("a configuration").config
}

/// Arguments as they stand in a file.
type Arguments = &'static [(u32, &'static str)];

/// Action, of a hundred configurations how many have it, and arguments.
const ACTIONS: &[(&str, u32, Arguments)] = &[
    ("enqueue", 55, &[(1, "")]),
    (
        "allocate",
        96,
        &[
            (6, ""),
            (1, "gangRepairFirst: true"),
            (1, "headOfLine: queue"),
            (1, "claimFirst: false"),
            (1, "predicateErrorCacheEnable: false"),
            (1, "gangRepairFirst: true, headOfLine: queue"),
        ],
    ),
    (
        "preempt",
        60,
        &[
            (5, ""),
            (2, "enableTopologyAwarePreemption: true"),
            (1, "trimVictims: false"),
            (1, "trimStatement: true"),
            (1, "explain: false"),
            (1, "predicateErrorCacheEnable: false, trimVictims: false, trimStatement: true"),
            (
                1,
                "enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 50, \
                 maxCandidateNodesAbsolute: 2",
            ),
        ],
    ),
    (
        "reclaim",
        60,
        &[
            (5, ""),
            (1, "trimVictims: false"),
            (1, "trimStatement: true"),
            (1, "explain: false"),
            (2, "reclaimBoundTasks: true"),
            (1, "predicateErrorCacheEnable: false, reclaimBoundTasks: true"),
        ],
    ),
    ("backfill", 60, &[(4, ""), (1, "predicateErrorCacheEnable: false")]),
    ("shuffle", 20, &[(1, "")]),
    ("gangpreempt", 25, GANG),
    ("gangreclaim", 25, GANG),
];
const GANG: Arguments = &[
    (4, ""),
    (1, "maxDomains: 1"),
    (1, "allowWholeBundle: false"),
    (1, "trimBoundaryBundle: false"),
    (1, "victimOrderPolicy: priority-first"),
    (1, "explain: false"),
];

/// The same of plugins; those that share resources out between queues are in [`SHARES`].
const PLUGINS: &[(&str, u32, Arguments)] = &[
    (
        "binpack",
        40,
        &[
            (2, ""),
            (1, "binpack.weight: 5, binpack.cpu: 2"),
            (
                1,
                "binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 3, \
                 binpack.memory: 0",
            ),
        ],
    ),
    ("cdp", 25, &[(1, "")]),
    ("conformance", 55, &[(1, "")]),
    (
        "deviceshare",
        15,
        &[
            (1, ""),
            (2, "deviceshare.VGPUEnable: true"),
            (2, "deviceshare.VGPUEnable: true, deviceshare.ScheduleWeight: 3"),
            (
                2,
                "deviceshare.VGPUEnable: true, deviceshare.ScheduleWeight: 2, \
                 deviceshare.SchedulePolicy: binpack, deviceshare.GPUExclusiveRules: [{app: a}]",
            ),
            (1, "deviceshare.VGPUEnable: true, deviceshare.GPUExclusiveRules: [{app: a}]"),
            (1, "deviceshare.GPUSharingEnable: true"),
            (
                2,
                "deviceshare.AscendHAMiVNPUEnable: true, deviceshare.ScheduleWeight: 2, \
                 deviceshare.SchedulePolicy: binpack",
            ),
            (1, "deviceshare.AscendHAMiVNPUEnable: true, deviceshare.NodeLockEnable: true"),
            (2, "deviceshare.AscendMindClusterVNPUEnable: true, deviceshare.ScheduleWeight: 2"),
            (
                2,
                "deviceshare.VGPUEnable: true, deviceshare.ScheduleWeight: 2, \
                 deviceshare.SchedulePolicy: binpack, deviceshare.DeviceConfig: {nvidia: \
                 {knownMigGeometries: [{models: [-A, -B], allowedGeometries: [{group: g1, \
                 geometries: [{name: s, memory: 30, count: 3}]}, {group: g2, geometries: [{name: l, \
                 memory: 60, count: 1}, {name: s, memory: 40, count: 1}]}]}]}}",
            ),
            (2, "deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true"),
            (1, "deviceshare.GPUNumberEnable: true, deviceshare.ScheduleWeight: 3"),
            (
                2,
                "deviceshare.VGPUEnable: true, deviceshare.ScheduleWeight: 1, \
                 deviceshare.SchedulePolicy: spread",
            ),
        ],
    ),
    ("drf", 40, &[(1, "")]),
    (
        "extender",
        5,
        &[
            (
                1,
                "extender.urlPrefix: http://e, extender.onSessionOpenVerb: o, \
                 extender.predicateVerb: p, extender.prioritizeVerb: s",
            ),
            (
                1,
                "extender.urlPrefix: http://e, extender.ignorable: true, \
                 extender.preemptableVerb: p, extender.reclaimableVerb: r, \
                 extender.queueOverusedVerb: o",
            ),
            (
                1,
                "extender.urlPrefix: http://e, extender.jobEnqueueableVerb: e, \
                 extender.jobEnqueuedVerb: d, extender.jobReadyVerb: r, \
                 extender.managedResources: nvidia.com/gpu, extender.allocateFuncVerb: a",
            ),
        ],
    ),
    (
        "fairshare",
        20,
        &[
            (1, "fairshare.resourceKey: cpu"),
            (
                1,
                "fairshare.resourceKey: cpu, fairshare.entryHorizon: 0s, fairshare.queueOrder: true",
            ),
            (
                1,
                "fairshare.resourceWeights: {cpu: 1, memory: 0.5}, fairshare.billing: max, \
                 fairshare.weights: {team: 2}, fairshare.targetQueues: q0",
            ),
            (1, "fairshare.resourceWeights: {cpu: 1, pods: 1}, fairshare.enableEnqueueGate: true"),
            (1, "fairshare.account: label:user, fairshare.enableEnqueueGate: true"),
            (1, "fairshare.resourceKey: cpu, fairshare.halfLifeMinutes: 1"),
            (
                2,
                "fairshare.resourceKey: cpu, fairshare.kValue: 1, fairshare.shareInterval: 20s, \
                 fairshare.minRunTime: 20s, fairshare.halfLifeMinutes: 2",
            ),
            (
                3,
                "fairshare.resourceKey: cpu, fairshare.preempt: true, fairshare.minRunTime: 10s, \
                 fairshare.hysteresis: 5s, fairshare.persistState: true",
            ),
            (
                1,
                "fairshare.resourceWeights: {cpu: 1, memory: 0.5}, fairshare.billing: max, \
                 fairshare.preempt: true, fairshare.minRunTime: 0s, fairshare.hysteresis: 0s",
            ),
        ],
    ),
    ("gang", 88, &[(1, "")]),
    (
        "nodeorder",
        75,
        &[
            (4, ""),
            (1, "leastrequested.weight: 0, mostrequested.weight: 1"),
            (1, "podaffinity.weight: 5, podtopologyspread.weight: 0"),
            (1, "balancedresource.mode: absolute, imagelocality.weight: 3"),
            (1, "nodeaffinity.weight: 0, tainttoleration.weight: 0"),
        ],
    ),
    (
        "network-topology-aware",
        15,
        &[
            (3, ""),
            (1, "weight: 3"),
            (1, "hypernode.binpack.normal-pod.enable: false"),
            (1, "hypernode.gradient.evict.max-hypernodes: 1"),
            (1, "hypernode.binpack.cpu: 0, hypernode.binpack.normal-pod.fading: 0"),
        ],
    ),
    (
        "nodegroup",
        10,
        &[(1, "strict: false"), (1, "strict: false, enablePreferredOrder: true"), (1, "")],
    ),
    ("numa-aware", 15, &[(2, ""), (1, "weight: 5")]),
    ("overcommit", 25, &[(1, ""), (1, "overcommit-factor: 1.0"), (1, "overcommit-factor: 2.5")]),
    ("pdb", 30, &[(1, "")]),
    (
        "predicates",
        92,
        &[
            (12, ""),
            (1, "predicate.NodeAffinityEnable: false"),
            (1, "predicate.NodePortsEnable: false"),
            (1, "predicate.TaintTolerationEnable: false"),
            (1, "predicate.PodAffinityEnable: false"),
            (1, "predicate.PodTopologySpreadEnable: false"),
            (1, "predicate.VolumeBindingEnable: false"),
            (1, "predicate.DynamicResourceAllocationEnable: false"),
            (1, "predicate.VolumeZoneEnable: false, predicate.NodeVolumeLimitsEnable: false"),
            (1, "predicate.CacheEnable: true"),
            (1, "volumebinding.weight: 3, volumebinding.bindTimeoutSeconds: 30"),
        ],
    ),
    ("priority", 80, &[(1, "")]),
    (
        "resource-strategy-fit",
        15,
        &[
            (2, ""),
            (1, "resources: {\"nvidia.com/*\": {type: MostAllocated, weight: 2}, cpu: {}}"),
            (1, "resourceStrategyFitWeight: 0"),
            (
                1,
                "resourceStrategyFitWeight: 0, \
                 sra: {enable: true, resources: \"nvidia.com/gpu\", weight: 2}",
            ),
            (
                1,
                "proportional: {enable: true, resources: nvidia.com/gpu, \
                 resourceProportion: {nvidia.com/gpu.cpu: 2, nvidia.com/gpu.memory: 0}}",
            ),
        ],
    ),
    ("resourcequota", 25, &[(1, "")]),
    // Says nothing about what it reads.
    ("scorer", 5, &[(1, "")]),
    ("sla", 20, &[(1, ""), (2, "sla-waiting-time: 90s")]),
    ("task-topology", 15, &[(2, ""), (1, "task-topology.weight: 10")]),
    (
        "tdm",
        20,
        &[
            (2, "tdm.revocable-zone.rz1: \"00:30-23:30\""),
            (2, "tdm.revocable-zone.rz1: \"01:00-01:02\", tdm.evict.period: 1m"),
        ],
    ),
    (
        "usage",
        15,
        &[
            (2, ""),
            (1, "usage.weight: 0"),
            (1, "cpu.weight: 3, memory.weight: 0, thresholds: {cpu: 50}"),
            (
                1,
                "estimator: {request_ratio: 1, burst_ratio: 0.5, risk_threshold: 0.3, \
                 risk_factor: 2, be_cpu: 900m, be_mem: 1Gi}",
            ),
        ],
    ),
];

/// Who shares resources out between queues, with switches and arguments.
const SHARES: &[(u32, &str)] = &[
    (2, ""),
    (4, "{name: proportion}"),
    (4, "{name: capacity}"),
    (2, "{name: capacity, enableHierarchy: true}"),
    (1, "{name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}"),
    (1, "{name: capacity, enabledAllocatable: false}"),
    (1, "{name: proportion, enableReclaimable: false}"),
    (2, "{name: drf, enableHierarchy: true}"),
    (1, "{name: cohort, arguments: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}}"),
    (
        1,
        "{name: cohort, arguments: {withinClusterQueue: LowerOrNewerEqualPriority, \
         reclaimWithinCohort: LowerPriority, fairSharing.enable: true}}",
    ),
    (
        1,
        "{name: cohort, arguments: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any, \
         borrowWithinCohort.policy: LowerPriority, rootCohort: false}}",
    ),
    (1, "{name: cohort, arguments: {reclaimWithinCohort: Any, rootQuota: Cluster}}"),
];

/// Any configuration.
pub(super) fn drawn() -> impl Strategy<Value = Choice> {
    (actions(), plugins(), pick(SHARES), any::<prop::sample::Index>(), 1_usize..4)
        .prop_map(|(actions, plugins, shares, at, n_tiers)| {
            // These do not stand beside cohort.
            let decides = |entry: &String| {
                let alone = ["fairshare.preempt", "fairshare.queueOrder", "fairshare.kValue"];
                alone.iter().any(|key| entry.contains(key))
            };
            let is_free = !shares.contains("cohort") || !plugins.iter().any(decides);
            let shares = if is_free { shares } else { "{name: proportion}" };
            text(&actions, plugins, shares, &at, n_tiers)
        })
        .prop_map(Choice::Drawn)
}

type Action = (&'static str, &'static str);

/// Some actions in any order, mostly in the usual one.
fn actions() -> impl Strategy<Value = Vec<Action>> {
    let one = |&(name, percent, arguments): &(&'static str, u32, Arguments)| {
        let is_in = prop::bool::weighted(f64::from(percent) / 100.0);
        (is_in, pick(arguments))
            .prop_map(move |(is_in, arguments)| is_in.then_some((name, arguments)))
    };
    let usual = ACTIONS.iter().map(one).collect::<Vec<_>>();
    let some = usual.prop_map(|all| match all.iter().flatten().count() {
        0 => vec![("allocate", "")],
        _ => all.into_iter().flatten().collect(),
    });
    let some = some.boxed();
    prop_oneof![2 => some.clone(), 1 => some.prop_shuffle()]
}

/// Some plugins in any order, as entries of a file.
fn plugins() -> impl Strategy<Value = Vec<String>> {
    let switches: Vec<&str> = SWITCHES.iter().map(|(key, ..)| *key).collect();
    let one = |&(name, percent, arguments): &(&'static str, u32, Arguments)| {
        let is_in = prop::bool::weighted(f64::from(percent) / 100.0);
        let off = prop::collection::vec(prop::sample::select(switches.clone()), 1..3);
        let off = prop::option::weighted(0.12, off);
        (is_in, pick(arguments), off).prop_map(move |(is_in, arguments, off)| {
            is_in.then(|| entry(name, arguments, off.unwrap_or_default()))
        })
    };
    let all = PLUGINS.iter().map(one).collect::<Vec<_>>();
    all.prop_map(|all| all.into_iter().flatten().collect::<Vec<_>>()).prop_shuffle()
}

fn entry(name: &str, arguments: &str, mut off: Vec<&str>) -> String {
    off.sort_unstable();
    off.dedup();
    let off: String = off.iter().map(|key| format!(", {key}: false")).collect();
    format!("{{name: {name}{off}, arguments: {{{arguments}}}}}")
}

fn text(
    actions: &[Action],
    mut plugins: Vec<String>,
    shares: &str,
    at: &prop::sample::Index,
    n_tiers: usize,
) -> String {
    if !shares.is_empty() {
        // Nobody is listed twice.
        let name =
            shares.trim_start_matches("{name: ").split([',', '}']).next().unwrap_or_default();
        plugins.retain(|entry| !entry.starts_with(&format!("{{name: {name},")));
        plugins.insert(at.index(plugins.len() + 1), shares.to_owned());
    }
    let names: Vec<&str> = actions.iter().map(|(name, _)| *name).collect();
    let mut text = format!("actions: \"{}\"\ntiers:\n", names.join(", "));
    if plugins.is_empty() {
        plugins.push("{name: gang}".to_owned());
    }
    for tier in plugins.chunks(plugins.len().div_ceil(n_tiers)) {
        text.push_str(&format!("- plugins:\n  - {}\n", tier.join("\n  - ")));
    }
    text.push_str("configurations:\n");
    for (name, arguments) in actions {
        text.push_str(&format!("- {{name: {name}, arguments: {{{arguments}}}}}\n"));
    }
    text
}
