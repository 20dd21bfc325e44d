//! Whether subcommands, flags and targets that a command names are there.

use std::collections::BTreeMap;
use std::process::Command;

use crate::project;
use crate::shell::program;

/// What the programs say about themselves.
pub(crate) struct Known {
    /// The help of each subcommand of vcsim.
    vcsim: BTreeMap<&'static str, String>,
    /// All flags of vc-scheduler.
    flags: String,
    makefile: String,
}

const SUBCOMMANDS: [&str; 11] =
    ["run", "why", "what-if", "report", "replay", "fuzz", "soak", "test", "serve", "load", "demo"];

impl Known {
    pub(crate) fn ask() -> Known {
        let help = |name: &'static str| {
            let output = Command::new(program("vcsim")).args([name, "--help"]).output().unwrap();
            (name, String::from_utf8(output.stdout).unwrap())
        };
        let read = |name: &str| std::fs::read_to_string(project().join(name)).unwrap();
        let vcsim = SUBCOMMANDS.into_iter().map(help).collect();
        Known { vcsim, flags: read("docs/flags.md"), makefile: read("Makefile") }
    }

    /// What is not there, one sentence each. `&` begins another command.
    pub(crate) fn unknown_in(&self, command: &str) -> Vec<String> {
        command.split(" & ").flat_map(|part| self.unknown_in_one(part)).collect()
    }

    fn unknown_in_one(&self, command: &str) -> Vec<String> {
        let mut words = command.split_whitespace();
        let first = words.next().unwrap_or_default();
        let words: Vec<&str> = words.map(|word| word.trim_matches(['[', ']', '|'])).collect();
        let flags = words.iter().filter_map(|word| word.strip_prefix("--"));
        let names = flags.map(|word| word.split(['=', '[', ']']).next().unwrap_or_default());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let lacks = |has: &dyn Fn(&str) -> bool| {
            let unknown = names.iter().filter(|name| !has(name));
            unknown.map(|name| format!("no flag --{name}")).collect()
        };
        match first.strip_prefix("target/release/").unwrap_or(first) {
            "vcsim" if words.is_empty() => Vec::new(),
            "vcsim" => match words.first().and_then(|name| self.vcsim.get(name)) {
                // `--evaluator` is for work on the scheduler, and in no help.
                Some(help) => lacks(&|name| {
                    help.contains(&format!("--{name}")) || matches!(name, "evaluator" | "help")
                }),
                None => vec![format!("no subcommand {:?}", words.first())],
            },
            "vc-scheduler" => {
                lacks(&|name| self.flags.contains(&format!("`--{name}`")) || name == "help")
            }
            "make" => {
                let is_target = |name: &&&str| {
                    name.starts_with(|letter: char| letter.is_ascii_lowercase())
                        && !name.contains('=')
                };
                let targets = words.iter().take(1).filter(is_target);
                let unknown = targets.filter(|name| !self.makefile.contains(&format!("\n{name}:")));
                unknown.map(|name| format!("no target {name}")).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let known = Known::ask();
    for (command, problems) in [
        ("vcsim run --strict x", &[][..]),
        ("vcsim run --nope=1 x", &["no flag --nope"]),
        ("vcsim walk", &["no subcommand Some(\"walk\")"]),
        ("vcsim serve & vc-scheduler --master x --nope &", &["no flag --nope"]),
        ("vc-scheduler check --scheduler-conf FILE", &[]),
        ("make demo", &[]),
        ("make image IMAGE=x", &[]),
        ("make nothing", &["no target nothing"]),
        ("kubectl --anything", &[]),
    ] {
        assert_eq!(known.unknown_in(command), problems, "{command}");
    }
}
