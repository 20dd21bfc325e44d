//! Values of an answer as the page has to show them.

use serde_json::Value;

/// Returns a value as text, or the dash of what is missing.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the rows of a list of an answer.
pub(crate) fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn joined(values: &Value, between: &str) -> String {
    rows(values).iter().map(text).collect::<Vec<_>>().join(between)
}

/// Returns the fields of an object, each as name and value.
pub(crate) fn fields(value: &Value) -> Vec<(&str, &Value)> {
    let object = value.as_object().into_iter().flatten();
    object.map(|(name, value)| (name.as_str(), value)).collect()
}

pub(crate) fn amounts(value: &Value) -> String {
    let parts = fields(value).into_iter().map(|(name, amount)| format!("{} {name}", text(amount)));
    parts.collect::<Vec<_>>().join(", ")
}

pub(crate) fn share(value: &Value) -> String {
    value.as_f64().map_or("–".to_owned(), |share| format!("{share:.2}"))
}

/// Returns `1 job`, `2 jobs`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a number of percent.
pub(crate) fn percent(value: &Value) -> String {
    if value.is_null() { "–".to_owned() } else { format!("{value} %") }
}

/// Returns the two largest units of a duration.
pub(crate) fn duration(seconds: &Value) -> String {
    let Some(mut left) = seconds.as_u64() else { return "–".to_owned() };
    let mut parts = Vec::new();
    for (size, unit) in [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")] {
        if size <= left {
            parts.push(format!("{}{unit}", left / size));
        }
        left %= size;
    }
    parts.truncate(2);
    if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
}

/// Day on which the cycle of a cluster as text is.
const TODAY: &str = "2026-01-01";

/// Returns a time as it stands in an answer about a cluster as text.
pub(crate) fn clock(time: &Value) -> String {
    let Some((day, clock)) = time.as_str().and_then(|it| it.split_once('T')) else {
        return "–".to_owned();
    };
    let clock = clock.trim_end_matches('Z').split('.').next().unwrap();
    let clock = clock.strip_suffix(":00").filter(|it| it.len() == 5).unwrap_or(clock);
    if day == TODAY { clock.to_owned() } else { format!("{day} {clock}") }
}

/// Returns what a what-if has done in one sentence.
pub(crate) fn result(answer: &Value) -> String {
    let count = |name: &str| rows(&answer[name]).len();
    let settled = if answer["settled"] == true { "settled" } else { "not settled" };
    format!(
        "{} placed, {} evicted, {} wait ({}, {settled})",
        count("placed"),
        count("evicted"),
        count("waiting"),
        counted(answer["cycles"].as_u64().unwrap(), "cycle"),
    )
}

/// Returns rows without their order.
pub(crate) fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

/// Returns a row of texts.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_texts_of_the_page() {
        assert_eq!(duration(&json!(5_400)), "1h30m");
        assert_eq!(duration(&json!(0)), "0s");
        assert_eq!(clock(&json!("2026-01-01T10:40:00Z")), "10:40");
        assert_eq!(clock(&json!("2026-01-02T10:40:05.25Z")), "2026-01-02 10:40:05");
        assert_eq!(percent(&json!(42)), "42 %");
        assert_eq!(percent(&Value::Null), "–");
    }
}
