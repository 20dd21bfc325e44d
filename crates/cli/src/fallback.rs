//! Questions where no place is given: to the Service of the chart, to another one with its label beside it, to
//! the lists of the cluster. The first one that is there answers. Specification: answers.md 13 (ANS-88).

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
    let failure = match runtime.block_on(ask_scheduler(&arguments)) {
        Err(failure) if failure.is_not_there && arguments.can_fall_back() => failure,
        answered => return answered.map_err(|failure| failure.text),
    };
    let default = (DEFAULT_SERVICE.0.to_owned(), DEFAULT_SERVICE.1.to_owned());
    let mut services = runtime.block_on(find_answers_services(&arguments.access()));
    services.retain(|service| *service != default);
    for service in services {
        arguments.service = Some(service);
        match runtime.block_on(ask_scheduler(&arguments)) {
            Err(other) if other.is_not_there => {}
            answered => {
                print_line(&format!("asked {}", arguments.place()));
                return answered.map_err(|failure| failure.text);
            }
        }
    }
    if arguments.verb.is_of_process() {
        return Err(failure.text);
    }
    drop(runtime);
    if !arguments.verbose {
        print_line(first_line(&failure.text));
    }
    arguments.local = true;
    local::ask(arguments)
}

/// Asks the scheduler behind a Service or a port.
async fn ask_scheduler(arguments: &Arguments) -> Result<Answer, AskFailure> {
    let answered = ask::ask(arguments).await;
    if arguments.verbose {
        let result = match &answered {
            Ok(_) => "answers",
            Err(failure) => first_line(&failure.text),
        };
        print_line(&format!("{}: {result}", arguments.place()));
    }
    answered
}

fn print_line(text: &str) {
    eprintln!("{}", escape_lines(text));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
