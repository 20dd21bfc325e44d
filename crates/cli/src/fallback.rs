//! The ways to a scheduler, in order: the port that is named, the API server's own group, a Service, a tunnel to a
//! pod, the lists of the cluster. The first one that is there answers. Specification: answers.md 13 (ANS-88).

use std::ops::ControlFlow::{self, Break, Continue};

use vc_kube::{
    AnswersAccess, AnswersClient, AnswersError, AnswersWay, find_answers_pods,
    find_answers_services, has_answers_group,
};

use crate::Answer;
use crate::args::Arguments;
use crate::ask;
use crate::attempt::{AskFailure, Attempt, FailureKind, first_line, print_line};
use crate::local;

/// What ends a search for a scheduler.
type Outcome = Result<Answer, AskFailure>;

/// Asks, and prints the answer.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask(mut arguments: Arguments) -> Result<Answer, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let failure = match runtime.block_on(ask_schedulers(&arguments)) {
        Err(failure) if failure.kind == FailureKind::NotThere && arguments.can_list() => failure,
        answered => return answered.map_err(|failure| failure.text),
    };
    drop(runtime);
    if !arguments.verbose {
        print_line(first_line(&failure.text));
    }
    arguments.local = true;
    local::ask(arguments)
}

/// Asks schedulers way by way, until one answers. The failure is that of the first who was there and refused, else that
/// of the port or Service that is named, or of the Service of the chart.
async fn ask_schedulers(arguments: &Arguments) -> Outcome {
    let mut search = Search { arguments, access: arguments.access(), refusal: None };
    let answered = match search.ask_each_way().await {
        Break(answered) => answered,
        Continue(failure) => Err(failure),
    };
    match (answered, search.refusal) {
        // It came by another way than the refusal, and says less.
        (Err(failure), Some(refusal)) if !failure.is_answer() => Err(refusal),
        (answered, _) => answered,
    }
}

/// A search for a scheduler that answers.
struct Search<'a> {
    arguments: &'a Arguments,
    access: AnswersAccess,
    /// The first failure of somebody who was there while another way could have an answer.
    refusal: Option<AskFailure>,
}

impl Search<'_> {
    /// Asks by each way. Breaks with what ends the search. Continues with the failure of the way that is named, or
    /// of the Service of the chart, if no way leads to a scheduler.
    async fn ask_each_way(&mut self) -> ControlFlow<Outcome, AskFailure> {
        let names_place = self.arguments.names_place();
        if !names_place && self.has_group().await? {
            self.ask_by(AnswersWay::ApiServer, false).await?;
        }
        let first = self.access.way();
        let failure = self.ask_by(first.clone(), false).await?;
        let AnswersWay::Service { namespace, .. } = &first else { return Break(Err(failure)) };
        if !names_place {
            let found = find_answers_services(&self.access, namespace).await;
            for (namespace, name) in self.found(found) {
                let way = AnswersWay::Service { namespace, name };
                if way != first {
                    self.ask_by(way, true).await?;
                }
            }
        }
        let found = find_answers_pods(&self.access, namespace).await;
        for pod in self.found(found) {
            self.ask_by(AnswersWay::Pod(pod), true).await?;
        }
        Continue(failure)
    }

    /// Continues with true if the API server itself can be asked.
    async fn has_group(&self) -> ControlFlow<Outcome, bool> {
        let problem = match has_answers_group(&self.access).await {
            Ok(true) => return Continue(true),
            Ok(false) => "it has no group answers.volcano.sh".to_owned(),
            Err(error) if error.is_not_there() => error.to_string(),
            Err(error) => return Break(Err(error.into())),
        };
        if self.arguments.verbose {
            print_line(&format!("{}: {}", AnswersWay::ApiServer, first_line(&problem)));
        }
        Continue(false)
    }

    /// Returns what was found. If the search has failed, `-v` says why, and nothing was found.
    fn found<T>(&self, found: Result<Vec<T>, AnswersError>) -> Vec<T> {
        found.unwrap_or_else(|error| {
            if self.arguments.verbose {
                print_line(first_line(&error.to_string()));
            }
            Vec::new()
        })
    }

    /// Asks by one way. Breaks with what ends the search. Continues with the failure of a way beside which another one
    /// may lead to an answer.
    async fn ask_by(
        &mut self,
        way: AnswersWay,
        is_found: bool,
    ) -> ControlFlow<Outcome, AskFailure> {
        let attempt = Attempt::new(self.arguments, way.clone(), is_found);
        let answered = match AnswersClient::by(&self.access, way).await {
            Ok(client) => ask::ask(self.arguments, client, &attempt).await,
            Err(error) => Err(error.into()),
        };
        let failure = match answered {
            Ok(answer) => {
                attempt.report_answer();
                return Break(Ok(answer));
            }
            Err(failure) => failure,
        };
        attempt.report_failure(&failure);
        if !attempt.leads_on(&failure) {
            return Break(Err(failure));
        }
        if failure.kind != FailureKind::NotThere && self.refusal.is_none() {
            self.refusal = Some(failure.clone());
        }
        Continue(failure)
    }
}
