//! What answers cost: questions about a cluster of 5,000 nodes with 50,000 pods that run and 100 gangs
//! of 10 that wait, copies of large clusters, and a replay. Specification: answers.md 19.

#[path = "answers/clusters.rs"]
mod clusters;
#[path = "answers/copies.rs"]
mod copies;
#[path = "answers/questions.rs"]
mod questions;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// Repetitions of a question, unless that takes longer than [`LONGEST`].
const QUESTIONS: usize = 200;
const LONGEST: Duration = Duration::from_secs(20);

/// What is measured in a process of its own.
pub(crate) struct AnswerCase {
    pub(crate) name: &'static str,
    pub(crate) measure: fn() -> anyhow::Result<Vec<Figure>>,
}

/// One figure of a case with its goal.
pub(crate) struct Figure {
    /// What it is, with the unit.
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    pub(crate) goal: f64,
}

pub(crate) const CASES: &[AnswerCase] = &[
    AnswerCase { name: "answers/quick", measure: questions::quick },
    AnswerCase { name: "answers/why-10", measure: questions::why_10 },
    AnswerCase { name: "answers/why-100", measure: questions::why_100 },
    AnswerCase { name: "answers/why-roles", measure: questions::why_roles },
    AnswerCase { name: "answers/why-affinity", measure: questions::why_affinity },
    AnswerCase { name: "answers/why-512", measure: questions::why_512 },
    AnswerCase { name: "answers/why-24-atoms", measure: questions::why_24_atoms },
    AnswerCase { name: "answers/why-quota", measure: questions::why_quota },
    AnswerCase { name: "answers/list-10k", measure: questions::list },
    AnswerCase { name: "answers/line-10k", measure: questions::line },
    AnswerCase { name: "answers/runs-10k", measure: questions::runs },
    AnswerCase { name: "answers/when-100", measure: questions::when },
    AnswerCase { name: "answers/what-if-job", measure: questions::what_if_job },
    AnswerCase { name: "answers/what-if-nodes", measure: questions::what_if_nodes },
    AnswerCase { name: "answers/what-if-drain-10", measure: questions::what_if_drain },
    AnswerCase { name: "answers/what-if-queue", measure: questions::what_if_queue },
    AnswerCase { name: "answers/what-if-conf", measure: questions::what_if_conf },
    AnswerCase { name: "answers/fork-10k-200k", measure: copies::fork },
    AnswerCase { name: "answers/unshare-10k-200k", measure: copies::copy },
    AnswerCase { name: "answers/hand-over-10k-200k", measure: copies::hand_over },
    AnswerCase { name: "answers/checkpoint-10k-200k", measure: copies::checkpoint },
    AnswerCase { name: "answers/twin-10k-100k", measure: copies::twin },
    AnswerCase { name: "answers/memory-10k-200k", measure: copies::memory },
    AnswerCase { name: "answers/replay-1h", measure: copies::replay },
];

/// Measures the cases whose name starts with the prefix, and prints a line for each figure. Returns false
/// if there is none.
///
/// # Errors
/// A case fails.
#[allow(clippy::print_stdout, reason = "this is a program")]
pub(crate) fn print(prefix: &str) -> anyhow::Result<bool> {
    let cases: Vec<_> = CASES.iter().filter(|case| case.name.starts_with(prefix)).collect();
    for case in &cases {
        print!("{}", in_process(case.name)?);
    }
    Ok(!cases.is_empty())
}

/// Runs a case in a process of its own, so that the peak of memory is that of the case alone.
fn in_process(case: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .args(["--sample", case])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process of its own")?;
    ensure!(child.status.success(), "{case}: {}", child.status);
    String::from_utf8(child.stdout).context("no text")
}

/// Measures the case of this name in this process. Returns false if there is none.
///
/// # Errors
/// The case fails.
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
pub(crate) fn sample(name: &str) -> anyhow::Result<bool> {
    let Some(case) = CASES.iter().find(|case| case.name == name) else { return Ok(false) };
    for Figure { what, value, goal } in (case.measure)()? {
        println!("{name:<28} {what:<28} {value:>12.3}   goal {goal}");
    }
    Ok(true)
}

/// Returns the 99th of 100 durations of a question in milliseconds. `ask` is given its number.
fn p99_millis<T>(mut ask: impl FnMut(usize) -> anyhow::Result<T>) -> anyhow::Result<f64> {
    let (begin, mut all) = (Instant::now(), Vec::new());
    for number in 0..QUESTIONS {
        let (result, millis) = millis(|| ask(number));
        drop(result?);
        all.push(millis);
        if LONGEST < begin.elapsed() {
            break;
        }
    }
    Ok(p99_of(all))
}

/// Returns what 99 of 100 durations do not exceed.
fn p99_of(mut millis: Vec<f64>) -> f64 {
    millis.sort_unstable_by(f64::total_cmp);
    millis[(millis.len() * 99).div_ceil(100) - 1]
}

/// Returns the duration in milliseconds, with the result.
fn millis<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_nanos() as f64 / 1e6)
}
