//! A configuration without its secrets, for files that leave the process and for the log. Specification:
//! answers.md 12 (ANS-84), 15 (ANS-102).

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

/// Returns the lines of the text of a configuration with `***` in place of secret values. What stands below a secret
/// key, further to the right or as a list, is left out.
pub fn lines_without_secrets(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // Column of the secret key whose value the next lines may belong to.
    let mut open: Option<usize> = None;
    for line in text.lines() {
        let content = line.trim_start();
        let column = line.len() - content.len();
        let is_below = open.is_some_and(|key| {
            key < column || content.is_empty() || key == column && content.starts_with("- ")
        });
        if is_below {
            continue;
        }
        open = None;
        match secret_key(line) {
            Some((key, end)) => {
                open = Some(key);
                let value = line[end..].trim_start();
                let is_comment = value.is_empty() || value.starts_with('#');
                let hidden = if is_comment { String::new() } else { format!(" {HIDDEN}") };
                lines.push(format!("{}{hidden}", &line[..end]));
            }
            None => lines.push(without_users(line)),
        }
    }
    lines
}

/// Returns the column of the first secret key in a line, and the end of its colon.
fn secret_key(line: &str) -> Option<(usize, usize)> {
    let is_of_key =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '"' | '\'');
    line.match_indices(':').find_map(|(colon, _)| {
        let before = line[..colon].trim_end();
        let start = before.rfind(|c| !is_of_key(c)).map_or(0, |at| at + 1);
        // A key that begins with a character of several bytes begins later.
        let key = before.get(start..).unwrap_or_default();
        is_secret(key).then_some((start, colon + 1))
    })
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

    #[test]
    fn ans_102_lines_of_the_log_have_no_secrets() {
        let text = "actions: \"allocate\"\n# password: marker\ntiers:\n- plugins:\n  - name: nodeorder\n    arguments:\n      \
            prometheus.password: marker\n      other: kept\n      token: |\n        marker\n\n        marker\n      \
            list-of-secrets:\n      - marker\n      - marker\n      address: http://me:marker@host:9090\n  \
            - name: x\n    arguments: {weight: 1, api-key: marker}\n    \"authToken\": \"marker\"\n  \
            - Secret : marker\n    next: kept\nmetrics: # a comment\n  bearer: marker\n  last: kept";
        let lines = lines_without_secrets(text);
        let told: Vec<&String> = lines.iter().filter(|line| line.contains("marker")).collect();
        assert_eq!(told, [""; 0]);
        let expected = "actions: \"allocate\"\n# password: ***\ntiers:\n- plugins:\n  - name: nodeorder\n    arguments:\n      \
            prometheus.password: ***\n      other: kept\n      token: ***\n      \
            list-of-secrets:\n      address: http://***@host:9090\n  \
            - name: x\n    arguments: {weight: 1, api-key: ***\n    \"authToken\": ***\n  \
            - Secret : ***\n    next: kept\nmetrics: # a comment\n  bearer: ***\n  last: kept";
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn ans_102_a_configuration_without_secrets_is_logged_as_it_is() {
        let text = "actions: \"enqueue, allocate\"\n\ntiers:\n- plugins:\n  - name: gang\n    enabledPreemptable: false\n";
        assert_eq!(lines_without_secrets(text), text.lines().collect::<Vec<_>>());
        assert_eq!(lines_without_secrets("ü: x\nñtokenñ: y"), ["ü: x", "ñtokenñ: ***"]);
    }
}
