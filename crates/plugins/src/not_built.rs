//! Plugins of Volcano that are not built: their arguments are known, so that spelling and shape are
//! checked. A plugin that is built takes its arguments along into its own file.
//! Specification: core.md 2.3 (C-40), plugins-nodes.md, plugins-jobs-queues.md.

use vc_conf::{
    Argument, ArgumentShape, DeclaredArgument, DurationRule, EnqueueVote, PluginDeclaration,
};

/// The plugins of Volcano that this version lacks, by name.
pub const NOT_BUILT: &[PluginDeclaration] = &[
    PluginDeclaration {
        enqueue_vote: EnqueueVote::IgnoresEvictions,
        ..plugin("extender", EXTENDER)
    },
    plugin("numa-aware", &[&argument("weight", 1, "weight of the score")]),
    plugin("task-topology", &[&argument("task-topology.weight", 1, "weight of the score")]),
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
