//! Plugins of Volcano that are not built: their arguments are known, so that spelling and shape are
//! checked. A plugin that is built takes its arguments along into its own file.
//! Specification: core.md 2.3 (C-40), plugins-nodes.md, plugins-jobs-queues.md.

use vc_conf::{
    Argument, ArgumentShape, DeclaredArgument, DurationRule, EnqueueVote, FreeForm,
    PluginDeclaration, Section, StructuredInt,
};

/// The plugins of Volcano that this version lacks, by name.
pub const NOT_BUILT: &[PluginDeclaration] = &[
    PluginDeclaration {
        moved_arguments: &[("NodeLockEnable", "write deviceshare.NodeLockEnable")],
        ..plugin("deviceshare", DEVICESHARE)
    },
    PluginDeclaration {
        enqueue_vote: EnqueueVote::IgnoresEvictions,
        ..plugin("extender", EXTENDER)
    },
    plugin("network-topology-aware", NETWORK_TOPOLOGY_AWARE),
    plugin("nodegroup", NODEGROUP),
    plugin("numa-aware", &[&int("weight", 1, "weight of the score")]),
    plugin("rescheduling", RESCHEDULING),
    plugin("resource-strategy-fit", RESOURCE_STRATEGY_FIT),
    plugin("task-topology", &[&int("task-topology.weight", 1, "weight of the score")]),
    PluginDeclaration {
        moved_arguments: &[
            ("thresholds.cpu", "write a map, as in thresholds: {cpu: 80}"),
            ("thresholds.mem", "write a map, as in thresholds: {mem: 80}"),
            ("estimator.*", "write a map, as in estimator: {request_ratio: 0.7}"),
        ],
        ..plugin("usage", USAGE)
    },
];

type Arguments = &'static [&'static dyn DeclaredArgument];

const fn plugin(name: &'static str, arguments: Arguments) -> PluginDeclaration {
    PluginDeclaration { arguments, ..PluginDeclaration::new(name) }
}

const fn int(key: &'static str, default: i64, about: &'static str) -> Argument<i64> {
    Argument::new(key, default, about)
}

const fn float(key: &'static str, default: f64, about: &'static str) -> Argument<f64> {
    Argument::new(key, default, about)
}

const fn switch(key: &'static str, default: bool, about: &'static str) -> Argument<bool> {
    Argument::new(key, default, about)
}

const fn text(
    key: &'static str,
    default: &'static str,
    about: &'static str,
) -> Argument<&'static str> {
    Argument::new(key, default, about)
}

