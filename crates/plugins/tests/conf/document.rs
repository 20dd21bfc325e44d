//! The tables of docs/configuration.md, and the schema, follow from what plugins and actions declare.
//! `UPDATE_DOCS=1` writes them.

use serde_json::{Map, Value, json};
use vc_conf::{ACTIONS, DeclaredArgument, PluginDeclaration, arguments_of};

use crate::support::declarations;

type Arguments = &'static [&'static dyn DeclaredArgument];

const PAGE: &str = "docs/configuration.md";
const SCHEMA: &str = "config/volcano-scheduler.schema.json";

/// The key as the page shows it.
fn key_text(argument: &dyn DeclaredArgument) -> String {
    argument.key().trim_start_matches('*').replace('*', "<name>")
}

/// The rows of a plugin or an action; its name stands in the first one.
fn rows(owner: &str, arguments: Arguments) -> String {
    let row = |first: &str, key: &str, argument: &dyn DeclaredArgument| {
        let (kind, _) = argument.describe();
        let (default, about) = (argument.default_text(), argument.about());
        format!("| {first} | {key} | {kind} | {default} | {about} |\n")
    };
    let mut text = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        let first = if at == 0 { owner } else { "" };
        text += &row(first, &format!("`{}`", key_text(*argument)), *argument);
        for part in argument.parts() {
            text += &row("", &format!("… `{}`", part.key()), *part);
        }
    }
    text.replace("|  |", "| |")
}

fn is_built(plugin: &PluginDeclaration) -> bool {
    vc_plugins::ALL.iter().any(|entry| entry.name() == plugin.name)
}

fn plugin_tables() -> String {
    let declarations = declarations();
    let (with, without): (Vec<PluginDeclaration>, Vec<PluginDeclaration>) =
        declarations.into_iter().partition(|plugin| !plugin.arguments.is_empty());
    let without: Vec<String> = without.iter().map(|plugin| format!("`{}`", plugin.name)).collect();
    let mut text = format!("Without arguments: {}.\n\n", without.join(", "));
    text += "| Plugin | Key | Type | Default | Meaning |\n|---|---|---|---|---|\n";
    for plugin in with {
        let unbuilt = if is_built(&plugin) { "" } else { " (not built)" };
        text += &rows(&format!("`{}`{unbuilt}", plugin.name), plugin.arguments);
    }
    text
}

fn action_table() -> String {
    let mut text =
        "| Action | Key | Type | Default | Meaning |\n|---|---|---|---|---|\n".to_owned();
    for action in ACTIONS.iter().filter(|action| !arguments_of(action).is_empty()) {
        text += &rows(&format!("`{action}`"), arguments_of(action));
    }
    text
}

/// The page with the text between the marks replaced.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no mark {start}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no mark {end}"));
    format!("{before}{start}\n{table}\n{end}{after}")
}

fn argument_schema(argument: &dyn DeclaredArgument) -> Value {
    let (_, mut schema) = argument.describe();
    for part in argument.parts() {
        schema["properties"][part.key()] = argument_schema(*part);
    }
    let default = argument.default_text();
    let texts = [argument.about(), format!("default: {default}")];
    let texts = texts.into_iter().filter(|text| !text.is_empty() && text != "default: ");
    schema["description"] = texts.collect::<Vec<_>>().join("; ").replace('`', "").into();
    schema
}

fn arguments_schema(arguments: Arguments) -> Value {
    let (mut properties, mut patterns) = (Map::new(), Map::new());
    for argument in arguments {
        let (key, schema) = (argument.key(), argument_schema(*argument));
        if let Some(alias) = argument.alias() {
            properties.insert(alias.to_owned(), schema.clone());
        }
        match key.trim_matches('*') {
            plain if plain == key => properties.insert(key.to_owned(), schema),
            part => {
                let start = if key.starts_with('*') { "" } else { "^" };
                patterns.insert(format!("{start}{}", part.replace('.', "\\.")), schema)
            }
        };
    }
    let mut schema = json!({"type": ["object", "null"], "additionalProperties": false});
    let groups = [("properties", properties), ("patternProperties", patterns)];
    for (name, group) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
        schema[name] = group.into();
    }
    schema
}

/// Writes into the schema what the entries of `group` in the file may hold.
fn add_group(schema: &mut Value, group: &str, entry: &str, owners: &[(&str, Arguments)]) {
    let names: Vec<&str> = owners.iter().map(|(name, _)| *name).collect();
    let condition = |name: &&str| {
        let arguments = json!({"$ref": format!("#/$defs/{group}/{name}")});
        json!({
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"arguments": arguments}},
        })
    };
    schema["$defs"][entry]["allOf"] = names.iter().map(condition).collect();
    schema["$defs"][entry]["properties"]["name"]["enum"] = json!(names);
    let of =
        |(name, arguments): &(&str, Arguments)| ((*name).to_owned(), arguments_schema(arguments));
    schema["$defs"][group] = owners.iter().map(of).collect::<Map<_, _>>().into();
}

/// JSON with each value on one line that has room there.
fn pretty(value: &Value, indent: usize) -> String {
    const WIDTH: usize = 100;
    let join = |items: Vec<String>, (open, close): (char, char)| {
        let line = items.join(", ");
        if !line.contains('\n') && indent + line.len() < WIDTH {
            return format!("{open}{line}{close}");
        }
        let inner = " ".repeat(indent + 2);
        let lines = items.join(&format!(",\n{inner}"));
        format!("{open}\n{inner}{lines}\n{}{close}", " ".repeat(indent))
    };
    match value {
        Value::Object(map) => {
            let entry = |(key, value)| format!("{:#}: {}", json!(key), pretty(value, indent + 2));
            join(map.iter().map(entry).collect(), ('{', '}'))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| pretty(item, indent + 2));
            join(items.collect(), ('[', ']'))
        }
        plain => plain.to_string(),
    }
}

/// Compares a file of the project, or writes it.
fn compare(path: &str, is_equal: impl Fn(&str) -> bool, wanted: impl Fn(&str) -> String) {
    let file = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    if is_equal(&text) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "{path} is old\nhint: UPDATE_DOCS=1 cargo test -p vc-plugins --test conf document"
    );
    std::fs::write(&file, wanted(&text)).unwrap_or_else(|error| panic!("{file}: {error}"));
}

#[test]
fn the_page_has_the_tables_of_the_declared_arguments() {
    let wanted = |page: &str| {
        let page = with_table(page, "arguments of plugins", &plugin_tables());
        with_table(&page, "arguments of actions", &action_table())
    };
    compare(PAGE, |page| wanted(page) == page, wanted);
}

#[test]
fn the_schema_has_the_declared_arguments() {
    let wanted = |text: &str| {
        let mut schema: Value = serde_json::from_str(text).expect("the schema is JSON");
        let plugins = declarations();
        let plugins: Vec<_> = plugins.iter().map(|one| (one.name, one.arguments)).collect();
        let actions: Vec<_> = ACTIONS.iter().map(|name| (*name, arguments_of(name))).collect();
        add_group(&mut schema, "pluginArguments", "plugin", &plugins);
        add_group(&mut schema, "actionArguments", "action", &actions);
        schema
    };
    let is_equal =
        |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|it| it == wanted(text));
    compare(SCHEMA, is_equal, |text| pretty(&wanted(text), 0) + "\n");
}
