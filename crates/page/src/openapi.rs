//! The OpenAPI document, out of the table of routes and the types. Specification: answers.md 11
//! (ANS-71).

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::cluster::{
    HyperNodeJson, ListJson, NodeJson, NodeLabelJson, OneJson, QueueJson, SummaryJson,
    WaitingJobJson,
};
use crate::document::Document;
use crate::explanation::ExplanationJson;
use crate::problem::StatusJson;
use crate::routes::{ROUTES, Route, RouteAnswer};
use crate::runs::RunJson;
use crate::server::BUNDLE_TYPE;
use crate::timeline::{CycleJson, TimelineJson};
use crate::what_if::WhatIfResultJson;

/// Returns the document.
pub fn document() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let mut paths = Map::new();
    for route in ROUTES {
        let method = if route.takes_body() { "post" } else { "get" };
        let operation = json!({method: operation(route, &mut generator)});
        paths.extend(route.paths().map(|path| (path, operation.clone())));
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Answers of vc-scheduler",
            "description": "Why jobs wait, what would let them start, and who is before them.",
            "version": "v1",
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    })
}

/// Returns the JSON Schema of all answers.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Document).to_value();
    schema["title"] = "An answer of vc-scheduler".into();
    schema
}

/// Returns the reference to the schema of an answer.
fn schema_of(name: &str, generator: &mut SchemaGenerator) -> Value {
    fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
        generator.subschema_for::<T>().to_value()
    }
    match name {
        "Explanation" => reference::<ExplanationJson>(generator),
        "ExplanationList" => reference::<ListJson<ExplanationJson>>(generator),
        "RunList" => reference::<ListJson<RunJson>>(generator),
        "QueueList" => reference::<ListJson<QueueJson>>(generator),
        "Queue" => reference::<OneJson<QueueJson>>(generator),
        "Line" => reference::<ListJson<WaitingJobJson>>(generator),
        "NodeList" => reference::<ListJson<NodeJson>>(generator),
        "NodeLabelList" => reference::<ListJson<NodeLabelJson>>(generator),
        "Node" => reference::<OneJson<NodeJson>>(generator),
        "HyperNodeList" => reference::<ListJson<HyperNodeJson>>(generator),
        "Summary" => reference::<OneJson<SummaryJson>>(generator),
        "Timeline" => reference::<OneJson<TimelineJson>>(generator),
        "CycleList" => reference::<ListJson<CycleJson>>(generator),
        "WhatIfResult" => reference::<WhatIfResultJson>(generator),
        _ => reference::<StatusJson>(generator),
    }
}

/// Returns what a parameter means. Returns `None` where its name says so.
fn parameter_about(name: &str) -> Option<&'static str> {
    match name {
        "depth" => Some(
            "full, or quick: without blocking, unblock and evict, which take most of the time.",
        ),
        "when" => Some(
            "true: with start. With depth=quick as well the answer has start, but neither blocking nor \
             unblock nor evict, and no remedies are looked for.",
        ),
        "labels" => Some("Key of the label that each node of the list has."),
        _ => None,
    }
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{'));
    let in_path = in_path.map(|part| part.trim_end_matches('}'));
    let parameter = |name: &str, place: &str| {
        let kind = if matches!(name, "offset" | "limit" | "last" | "cycles") {
            "integer"
        } else {
            "string"
        };
        let schema = json!({"type": kind});
        let required = place == "path";
        let mut it = json!({"name": name, "in": place, "required": required, "schema": schema});
        if let Some(about) = parameter_about(name) {
            it["description"] = about.into();
        }
        it
    };
    let parameters: Vec<Value> = in_path
        .map(|name| parameter(name, "path"))
        .chain(route.query.iter().map(|name| parameter(name, "query")))
        .collect();
    let content = |schema: Value| json!({"application/json": {"schema": schema}});
    let answer = match route.answer {
        RouteAnswer::Bundle => {
            json!({ BUNDLE_TYPE: {"schema": {"type": "string", "format": "binary"}} })
        }
        _ => content(schema_of(route.schema, generator)),
    };
    let status = content(schema_of("Status", generator));
    let mut operation = json!({
        "summary": route.about,
        "description": format!("Needs the right to {} {}.", route.verb, route.resource),
        "parameters": parameters,
        "responses": {
            "200": {"description": route.about, "content": answer},
            "304": {"description": "What `If-None-Match` names is still the answer."},
            "default": {"description": "Why there is no answer.", "content": status},
        },
    });
    if route.takes_body() {
        let about = "A document WhatIf, or objects to apply, as YAML or JSON.";
        let body = content(json!({"type": "object"}));
        operation["requestBody"] = json!({"required": true, "description": about, "content": body});
    }
    operation
}
