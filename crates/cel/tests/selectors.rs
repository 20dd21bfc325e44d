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
    for (text, expected) in [
        ("v1", "1.0.0"),
        ("1.02", "1.2.0"),
        ("01.00.003-rc.1", "1.0.3-rc.1"),
        ("1.2.0-0", "1.2.0-0"),
    ] {
        let expression = format!("semver('{text}', true) == semver('{expected}')");
        assert_eq!(eval(&expression), Ok(true), "{expression}");
    }
    assert_eq!(
        eval("isSemver('v1', false) || isSemver('1-a', true) || isSemver('', true)"),
        Ok(false)
    );
    assert_eq!(eval("quantity('1Gi').add(1).sub(quantity('1Gi')) == quantity('1')"), Ok(true));
    assert_eq!(eval("quantity('3').sub(1).asInteger() == 2"), Ok(true));
}

#[test]
fn kubernetes_functions_over_lists_and_sets() {
    for (expression, expected) in [
        ("[1, 2, 2].isSorted() && ![2, 1].isSorted() && [].isSorted()", true),
        ("['a', 'b'].isSorted() && !['b', 'a'].isSorted()", true),
        ("[1, 2, 3].sum() == 6 && [].sum() == 0 && [0.5, 1.5].sum() == 2.0", true),
        ("[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a'", true),
        ("['a', 'b', 'a'].indexOf('a') == 0 && ['a', 'b', 'a'].lastIndexOf('a') == 2", true),
        ("['a'].indexOf('x') == -1 && 'abcb'.indexOf('b') == 1", true),
        ("sets.contains(['a', 'b'], ['b']) && !sets.contains(['a'], ['a', 'b'])", true),
        ("sets.contains([1], []) && sets.equivalent([1, 2, 2], [2, 1])", true),
        ("sets.equivalent(['a'], ['a', 'b'])", false),
        ("sets.intersects(['a100'], [device.attributes['gpu.example.com'].model])", true),
        ("sets.intersects([1], [])", false),
    ] {
        assert_eq!(eval(expression), Ok(expected), "{expression}");
    }
    let error = eval("[].min() == 0").unwrap_err();
    assert!(error.to_string().contains("min called on empty list"), "{error}");
    assert!(matches!(eval("[true, 'a'].isSorted()"), Err(SelectorError::Runtime(_))));
}

#[test]
fn what_a_regular_expression_finds() {
    for (expression, expected) in [
        ("'gpu-12-x'.find('[0-9]+') == '12' && 'gpu'.find('[0-9]+') == ''", true),
        ("'1 22 333'.findAll('[0-9]+') == ['1', '22', '333']", true),
        ("'1 22 333'.findAll('[0-9]+', 2) == ['1', '22']", true),
        ("'1 22'.findAll('[0-9]+', 0) == [] && '1 22'.findAll('[0-9]+', -1).size() == 2", true),
        ("'gpu'.matches('^g') && !'gpu'.matches('^p')", true),
    ] {
        assert_eq!(eval(expression), Ok(expected), "{expression}");
    }
    assert!(matches!(eval("'x'.find('(') == ''"), Err(SelectorError::Runtime(_))));
}

#[test]
fn addresses_and_networks() {
    for (expression, expected) in [
        ("ip('192.168.0.1').family() == 4 && ip('::1').family() == 6", true),
        ("ip('192.168.0.1') == ip('192.168.0.1') && ip('10.0.0.1') != ip('10.0.0.2')", true),
        ("isIP('1.2.3.4') && isIP('2001:db8::1') && !isIP('1.2.3') && !isIP('1.2.3.04')", true),
        ("isIP('::ffff:1.2.3.4') || isIP('fe80::1%eth0')", false),
        ("ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')", true),
        ("ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback()", true),
        ("ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()", true),
        ("ip('224.0.1.1').isLinkLocalMulticast()", false),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()", true),
        ("ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", true),
        ("string(ip('192.168.0.1')) == '192.168.0.1' && string(7) == '7'", true),
        ("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')", true),
        (
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('::1')",
            true,
        ),
        ("cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", false),
        ("cidr('0.0.0.0/0').containsIP('9.9.9.9') && cidr('::/0').containsIP('::9')", true),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", true),
        ("cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", false),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", true),
        (
            "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').prefixLength() == 8",
            true,
        ),
        ("string(cidr('2001:db8::1/64').masked()) == '2001:db8::/64'", true),
    ] {
        assert_eq!(eval(expression), Ok(expected), "{expression}");
    }
    assert!(matches!(eval("ip('x').family() == 4"), Err(SelectorError::Runtime(_))));
    assert!(matches!(eval("cidr('x').prefixLength() == 4"), Err(SelectorError::Runtime(_))));
}

#[test]
fn values_that_could_grow_large_are_refused() {
    let doubled = |n: usize| {
        let binds: String =
            (1..=n).map(|i| format!("cel.bind(v{i}, v{} + v{}, ", i - 1, i - 1)).collect();
        format!("cel.bind(v0, 'ab', {binds}v{n}.size() > 0{}", ")".repeat(n + 1))
    };
    assert_eq!(eval(&doubled(10)), Ok(true));
    for expression in [
        doubled(18),
        "'aaaaaaaa'.replace('a', 'aaaaaaaa')".to_owned()
            + &".replace('a', 'aaaaaaaa')".repeat(9)
            + " == ''",
        format!("{}true{}", "[1].all(a, ".repeat(7), ")".repeat(7)),
    ] {
        let error = Selector::compile(&expression).unwrap_err();
        assert_eq!(error.to_string(), "CEL compile error: the expression may cost too much");
    }
    for deep in [
        format!("{}true{}", "[1].all(a, ".repeat(300), ")".repeat(300)),
        format!("{}true{}", "(".repeat(4000), ")".repeat(4000)),
        format!("0{} == 0", " + 1".repeat(2000)),
        format!("{}true", "true ? true : ".repeat(500)),
        format!("'a'{} == ''", ".trim()".repeat(1000)),
    ] {
        let error = Selector::compile(&deep).unwrap_err();
        assert!(matches!(error, SelectorError::Compile(_)), "{error}");
        assert!(error.to_string().len() < 400, "it goes into conditions: {error}");
    }
    let long = format!("'{}' == ''", "x".repeat(10 << 10));
    let error = Selector::compile(&long).unwrap_err();
    assert_eq!(error.to_string(), "CEL compile error: the expression is too long");
}

#[test]
fn what_people_write_is_within_the_bound() {
    for expression in [
        "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model in \
         ['a100', 'h100', 'h200', 'b200'] && device.capacity['gpu.example.com'].memory \
         .compareTo(quantity('40Gi')) >= 0",
        "['a', 'b', 'c'].map(x, x + '-' + device.driver).exists(x, x.startsWith('a-'))",
        "device.attributes['gpu.example.com'].model.lowerAscii().split('').filter(c, c in ['a', \
         '1', '0']).size() == 4",
        "cel.bind(d, device.attributes['gpu.example.com'], ['model', 'numa'].all(k, k in d))",
    ] {
        assert_eq!(eval(expression), Ok(true), "{expression}");
    }
}

#[test]
fn functions_that_are_not_there_fail_closed() {
    for expression in ["lists.range(3).size() == 3", "math.greatest(1, 2) == 2"] {
        assert!(eval(expression).is_err(), "{expression}");
    }
}
