//! Keeps the language of the code: words that were replaced do not come back, a name of a type in
//! the core stands for one thing, and a specification code in a comment has words beside it.
//! CONTRIBUTING, chapter on language.

use std::collections::BTreeMap;

use crate::source::{SourceFile, read_sources};

/// Folders with code of ours.
const ALL: &[&str] = &["src", "crates", "tests", "benches"];

/// Words that no identifier holds, as one of its words or as several in a row, with the term that
/// replaced them. Words that have an ordinary meaning as well stand in [`OLD_TYPES`] alone.
const OLD_WORDS: &[(&str, &str)] = &[
    ("asker", "pod signature"),
    ("askers", "pod signature"),
    ("seeker", "pod signature"),
    ("seekers", "pod signature"),
    ("ballot", "evictable set"),
    ("ballots", "evictable set"),
    ("dead_end", "failed preemption"),
    ("dead_ends", "failed preemption cache"),
    ("lineup", "sorted victims"),
    ("lineups", "sorted victims"),
    ("prospect", "preemption bound"),
    ("prospects", "preemption bound"),
    ("roster", "active jobs"),
    ("shortfall", "node failure"),
    ("hunt", "preemption kind"),
    ("hunts", "preemption kind"),
    ("worksheet", "pending tasks"),
    ("knows_askers", "is signature complete"),
    ("judges_rows", "depends on"),
    ("stands_alone", "has total order key"),
    ("by_pairs", "has total order key"),
    ("dispatch_victims", "victim selection"),
];

/// Names that no type, trait or alias has, with the term that replaced them.
const OLD_TYPES: &[(&str, &str)] = &[
    ("Again", "revalidate"),
    ("Alike", "GangAttemptCache"),
    ("Ask", "SessionView"),
    ("Book", "QuotaLedger"),
    ("Contest", "TournamentTree"),
    ("Dispatch", "PluginSet"),
    ("Eyes", "a description with two nouns"),
    ("Facts", "SessionInfo"),
    ("Kept", "PodGroupCache"),
    ("Lanes", "WriteQueue"),
    ("Lap", "PhaseTimer"),
    ("Lasts", "DependsOn"),
    ("Look", "NodeProbe"),
    ("Memo", "NodeScoreCache"),
    ("Normals", "NormalizedScore"),
    ("Pump", "SchedulerLoop"),
    ("Quiet", "IdleCycle"),
    ("Resting", "Debounce"),
    ("Stake", "QueueUsageStamp"),
    ("Stakes", "QueueUsageStamp"),
    ("Standing", "a description with two nouns"),
    ("Standings", "UnschedulableCache"),
    ("Told", "ReportLog"),
    ("Turns", "JobQueue"),
    ("Vain", "known infeasible"),
    ("Walk", "VictimNodeIndex"),
    ("Walks", "VictimNodeIndex"),
    ("Whole", "RawObject"),
];

/// Crates in which a name of a type stands for one thing.
const ONE_NAME: &[&str] = &[
    "crates/framework/src",
    "crates/actions/src",
    "crates/model/src",
    "crates/engine/src",
    "crates/answers/src",
    "crates/plugins/src",
    "crates/filters/src",
    "crates/cohort/src",
    "crates/resource/src",
];

/// Names of associated types, which their traits prescribe.
const ASSOCIATED: &[&str] =
    &["Err", "Error", "Exact", "Future", "Item", "Ok", "Output", "Response", "Target"];

/// The words of an identifier in lower case: split at underscores and where a capital begins.
fn words_of(identifier: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for letter in identifier.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// The identifiers of the code, with the numbers of their lines.
fn identifiers(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    file.code.lines().enumerate().flat_map(|(index, line)| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let found = line.split(move |letter| !is_part(letter));
        found.filter(|found| !found.is_empty()).map(move |found| (index + 1, found))
    })
}

/// The types, traits and aliases that a file defines, with the numbers of their lines. Those of
/// test modules, which stand at the end of a file, are left out.
fn defined_types(file: &SourceFile) -> Vec<(usize, &str)> {
    let code = file.code.lines().enumerate();
    let code = code.take_while(|(_, line)| !line.contains("#[cfg(test)]"));
    let mut found = Vec::new();
    for (index, line) in code {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        let key = words
            .iter()
            .position(|word| ["struct", "enum", "trait", "type", "union"].contains(word));
        let is_definition = |at: usize| words[..at].iter().all(|word| word.starts_with("pub"));
        let Some(at) = key.filter(|&at| is_definition(at)) else { continue };
        let Some(name) = words.get(at + 1) else { continue };
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        found.push((index + 1, name.split(|letter| !is_part(letter)).next().unwrap_or_default()));
    }
    found
}

