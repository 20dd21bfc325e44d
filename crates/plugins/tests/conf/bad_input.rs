//! Broken and hostile files: each gives an error with its place and a remedy, never a panic.

use vc_conf::parse;

use crate::support::all;

fn refuse(text: &str) -> String {
    match parse("test.conf", text, &all()) {
        Ok(loaded) => panic!("accepted: {loaded:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_error_names_place_field_problem_and_remedy() {
    let cases = [
        ("", "test.conf: actions: failed to find Action : the file is empty\nhint: name at"),
        ("# nothing\n", "test.conf: actions: failed to find Action : the file is empty\nhint: "),
        ("- a\n- b\n", "test.conf:1: the file: expected a map, found a list\nhint: write key"),
        ("enqueue\n", "test.conf:1: the file: expected a map, found a string\nhint: "),
        (
            "actions: [enqueue, allocate]\n",
            "test.conf:1: actions: expected a string, found a list\nhint: write one string with",
        ),
        (
            "actions: allocate\ntiers:\n  plugins:\n  - name: gang\n",
            "test.conf:3: tiers: expected a list, found a map\nhint: begin each entry of tiers",
        ),
        (
            "actions: allocate\ntiers:\n- - name: gang\n",
            "test.conf:3: tiers[0]: expected a map, found a list\nhint: write key: value",
        ),
        (
            "actions: allocate\ntiers:\n- plugins: gang\n",
            "test.conf:3: tiers[0].plugins: expected a list, found a string\nhint: begin each",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - gang\n",
            "test.conf:4: tiers[0].plugins[0]: expected a map, found a string\nhint: write key",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: [gang]\n",
            "test.conf:4: tiers[0].plugins[0].name: expected a string, found a list\nhint: ",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: sla\n    arguments: [a]\n",
            "test.conf:5: tiers[0].plugins[0].arguments: expected a map, found a list\nhint: ",
        ),
        (
            "actions: allocate\nconfigurations: {name: allocate}\n",
            "test.conf:2: configurations: expected a list, found a map\nhint: begin each",
        ),
        (
            "actions: allocate\nmetrics: {type: [prometheus]}\n",
            "test.conf:2: metrics.type: expected a string, found a list\nhint: write a single",
        ),
        (
            "actions: allocate\n? [a]\n: b\n",
            "test.conf:2: the file: expected a key, found a list\nhint: write a plain word",
        ),
    ];
    for (text, expected) in cases {
        let error = refuse(text);
        assert!(error.starts_with(expected), "{text:?}:\n{error}\nnot\n{expected}");
    }
}

#[test]
fn yaml_that_cannot_be_read() {
    let cases = [
        ("actions: allocate\ntiers:\n\t- plugins:\n", "test.conf:3: YAML syntax: ", "spaces"),
        ("actions: allocate\ntiers: [{plugins: [", "test.conf:2: YAML syntax: ", "cut off"),
        ("actions: \"allocate\ntiers:\n", "YAML syntax: ", "cut off"),
        ("actions: allocate: x\n", "test.conf:1: YAML syntax: ", "quotes"),
        ("actions: *a\n", "test.conf:1: YAML syntax: ", "anchor"),
        ("actions: a\ntiers: &t [*t]\n", "test.conf:2: YAML syntax: ", "itself"),
        ("actions: a\n<<: 5\n", "test.conf:2: YAML syntax: ", "map"),
        ("actions: a\n  tiers: b\n", "YAML syntax: ", "quotes"),
        ("actions: a\u{0}b\n", "test.conf:1: YAML syntax: ", "check"),
        ("a:\n  - b\n c: d\n", "test.conf:3: YAML syntax: ", "align"),
    ];
    for (text, place, hint) in cases {
        let error = refuse(text);
        assert!(error.contains(place), "{text:?}: {error}");
        let remedy = error.split("\nhint: ").nth(1).unwrap_or_default();
        assert!(remedy.contains(hint), "{text:?}: {error}");
    }
}

#[test]
fn every_truncation_of_a_file_is_refused_or_read() {
    let text = vc_conf::CHART;
    for end in 0..text.len() {
        if let Err(error) = parse("test.conf", &text[..end], &all()) {
            assert!(error.to_string().contains("\nhint: "), "{end}: {error}");
        }
    }
}

#[test]
fn huge_nesting() {
    let brackets = format!("actions: allocate\ntiers: {}", "[".repeat(100_000));
    let indents: String = (0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let anchors: String = (1..40).map(|at| format!("a{at}: &a{at} [*a{}]\n", at - 1)).collect();
    for text in [brackets, indents, format!("a0: &a0 [x]\n{anchors}")] {
        let error = refuse(&text);
        assert!(error.contains("YAML syntax: nested too deeply or too large"), "{error}");
    }
}

#[test]
fn an_alias_bomb() {
    let mut text = "actions: allocate\na0: &a0 [x]\n".to_owned();
    for at in 1..12 {
        let uses = format!("*a{}, ", at - 1).repeat(9);
        text += &format!("a{at}: &a{at} [{uses}x]\n");
    }
    let error = refuse(&text);
    assert!(error.contains("nested too deeply or too large"), "{error}");
}

#[test]
fn structured_arguments_of_the_wrong_shape() {
    let head = "actions: allocate\ntiers:\n- plugins:\n  - name: ";
    let cases = [
        (
            "extender\n    arguments:\n      extender.managedResources: {a: b}\n",
            "test.conf:6: tiers[0].plugins[0].arguments.extender.managedResources: expected a \
                list of strings, found {\"a\":\"b\"}\nhint: see the arguments of extender in",
        ),
        (
            "predicates\n    arguments:\n      volumebinding.weight: \"5\"\n",
            "test.conf:6: tiers[0].plugins[0].arguments.volumebinding.weight: expected a number, \
                found \"5\"\nhint: ",
        ),
        (
            "resource-strategy-fit\n    arguments:\n      resources:\n        cpu: 1\n",
            "test.conf:7: tiers[0].plugins[0].arguments.resources.cpu: expected a map, found 1",
        ),
    ];
    for (tail, expected) in cases {
        let error = refuse(&format!("{head}{tail}"));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn names_of_253_characters() {
    let name = "n".repeat(253);
    let error = refuse(&format!("actions: {name}\n"));
    assert!(error.starts_with(&format!("test.conf:1: actions: failed to find Action {name}\n")));
    let text = format!("actions: allocate\ntiers:\n- plugins:\n  - name: {name}\n    {name}: 1\n");
    let loaded = parse("test.conf", &text, &all()).unwrap();
    assert_eq!(loaded.missing[0].problem, format!("unknown plugin {name}, it is skipped"));
    assert_eq!(loaded.warnings[0].message, format!("unknown key {name}, it is ignored"));
}

#[test]
fn ten_thousand_arguments() {
    let lines: String = (0..10_000).map(|at| format!("      key-{at}: {at}\n")).collect();
    let head = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments:\n";
    let loaded = parse("test.conf", &format!("{head}{lines}"), &all()).unwrap();
    assert_eq!(loaded.warnings.len(), 10_000);
    assert_eq!(loaded.config.tiers[0].plugins[0].arguments.iter().count(), 10_000);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let error = refuse("actions: \"\\e[2J\"\n");
    assert!(error.contains("failed to find Action \\u{1b}[2J\n"), "{error}");
}
