//! URLs, formats and comprehensions of two variables in selectors (plugins-nodes.md 6.6).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use vc_cel::{Selector, SelectorError};
use vc_model::{Attribute, Device};

fn eval(expression: &str) -> Result<bool, SelectorError> {
    let attributes = [
        ("model".into(), Attribute::Text("a100".into())),
        ("home".into(), Attribute::Text("https://gpu.example.com:8443/a b?k=1".into())),
    ];
    let device = Device { attributes: attributes.into(), ..Device::default() };
    Selector::compile(expression)?.matches("d", &device)
}

fn all_hold(expressions: &[&str]) {
    for expression in expressions {
        assert_eq!(eval(expression), Ok(true), "{expression}");
    }
}

#[test]
fn parts_of_urls() {
    all_hold(&[
        "url('/path').getScheme() == '' && url('HTTPS://example.com/').getScheme() == 'https'",
        "url('https://example.com:80/').getHost() == 'example.com:80'",
        "url('https://[::1]:80/').getHost() == '[::1]:80' && url('/path').getHost() == ''",
        "url('https://[::1]:80/').getHostname() == '::1' && url('/p').getHostname() == ''",
        "url('https://u:p@127.0.0.1:80/').getHostname() == '127.0.0.1'",
        "url('https://[fe80::1%25en0]/').getHostname() == 'fe80::1%en0'",
        "url('https://example.com:80/').getPort() == '80'",
        "url('https://example.com/').getPort() == '' && url('/path').getPort() == ''",
        "url('https://example.com/path').getEscapedPath() == '/path'",
        "url('https://example.com/with spaces/').getEscapedPath() == '/with%20spaces/'",
        "url('https://example.com').getEscapedPath() == ''",
        "url('/a%2fb').getEscapedPath() == '/a%2fb' && url('/ä').getEscapedPath() == '/%C3%A4'",
        "url('/p#f').getEscapedPath() == '/p' && url('/p?a=1#f').getQuery() == {'a': ['1']}",
        "url('https://h/p?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "url('/p?key with+spaces=a%20b&&%zz=1&a;b').getQuery() == {'key with spaces': ['a b']}",
        "url('/p?').getQuery() == {} && url('/p').getQuery() == {}",
        "url('//host/p').getHost() == 'host' && url('mailto:a@b').getScheme() == 'mailto'",
        "url('https://a/b') == url('HTTPS://a/b') && url('/a') != url('/b')",
        "url(device.attributes['d'].home).getPort() == '8443'",
        "cel.bind(u, url(device.attributes['d'].home), u.getQuery()['k'] == ['1'])",
    ]);
}

#[test]
fn what_is_a_url() {
    all_hold(&[
        "isURL('https://user:pass@example.com:80/path?query=val#fragment')",
        "isURL('/absolute-path') && isURL('*') && isURL('x:opaque')",
        "!isURL('../relative-path') && !isURL('') && !isURL('relative')",
        "!isURL('https://a:b:c/') && !isURL('https://[::1/') && !isURL('https://[::1]x/')",
        "!isURL(':foo') && !isURL('https://a b/') && !isURL('/%zz') && !isURL('/%2')",
        "!isURL('https://%41/') && isURL('https://%c3%a4/') && !isURL('https://a<b@h/')",
        "!isURL('/a\\nb')",
    ]);
    let error = eval("url('../a').getHost() == ''").unwrap_err();
    let text =
        "URL parse error during conversion from string: parse \"../a\": invalid URI for request";
    assert!(matches!(&error, SelectorError::Runtime(_)), "{error}");
    assert!(error.to_string().contains(text), "{error}");
    let error = eval("url('https://a:b:c/').getHost() == ''").unwrap_err();
    assert!(error.to_string().contains("invalid port \":c\" after host"), "{error}");
}

#[test]
fn texts_in_their_formats() {
    for (format, good, bad) in [
        ("dns1123Label", "my-label", "has.dots"),
        ("dns1123Label", "0", "Upper"),
        ("dns1123Subdomain", "apps.k8s.io", "apps..io"),
        ("dns1035Label", "a-1", "1-a"),
        ("qualifiedName", "apps.k8s.io/v1beta1", "a/b/c"),
        ("qualifiedName", "My.name_1", "/name"),
        ("dns1123LabelPrefix", "my-label-", "-"),
        ("dns1123SubdomainPrefix", "sub.prefix.-", "sub..x-"),
        ("dns1035LabelPrefix", "a-", "1a-"),
        ("labelValue", "", "-a"),
        ("labelValue", "My-Value", "a b"),
        ("uri", "http://example.com", "../a"),
        ("uuid", "123E4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400"),
        ("uuid", "123e4567e89b12d3a456426614174000", "g23e4567-e89b-12d3-a456-426614174000"),
        ("byte", "aGVsbG8=", "aGVsbG8"),
        ("byte", "aGVs", ""),
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2021-12-31", "2021-13-01"),
        ("datetime", "2021-01-01T00:00:00Z", "2021-01-32T00:00:00Z"),
        ("datetime", "2021-01-01t23:59:59.5+02:00", "2021-01-01T24:00:00Z"),
        ("datetime", "2021-01-01T00:00:00-00:30", "2021-01-01T00:00:00"),
    ] {
        all_hold(&[
            &format!("!format.{format}().validate('{good}').hasValue()"),
            &format!("format.{format}().validate('{bad}').hasValue()"),
            &format!("format.named('{format}').value() == format.{format}()"),
        ]);
    }
    all_hold(&[
        "!format.named('unknown').hasValue() && format.uri() != format.uuid()",
        "!format.dns1123Label().validate(device.attributes['d'].model).hasValue()",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
        "format.dns1035Label().validate('a b').value()[0].endsWith(\"(e.g. 'my-name',  or 'abc-123', \
         regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')\")",
        "format.qualifiedName().validate('').value()[0] == 'name part must be non-empty'",
        "format.uri().validate('').value() == ['parse \"\": empty url']",
    ]);
    let long = "a".repeat(64);
    let problem = "['must be no more than 63 bytes']";
    all_hold(&[&format!("format.labelValue().validate('{long}').value() == {problem}")]);
}

