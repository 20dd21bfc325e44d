//! The `metrics` section, the source of node load for the `usage` plugin (core.md 2.5).

use std::collections::BTreeMap;

use crate::error::Warning;
use crate::spelling::did_you_mean;

/// The keys of the section.
pub(crate) const KEYS: &[&str] = &[
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.hostnameFieldName",
    "elasticsearch.username",
    "elasticsearch.password",
];
/// Returns how a value is written: nested keys are part of the name of a key.
pub(crate) fn remedy_for(key: &str) -> String {
    let is_nested = |known: &&str| known.strip_prefix(key).is_some_and(|it| it.starts_with('.'));
    match KEYS.iter().find(|known| is_nested(known)) {
        Some(nested) => format!("write it in one line, as in {nested}: \"...\""),
        None => "write a single value".to_owned(),
    }
}

/// Sources, and whether they need an address.
const SOURCES: &[(&str, bool)] =
    &[("prometheus", true), ("prometheus_adaptor", false), ("elasticsearch", true)];

/// Warns of a section that collects nothing. An empty type means that nothing shall be collected.
pub(crate) fn check(
    values: &BTreeMap<String, String>,
    line: Option<usize>,
    warnings: &mut Vec<Warning>,
) {
    let text = |key: &str| values.get(key).map_or("", String::as_str);
    let source = text("type");
    if source.is_empty() {
        return;
    }
    match SOURCES.iter().find(|(name, _)| *name == source) {
        None => {
            let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
            let message = format!("unknown source {source}, no node load is collected");
            let remedy = did_you_mean(source, &names);
            warnings.push(Warning::new(line, "metrics.type", message, remedy));
        }
        Some((_, true)) if text("address").is_empty() => {
            let message = format!("{source} has no address, no node load is collected");
            let remedy = "write the base URL, as in address: http://prometheus:9090";
            warnings.push(Warning::new(line, "metrics.address", message, remedy));
        }
        Some(_) => {}
    }
}
