//! The formats as rules, with the texts of Kubernetes. Specification: plugins-nodes.md 6.6.

use std::sync::LazyLock;

use regex::Regex;

/// A pattern that texts of a kind match as a whole.
struct Pattern {
    /// What the texts are like.
    message: &'static str,
    pattern: &'static str,
    /// Texts that match.
    examples: &'static [&'static str],
    /// Most bytes.
    longest: usize,
    compiled: LazyLock<Option<Regex>>,
}

macro_rules! pattern {
    ($name:ident, $pattern:expr, $longest:literal, $examples:expr, $message:expr) => {
        static $name: Pattern = Pattern {
            message: $message,
            pattern: $pattern,
            examples: &$examples,
            longest: $longest,
            compiled: LazyLock::new(|| Regex::new(concat!("^(?:", $pattern, ")$")).ok()),
        };
    };
}

pattern!(
    LABEL,
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    63,
    ["my-name", "123-abc"],
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
     must start and end with an alphanumeric character"
);
pattern!(
    SUBDOMAIN,
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    253,
    ["example.com"],
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character"
);
pattern!(
    OLD_LABEL,
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    63,
    ["my-name", "abc-123"],
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character"
);
pattern!(
    NAME,
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    63,
    ["MyName", "my.name", "123-abc"],
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character"
);
pattern!(
    LABEL_VALUE,
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    63,
    ["MyValue", "my_value", "12345"],
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character"
);

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }

    fn explained(&self) -> String {
        let examples: Vec<_> = self.examples.iter().map(|text| format!("'{text}', ")).collect();
        let (examples, pattern) = (examples.join(" or "), self.pattern);
        format!("{} (e.g. {examples}regex used for validation is '{pattern}')", self.message)
    }

    fn too_long(&self, text: &str) -> Option<String> {
        let longest = self.longest;
        (longest < text.len()).then(|| format!("must be no more than {longest} bytes"))
    }

    fn problems(&self, text: &str) -> Vec<String> {
        let shape = (!self.matches(text)).then(|| self.explained());
        self.too_long(text).into_iter().chain(shape).collect()
    }
}

/// A prefix of a name, as if something followed its last dash.
pub(super) fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-').filter(|_| 1 < prefix.len()) {
        Some(name) => {
            let mut characters = name.chars();
            characters.next_back();
            format!("{}a", characters.as_str())
        }
        None => prefix.to_owned(),
    }
}

pub(super) fn dns1123_label(text: &str) -> Vec<String> {
    match SUBDOMAIN.matches(text) && !LABEL.matches(text) {
        true => LABEL.too_long(text).into_iter().chain(["must not contain dots".into()]).collect(),
        false => LABEL.problems(text),
    }
}

pub(super) fn dns1123_subdomain(text: &str) -> Vec<String> {
    SUBDOMAIN.problems(text)
}

pub(super) fn dns1035_label(text: &str) -> Vec<String> {
    OLD_LABEL.problems(text)
}

pub(super) fn label_value(text: &str) -> Vec<String> {
    LABEL_VALUE.problems(text)
}

/// A name, with a subdomain and a slash before it if it likes.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => (None, name),
        [prefix, name] => (Some(prefix), name),
        _ => {
            let name = NAME.explained();
            return vec![format!(
                "a qualified name {name} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    const EMPTY: &str = "must be non-empty";
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push(format!("prefix part {EMPTY}")),
        Some(prefix) => {
            let of_prefix = dns1123_subdomain(prefix).into_iter();
            problems.extend(of_prefix.map(|problem| format!("prefix part {problem}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push(format!("name part {EMPTY}"));
    }
    let of_name = NAME.problems(name).into_iter();
    problems.extend(of_name.map(|problem| format!("name part {problem}")));
    problems
}

/// Hexadecimal digits in groups, with or without dashes between them.
pub(super) fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (place, n_digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if 0 < place {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((digits, behind)) = rest.split_at_checked(n_digits) else { return false };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

/// With padding, and not empty.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn number(text: &str, n_digits: usize) -> Option<u32> {
    let is_number = text.len() == n_digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// `YYYY-MM-DD`, of a day that there is.
pub(super) fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let parts = (number(year, 4), number(month, 2), number(day, 2));
    let (Some(year), Some(month), Some(day)) = parts else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let n_days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=n_days).contains(&day)
}

/// A date, `T`, a time of the day and a zone.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return false };
    let below = |text, limit| number(text, 2).is_some_and(|number| number < limit);
    let fraction = rest.strip_prefix('.').map(|rest| {
        let zone = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (rest.len() != zone.len(), zone)
    });
    let (is_fraction, zone) = fraction.unwrap_or((true, rest));
    let clock = below(hour, 24) && below(minute, 60) && below(second, 60);
    clock && is_fraction && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
    let is_offset = |(hours, minutes)| number(hours, 2).and(number(minutes, 2)).is_some();
    text == "z" || offset.is_some_and(is_offset)
}
