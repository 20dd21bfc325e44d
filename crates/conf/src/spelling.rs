//! The nearest known spelling of a misspelt name, for warnings and hints (C-07).

/// The known name that was probably meant: equal but for letter case or `enable`/`enabled`, else
/// the one with the fewest typing errors, at most a third of its letters. The first of equals wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = normal(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let limit = (candidate.chars().count() / 3).max(1);
        let Some(errors) = typing_errors(&wanted, &normal(candidate), limit) else {
            continue;
        };
        if best.is_none_or(|(fewest, _)| errors < fewest) {
            best = Some((errors, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A sentence that names the nearest spelling, or all of the known ones.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None if known.is_empty() => "remove it, nothing is read here".to_owned(),
        None => format!("known are: {}", known.join(", ")),
    }
}

/// Lower case, and without the `d` in which the two families of switches differ.
fn normal(name: &str) -> Vec<char> {
    let lower = name.to_lowercase();
    let plain = match lower.strip_prefix("enabled") {
        Some(rest) => format!("enable{rest}"),
        None => lower,
    };
    plain.chars().collect()
}

/// Letters to add, drop, replace, or swap with their neighbour; `None` above `limit`.
fn typing_errors(left: &[char], right: &[char], limit: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let same = left[i - 1] == right[j - 1];
            let replaced = above[j - 1] + usize::from(!same);
            let mut errors = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            let swapped =
                i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if swapped {
                errors = errors.min(before[j - 2] + 1);
            }
            row.push(errors);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|errors| *errors <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_spelling() {
        let known = ["enableJobOrder", "enabledVictim", "enabledOverused", "drf", "gang", "name"];
        let cases = [
            ("enabledJobOrder", Some("enableJobOrder")),
            ("enableVictim", Some("enabledVictim")),
            ("EnableJobOrder", Some("enableJobOrder")),
            ("enableJobOder", Some("enableJobOrder")),
            ("enableOverusd", Some("enabledOverused")),
            ("dfr", Some("drf")),
            ("nmae", Some("name")),
            ("ganng", Some("gang")),
            ("proportion", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }

    #[test]
    fn a_name_of_253_characters_has_no_neighbour() {
        assert_eq!(nearest(&"x".repeat(253), ["gang"]), None);
    }
}
