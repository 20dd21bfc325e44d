//! Commands in the text of a page.

/// Programs with which a command begins.
const PROGRAMS: &[&str] =
    &["vcsim", "vc-scheduler", "kubectl", "helm", "make", "cargo", "go", "curl"];

/// What a comment before a block says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    /// `<!-- not run: why -->`
    NotRun(String),
    /// `<!-- file: name -->`: the block is the content of that file.
    File(String),
}

/// A block between fences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Of its first line of text, from 1.
    pub(crate) line: usize,
    pub(crate) mark: Mark,
    pub(crate) text: String,
    pub(crate) commands: Vec<String>,
}

impl Block {
    /// Name and content, if it is a file.
    pub(crate) fn file(&self) -> Option<(&str, &str)> {
        match &self.mark {
            Mark::File(name) => Some((name, &self.text)),
            _ => None,
        }
    }
}

/// The blocks of a page. Notes of a chart are one block of their own.
pub(crate) fn blocks(page: &str, text: &str) -> Vec<Block> {
    if page.ends_with("NOTES.txt") {
        return vec![notes(text)];
    }
    let (mut blocks, mut mark) = (Vec::new(), Mark::None);
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let inner = lines.by_ref().map(|(line, _)| line.get(indent..).unwrap_or_default());
            let inner: Vec<&str> = inner.take_while(|line| !line.starts_with("```")).collect();
            let commands = if info.is_empty() { commands(&inner) } else { Vec::new() };
            let mark = std::mem::replace(&mut mark, Mark::None);
            let text = inner.join("\n") + "\n";
            blocks.push(Block { line: number + 1, mark, text, commands });
        } else if !line.trim().is_empty() {
            mark = mark_of(line.trim());
        }
    }
    blocks
}

fn mark_of(line: &str) -> Mark {
    let comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    match comment.and_then(|comment| comment.split_once(": ")) {
        Some(("not run", why)) => Mark::NotRun(why.to_owned()),
        Some(("file", name)) => Mark::File(name.to_owned()),
        _ => Mark::None,
    }
}

/// Commands stand behind a `$`, or are all lines of a block that begins with one.
fn commands(lines: &[&str]) -> Vec<String> {
    let has_prompts = lines.iter().any(|line| line.starts_with("$ "));
    let first = lines.iter().find(|line| !line.starts_with('#'));
    let begins = first.is_some_and(|line| is_command(line) && !is_synopsis(line));
    if !has_prompts && !begins {
        return Vec::new();
    }
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let own = if has_prompts { line.strip_prefix("$ ") } else { Some(*line) };
        let part = match own {
            _ if goes_on => line.trim(),
            Some(command) => command,
            None => continue,
        };
        let is_comment = !goes_on && (part.starts_with('#') || part.is_empty());
        let text = part.strip_suffix('\\').unwrap_or(part).trim_end();
        match commands.last_mut() {
            _ if is_comment => {}
            Some(last) if goes_on => *last = format!("{last} {text}"),
            _ => commands.push(text.to_owned()),
        }
        goes_on = part.ends_with('\\');
    }
    commands
}

fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let program = first.strip_prefix("target/release/").unwrap_or(first);
    PROGRAMS.contains(&program)
}

/// A form of a command rather than one: `vcsim test [--filter TEXT] PATH...`.
fn is_synopsis(line: &str) -> bool {
    line.contains(" [-") || line.contains("...") || line.contains(" | --")
}

/// The lines of a chart's notes that are commands for everybody: no template, no placeholder.
fn notes(text: &str) -> Block {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    let is_whole = |line: &&str| {
        let is_placeholder = |word: &str| word.chars().all(|letter| letter.is_ascii_uppercase());
        is_command(line) && !line.contains("{{") && !line.split(' ').any(is_placeholder)
    };
    let commands = lines.filter(is_whole).map(str::to_owned).collect();
    Block { line: 1, mark: Mark::None, text: text.to_owned(), commands }
}

/// Every command with its line: those of blocks, whether they run or not, forms of commands, and what
/// stands between backquotes.
pub(crate) fn all_commands(page: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in blocks(page, text) {
        let first = block.text.lines().next().unwrap_or_default();
        if is_command(first) && is_synopsis(first) {
            found.push((block.line, block.text.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        found.extend(block.commands.into_iter().map(|command| (block.line, command)));
    }
    for (line, paragraph) in paragraphs(text) {
        let codes = paragraph.split('`').skip(1).step_by(2);
        let whole = codes.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
        found.extend(whole.filter(|code| is_command(code)).map(|code| (line, code)));
    }
    found
}

/// Text outside of blocks with the number of its first line; a code may go over the end of a line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut is_inside, mut is_new): (Vec<(usize, String)>, _, _) =
        (Vec::new(), false, true);
    for (line, number) in text.lines().zip(1..) {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        if is_inside || is_fence || line.trim().is_empty() {
            is_new = true;
        } else if let Some((_, last)) = found.last_mut().filter(|_| !is_new) {
            last.push(' ');
            last.push_str(line);
        } else {
            found.push((number, line.to_owned()));
            is_new = false;
        }
    }
    found
}

#[test]
fn commands_of_a_page() {
    let page = "\
Text with `vcsim run --strict x` and `make
test` and `other`.

```
$ vcsim run \\
    a.yaml
BOUND
$ vcsim test b
```

<!-- not run: it needs a cluster -->

```
# First this.
kubectl get x
helm list
```
<!-- file: a.yaml -->
```yaml
kind: A
```
```
vcsim run [--strict] PATH...
```
   ```
   kubectl get y
   ```
```
no command
```
";
    let blocks = blocks("page.md", page);
    let commands: Vec<Vec<&str>> =
        blocks.iter().map(|block| block.commands.iter().map(String::as_str).collect()).collect();
    let expected: [&[&str]; 6] = [
        &["vcsim run a.yaml", "vcsim test b"],
        &["kubectl get x", "helm list"],
        &[],
        &[],
        &["kubectl get y"],
        &[],
    ];
    assert_eq!(commands, expected);
    assert_eq!(blocks[1].mark, Mark::NotRun("it needs a cluster".to_owned()));
    assert_eq!(blocks[2].file(), Some(("a.yaml", "kind: A\n")));
    assert_eq!(blocks[4].mark, Mark::None);
    let all: Vec<String> = all_commands("page.md", page).into_iter().map(|(_, c)| c).collect();
    assert_eq!(all.len(), 8, "{all:?}");
    assert!(all.contains(&"vcsim run --strict x".to_owned()), "{all:?}");
    assert!(all.contains(&"make test".to_owned()), "{all:?}");
    assert!(all.contains(&"vcsim run [--strict] PATH...".to_owned()), "{all:?}");
}
