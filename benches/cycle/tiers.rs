//! Configurations of the cases: the chart's first tier, and second ones by what decides on queues.

/// A configuration with these actions and this second tier.
macro_rules! conf {
    ($actions:literal, $second:expr) => {
        concat!(
            "actions: \"",
            $actions,
            "\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: conformance\n",
            $second
        )
    };
}

/// A second tier.
macro_rules! tier {
    (chart) => {
        "- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"
    };
    (zones) => {
        concat!(
            tier!(chart),
            "  - name: tdm
    arguments:
      tdm.revocable-zone.rz1: \"0:00-0:00\"
"
        )
    };
    (budgets) => {
        concat!(tier!(chart), "  - name: pdb\n")
    };
    (all) => {
        concat!(
            tier!(zones),
            "  - name: capacity
  - name: cdp
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.ScheduleWeight: 1
  - name: extender
    arguments:
      extender.urlPrefix: http://extender.example:8080
  - name: fairshare
  - name: network-topology-aware
  - name: nodegroup
    arguments: {strict: false}
  - name: numa-aware
  - name: pdb
  - name: rescheduling
  - name: resource-strategy-fit
    arguments:
      resources: {cpu: {type: MostAllocated, weight: 2}}
  - name: resourcequota
  - name: sla
  - name: task-topology
  - name: usage
"
        )
    };
    (accounts) => {
        concat!(
            "- plugins:
  - name: fairshare
    arguments:
      fairshare.resourceKey: cpu
      fairshare.account: label:team
",
            tier!(chart)
        )
    };
    (shares) => {
        concat!(
            tier!(chart),
            "  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.ScheduleWeight: 1
      deviceshare.SchedulePolicy: binpack
"
        )
    };
    (topology) => {
        concat!(tier!(chart), "  - name: network-topology-aware\n")
    };
    (quotas) => {
        "- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodeorder
  - name: binpack
"
    };
    (hierarchy) => {
        "- plugins:
  - name: drf
    enablePreemptable: false
    enableHierarchy: true
  - name: predicates
  - name: nodeorder
  - name: binpack
"
    };
    (reclaiming) => {
        "- plugins:
  - name: cohort
    arguments:
      reclaimWithinCohort: Any
  - name: predicates
  - name: nodeorder
"
    };
    (sharing) => {
        "- plugins:
  - name: cohort
    arguments:
      reclaimWithinCohort: Any
      fairSharing.enable: true
  - name: predicates
  - name: nodeorder
"
    };
    (lending) => {
        "- plugins:
  - name: cohort
  - name: predicates
  - name: nodeorder
"
    };
}

pub(crate) use {conf, tier};
