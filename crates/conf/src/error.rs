//! What is wrong with a configuration file: errors refuse it, warnings accompany it (core.md 2.6).

use std::fmt;

/// A file that cannot be used. The previous configuration stays in force (core.md 2.6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {field}: {problem}\nhint: {hint}", place(file, *line))]
pub struct ConfError {
    /// The file as the caller named it.
    pub file: String,
    /// From 1; `None` when the problem is something that the file lacks.
    pub line: Option<usize>,
    /// The path of the field, as in `tiers[0].plugins[1].name`.
    pub field: String,
    /// What is wrong, in lower case.
    pub problem: String,
    /// What the operator can do.
    pub hint: String,
}

fn place(file: &str, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// Something in a usable file that probably does not do what its author expects (C-07).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// From 1; `None` when the place is not known.
    pub line: Option<usize>,
    /// The path of the field, as in `tiers[0].plugins[1].arguments.weight`.
    pub field: String,
    /// What is noteworthy, in lower case.
    pub message: String,
    /// What the operator can do.
    pub remedy: String,
}

impl Warning {
    /// A warning whose texts are safe to print: names come from the file, and a control character
    /// in one of them must not reach a terminal.
    pub fn new(
        line: Option<usize>,
        field: impl AsRef<str>,
        message: impl AsRef<str>,
        remedy: impl AsRef<str>,
    ) -> Warning {
        Warning {
            line,
            field: printable(field.as_ref()),
            message: printable(message.as_ref()),
            remedy: printable(remedy.as_ref()),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}\nhint: {}", self.field, self.message, self.remedy)
    }
}

/// The text with control and direction characters escaped.
pub(crate) fn printable(text: &str) -> String {
    vc_text::escape(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_line_field_and_remedy() {
        let error = ConfError {
            file: "x.conf".into(),
            line: Some(3),
            field: "actions".into(),
            problem: "failed to find Action foo".into(),
            hint: "remove it".into(),
        };
        let text = "x.conf:3: actions: failed to find Action foo\nhint: remove it";
        assert_eq!(error.to_string(), text);
        let unplaced = ConfError { line: None, ..error };
        assert!(unplaced.to_string().starts_with("x.conf: actions: "));
    }

    #[test]
    fn a_warning_escapes_control_characters() {
        let warning = Warning::new(Some(2), "tiers", "unknown key a\u{1b}[2J", "remove it");
        let text = "line 2: tiers: unknown key a\\u{1b}[2J\nhint: remove it";
        assert_eq!(warning.to_string(), text);
    }
}
