//! A configuration without its secrets, for files that leave the process. Specification: answers.md 12
//! (ANS-84).

use serde_json::Value;

use crate::file::Config;

/// Parts of keys whose values are secret.
const SECRET_KEYS: [&str; 9] = [
    "token",
    "password",
    "passwd",
    "secret",
    "credential",
    "authorization",
    "bearer",
    "apikey",
    "privatekey",
];
/// What stands in place of a secret.
const HIDDEN: &str = "***";

impl Config {
    /// Returns the configuration with `***` in place of secret values: those of keys that name a token,
    /// password, secret, credential or authorization, and user and password in URLs.
    #[must_use]
    pub fn without_secrets(&self) -> Config {
        let mut config = self.clone();
        let plugins = config.tiers.iter_mut().flat_map(|tier| &mut tier.plugins);
        let arguments = plugins.map(|plugin| &mut plugin.arguments);
        let actions = config.configurations.iter_mut().map(|action| &mut action.arguments);
        for arguments in arguments.chain(actions) {
            arguments.iter_mut().for_each(|(key, value)| hide(key, value));
        }
        for (key, text) in &mut config.metrics {
            match is_secret(key) {
                true => *text = HIDDEN.to_owned(),
                false => hide_user(text),
            }
        }
        config
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace(['-', '_', '.'], "");
    SECRET_KEYS.iter().any(|part| key.contains(part))
}

fn hide(key: &str, value: &mut Value) {
    match value {
        Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| hide(key, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(key, item)),
        Value::Null => {}
        _ if is_secret(key) => *value = HIDDEN.into(),
        Value::String(text) => hide_user(text),
        Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hide_user(text: &mut String) {
    *text = without_users(text);
}

/// Returns the text with `***` in place of users and passwords in URLs: what stands between `://` and `@`.
pub fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        hidden.push_str("://");
        let end = part.find(['/', '?', '#', ' ', ',']).unwrap_or(part.len());
        match part[..end].rfind('@') {
            Some(at) => hidden.extend([HIDDEN, &part[at..]]),
            None => hidden.push_str(part),
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::file::{ActionConfig, PluginOption, Tier};

    #[test]
    fn ans_102_secrets_are_hidden_wherever_they_stand() {
        let mut plugin = PluginOption { name: "extender".into(), ..PluginOption::default() };
        plugin.arguments.set("extender.urlPrefix", json!("https://me:marker@host/path@x"));
        plugin.arguments.set("extender.headers", json!([{ "authToken": "marker", "b": 1 }]));
        plugin.arguments.set("extender.weight", json!(3));
        let mut action = ActionConfig { name: "preempt".into(), ..ActionConfig::default() };
        action.arguments.set("Password", json!(5));
        let metrics = [
            ("elasticsearch.password", "marker"),
            ("elasticsearch.username", "me"),
            ("address", "http://me:marker@host:9090,https://me:marker@other"),
            ("x-api-key", "marker"),
        ];
        let config = Config {
            tiers: vec![Tier { plugins: vec![plugin] }],
            configurations: vec![action],
            metrics: metrics.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..Config::default()
        };
        let hidden = config.without_secrets();
        assert!(!format!("{hidden:?}").contains("marker"), "{hidden:?}");
        let arguments = &hidden.tiers[0].plugins[0].arguments;
        let url = json!("https://***@host/path@x");
        assert_eq!(arguments.get("extender.urlPrefix"), Some(&url));
        let headers = json!([{ "authToken": "***", "b": 1 }]);
        assert_eq!(arguments.get("extender.headers"), Some(&headers));
        assert_eq!(arguments.get("extender.weight"), Some(&json!(3)));
        assert_eq!(hidden.configurations[0].arguments.get("Password"), Some(&json!("***")));
        assert_eq!(hidden.metrics["elasticsearch.username"], "me");
        assert_eq!(hidden.metrics["address"], "http://***@host:9090,https://***@other");
    }
}
