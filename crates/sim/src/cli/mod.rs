//! The subcommands: flags, output, exit codes.

pub(crate) mod fuzz;
pub(crate) mod load;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod soak;
pub(crate) mod test;
pub(crate) mod what_if;
pub(crate) mod why;

use std::io::Write;
use std::process::ExitCode;

use vc_text::JsonEscaper;

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

/// Says on standard error how the command was called wrongly. The text may have a second line.
fn misuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

/// A result as JSON, with marks of direction and control characters as escapes.
fn json_text(result: &impl serde::Serialize) -> Result<String, String> {
    let mut text = JsonEscaper(Vec::new());
    serde_json::to_writer_pretty(&mut text, result).map_err(|error| error.to_string())?;
    String::from_utf8(text.0).map(|text| text + "\n").map_err(|error| error.to_string())
}
