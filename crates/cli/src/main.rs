//! `kubectl vc`: why jobs wait, asked of the scheduler that runs. Specification: answers.md 13.

mod args;
mod ask;
mod files;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::Arguments;

/// Exit code of an error.
const FAILED: u8 = 1;
/// Exit code of `why --exit-code` if something waits.
const WAITS: u8 = 3;

fn main() -> ExitCode {
    // A usage error ends with 2.
    let arguments = Arguments::parse();
    let answered = match arguments.from.is_empty() {
        true => ask::ask(&arguments),
        false => files::ask(&arguments),
    };
    match answered {
        Ok(waits) if waits && arguments.wants_exit_code() => ExitCode::from(WAITS),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", vc_text::escape_lines(&error));
            ExitCode::from(FAILED)
        }
    }
}
