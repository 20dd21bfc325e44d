//! Selectors of devices (plugins-nodes.md 6.6, case 71).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use vc_cel::{Selector, SelectorError};
use vc_model::{Attribute, Device};

const DRIVER: &str = "gpu.example.com";

fn device() -> Device {
    Device {
        name: "gpu-0".into(),
        attributes: [
            ("model".into(), Attribute::Text("a100".into())),
            ("numa".into(), Attribute::Int(1)),
            ("healthy".into(), Attribute::Bool(true)),
            ("driverVersion".into(), Attribute::Version("12.4.1-rc.1".into())),
            ("resource.kubernetes.io/pcieRoot".into(), Attribute::Text("pci0".into())),
        ]
        .into(),
        capacity: [("memory".into(), "80Gi".parse().unwrap())].into(),
        ..Device::default()
    }
}

fn eval(expression: &str) -> Result<bool, SelectorError> {
    Selector::compile(expression)?.matches(DRIVER, &device())
}

#[test]
fn what_a_device_says_can_be_asked() {
    for (expression, expected) in [
        ("device.driver == 'gpu.example.com'", true),
        ("device.attributes['gpu.example.com'].model == 'a100'", true),
        ("device.attributes['gpu.example.com'].numa < 1", false),
        ("device.attributes['gpu.example.com'].healthy", true),
        ("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0'", true),
        ("'model' in device.attributes['gpu.example.com']", true),
        ("'model' in device.attributes['other.example.com']", false),
        ("device.attributes['other'].?model.orValue('') == ''", true),
        ("has(device.attributes['gpu.example.com'].nope)", false),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) > 0", true),
        ("device.capacity['gpu.example.com'].memory.isLessThan(quantity('80Gi'))", false),
        ("device.capacity['gpu.example.com'].memory == quantity('80Gi')", true),
        ("device.attributes['gpu.example.com'].driverVersion.isLessThan(semver('12.4.1'))", true),
        ("device.attributes['gpu.example.com'].driverVersion.major() == 12", true),
        (
            "cel.bind(a, device.attributes['gpu.example.com'], a.model == 'a100' && a.numa == 1)",
            true,
        ),
        ("['a100', 'h100'].exists(m, m == device.attributes['gpu.example.com'].model)", true),
        ("device.allowMultipleAllocations", false),
    ] {
        assert_eq!(eval(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn nodes_71_a_missing_attribute_is_an_error() {
    let error = eval("device.attributes['gpu.example.com'].nope == 'x'").unwrap_err();
    assert!(matches!(&error, SelectorError::Runtime(text) if text.contains("nope")), "{error}");
}

#[test]
fn what_is_no_boolean_expression_is_an_error() {
    let error = eval("device.driver ==").unwrap_err();
    assert!(error.to_string().starts_with("CEL compile error: "), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
    let error = eval("device.attributes['gpu.example.com'].numa").unwrap_err();
    assert!(error.to_string().starts_with("CEL runtime error: must be a boolean"), "{error}");
    assert!(matches!(eval("nobody.knows"), Err(SelectorError::Runtime(_))));
}

#[test]
fn an_expression_that_could_run_for_long_is_refused() {
    let all = "device.attributes['d'].all(a, ";
    let deep = format!("{}true{}", all.repeat(5), ")".repeat(5));
    let error = Selector::compile(&deep).unwrap_err();
    assert_eq!(error.to_string(), "CEL compile error: the expression may cost too much");
    assert!(Selector::compile(&format!("{}true{}", all.repeat(2), ")".repeat(2))).is_ok());
}

#[test]
fn versions_compare_by_their_rules() {
    let ordered =
        ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.2.0"];
    for pair in ordered.windows(2) {
        let expression = format!("semver('{}').compareTo(semver('{}')) == -1", pair[0], pair[1]);
        assert_eq!(eval(&expression), Ok(true), "{expression}");
    }
    for text in ["1.0", "1.0.0.0", "01.0.0", "a.b.c", "1.0.0-", "1.0.0-a..b"] {
        assert_eq!(eval(&format!("isSemver('{text}')")), Ok(false), "{text}");
    }
    assert_eq!(
        eval("isSemver('1.0.0+build') && isQuantity('1Gi') && !isQuantity('1GiB')"),
        Ok(true)
    );
}
