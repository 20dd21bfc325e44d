//! Plugin `predicates`: runs the pod limit of a node and the Kubernetes filters as PrePredicate and
//! Predicate.
//! Specification: plugins-nodes.md 2.1-2.5, 4.10.

mod binding;
mod devices;
mod refusals;

use std::ops::Range;

use vc_conf::{Argument, Arguments, PluginOption, Warning};
use vc_filters::{
    Input, NodeFilter, Pod, PreFilter, inter_pod_affinity, node_affinity, node_ports,
    node_unschedulable, node_volume_limits, pod_topology_spread, taint_toleration, volume_binding,
    volume_restrictions, volume_zone,
};
use vc_framework::{
    Atom, CacheKeys, ClassField, Depends, Inputs, NodeColumnRule, NodeColumns, NodeRule, NodeTest,
    NodeTests, Outbox, Plugin, PluginEntry, Points, Records, RefusalRule, ScoreColumn, SessionView,
    VectorizedPlugin,
};
use vc_model::{Cluster, Code, Finding, NodeId, Reservation, TaskId, TaskStatus};
use vc_resource::Dim;

use binding::VolumeBinding;
use devices::{DeviceTests, DynamicResources};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("predicates", build)
    .arguments(&[
        &NODE_AFFINITY,
        &NODE_PORTS,
        &TAINT_TOLERATION,
        &POD_AFFINITY,
        &NODE_VOLUME_LIMITS,
        &VOLUME_RESTRICTIONS,
        &VOLUME_ZONE,
        &POD_TOPOLOGY_SPREAD,
        &BINDING,
        &devices::SWITCH,
        &CACHE,
        &binding::TIMEOUT,
        &binding::WEIGHT,
        &binding::SHAPE,
        &devices::TIMEOUT,
    ])
    .moved_arguments(MOVED);

const NODE_AFFINITY: Argument<bool> =
    Argument::new("predicate.NodeAffinityEnable", true, "filter NodeAffinity");
const NODE_PORTS: Argument<bool> =
    Argument::new("predicate.NodePortsEnable", true, "filter NodePorts");
const TAINT_TOLERATION: Argument<bool> =
    Argument::new("predicate.TaintTolerationEnable", true, "filter TaintToleration");
const POD_AFFINITY: Argument<bool> =
    Argument::new("predicate.PodAffinityEnable", true, "filter InterPodAffinity");
const NODE_VOLUME_LIMITS: Argument<bool> =
    Argument::new("predicate.NodeVolumeLimitsEnable", true, "filter NodeVolumeLimits");
const VOLUME_RESTRICTIONS: Argument<bool> =
    Argument::new("predicate.VolumeRestrictionsEnable", true, "filter VolumeRestrictions");
const VOLUME_ZONE: Argument<bool> =
    Argument::new("predicate.VolumeZoneEnable", true, "filter VolumeZone");
const POD_TOPOLOGY_SPREAD: Argument<bool> =
    Argument::new("predicate.PodTopologySpreadEnable", true, "filter PodTopologySpread");
const BINDING: Argument<bool> = Argument::new(
    "predicate.VolumeBindingEnable",
    true,
    "filter VolumeBinding, with its score and binding",
);
/// Accepted without effect: the cache never changes a result (section 2.5). A value of the wrong
/// type is still reported.
const CACHE: Argument<bool> =
    Argument::new("predicate.CacheEnable", true, "accepted without effect").shown_as("false");

/// Arguments that other plugins have now.
const MOVED: &[(&str, &str)] = &[
    ("predicate.GPUSharingEnable", SHARING),
    ("GPUSharingEnable", SHARING),
    ("predicate.GPUNumberEnable", NUMBER),
    ("GPUNumberEnable", NUMBER),
    ("predicate.VGPUEnable", "it is deviceshare.VGPUEnable of the plugin deviceshare now"),
    ("predicate.NodeLockEnable", LOCK),
    ("NodeLockEnable", LOCK),
    ("predicate.ProportionalEnable", PROPORTIONAL),
    ("ProportionalEnable", PROPORTIONAL),
    ("predicate.resources", RESOURCES),
    ("predicate.resources.*", RESOURCES),
];
const SHARING: &str = "it is deviceshare.GPUSharingEnable of the plugin deviceshare now";
const NUMBER: &str = "it is deviceshare.GPUNumberEnable of the plugin deviceshare now";
const LOCK: &str = "it is deviceshare.NodeLockEnable of the plugin deviceshare now";
const PROPORTIONAL: &str = "it is proportional.enable of the plugin resource-strategy-fit now, as in \
    proportional: {enable: true}";
