//! What cannot stand beside the plugin `cohort`, and values of its arguments that make a file invalid.
//! Specification: cohort.md B.1 (Q1).

use vc_conf::parse;

use crate::support::known;

const ALL: &[&str] = &["cohort", "capacity", "proportion", "drf", "sla", "gang"];

fn load(tiers: &str) -> Result<usize, String> {
    let text = format!("actions: \"allocate\"\ntiers:\n{tiers}");
    let known = known(ALL, &["allocate"]);
    let loaded = parse("x", &text, &known);
    loaded.map(|loaded| loaded.warnings.len()).map_err(|error| error.problem)
}

#[test]
fn t6_conf_conflict_of_plugins() {
    let with = |other: &str| load(&format!("- plugins: [{{name: cohort}}]\n- plugins: [{other}]"));
    for other in ["proportion", "capacity"] {
        let expected =
            format!("plugins \"cohort\" and \"{other}\" both decide queue quota; keep one of them");
        assert_eq!(with(&format!("{{name: {other}}}")), Err(expected));
    }
    let drf = "plugins \"cohort\" and \"drf\" (enableHierarchy) both decide queue shares; \
        keep one of them";
    assert_eq!(with("{name: drf, enableHierarchy: true}"), Err(drf.to_owned()));
    assert_eq!(with("{name: drf}"), Ok(0));
    let twice = "plugin \"cohort\" is configured twice";
    assert_eq!(with("{name: cohort}"), Err(twice.to_owned()));
    let alone = "- plugins: [{name: proportion}, {name: drf, enableHierarchy: false}]";
    assert_eq!(load(alone), Ok(0));
}

#[test]
fn t6_conf_conflict_of_arguments() {
    let with = |arguments: &str| {
        load(&format!("- plugins: [{{name: cohort, arguments: {{{arguments}}}}}]"))
    };
    let unknown = "plugin \"cohort\": argument withinClusterQueue: \"lower\" is not one of \
        Never, LowerPriority, LowerOrNewerEqualPriority";
    assert_eq!(with("withinClusterQueue: lower"), Err(unknown.to_owned()));
    let number = "plugin \"cohort\": argument reclaimWithinCohort: \"3\" is not one of \
        Never, LowerPriority, Any";
    assert_eq!(with("reclaimWithinCohort: 3"), Err(number.to_owned()));
    let list = "plugin \"cohort\": fairSharing.preemptionStrategies: \
        [LessThanInitialShare, LessThanOrEqualToFinalShare] is not supported";
    let key = "fairSharing.preemptionStrategies";
    let reversed = "[LessThanInitialShare, LessThanOrEqualToFinalShare]";
    assert_eq!(with(&format!("{key}: {reversed}")), Err(list.to_owned()));
    for good in [
        "[LessThanInitialShare]",
        "\"LessThanOrEqualToFinalShare, LessThanInitialShare\"",
        "LessThanOrEqualToFinalShare",
    ] {
        assert_eq!(with(&format!("{key}: {good}")), Ok(0), "{good}");
    }
}

#[test]
fn a_plugin_that_hides_the_quota_is_named() {
    let tiers = "- plugins: [{name: sla}]\n- plugins: [{name: cohort}, {name: gang}]";
    assert_eq!(load(tiers), Ok(1));
    assert_eq!(load("- plugins: [{name: sla}, {name: cohort}]"), Ok(0));
}