#[test]
fn comprehensions_of_two_variables() {
    all_hold(&[
        "[1, 2, 3].all(i, v, v == i + 1) && !{'a': 1}.all(k, v, k == 'b')",
        "{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2) && ![1].exists(i, v, i == v)",
        "[1, 1].existsOne(i, v, i == 1) && ![1, 1].exists_one(i, v, v == 1)",
        "[1, 2, 3].transformList(i, v, i * v) == [0, 2, 6]",
        "[1, 2, 3].transformList(i, v, v != 2, v * 10) == [10, 30]",
        "{'b': 1, 'a': 2}.transformList(k, v, k) == ['a', 'b']",
        "[1, 2].transformMap(i, v, v * v) == {0: 1, 1: 4}",
        "{'a': 1, 'b': 2}.transformMap(k, v, v == 2, k) == {'b': 'b'}",
        "{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k}) == {'x': 'a', 'y': 'b'}",
        "['a', 'b'].transformMapEntry(i, v, i == 1, {v: i}) == {'b': 1}",
        "[[1, 2], [3]].all(i, l, l.all(j, v, v == 2 * i + j + 1))",
        "[].all(i, v, false) && {}.transformMap(k, v, k) == {}",
        "device.attributes['d'].exists(k, v, k == 'model' && v == 'a100')",
        "device.attributes.exists(d, ids, d == 'd' && ids.home.startsWith('https'))",
        "device.attributes.exists(d, 'model' in device.attributes[d])",
        "device.attributes.size() == 1 && device.capacity.all(d, false)",
        // As with one variable, an error does not matter where another element decides.
        "{'a': 0, 'b': 1}.exists(k, v, 1 / v == 1)",
        "![0, 1].all(i, v, 1 / v == 2)",
        "url('/?a=1&b=2').getQuery().exists(k, v, k == 'b' && v == ['2'])",
    ]);
    let twice = "{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}) == {}";
    let error = eval(twice).unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    let error = eval("[1].all(i + 1, v, true)").unwrap_err();
    assert!(error.to_string().contains("argument must be a simple name"), "{error}");
    assert!(matches!(eval("5.all(i, v, true)"), Err(SelectorError::Runtime(_))));
}

#[test]
fn their_cost_is_bounded_too() {
    let all = "device.attributes['d'].all(k, v, ";
    let nested = |n: usize| format!("{}true{}", all.repeat(n), ")".repeat(n));
    assert!(Selector::compile(&nested(2)).is_ok());
    for expression in [
        nested(5),
        format!("url('/?{}').getQuery().size() == 0", "a=b&".repeat(2_600)),
        "['a'].transformList(i, v, v)".to_owned()
            + &".transformList(i, v, [v, v, v, v, v, v, v, v])".repeat(12)
            + " == []",
    ] {
        let error = Selector::compile(&expression).unwrap_err();
        assert!(matches!(error, SelectorError::Compile(_)), "{error}");
    }
}

#[test]
fn keys_of_maps_are_gone_through_in_order() {
    all_hold(&[
        "{'f': 1, 'd': 2, 'b': 3, 'a': 4, 'c': 5, 'e': 6}.map(k, k) == \
         ['a', 'b', 'c', 'd', 'e', 'f']",
        "{5: 1, 3: 2, 1: 3, 2: 4, 4: 5}.filter(k, k > 1) == [2, 3, 4, 5]",
        "{'f': 1, 'd': 2, 'b': 3, 'a': 4, 'c': 5, 'e': 6}.map(k, k > 'b', k + k)[1] == 'dd'",
        "[{'d': 1, 'b': 2, 'a': 3, 'c': 4}].map(m, m.map(k, k)) == [['a', 'b', 'c', 'd']]",
        "cel.bind(m, {'d': 1, 'b': 2, 'a': 3, 'c': 4}, m.map(k, m[k])) == [3, 2, 4, 1]",
    ]);
    let of_a_number = SelectorError::Runtime("Unexpected type: got 'int', want 'iterable'".into());
    assert_eq!(eval("7.map(k, k) == []"), Err(of_a_number));
}