#[test]
fn words_identifiers_hold_no_replaced_word() {
    let mut found = Vec::new();
    for file in read_sources(ALL).iter().filter(|file| !file.path.starts_with("tests/tidy/")) {
        for (line, identifier) in identifiers(file) {
            let words = format!("_{}_", words_of(identifier));
            for (old, new) in
                OLD_WORDS.iter().filter(|(old, _)| words.contains(&format!("_{old}_")))
            {
                found.push(format!("{}:{line}: {identifier} holds {old}: say {new}", file.path));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_types_have_no_replaced_name() {
    let old: BTreeMap<&str, &str> = OLD_TYPES.iter().copied().collect();
    let mut found = Vec::new();
    for file in &read_sources(ALL) {
        for (line, name) in defined_types(file) {
            if let Some(new) = old.get(name) {
                found.push(format!("{}:{line}: type {name}: say {new}", file.path));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_a_type_of_the_core_has_a_name_of_its_own() {
    let files = read_sources(ONE_NAME);
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in &files {
        for (line, name) in defined_types(file) {
            places.entry(name).or_default().push(format!("{}:{line}", file.path));
        }
    }
    let is_twice =
        |(name, places): &(&&str, &Vec<String>)| 1 < places.len() && !ASSOCIATED.contains(*name);
    let twice = places.iter().filter(is_twice);
    let twice: Vec<String> =
        twice.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert!(twice.is_empty(), "types of one name:\n{}", twice.join("\n"));
}

/// True if the word is a code of the specification (A28, S7, C-20).
fn is_code(word: &str) -> bool {
    let number = match word.strip_prefix("C-") {
        Some(number) => number,
        None => word.strip_prefix(['A', 'C', 'D', 'K', 'Q', 'S', 'T']).unwrap_or_default(),
    };
    (1..=2).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// The codes of a comment without words beside them: neither in parentheses, nor before a colon or
/// parentheses, nor behind the name of a document.
fn bare_codes(comment: &str) -> Vec<&str> {
    let text = comment.split("Specification:").next().unwrap_or_default();
    let (mut found, mut depth, mut is_reference) = (Vec::new(), 0_i32, false);
    let words: Vec<&str> = text.split_whitespace().collect();
    for (index, word) in words.iter().enumerate() {
        let is_inside = 0 < depth || word.starts_with('(');
        depth += word.matches('(').count() as i32 - word.matches(')').count() as i32;
        let name = word.trim_matches(['(', ')', ',', ';', '.', ':', '`', '[', ']']);
        is_reference = name.ends_with(".md")
            || is_reference
                && (is_code(name) || name.starts_with(|letter: char| letter.is_ascii_digit()));
        let after = words[index..].iter().skip_while(|word| is_code(word.trim_end_matches(',')));
        let is_head = word.ends_with(':')
            || after.clone().next().is_some_and(|word| {
                word.starts_with('(') || word.strip_suffix(':').is_some_and(is_code)
            });
        if is_code(name) && !is_inside && !is_reference && !is_head {
            found.push(name);
        }
    }
    found
}

#[test]
fn words_a_code_in_a_comment_has_words_beside_it() {
    let mut found = Vec::new();
    for file in &read_sources(ALL) {
        for (line, comment) in &file.comments {
            for code in bare_codes(comment) {
                found.push(format!("{}:{line}: {code}: say what it is", file.path));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_bare_codes_are_those_without_words() {
    for (comment, bare) in [
        ("A28: victims that are not needed are put back.", &[][..]),
        ("Victims that are not needed are put back (A28, A38).", &[]),
        ("A28, A38: victims are put back.", &[]),
        ("Kept as actions.md 12.2 S7 says.", &[]),
        ("Keeps the order. Specification: actions.md A9, S7.", &[]),
        ("A28, A38.", &["A28", "A38"]),
        ("The bound of S6 with other amounts.", &["S6"]),
        ("C-20", &["C-20"]),
    ] {
        assert_eq!(bare_codes(comment), bare, "{comment}");
    }
}
