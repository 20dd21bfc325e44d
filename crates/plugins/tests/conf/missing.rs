//! What a file names and this process lacks (core.md 2.3, 2.6; C-40), and keys of older versions.

use vc_conf::{
    AllowMissing, Argument, KnownNames, LoadedConfig, MissingKind, PluginDeclaration, parse, render,
};

fn known() -> KnownNames<'static> {
    let plugins = ["gang", "capacity", "predicates", "usage"];
    crate::support::known(&plugins, &["enqueue", "allocate", "gangpreempt"])
}

fn load(text: &str) -> LoadedConfig {
    parse("test.conf", text, &known()).unwrap_or_else(|error| panic!("{error}"))
}

fn plugins(lines: &str) -> String {
    format!("actions: allocate\ntiers:\n- plugins:\n{lines}")
}

fn names(loaded: &LoadedConfig) -> Vec<&str> {
    loaded.missing.iter().map(|entry| entry.name.as_str()).collect()
}

const SWITCH: Argument<bool> =
    Argument::new("vendor.Enable", true, "").not_built("cards of the vendor are");
const OTHER: Argument<bool> =
    Argument::new("vendor.OtherEnable", false, "").not_built("other cards of the vendor are");

/// A plugin two of whose arguments switch on what is not built.
fn with_vendor(text: &str) -> LoadedConfig {
    let vendor =
        PluginDeclaration { arguments: &[&SWITCH, &OTHER], ..PluginDeclaration::new("vendor") };
    let known = known();
    let known = KnownNames { plugins: [known.plugins, &[vendor]].concat().leak(), ..known };
    parse("test.conf", text, &known).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn c40_arguments_that_switch_on_what_is_not_built() {
    let conf = |key: &str, value: &str| {
        plugins(&format!("  - name: vendor\n    arguments: {{{key}: {value}}}\n"))
    };
    let (switch, load) = ("vendor.Enable", with_vendor);
    for (text, expected) in [
        (conf(switch, "true"), vec![switch]),
        (conf(switch, "\"True\""), vec![switch]),
        (conf(switch, "false"), vec![]),
        (conf("vendor.OtherEnable", "true"), vec!["vendor.OtherEnable"]),
        (conf("vendor.level", "1"), vec![]),
        (gang("allocate, gangpreempt", "maxDomains: 4"), vec![]),
        (gang("allocate, gangpreempt", "allowWholeBundle: false"), vec![]),
        // The action does not run, so nothing of its arguments is missing.
        (gang("allocate", "maxDomains: 4"), vec![]),
    ] {
        assert_eq!(names(&load(&text)), expected, "{text}");
    }
    let error = load(&conf(switch, "true")).admit("f", &AllowMissing::Nothing).unwrap_err();
    let expected = format!(
        "f:5: tiers[0].plugins[0].arguments.{switch}: cards of the vendor are not built into this \
         version\nhint: set it to false, or start with --allow-missing-plugins={switch} if nothing needs \
         its rules"
    );
    assert_eq!(error.to_string(), expected);
}

fn gang(actions: &str, argument: &str) -> String {
    format!(
        "actions: {actions:?}\nconfigurations:\n- name: gangPreempt\n  arguments: {{{argument}}}\n"
    )
}

#[test]
fn c40_what_is_allowed_is_a_warning() {
    let text = plugins("  - name: gang\n  - name: magic\n  - name: nodegroup\n");
    let admit = |allowed: &[&str]| load(&text).admit("f", &AllowMissing::of(allowed.to_vec()));
    for refused in [&[][..], &["magic"], &["nodegroups"]] {
        let error = admit(refused).unwrap_err();
        assert_eq!(error.0.len(), 1, "{error}");
        assert_eq!(error.0[0].line, Some(6));
    }
    let loaded = admit(&["nodegroup"]).unwrap();
    assert_eq!(names(&loaded), ["magic"]);
    assert_eq!(loaded.missing[0].kind, MissingKind::Unknown);
    let warning = "line 6: tiers[0].plugins[2]: plugin nodegroup of Volcano is not built into this \
        version: skipped\nhint: nothing to do: --allow-missing-plugins says that it may be missing";
    assert_eq!(loaded.warnings[0].to_string(), warning);
    for all in [&["*"][..], &["magic,nodegroup"], &["nodegroup", " magic "]] {
        let loaded = admit(all).unwrap();
        assert_eq!((names(&loaded).len(), loaded.warnings.len()), (0, 2), "{all:?}");
        let lines: Vec<_> = loaded.warnings.iter().map(|warning| warning.line).collect();
        assert_eq!(lines, [Some(5), Some(6)]);
        assert_eq!(loaded.config.tiers[0].plugins.len(), 1);
    }
}

#[test]
fn the_list_of_known_plugins_is_given_once() {
    let text = plugins("  - name: magic\n  - name: capcity\n  - name: other\n");
    let loaded = load(&text);
    let remedies: Vec<&str> = loaded.missing.iter().map(|m| m.remedy.as_str()).collect();
    let flag = |name: &str| {
        format!(" Or start with --allow-missing-plugins={name} to say that it is known")
    };
    let expected = [
        format!("known are: gang, capacity, predicates, usage.{}", flag("magic")),
        format!("did you mean capacity?{}", flag("capcity")),
        format!("remove it, or correct its name.{}", flag("other")),
    ];
    assert_eq!(remedies, expected);
    let text = render(&loaded);
    assert_eq!(text.matches("known are").count(), 1);
    let errors = text.split("3 errors:\n").nth(1).unwrap();
    assert!(errors.starts_with("  line 4: tiers[0].plugins[0]: unknown plugin magic"), "{text}");
}

#[test]
fn keys_of_older_versions_have_the_remedy_of_today() {
    let text = plugins(
        "  - name: gang
    disableTaskOrder: true
  - name: predicates
    arguments:
      predicate.GPUSharingEnable: true
      NodeLockEnable: true
      predicate.ProportionalEnable: true
      predicate.resources: nvidia.com/gpu
      predicate.resources.nvidia.com/gpu.cpu: 4
  - name: usage
    arguments:
      thresholds.cpu: 80
      thresholds: 80
      estimator.be_cpu: 250m
      estimator: {be_cpus: 1}
",
    );
    let loaded = load(&text);
    let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        (5, "unknown key disableTaskOrder", "write enableTaskOrder: false"),
        (8, "predicate.GPUSharingEnable", "deviceshare.GPUSharingEnable of the plugin deviceshare"),
        (9, "NodeLockEnable", "deviceshare.NodeLockEnable of the plugin deviceshare"),
        (
            10,
            "predicate.ProportionalEnable",
            "proportional.enable of the plugin resource-strategy-fit",
        ),
        (11, "predicate.resources", "part of proportional of the plugin resource-strategy-fit"),
        (12, "predicate.resources.nvidia.com/gpu.cpu", "part of proportional of"),
        (15, "thresholds.cpu", "write a map, as in thresholds: {cpu: 80}"),
        (16, "expected a map, found 80", "write a map, as in thresholds: {cpu: ...}"),
        (17, "estimator.be_cpu", "write a map, as in estimator: {request_ratio: 0.7}"),
        (18, "unknown key be_cpus", "did you mean be_cpu?"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (line, what, remedy)) in told.iter().zip(expected) {
        assert!(told.starts_with(&format!("line {line}: ")), "{told}");
        let (message, hint) = told.split_once("\nhint: ").unwrap();
        assert!(message.contains(what) && hint.contains(remedy), "{told}");
    }
}

#[test]
fn quoted_values_are_shown_as_they_are_meant() {
    let quoted = plugins("  - name: gang\n    enableJobOrder: \"off\"\n");
    let error = parse("f", &quoted, &known()).unwrap_err().to_string();
    assert!(error.ends_with("\nhint: write enableJobOrder: false without quotes"), "{error}");
    let text = plugins("  - name: predicates\n    arguments: {volumebinding.weight: \"5\"}\n");
    let error = parse("f", &text, &known()).unwrap_err().to_string();
    assert!(error.ends_with("found \"5\"\nhint: write 5 without quotes"), "{error}");
}
