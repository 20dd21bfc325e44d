//! `docs/flags.md`, made from the tables: a test compares them. Specification: core.md 1.1-1.3.

use std::fmt::Write;

use super::gates::{GATES, Gate};
use super::table::{FlagEffect, FlagRow, TABLE};
use crate::environment::{VARIABLES, Variable};

/// The whole file.
pub fn document() -> String {
    let mut text = String::from(HEAD);
    for (effect, title, words) in SECTIONS {
        let rows = TABLE.iter().filter(|row| row.effect == effect);
        let rows: Vec<String> = rows.map(flag).collect();
        if !rows.is_empty() {
            let head = "| Flag | Default | What it does |\n|---|---|---|";
            // Writing into a string cannot fail.
            let _ = write!(text, "\n## {title}\n\n{words}\n\n{head}\n{}", rows.concat());
        }
    }
    let variables: String = VARIABLES.iter().map(variable).collect();
    let gates: String = GATES.iter().map(gate).collect();
    text + ENVIRONMENT + &variables + GATES_HEAD + &gates
}

const HEAD: &str = "\
# Flags of vc-scheduler

Generated from `flags/table.rs` and `environment.rs` in `crates/daemon/src` by `UPDATE_DOCS=1 cargo test -p vc-daemon --lib`.

Flags are read as Volcano's binary reads them: `--name=value` or `--name value`, `--bool` alone is true, `_` and `-` are
the same inside a name, the last use of a flag wins. An unknown flag, a bad value or a word that is no command ends the
process with exit code 2; what a shell would have taken, as the `2>&1` of Volcano's chart, is ignored. At `-v=2` and above
every flag is logged once at start.

Commands: `vc-scheduler check FILE` says what a configuration means; it takes all flags too, so that the arguments of a
Deployment can be used, and reads `--scheduler-conf` and `--allow-missing-plugins`. `vc-scheduler help` is `--help`.
";

const SECTIONS: [(FlagEffect, &str, &str); 3] = [
    (
        FlagEffect::Built,
        "Flags with an effect",
        "What Volcano's flags of the same name do, and some of our own.",
    ),
    (
        FlagEffect::Never,
        "Flags without effect",
        "Accepted, because installations set them: they are about Go, klog or the sampling of nodes.",
    ),
    (
        FlagEffect::Hidden,
        "Flags for work on the scheduler",
        "Not in `--help`; the log names them at `-v=2` as all others.",
    ),
];

const ENVIRONMENT: &str = "
## Environment variables

| Variable | Default | What it does |
|---|---|---|
";

const GATES_HEAD: &str = "
## Feature gates

`--feature-gates=NAME=true,OTHER=false`. Defaults of Kubernetes' gates follow the version of the API server. Every other
name is accepted and named in the log as without effect.

| Gate | Default | What it does |
|---|---|---|
";

fn gate(gate: &Gate) -> String {
    format!("| `{}` | {} | {} |\n", gate.name, gate.default, gate.help)
}

fn flag(row: &FlagRow) -> String {
    let short = if row.name == "v" { "`-v`, " } else { "" };
    let words = row.kind.word().replace('|', "\\|");
    let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
    format!("| {short}`--{}` {words} | {default} | {} |\n", row.name, row.help)
}

fn variable(variable: &Variable) -> String {
    let Variable { name, default, help } = variable;
    let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
    format!("| `{name}` | {default} | {help} |\n")
}
