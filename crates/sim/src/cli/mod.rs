//! The subcommands: flags, output, exit codes.

pub(crate) mod fuzz;
pub(crate) mod load;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod test;

use std::io::Write;
use std::process::ExitCode;

/// Prints to standard output. A reader that has gone away, as `head` does, is no error.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _reader_gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Says on standard error why nothing was done.
fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(1)
}
