//! The values of a chart with their comments, as they stand in values.yaml.

/// A value with its default.
#[derive(Debug, PartialEq)]
pub(crate) struct ChartValue {
    /// Names from the root on, joined by dots.
    pub(crate) path: String,
    /// As it is written. Empty: a block of several lines.
    pub(crate) default: String,
    /// The text above.
    pub(crate) comment: String,
}

/// The values of the text in their order. A comment stands above its value; one that an empty line
/// ends belongs to nothing.
pub(crate) fn read(text: &str) -> Vec<ChartValue> {
    let (mut values, mut comment) = (Vec::<ChartValue>::new(), Vec::<&str>::new());
    let mut path = Vec::<(usize, &str)>::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let content = line.trim_start();
        let depth = line.len() - content.len();
        if content.is_empty() {
            comment.clear();
        } else if let Some(words) = content.strip_prefix('#') {
            comment.push(words.trim());
        } else if let Some((name, default)) = content.split_once(':') {
            path.retain(|(other, _)| *other < depth);
            path.push((depth, name));
            let comment = std::mem::take(&mut comment).join(" ");
            let is_deeper = |next: &&str| next.starts_with(&" ".repeat(depth + 1));
            let is_group = default.is_empty() && lines.peek().is_some_and(is_deeper);
            if is_group {
                continue;
            }
            let names: Vec<&str> = path.iter().map(|(_, name)| *name).collect();
            let default = default.trim();
            let default = if default == "|" { "" } else { default };
            let (path, default) = (names.join("."), default.to_owned());
            values.push(ChartValue { path, default, comment });
            // The lines of a block.
            while values.last().is_some_and(|value| value.default.is_empty())
                && lines.next_if(is_deeper).is_some()
            {}
        }
    }
    values
}

#[test]
fn values_have_the_comment_above_them() {
    let text = "# Of the file.\n\n# Of a.\na: 1\nb:\n  # Of c\n  # in two lines.\n  c: [x, y]\n  \
        d: {e: 1}\n\nf: |\n  # text\n  g: 1\nh: \"\"\n";
    let value = |path: &str, default: &str, comment: &str| ChartValue {
        path: path.to_owned(),
        default: default.to_owned(),
        comment: comment.to_owned(),
    };
    let wanted = [
        value("a", "1", "Of a."),
        value("b.c", "[x, y]", "Of c in two lines."),
        value("b.d", "{e: 1}", ""),
        value("f", "", ""),
        value("h", "\"\"", ""),
    ];
    assert_eq!(read(text), wanted);
}
