//! The ways to an answer: the Service of the chart, another one with its label beside it, the lists of the cluster. The
//! first one that leads to an answer is taken. Specification: answers.md 13 (ANS-88).

use vc_kube::{DEFAULT_SERVICE, find_answers_services};
use vc_text::escape_lines;

use crate::Answer;
use crate::args::Arguments;
use crate::ask::{self, AskFailure};
use crate::local;

/// Asks, and prints the answer.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask(mut arguments: Arguments) -> Result<Answer, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let failure = match runtime.block_on(ask_service(&arguments)) {
        Err(failure) if failure.is_unreached && arguments.has_other_ways() => failure,
        answered => return answered.map_err(|failure| failure.text),
    };
    let default = (DEFAULT_SERVICE.0.to_owned(), DEFAULT_SERVICE.1.to_owned());
    let mut services = runtime.block_on(find_answers_services(&arguments.access()));
    services.retain(|service| *service != default);
    for service in services {
        arguments.service = Some(service);
        match runtime.block_on(ask_service(&arguments)) {
            Err(other) if other.is_unreached => {}
            answered => return answered.map_err(|failure| failure.text),
        }
    }
    if arguments.verb.is_of_process() {
        return Err(failure.text);
    }
    drop(runtime);
    eprintln!("{}", escape_lines(first_line(&failure.text)));
    local::ask(arguments).map_err(|error| format!("{}\n{error}", failure.text))
}

/// Asks a scheduler by its Service or its port.
async fn ask_service(arguments: &Arguments) -> Result<Answer, AskFailure> {
    let answered = ask::ask(arguments).await;
    if arguments.verbose {
        let result = match &answered {
            Ok(_) => "answers",
            Err(failure) => first_line(&failure.text),
        };
        eprintln!("{}", escape_lines(&format!("{}: {result}", arguments.place())));
    }
    answered
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