const RESOURCES: &str = "it is part of proportional of the plugin resource-strategy-fit now, as in \
    proportional: {resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 4}}";

const POINTS: Points = Points::PRE_PREDICATE
    .and(Points::PREDICATE)
    .and(Points::EVENT_HANDLERS)
    .and(Points::BATCH_NODE_ORDER)
    .and(Points::SIMULATION);

const NO_NODE: &str = "node info not found";
const VOLUME_BINDING: &str = "VolumeBinding";
const TOO_MANY_PODS: &str = "node(s) pod number exceeded";

/// A Kubernetes filter as this plugin runs it (section 2.2).
struct WrappedFilter {
    name: &'static str,
    /// The argument that switches the filter off. `None` if it cannot be switched off.
    switch: Option<&'static Argument<bool>>,
    reads: &'static [Input],
    /// The class field that the filter reads. `None` if the filter reads more than a class field
    /// and the node object.
    part: Option<ClassField>,
    /// True if its pre-filter may refuse a pod before any node is tested.
    may_refuse: bool,
    /// Runs once per task. Volcano's skip set (section 2.3) is computed here on every call and
    /// cannot become stale (deviation of 2.3).
    pre_filter: for<'a> fn(Pod<'a>) -> PreFilter<'a>,
}

impl WrappedFilter {
    /// True if the filter reads pod and node object only. Such filters run before the others
    /// (section 2.2).
    fn is_stable(&self) -> bool {
        self.reads.iter().all(|input| matches!(input, Input::Spec | Input::Node))
    }

    /// Returns the filter as a test that can be cached.
    fn test<'a>(&self, filter: NodeFilter<'a>) -> NodeTest<'a> {
        match self.part {
            Some(part) => NodeTest::Object(NodeColumnRule {
                name: self.name,
                part,
                version: 0,
                value: Box::new(move |node| i64::from(filter(node).is_none())),
            }),
            None => NodeTest::Row(Box::new(move |node| filter(node).is_none())),
        }
    }

    /// True if everything the filter reads changes only together with the row of the node.
    fn reads_class_and_node(&self) -> bool {
        let of_row =
            |input: &Input| matches!(input, Input::Spec | Input::Node | Input::Pods | Input::Usage);
        self.reads.iter().all(of_row)
    }
}

/// The filters, in the order in which they run within their phase.
const WRAPPED: &[WrappedFilter] = &[
    WrappedFilter {
        name: "NodeUnschedulable",
        switch: None,
        reads: &[Input::Spec, Input::Node],
        part: Some(ClassField::Tolerations),
        may_refuse: false,
        pre_filter: |pod| PreFilter::by_class(pod, node_unschedulable::filter),
    },
    WrappedFilter {
        name: "NodeAffinity",
        switch: Some(&NODE_AFFINITY),
        reads: &[Input::Spec, Input::Node],
        part: Some(ClassField::RequiredNodes),
        may_refuse: true,
        pre_filter: node_affinity::pre_filter,
    },
    WrappedFilter {
        name: "NodePorts",
        switch: Some(&NODE_PORTS),
        reads: &[Input::Spec, Input::Pods],
        part: None,
        may_refuse: false,
        pre_filter: node_ports::pre_filter,
    },
    WrappedFilter {
        name: "TaintToleration",
        switch: Some(&TAINT_TOLERATION),
        reads: &[Input::Spec, Input::Node],
        part: Some(ClassField::Tolerations),
        may_refuse: false,
        pre_filter: |pod| PreFilter::by_class(pod, taint_toleration::filter),
    },
    WrappedFilter {
        name: "InterPodAffinity",
        switch: Some(&POD_AFFINITY),
        reads: &[Input::Spec, Input::Node, Input::Pods, Input::Domain, Input::Other],
        part: None,
        may_refuse: true,
        pre_filter: inter_pod_affinity::pre_filter,
    },
    WrappedFilter {
        name: "NodeVolumeLimits",
        switch: Some(&NODE_VOLUME_LIMITS),
        reads: &[Input::Spec, Input::Pods, Input::Volumes],
        part: None,
        may_refuse: true,
        pre_filter: node_volume_limits::pre_filter,
    },
    WrappedFilter {
        name: "VolumeZone",
        switch: Some(&VOLUME_ZONE),
        reads: &[Input::Spec, Input::Node, Input::Volumes],
        part: None,
        may_refuse: true,
        pre_filter: volume_zone::pre_filter,
    },
    WrappedFilter {
        name: "PodTopologySpread",
        switch: Some(&POD_TOPOLOGY_SPREAD),
        reads: &[Input::Spec, Input::Node, Input::Domain],
        part: None,
        may_refuse: true,
        pre_filter: pod_topology_spread::pre_filter,
    },
    WrappedFilter {
        name: VOLUME_BINDING,
        switch: Some(&BINDING),
        reads: &[Input::Spec, Input::Node, Input::Volumes],
        part: None,
        may_refuse: true,
        pre_filter: volume_binding::pre_filter,
    },
    // Volcano does not run this filter (deviation of 2.2). It is last so that the other filters
    // name missing claims.
    WrappedFilter {
        name: "VolumeRestrictions",
        switch: Some(&VOLUME_RESTRICTIONS),
        reads: &[Input::Spec, Input::Pods, Input::Domain, Input::Volumes],
        part: None,
        may_refuse: true,
        pre_filter: volume_restrictions::pre_filter,
    },
];

