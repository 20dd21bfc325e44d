//! Lines of the text format for series that are kept outside the registry: one per job or queue
//! would cost it a kilobyte each. Specification: core.md 9.

use std::fmt::Write;

use crate::table::row;

/// From here on Go writes exponents; unlimited amounts are that large.
const LARGE: f64 = 1e21;

/// Begins a family. The name is in the table.
pub(crate) fn begin(out: &mut String, name: &str) {
    let row = row(name);
    let (help, kind) = (row.help, row.kind.as_str());
    // Writing to a String does not fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// One series. Labels are in the order of their names, as the registry writes them.
pub(crate) fn series(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    out.push_str(name);
    for (index, (label, value)) in labels.iter().enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        out.push_str(label);
        out.push_str("=\"");
        escape(out, value);
        out.push('"');
    }
    out.push_str(if labels.is_empty() { " " } else { "} " });
    let _ = match value.abs() {
        f64::INFINITY => writeln!(out, "{}Inf", if 0.0 < value { '+' } else { '-' }),
        large if LARGE <= large => writeln!(out, "{value:e}"),
        _ => writeln!(out, "{value}"),
    };
}

fn escape(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels, value, line.
    type Case = (&'static [(&'static str, &'static str)], f64, &'static str);

    #[test]
    fn lines_of_the_text_format() {
        let cases: [Case; 7] = [
            (&[], 3.0, "m 3\n"),
            (&[("a", "x")], 0.5, "m{a=\"x\"} 0.5\n"),
            (&[("a", "x"), ("b", "")], -1.0, "m{a=\"x\",b=\"\"} -1\n"),
            (&[("a", "\"\\\n")], 1e20, "m{a=\"\\\"\\\\\\n\"} 100000000000000000000\n"),
            (&[], f64::MAX, "m 1.7976931348623157e308\n"),
            (&[], f64::INFINITY, "m +Inf\n"),
            (&[], f64::NEG_INFINITY, "m -Inf\n"),
        ];
        for (labels, value, line) in cases {
            let mut out = String::new();
            series(&mut out, "m", labels, value);
            assert_eq!(out, line);
        }
    }
}
