//! Configurations in the notation of the specification's legends: `gang{jobOrder jobReady}` is the
//! plugin with exactly these switches on, a bare name has the defaults, so has `{*}` beside the
//! switches named with it, `key=value` is an argument, `|` ends a tier.

use std::sync::OnceLock;

use vc_conf::{Config, KnownNames, PluginDeclaration, SWITCHES, Warning, parse};
use vc_engine::KNOWN;

/// Legend TA of actions.md.
pub(crate) const TA: &str = "gang{jobOrder jobReady jobPipelined jobStarving} \
    drf{preemptable jobOrder} proportion{queueOrder reclaimable allocatable} \
    predicates{predicate} nodeorder{nodeOrder}";

/// TA with the actions of most of its cases.
pub(crate) fn ta() -> Config {
    conf("enqueue, allocate", TA)
}

/// Actions and tiers; the plugin `scorer` exists only in tests that bring it along.
pub(crate) fn conf(actions: &str, tiers: &str) -> Config {
    let mut text = format!("actions: \"{actions}\"\ntiers:\n");
    for tier in tiers.split('|') {
        text.push_str("- plugins:\n");
        for entry in tier.split_inclusive('}').flat_map(entries) {
            text.push_str(&plugin(entry));
        }
    }
    let loaded =
        parse("test.conf", &text, &known()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Legend TP of actions.md has both, which the loader advises against, many cases have enqueue
    // beside actions that evict, and stories have plugins in any order.
    let advice =
        ["beside proportion", "cannot help a job that is not admitted", "stands behind fairshare"];
    let expected = |warning: &&Warning| advice.iter().any(|text| warning.message.contains(text));
    assert_eq!(loaded.warnings.iter().find(|warning| !expected(warning)), None, "{text}");
    loaded.config
}

/// What is built, and `scorer`.
pub(crate) fn known() -> KnownNames<'static> {
    static PLUGINS: OnceLock<Vec<PluginDeclaration>> = OnceLock::new();
    let scorer = PluginDeclaration::new("scorer");
    let plugins = PLUGINS.get_or_init(|| [KNOWN.plugins, &[scorer]].concat());
    KnownNames { plugins, ..KNOWN }
}

/// The same with arguments of an action, as in `{trimVictims: false}`.
pub(crate) fn with_arguments(config: Config, action: &str, arguments: &str) -> Config {
    let text = format!(
        "actions: {action}\ntiers:\n- plugins:\n  - name: gang\n\
         configurations:\n- name: {action}\n  arguments: {arguments}\n"
    );
    let loaded =
        parse("test.conf", &text, &KNOWN).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(loaded.warnings, [], "{text}");
    Config { configurations: loaded.config.configurations, ..config }
}

/// Bare names, and at most one name with switches at the end.
fn entries(text: &str) -> Vec<&str> {
    let start = text.find('{').map_or(text.len(), |open| {
        text[..open].rfind(char::is_whitespace).map_or(0, |blank| blank + 1)
    });
    let mut entries: Vec<&str> = text[..start].split_whitespace().collect();
    entries.extend(Some(&text[start..]).filter(|entry| !entry.is_empty()));
    entries
}

fn plugin(entry: &str) -> String {
    let (name, words) = entry.split_once('{').unwrap_or((entry, "*}"));
    let words: Vec<&str> = words.trim_end_matches('}').split_whitespace().collect();
    let mut text = format!("  - name: {name}\n");
    for (key, _, default) in SWITCHES {
        let switch = key.trim_start_matches("enabled").trim_start_matches("enable");
        let on = words.iter().any(|word| word.eq_ignore_ascii_case(switch));
        text.push_str(&format!("    {key}: {}\n", on || (*default && words.contains(&"*"))));
    }
    let arguments: Vec<String> =
        words.iter().filter_map(|word| word.split_once('=')).map(argument).collect();
    if !arguments.is_empty() {
        text.push_str(&format!("    arguments:\n{}", arguments.concat()));
    }
    text
}

fn argument((key, value): (&str, &str)) -> String {
    format!("      {key}: {value}\n")
}
