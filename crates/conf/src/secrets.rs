//! A configuration without its secrets, for files that leave the process and for the log. Specification:
//! answers.md 15 (ANS-102).

use serde_json::Value;

use crate::file::Config;
use crate::render::render_config;

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

/// Hides a value, and whatever is in it, if the key is secret.
fn hide(key: &str, value: &mut Value) {
    match value {
        Value::Null => {}
        _ if is_secret(key) => *value = HIDDEN.into(),
        Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| hide(key, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(key, item)),
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

/// Returns the lines of a configuration for the log: the text as it is written, unless it may hold a secret. Then its content
/// is shown, with `***` in place of secret values: YAML has too many ways to write a value to take it out of the text.
pub fn lines_without_secrets(text: &str, config: &Config) -> Vec<String> {
    let hidden = config.without_secrets();
    let may_hold_secret = is_secret(text) || without_users(text) != text || hidden != *config;
    let shown = if may_hold_secret { render_config(&hidden) } else { text.to_owned() };
    shown.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::file::{ActionConfig, PluginOption, Tier};
    use crate::parse;
    use crate::registry::KnownNames;

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

    fn lines(text: &str) -> Vec<String> {
        let actions = &["enqueue", "allocate"];
        let known = KnownNames { plugins: &[], not_built: &[], actions };
        let loaded = parse("test.conf", text, &known).expect("it is a configuration");
        lines_without_secrets(text, &loaded.config)
    }

    /// Every way in which YAML lets a value stand somewhere else than behind its key.
    #[test]
    fn ans_102_lines_of_the_log_have_no_secrets() {
        for arguments in [
            "password: marker",
            "{weight: 1, api-key: marker}",
            "{extender.urlPrefix: \"http://me:marker@host\", extender.token: x}",
            "\n      token:\n# rotated monthly\n        marker",
            "\n      tokens:\n      -\n        marker\n      - marker",
            "\n      token: |\n        marker\n\n        marker",
            "{weight: 1, password:\n        marker}",
            "\n      token for prod: marker\n      \"pass\\x77ord\": marker",
            "\n      credentials: {user: me, value: marker}",
            "\n      address: http://me:marker@host:9090",
        ] {
            let arguments = match arguments.starts_with('\n') || arguments.starts_with('{') {
                true => arguments.to_owned(),
                false => format!("\n      {arguments}"),
            };
            let text = format!(
                "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: extender\n    arguments: {arguments}\n"
            );
            let lines = lines(&text);
            // This crate knows no plugin, so nothing of its arguments is in force.
            assert!(!lines.join("\n").contains("marker"), "{text}\n{lines:#?}");
            assert_eq!(lines[0], "actions, in this order:", "{text}");
        }
    }

    #[test]
    fn ans_102_a_configuration_without_secrets_is_logged_as_it_is() {
        let text = "# of team a\nactions: \"enqueue, allocate\"\n\ntiers:\n- plugins:\n  - name: gang # all or none\n    \
            enabledPreemptable: false\n";
        assert_eq!(lines(text), text.lines().collect::<Vec<_>>());
        for comment in ["# password: marker", "# see http://me:marker@host"] {
            let commented = format!("{text}{comment}\n");
            assert!(!lines(&commented).join("\n").contains("marker"), "{comment}");
        }
    }
}