const fn hook(key: &'static str) -> Argument<&'static str> {
    Argument::new(key, "", "path of the hook; empty: not called")
}

const fn duration(
    key: &'static str,
    default: &'static str,
    about: &'static str,
) -> Argument<DurationRule> {
    let rule = DurationRule { parse: |_| None, problem: "", remedy: "" };
    Argument::new(key, rule, about).shown_as(default)
}

const LIST: FreeForm = FreeForm("list", &["array"]);
const AMOUNT: FreeForm = FreeForm("int or string", &["integer", "string"]);

const DEVICESHARE: Arguments = &[
    &switch("deviceshare.GPUSharingEnable", false, "share cards by memory"),
    &switch(
        "deviceshare.GPUNumberEnable",
        false,
        "whole cards by number; not together with sharing",
    ),
    &switch("deviceshare.VGPUEnable", false, "vGPU; not together with either of the above"),
    &switch("deviceshare.AscendHAMiVNPUEnable", false, "Ascend vNPU by HAMi"),
    &switch("deviceshare.AscendMindClusterVNPUEnable", false, "Ascend 310P vNPU by MindCluster"),
    &switch("deviceshare.NodeLockEnable", false, "lock the node before allocating"),
    &text("deviceshare.SchedulePolicy", "", "`binpack`, `spread`, else the default order"),
    &int("deviceshare.ScheduleWeight", 0, "weight of the device score; 0 or less: no score"),
    &text(
        "deviceshare.KnownGeometriesCMName",
        "volcano-vgpu-device-config",
        "ConfigMap with the device configuration",
    ),
    &text("deviceshare.KnownGeometriesCMNamespace", "kube-system", "namespace of that ConfigMap"),
    &Argument::new(
        "deviceshare.GPUExclusiveRules",
        LIST,
        "label maps of pods that take a card alone",
    )
    .shown_as("empty"),
];

const EXTENDER: Arguments = &[
    &text("extender.urlPrefix", "", "base URL of the service"),
    &duration("extender.httpTimeout", "1s", "longest time of an exchange"),
    &switch("extender.ignorable", false, "go on when the service fails"),
    &Argument::new(
        "extender.managedResources",
        ArgumentShape::Names,
        "ask only about pods that name one of these",
    )
    .shown_as("empty"),
    &hook("extender.onSessionOpenVerb"),
    &hook("extender.onSessionCloseVerb"),
    &hook("extender.predicateVerb"),
    &hook("extender.prioritizeVerb"),
    &hook("extender.preemptableVerb"),
    &hook("extender.reclaimableVerb"),
    &hook("extender.queueOverusedVerb"),
    &hook("extender.jobEnqueueableVerb"),
    &hook("extender.jobEnqueuedVerb"),
    &hook("extender.jobReadyVerb"),
    &hook("extender.allocateFuncVerb"),
    &hook("extender.deallocateFuncVerb"),
];

const NETWORK_TOPOLOGY_AWARE: Arguments = &[
    &int("weight", 1, "weight of the score").at_least(0),
    &int("hypernode.binpack.cpu", 1, "weight of cpu").at_least(0),
    &int("hypernode.binpack.memory", 1, "weight of memory").at_least(0),
    &text("hypernode.binpack.resources", "", "further resources, separated by commas"),
    &int("hypernode.binpack.resources.*", 1, "weight of a listed resource").at_least(0),
    &switch(
        "hypernode.binpack.normal-pod.enable",
        true,
        "score pods without a network topology too",
    ),
    &float("hypernode.binpack.normal-pod.fading", 0.8, "weight of a tier against the one below")
        .at_least(0.0),
    &int("hypernode.gradient.evict.max-hypernodes", 8, "HyperNodes tried with evictions")
        .at_least(1),
];

const NODEGROUP: Arguments = &[
    &switch("strict", true, "false: queues without affinity may use nodes without a group"),
    &switch("enablePreferredOrder", false, "earlier preferred groups score higher"),
];

const RESCHEDULING: Arguments = &[
    &duration("interval", "5m", "time between runs"),
    &text("metricsPeriod", "5m", "period of the load averages"),
    &Argument::new("strategies", FreeForm("list of `{name, params}`", &["array"]), "what to run")
        .shown_as("`lowNodeUtilization`"),
];

const RESOURCE_STRATEGY_FIT: Arguments = &[
    &Argument::new(
        "resourceStrategyFitWeight",
        StructuredInt(10),
        "weight of the score; 0: no score",
    ),
    &Argument::new(
        "resources",
        ArgumentShape::MapOf(&ArgumentShape::Record(&[
            ("type", ArgumentShape::Text),
            ("weight", ArgumentShape::Int),
        ])),
        "strategy by resource, `*` at the end matches",
    )
    .shown_as("cpu and memory, LeastAllocated"),
    &Argument::new("sra", SRA, "keep pods off scarce resources").shown_as("off"),
    &Argument::new("proportional", PROPORTIONAL, "keep room beside scarce resources")
        .shown_as("off"),
];
const SRA: ArgumentShape = ArgumentShape::Record(&[
    ("enable", ArgumentShape::Bool),
    ("resources", ArgumentShape::Text),
    ("weight", ArgumentShape::Int),
    ("resourceWeight", ArgumentShape::MapOf(&ArgumentShape::Int)),
]);
const PROPORTIONAL: ArgumentShape = ArgumentShape::Record(&[
    ("enable", ArgumentShape::Bool),
    ("resources", ArgumentShape::Text),
    ("resourceProportion", ArgumentShape::MapOf(&ArgumentShape::Number)),
]);

const USAGE: Arguments = &[
    &int("usage.weight", 5, "weight of the score"),
    &int("cpu.weight", 1, "weight of the load of cpu"),
    &int("memory.weight", 1, "weight of the load of memory"),
    &Argument::new(
        "thresholds",
        Section(&[&int("cpu", 80, ""), &int("mem", 80, "")]),
        "load in percent above which a node is full",
    ),
    &Argument::new(
        "estimator",
        Section(&[
            &float("request_ratio", 0.7, "part of its request"),
            &float("burst_ratio", 0.0, "part of the room up to its limit"),
            &float("risk_threshold", 0.6, "load from which the risk factor counts"),
            &float("risk_factor", 1.2, "factor on the load").at_least(1.0),
            &Argument::new(
                "be_cpu",
                AMOUNT,
                "a container without requests: millicores or a quantity",
            )
            .shown_as("250m"),
            &Argument::new("be_mem", AMOUNT, "a container without requests: MiB or a quantity")
                .shown_as("200Mi"),
        ]),
        "what a new pod is taken to use until monitoring sees it",
    ),
];
