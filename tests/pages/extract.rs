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
    /// `<!-- checked: ... -->`: each line below a command is a line of its output.
    Checked,
}

/// A command of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCommand {
    pub(crate) text: String,
    /// The lines below it: what it prints, or a part of that.
    pub(crate) shown: Vec<String>,
}

impl PageCommand {
    /// The first line that is shown and is not part of the output.
    pub(crate) fn missing_in<'a>(&'a self, output: &str) -> Option<&'a str> {
        let is_part = |line: &str| output.lines().any(|printed| printed.trim() == line);
        let lines = self.shown.iter().map(|line| line.trim());
        lines.filter(|line| !line.is_empty() && *line != "...").find(|line| !is_part(line))
    }
}

/// A block between fences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Of its first line of text, from 1.
    pub(crate) line: usize,
    pub(crate) mark: Mark,
    /// The language behind the fence; commands have none.
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) commands: Vec<PageCommand>,
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

/// The blocks of a page. The help of a program is one block.
pub(crate) fn blocks(page: &str, text: &str) -> Vec<Block> {
    if page.ends_with("--help") {
        return vec![examples(text)];
    }
    if page.ends_with("NOTES.txt") {
        return notes(text);
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
            let language = info.trim().to_owned();
            blocks.push(Block { line: number + 1, mark, language, text, commands });
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
        Some(("checked", _)) => Mark::Checked,
        _ => Mark::None,
    }
}

/// Commands stand behind a `$`, or are all lines of a block that begins with one.
fn commands(lines: &[&str]) -> Vec<PageCommand> {
    let has_prompts = lines.iter().any(|line| line.starts_with("$ "));
    let first = lines.iter().find(|line| !line.starts_with('#'));
    let begins = first.is_some_and(|line| is_command(line) && !is_synopsis(line));
    if !has_prompts && !begins {
        return Vec::new();
    }
    let mut commands: Vec<PageCommand> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let own = if has_prompts { line.strip_prefix("$ ") } else { Some(*line) };
        let part = match own {
            _ if goes_on => line.trim(),
            Some(command) => command,
            None => {
                if let Some(last) = commands.last_mut() {
                    last.shown.push((*line).to_owned());
                }
                continue;
            }
        };
        let is_comment = !goes_on && (part.starts_with('#') || part.is_empty());
        let text = part.strip_suffix('\\').unwrap_or(part).trim_end();
        match commands.last_mut() {
            _ if is_comment => {}
            Some(last) if goes_on => last.text = format!("{} {text}", last.text),
            _ => commands.push(command(text)),
        }
        goes_on = part.ends_with('\\');
    }
    commands
}

fn command(text: &str) -> PageCommand {
    PageCommand { text: text.to_owned(), shown: Vec::new() }
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

/// The commands of a chart's notes, one block each. A line of a template comment before them is a mark
/// as on a page: `{{- /* not run: why */}}`.
fn notes(text: &str) -> Vec<Block> {
    let (mut blocks, mut mark) = (Vec::new(), Mark::None);
    for (line, number) in text.lines().zip(1..) {
        let comment = line.strip_prefix("{{- /* ").and_then(|rest| rest.strip_suffix(" */}}"));
        if let Some(comment) = comment {
            mark = mark_of(&format!("<!-- {comment} -->"));
        } else if let Some(line) = line.strip_prefix("  ").filter(|line| is_command(line)) {
            let block = program_text(line, vec![command(line)]);
            blocks.push(Block { line: number, mark: mark.clone(), ..block });
        } else if !line.is_empty() {
            mark = Mark::None;
        }
    }
    blocks
}

/// The lines of a help below `Examples`, which end with the first one that is not indented.
fn examples(text: &str) -> Block {
    let lines = text.lines().skip_while(|line| !line.starts_with("Examples"));
    let lines = lines.skip(1).map_while(|line| line.strip_prefix("  "));
    program_text(text, lines.map(command).collect())
}

/// A text that is no page, as one block.
fn program_text(text: &str, commands: Vec<PageCommand>) -> Block {
    Block { line: 1, mark: Mark::None, language: String::new(), text: text.to_owned(), commands }
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
        found.extend(block.commands.into_iter().map(|command| (block.line, command.text)));
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
    let texts = |block: &Block| block.commands.iter().map(|it| it.text.clone()).collect();
    let commands: Vec<Vec<String>> = blocks.iter().map(texts).collect();
    let expected: [&[&str]; 6] = [
        &["vcsim run a.yaml", "vcsim test b"],
        &["kubectl get x", "helm list"],
        &[],
        &[],
        &["kubectl get y"],
        &[],
    ];
    assert_eq!(commands, expected);
    assert_eq!(blocks[0].commands[0].shown, ["BOUND"]);
    assert_eq!(blocks[1].mark, Mark::NotRun("it needs a cluster".to_owned()));
    assert_eq!(blocks[2].file(), Some(("a.yaml", "kind: A\n")));
    assert_eq!(blocks[4].mark, Mark::None);
    let all: Vec<String> = all_commands("page.md", page).into_iter().map(|(_, c)| c).collect();
    assert_eq!(all.len(), 8, "{all:?}");
    assert!(all.contains(&"vcsim run --strict x".to_owned()), "{all:?}");
    assert!(all.contains(&"make test".to_owned()), "{all:?}");
    assert!(all.contains(&"vcsim run [--strict] PATH...".to_owned()), "{all:?}");
}

#[test]
fn examples_of_a_help() {
    let help = "\
Usage: vcsim run

Examples, in the folder of the project:
  vcsim run a
  vcsim run b

More
";
    let blocks = blocks("vcsim run --help", help);
    let commands: Vec<&str> = blocks[0].commands.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(commands, ["vcsim run a", "vcsim run b"]);
}

#[test]
fn commands_of_notes() {
    let text = "\
Text:
{{- /* not run: there is no Deployment */}}

  kubectl get {{ .name }}
  kubectl logs a

Other text:

  kubectl get pods
";
    let blocks = blocks("NOTES.txt", text);
    let found: Vec<(usize, bool)> =
        blocks.iter().map(|block| (block.line, block.mark == Mark::None)).collect();
    assert_eq!(found, [(4, false), (5, false), (9, true)]);
    assert_eq!(blocks[0].commands, [command("kubectl get {{ .name }}")]);
}

#[test]
fn a_line_that_is_not_printed_is_found() {
    let page =
        "<!-- checked: the last line -->\n```\n$ vcsim run a\n  1 bound\n...\n\n2 bound\n```\n";
    let blocks = blocks("page.md", page);
    assert_eq!(blocks[0].mark, Mark::Checked);
    let command = &blocks[0].commands[0];
    assert_eq!(command.missing_in("1 bound  \nother\n2 bound"), None);
    assert_eq!(command.missing_in("1 bound\n12 bound"), Some("2 bound"));
}
