//! Switches of older versions of Volcano, and what stands in their place now. Volcano ignores them
//! silently; here the warning names the new place (C-07).

use crate::switches::SWITCHES;

/// What stands in the place of a switch of an older version: `disableTaskOrder: true` has become
/// `enableTaskOrder: false`. `value` is what the file says, if it is a boolean.
pub(crate) fn renamed_switch(key: &str, value: Option<bool>) -> Option<String> {
    let name = key.strip_prefix("disable")?;
    let is_it = |switch: &&str| {
        [switch.strip_prefix("enable"), switch.strip_prefix("enabled")].contains(&Some(name))
    };
    let switch = SWITCHES.iter().map(|(switch, _, _)| *switch).find(is_it)?;
    let instead = match value {
        Some(off) => (!off).to_string(),
        None => "true or false".to_owned(),
    };
    Some(format!("write {switch}: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_old() {
        for (key, value, expected) in [
            ("disableTaskOrder", Some(true), Some("write enableTaskOrder: false")),
            ("disableJobOrder", Some(false), Some("write enableJobOrder: true")),
            ("disableOverused", Some(true), Some("write enabledOverused: false")),
            ("disablePredicate", None, Some("write enablePredicate: true or false")),
            ("disableNothing", Some(true), None),
            ("enableTaskOrder", Some(true), None),
        ] {
            assert_eq!(renamed_switch(key, value).as_deref(), expected, "{key}");
        }
    }
}
