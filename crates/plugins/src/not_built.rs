//! Plugins of Volcano that are not built: their arguments are known, so that spelling and shape are
//! checked. A plugin that is built takes its arguments along into its own file.
//! Specification: core.md 2.3 (C-40), plugins-nodes.md, plugins-jobs-queues.md.

use vc_conf::{
    Argument, ArgumentShape, DeclaredArgument, DurationRule, EnqueueVote, FreeForm,
    PluginDeclaration, Section,
};

/// The plugins of Volcano that this version lacks, by name.
pub const NOT_BUILT: &[PluginDeclaration] = &[
    PluginDeclaration {
        enqueue_vote: EnqueueVote::IgnoresEvictions,
        ..plugin("extender", EXTENDER)
    },
    plugin("rescheduling", RESCHEDULING),
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

const fn argument<T: Copy>(key: &'static str, default: T, about: &'static str) -> Argument<T> {
    Argument::new(key, default, about)
}

const fn hook(key: &'static str) -> Argument<&'static str> {
    argument(key, "", "path of the hook; empty: not called")
}

const fn duration(
    key: &'static str,
    default: &'static str,
    about: &'static str,
) -> Argument<DurationRule> {
    let rule = DurationRule { parse: |_| None, problem: "", remedy: "" };
    argument(key, rule, about).shown_as(default)
}

const AMOUNT: FreeForm = FreeForm("int or string", &["integer", "string"]);

const EXTENDER: Arguments = &[
    &argument("extender.urlPrefix", "", "base URL of the service"),
    &duration("extender.httpTimeout", "1s", "longest time of an exchange"),
    &argument("extender.ignorable", false, "go on when the service fails"),
    &argument(
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

const RESCHEDULING: Arguments = &[
    &duration("interval", "5m", "time between runs"),
    &argument("metricsPeriod", "5m", "period of the load averages"),
    &argument("strategies", FreeForm("list of `{name, params}`", &["array"]), "what to run")
        .shown_as("`lowNodeUtilization`"),
];

const USAGE: Arguments = &[
    &argument("usage.weight", 5, "weight of the score"),
    &argument("cpu.weight", 1, "weight of the load of cpu"),
    &argument("memory.weight", 1, "weight of the load of memory"),
    &argument(
        "thresholds",
        Section(&[
            &argument("cpu", 80, "percent of cpu"),
            &argument("mem", 80, "percent of memory"),
        ]),
        "load in percent above which a node is full",
    ),
    &argument(
        "estimator",
        Section(&[
            &argument("request_ratio", 0.7, "part of its request"),
            &argument("burst_ratio", 0.0, "part of the room up to its limit"),
            &argument("risk_threshold", 0.6, "load from which the risk factor counts"),
            &argument("risk_factor", 1.2, "factor on the load").at_least(1.0),
            &argument("be_cpu", AMOUNT, "a container without requests: millicores or a quantity")
                .shown_as("250m"),
            &argument("be_mem", AMOUNT, "a container without requests: MiB or a quantity")
                .shown_as("200Mi"),
        ]),
        "what a new pod is taken to use until monitoring sees it",
    ),
];
