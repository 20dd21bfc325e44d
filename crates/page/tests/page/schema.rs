//! Answers and the schemas of their routes. Specification: answers.md 13, case 68.

use jsonschema::Validator;
use serde_json::{Value, json};
use vc_page::{BASE, ROUTES, Route};

use crate::redaction::{answers_of, answers_to};
use crate::support::example_path;

const OPENAPI: &str = include_str!("../../../../docs/answers.openapi.json");

/// Refuses fields that the schema does not name. The schema itself permits them: fields are only added.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Returns the schema of the answers of a route, closed.
fn schema_of(route: &Route) -> Validator {
    let mut document: Value = serde_json::from_str(OPENAPI).unwrap();
    let method = if route.takes_body() { "post" } else { "get" };
    let answer = &document["paths"][format!("{BASE}{}", route.path)][method]["responses"]["200"];
    let reference = answer["content"]["application/json"]["schema"]["$ref"].clone();
    assert!(reference.is_string(), "{}: {answer}", route.path);
    close(&mut document["components"]);
    let schema = json!({"$ref": reference, "components": document["components"]});
    jsonschema::validator_for(&schema).unwrap()
}

/// Returns the schema of the route that answers this example.
fn schema_of_example(path: &str) -> Validator {
    let path = path.split('?').next().unwrap();
    let is_it = |route: &&Route| example_path(route).replace("/g1", "/machine-1") == path;
    schema_of(ROUTES.iter().find(is_it).unwrap())
}

#[tokio::test]
async fn ans_71_every_answer_is_valid_by_the_schema_of_its_route() {
    for user in ["admin", "of-ml", "of-jobs"] {
        let answers = answers_of(user).await;
        assert!(8 < answers.len(), "{}", answers.len());
        for (path, text) in answers {
            let answer: Value = serde_json::from_str(&text).unwrap();
            let valid = schema_of_example(&path).validate(&answer).map_err(|it| it.to_string());
            assert_eq!(valid, Ok(()), "{path}");
        }
    }
}

/// Returns queries with each parameter of the route alone, and with all of them.
fn queries(route: &Route) -> Vec<String> {
    let value = |name: &str| match name {
        "kind" => "podgroup",
        "controllerUid" => "",
        "depth" => "quick",
        "when" => "true",
        "queue" => "research",
        "code" => "GangShort",
        "namespace" => "ml",
        "from" | "to" => "1h",
        // Numbers.
        _ => "1",
    };
    let each: Vec<String> =
        route.query.iter().map(|name| format!("{name}={}", value(name))).collect();
    let all = each.join("&");
    each.into_iter().chain([all]).map(|query| format!("?{query}")).collect()
}

#[tokio::test]
async fn ans_71_answers_to_questions_with_parameters_are_valid_too() {
    let answers = answers_to("admin", queries).await;
    let n_queries: usize = ROUTES.iter().map(|route| route.query.len()).sum();
    assert!(n_queries < answers.len(), "{n_queries} {}", answers.len());
    for (path, text) in answers {
        let answer: Value = serde_json::from_str(&text).unwrap();
        let valid = schema_of_example(&path).validate(&answer).map_err(|it| it.to_string());
        assert_eq!(valid, Ok(()), "{path}");
    }
}

#[tokio::test]
async fn ans_71_another_field_or_another_document_is_not_valid() {
    let answers = answers_of("admin").await;
    let (_, of_nodes) = answers.iter().find(|(path, _)| path == "nodes").unwrap();
    let of_nodes: Value = serde_json::from_str(of_nodes).unwrap();
    for (path, text) in &answers {
        let schema = schema_of_example(path);
        assert_eq!(schema.is_valid(&of_nodes), path == "nodes", "{path}");
        let mut answer: Value = serde_json::from_str(text).unwrap();
        answer["asOf"]["phase"] = "full".into();
        assert!(!schema.is_valid(&answer), "{path}");
        answer["asOf"] = Value::Null;
        assert!(!schema.is_valid(&answer), "{path}");
    }
}
