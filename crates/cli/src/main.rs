//! `kubectl vc`: why jobs wait, asked of the scheduler that runs. Specification: answers.md 13.

mod args;
mod ask;
mod attempt;
mod bundle;
mod completion;
mod connection;
mod fallback;
mod files;
mod html;
mod leader;
mod local;
mod output;
mod ui;
mod watch;
mod what_if;

use std::process::ExitCode;

use clap::Parser;

use args::Arguments;

/// Exit code of an error.
const FAILED: u8 = 1;
/// Exit code of `why --exit-code` if something waits.
const WAITS: u8 = 3;
/// Exit code of `what-if` if a pod of an applied object gets no node.
const UNPLACED: u8 = 3;

/// What the exit code says.
#[derive(Clone, Copy, Default)]
struct Answer {
    /// True if something that was asked about waits.
    waits: bool,
    /// True if a pod of an applied object gets no node.
    is_unplaced: bool,
}

impl Answer {
    fn waits(waits: bool) -> Self {
        Self { waits, is_unplaced: false }
    }

    fn unplaced(is_unplaced: bool) -> Self {
        Self { waits: false, is_unplaced }
    }
}

fn main() -> ExitCode {
    // The words to complete need not be sound.
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    if words.next().as_deref() == Some(completion::COMPLETE) {
        completion::print_candidates(&words.collect::<Vec<String>>());
        return ExitCode::SUCCESS;
    }
    // A usage error ends with 2.
    let arguments = Arguments::parse().check().unwrap_or_else(|error| error.exit());
    let wants_exit_code = arguments.wants_exit_code();
    let answered = match (arguments.local, arguments.from.is_empty()) {
        (true, _) => local::ask(arguments),
        (false, true) => fallback::ask(arguments),
        (false, false) => files::ask_files(&arguments),
    };
    match answered {
        Ok(answer) if answer.is_unplaced => ExitCode::from(UNPLACED),
        Ok(answer) if answer.waits && wants_exit_code => ExitCode::from(WAITS),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", vc_text::escape_lines(&error));
            ExitCode::from(FAILED)
        }
    }
}