struct Predicates {
    /// The enabled filters, the stable ones first.
    filters: Vec<&'static WrappedFilter>,
    /// The volume binding; `None` if it is switched off.
    binding: Option<VolumeBinding>,
    devices: DynamicResources,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    CACHE.read(&option.arguments, warnings);
    let filters = filters(&option.arguments, warnings);
    let binds = filters.iter().any(|wrapped| wrapped.name == VOLUME_BINDING);
    let binding = binds.then(|| VolumeBinding::new(&option.arguments));
    let devices = DynamicResources::new(&option.arguments, warnings);
    Box::new(Predicates { filters, binding, devices })
}

fn filters(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Vec<&'static WrappedFilter> {
    let mut is_on = |wrapped: &&WrappedFilter| match wrapped.switch {
        Some(switch) => switch.read(arguments, warnings),
        None => true,
    };
    let (mut stable, others): (Vec<_>, Vec<_>) =
        WRAPPED.iter().filter(|wrapped| is_on(wrapped)).partition(|wrapped| wrapped.is_stable());
    stable.extend(others);
    stable
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PRE_PREDICATE, POD.and(Inputs::OTHER_PODS).and(Inputs::OTHER_OBJECTS)),
    (Points::PREDICATE, POD.and(NODE).and(Inputs::OTHER_PODS).and(Inputs::OTHER_OBJECTS)),
    (Points::BATCH_NODE_ORDER, POD.and(NODE).and(Inputs::OTHER_PODS).and(Inputs::OTHER_OBJECTS)),
    (
        Points::EVENT_HANDLERS,
        POD_ITSELF.and(NODE).and(Inputs::OTHER_PODS).and(Inputs::OTHER_OBJECTS),
    ),
];

/// Reserve reads the claims of the pod, and the other pods that use them.
const POD_ITSELF: Inputs = Inputs::POD_SHAPE.and(Inputs::IDENTITY);
/// Includes the pod's identity, because claims belong to one pod.
const POD: Inputs = Inputs::POD_SHAPE.and(Inputs::POD_LABELS).and(Inputs::IDENTITY);
const NODE: Inputs = Inputs::NODE_ROW.and(Inputs::NODE_OBJECT);

