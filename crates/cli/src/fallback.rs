//! The ways to a scheduler, in order: the port that is named, the API server's own group, a Service, a tunnel to a
//! pod, the lists of the cluster. The first one that is there answers. Specification: answers.md 13 (ANS-88).

use vc_kube::{
    AnswersAccess, AnswersClient, AnswersWay, find_answers_pods, find_answers_services,
    has_answers_group,
};
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
    let failure = match runtime.block_on(ask_schedulers(&arguments)) {
        Err(failure) if failure.is_not_there && arguments.can_list() => failure,
        answered => return answered.map_err(|failure| failure.text),
    };
    drop(runtime);
    if !arguments.verbose {
        print_line(first_line(&failure.text));
    }
    arguments.local = true;
    local::ask(arguments)
}

/// Asks schedulers way by way, until one answers. The failure is that of the port or Service that is named, or of the
/// Service of the chart.
async fn ask_schedulers(arguments: &Arguments) -> Result<Answer, AskFailure> {
    let access = arguments.access();
    let goes_on = |failure: &AskFailure| failure.is_not_there && arguments.can_ask_again();
    if !arguments.names_place() && has_group(arguments, &access).await? {
        match ask_by(arguments, &access, AnswersWay::ApiServer).await {
            Err(failure) if goes_on(&failure) => {}
            answered => return answered,
        }
    }
    let first = access.way();
    let failure = match ask_by(arguments, &access, first.clone()).await {
        Err(failure) if goes_on(&failure) => failure,
        answered => return answered,
    };
    let AnswersWay::Service { namespace, .. } = &first else { return Err(failure) };
    if !arguments.names_place() {
        let others = find_answers_services(&access, namespace).await.into_iter();
        let others = others.map(|(namespace, name)| AnswersWay::Service { namespace, name });
        let others = others.filter(|way| *way != first).collect();
        if let Some(answered) = ask_others(arguments, &access, others).await {
            return answered;
        }
    }
    let pods = find_pods(arguments, &access, namespace).await;
    ask_others(arguments, &access, pods).await.unwrap_or(Err(failure))
}

/// True if the API server itself can be asked.
async fn has_group(arguments: &Arguments, access: &AnswersAccess) -> Result<bool, AskFailure> {
    let has_group = has_answers_group(access).await?;
    if !has_group && arguments.verbose {
        print_line(&format!("{}: it has no group answers.volcano.sh", AnswersWay::ApiServer));
    }
    Ok(has_group)
}

/// Returns the ways to pods of a namespace.
async fn find_pods(
    arguments: &Arguments,
    access: &AnswersAccess,
    namespace: &str,
) -> Vec<AnswersWay> {
    match find_answers_pods(access, namespace).await {
        Ok(pods) => pods.into_iter().map(AnswersWay::Pod).collect(),
        Err(error) => {
            if arguments.verbose {
                print_line(first_line(&error.to_string()));
            }
            Vec::new()
        }
    }
}

/// Asks by ways that the user has not named, and says which one was taken. Returns `None` if nobody is there.
async fn ask_others(
    arguments: &Arguments,
    access: &AnswersAccess,
    ways: Vec<AnswersWay>,
) -> Option<Result<Answer, AskFailure>> {
    for way in ways {
        match ask_by(arguments, access, way.clone()).await {
            Err(failure) if failure.is_not_there => {}
            answered => {
                if !arguments.verbose {
                    print_line(&format!("asked {way}"));
                }
                return Some(answered);
            }
        }
    }
    None
}

/// Asks by one way.
async fn ask_by(
    arguments: &Arguments,
    access: &AnswersAccess,
    way: AnswersWay,
) -> Result<Answer, AskFailure> {
    let named = way.to_string();
    let answered = match AnswersClient::by(access, way).await {
        Ok(client) => ask::ask(arguments, client).await,
        Err(error) => Err(error.into()),
    };
    if arguments.verbose {
        let result = match &answered {
            Ok(_) => "answers",
            Err(failure) => first_line(&failure.text),
        };
        print_line(&format!("{named}: {result}"));
    }
    answered
}

fn print_line(text: &str) {
    eprintln!("{}", escape_lines(text));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
