//! Answers and the schema. Specification: answers.md 13, case 68.

use jsonschema::Validator;
use serde_json::Value;

use crate::redaction::answers_of;

const SCHEMA: &str = include_str!("../../../../docs/answers.schema.json");

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

fn closed_schema() -> Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

#[tokio::test]
async fn ans_71_every_answer_is_valid_by_the_schema() {
    let schema = closed_schema();
    for user in ["admin", "of-ml", "of-jobs"] {
        for (path, text) in answers_of(user).await {
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(schema.validate(&answer).map_err(|it| it.to_string()), Ok(()), "{path}");
        }
    }
}

#[tokio::test]
async fn ans_71_an_answer_with_another_field_is_not_valid() {
    let schema = closed_schema();
    let answers = answers_of("admin").await;
    for (path, text) in answers {
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer["asOf"]["phase"] = "full".into();
        assert!(!schema.is_valid(&answer), "{path}");
        answer["asOf"] = Value::Null;
        assert!(!schema.is_valid(&answer), "{path}");
    }
}