impl Plugin for Predicates {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS).eased_by_evictions(Points::PRE_PREDICATE.and(Points::EVENT_HANDLERS))
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    fn close(&mut self, view: SessionView<'_>, records: &Records, out: &mut Outbox) {
        self.devices.release_useless(view.cluster, records, out);
    }

    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        _status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        let pod = Pod::new(view.cluster, task);
        let volumes = match &self.binding {
            Some(binding) if !pod.class.volumes.is_empty() => binding.reserve(pod, node)?,
            _ => None,
        };
        let devices = self.devices.reserve(pod, node)?;
        if devices.is_empty() {
            return Ok(volumes);
        }
        Ok(Some(Reservation { devices, ..volumes.unwrap_or_default() }))
    }

    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        let pod = Pod::new(view.cluster, task);
        self.devices.score(pod, nodes, out);
        match &self.binding {
            Some(binding) => binding.score(pod, nodes, out),
            None => Ok(()),
        }
    }

    fn pre_predicate(&self, view: SessionView<'_>, task: TaskId) -> Result<(), String> {
        let pod = Pod::new(view.cluster, task);
        for wrapped in self.filters.iter().filter(|wrapped| wrapped.may_refuse) {
            if let PreFilter::Refuse(finding) = (wrapped.pre_filter)(pod) {
                let message = finding.reason.text(&view.cluster.dims);
                return Err(format!("plugin {} pre-predicates failed {message}", wrapped.name));
            }
        }
        if let PreFilter::Refuse(finding) = self.devices.pre_filter(pod) {
            let message = finding.reason.text(&view.cluster.dims);
            return Err(format!("plugin {} pre-predicates failed {message}", devices::NAME));
        }
        Ok(())
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        self.prepare(view, task).find(node, findings);
    }

    fn refusals<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<RefusalRule<'a>> {
        Some(self.refusals_of(Pod::new(view.cluster, task)))
    }

    fn unmet_needs(&self, view: SessionView<'_>, task: TaskId) -> Option<Vec<Atom>> {
        Some(self.unmet_needs_of(Pod::new(view.cluster, task)))
    }
}

impl CacheKeys for Predicates {
    /// True if the pod has resource claims, which are its own state.
    fn has_own_state(&self, view: SessionView<'_>, task: TaskId) -> bool {
        self.devices.judges(Pod::new(view.cluster, task))
    }
}

impl VectorizedPlugin for Predicates {
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        let (binding, pod) = (self.binding.as_ref(), Pod::new(view.cluster, task));
        let scores =
            binding.is_some_and(|_| VolumeBinding::scores(pod)) || self.devices.scores(pod);
        (!scores).then(Vec::new)
    }

    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let pod = Pod::new(view.cluster, task);
        let mut tests = Vec::with_capacity(1 + self.filters.len());
        tests.push(NodeTest::Amounts(Box::new(has_pod_room)));
        let mut cluster_scoped = Vec::new();
        for wrapped in &self.filters {
            let Some(filter) = asked((wrapped.pre_filter)(pod)) else { continue };
            match wrapped.reads_class_and_node() {
                true => tests.push(wrapped.test(filter)),
                false => cluster_scoped.push(filter),
            }
        }
        if self.devices.judges(pod) {
            let DeviceTests { has_devices, cluster_scoped: all } = self.devices.tests(pod)?;
            tests.extend(has_devices);
            cluster_scoped.push(all);
        }
        let cluster_scoped = (!cluster_scoped.is_empty()).then(|| -> NodeRule<'a> {
            Box::new(move |node, findings| {
                findings.extend(cluster_scoped.iter().find_map(|filter| filter(node)));
            })
        });
        Some(NodeTests { tests, cluster_scoped })
    }

    fn node_rule<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeRule<'a>> {
        let prepared = self.prepare(view, task);
        Some(Box::new(move |node, findings| prepared.find(node, findings)))
    }
}

impl Predicates {
    fn prepare<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> PreparedFilters<'a> {
        let pod = Pod::new(view.cluster, task);
        let answers = self.filters.iter().map(|wrapped| (wrapped.pre_filter)(pod));
        let answers = answers.chain([self.devices.pre_filter(pod)]);
        PreparedFilters { cluster: view.cluster, filters: answers.filter_map(asked).collect() }
    }
}

/// The filters that test nodes for a task, after their pre-filters have run.
struct PreparedFilters<'a> {
    cluster: &'a Cluster,
    filters: Vec<NodeFilter<'a>>,
}

/// Tests the pod limit over columns, like the first check of [`PreparedFilters::find`].
fn has_pod_room(columns: &NodeColumns, range: Range<usize>, passes: &mut [bool]) {
    let pods = &columns.of(Dim::PODS).allocatable[range.clone()];
    for ((passes, pods), n_pods) in passes.iter_mut().zip(pods).zip(&columns.n_pods[range]) {
        *passes &= n_pods < pods;
    }
}

