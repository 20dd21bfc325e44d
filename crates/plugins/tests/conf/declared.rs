//! What follows from the declared arguments: warnings of unknown and of moved ones (C-07).

use crate::support::{declarations, load_argument};

fn remedies(plugin: &str, key: &str) -> Vec<String> {
    let loaded = load_argument(plugin, key, "1").unwrap_or_else(|error| panic!("{error}"));
    loaded.warnings.into_iter().map(|warning| warning.remedy).collect()
}

#[test]
fn patterns() {
    for (plugin, key, known) in [
        ("binpack", "binpack.resources.nvidia.com/gpu", true),
        ("binpack", "binpack.resource", false),
        ("tdm", "tdm.revocable-zone.rz1", true),
        ("tdm", "my.tdm.revocable-zone.rz1", true),
        ("gang", "weight", false),
    ] {
        assert_eq!(remedies(plugin, key).is_empty(), known, "{plugin} {key}");
    }
}

#[test]
fn the_remedy_is_the_nearest_key() {
    let expected = "did you mean leastrequested.weight?";
    assert_eq!(remedies("nodeorder", "leastrequest.weight"), [expected]);
}

#[test]
fn no_argument_that_is_read_counts_as_moved() {
    for plugin in declarations() {
        let keys: Vec<&str> = plugin.arguments.iter().map(|argument| argument.key()).collect();
        for (pattern, _) in plugin.moved_arguments {
            let prefix = pattern.trim_end_matches('*');
            let is_moved = |key: &&str| match pattern.len() == prefix.len() {
                true => *key == prefix,
                false => key.starts_with(prefix),
            };
            assert!(!keys.iter().any(is_moved), "{}: {pattern}", plugin.name);
        }
    }
}