/// Returns the node filter of a pre-filter's answer. Returns `None` if the filter is skipped. If
/// the pre-filter refuses the pod, the filter fails every node.
fn asked(answer: PreFilter<'_>) -> Option<NodeFilter<'_>> {
    match answer {
        PreFilter::Skip => None,
        PreFilter::Refuse(finding) => Some(Box::new(move |_| Some(finding.clone()))),
        PreFilter::Ask(filter) => Some(filter),
    }
}

impl PreparedFilters<'_> {
    /// Appends the findings of a node. Findings that eviction may cure add up; any other finding
    /// ends the list (section 2.4).
    fn find(&self, id: NodeId, findings: &mut Vec<Finding>) {
        let node = &self.cluster.nodes[id];
        if !node.present {
            findings.push(Finding::new(Code::Error, NO_NODE));
            return;
        }
        if node.allocatable.get(Dim::PODS) <= i64::from(node.view.n_pods) {
            findings.push(Finding::new(Code::Unschedulable, TOO_MANY_PODS));
        }
        for finding in self.filters.iter().filter_map(|filter| filter(id)) {
            let ends = finding.code != Code::Unschedulable;
            findings.push(finding);
            if ends {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(arguments: Arguments, warnings: &mut Vec<Warning>) -> Vec<&'static str> {
        filters(&arguments, warnings).iter().map(|wrapped| wrapped.name).collect()
    }

    #[test]
    fn nodes_12_stable_filters_run_first_each_phase_in_table_order() {
        let table = WRAPPED.iter().map(|wrapped| wrapped.name);
        let later = [
            "InterPodAffinity",
            "NodeVolumeLimits",
            "VolumeZone",
            "PodTopologySpread",
            "VolumeBinding",
            "VolumeRestrictions",
        ]
        .iter();
        let first = ["NodeUnschedulable", "NodeAffinity", "NodePorts", "TaintToleration"];
        let expected = first.iter().chain(later.clone()).copied();
        assert!(table.eq(expected));
        let running = names(Arguments::default(), &mut Vec::new());
        let first = ["NodeUnschedulable", "NodeAffinity", "TaintToleration", "NodePorts"];
        assert!(running.iter().eq(first.iter().chain(later)));
        let stable = WRAPPED.iter().filter(|wrapped| wrapped.is_stable()).count();
        assert_eq!(stable, 3);
        let says_its_part = |wrapped: &WrappedFilter| wrapped.is_stable() == wrapped.part.is_some();
        assert!(WRAPPED.iter().all(says_its_part));
    }

    #[test]
    fn nodes_10_a_skipped_filter_is_not_asked() {
        let refusing = || PreFilter::Ask(Box::new(|_| Some(Finding::new(Code::Error, "no"))));
        assert!(asked(PreFilter::Skip).is_none());
        let cluster = vc_model::fixture::cluster("node n");
        let found = |answers: Vec<PreFilter<'_>>| {
            let filters = answers.into_iter().filter_map(asked).collect();
            let mut findings = Vec::new();
            let n = vc_model::fixture::node(&cluster, "n");
            PreparedFilters { cluster: &cluster, filters }.find(n, &mut findings);
            findings.len()
        };
        assert_eq!(found(vec![PreFilter::Skip, PreFilter::Skip]), 0);
        assert_eq!(found(vec![PreFilter::Skip, refusing(), refusing()]), 1);
    }

    #[test]
    fn nodes_24_bools_may_be_strings() {
        let switch = |value| [("predicate.NodePortsEnable", value)].into_iter().collect();
        let mut warnings = Vec::new();
        let running = names(switch(json!("false")), &mut warnings);
        assert_eq!((running.contains(&"NodePorts"), warnings.len()), (false, 0));
        let running = names(switch(json!(0)), &mut warnings);
        assert_eq!((running.contains(&"NodePorts"), warnings.len()), (true, 1));
    }

    #[test]
    fn arguments_of_filters_that_are_not_there_are_accepted() {
        let accepted = [
            (CACHE.key, json!(false)),
            ("volumebinding.weight", json!(5)),
            ("dynamicresources.filterTimeoutSeconds", json!(-5)),
        ];
        let arguments = accepted.into_iter().collect();
        let mut warnings = Vec::new();
        build(&PluginOption { arguments, ..PluginOption::default() }, &mut warnings);
        assert_eq!(warnings, []);
    }
}
