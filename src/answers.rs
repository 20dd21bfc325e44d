//! Answers about jobs that wait, over HTTP: a second engine beside the one that decides, and the
//! port. Without `--enable-answers` there is neither. Specification: answers.md 10 to 12.

mod access;
mod bundle;
mod certificate;
mod copies;
mod front_proxy;
mod handle;
mod label;
mod memory_limit;
mod twin;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use vc_bundle::History;
use vc_kube::{Clients, Reviewer, TwinFeed, TwinProgress};
use vc_page::{Everybody, RequestObserver, RouteOptions};

use crate::flags::AnswerFlags;
use crate::meter::Meter;
use crate::threads::spawn;

pub(crate) use certificate::own_certificate;
pub(crate) use front_proxy::{FrontProxy, FrontProxyFollower};
pub use handle::AnswerHandle;
use handle::TwinMessage;
pub(crate) use label::{mark, unmark};

/// Starts the threads of the twin. Returns what the engine's thread feeds it with.
///
/// # Errors
/// A thread does not start.
pub(crate) fn start(
    handle: &AnswerHandle,
    flags: &AnswerFlags,
    meter: &Arc<Meter>,
) -> std::io::Result<TwinFeed> {
    let progress = Arc::new(TwinProgress::default());
    let (sender, receiver) = handle.lead(progress.clone());
    let (copy_worker, work) = copies::way();
    let history = History::new(memory_limit::history_bytes(flags.history_mib));
    let twin =
        twin::Twin::new(handle.clone(), progress.clone(), meter.clone(), copy_worker, history);
    let _ends_with_the_process = spawn("answers", move || {
        calm_thread();
        twin.run(receiver);
    })?;
    let (to_twin, meter) = (sender.clone(), meter.clone());
    let _ends_with_the_process = spawn("answers-2", move || {
        calm_thread();
        copies::run(&work, &to_twin, &meter);
    })?;
    let send = move |input| {
        // Nobody takes it only when the process ends.
        drop(sender.send(TwinMessage::Input(input)));
    };
    Ok(TwinFeed::new(send, progress))
}

/// Gives the thread the lowest priority.
fn calm_thread() {
    if let Err(error) = rustix::process::nice(19) {
        tracing::debug!("the thread of the answers keeps its priority: {error}");
    }
}

/// Returns the routes of the port. `front_proxy` is absent without `--answers-aggregated`.
pub(crate) fn routes(
    flags: &AnswerFlags,
    handle: &AnswerHandle,
    clients: &Clients,
    meter: &Arc<Meter>,
    front_proxy: Option<FrontProxy>,
) -> Router {
    let observer = Arc::new(RequestLog(meter.clone()));
    let options = RouteOptions { has_page: flags.has_page };
    match flags.needs_token {
        true => {
            let reviewer = Reviewer::new(clients.core.clone());
            let access = access::ReviewedAccess::new(reviewer, front_proxy);
            vc_page::routes(access, handle.clone(), observer, options)
        }
        false => vc_page::routes(Everybody, handle.clone(), observer, options),
    }
}

/// Counts requests and logs each.
struct RequestLog(Arc<Meter>);

impl RequestObserver for RequestLog {
    fn answered(&self, route: &'static str, user: &str, code: u16, took: Duration) {
        self.0.metrics.answer(route, code, took.as_secs_f64());
        tracing::debug!(v = 4, route, user, code, micros = took.as_micros(), "answer");
    }

    fn incomplete(&self, route: &'static str) {
        self.0.metrics.answer_incomplete(route);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt;
    use vc_page::{
        AnswerSource, Answered, AsOfJson, BASE, BlockingJson, Document, EvictedPodJson,
        ExplanationJson, Problem, Question,
    };

    use super::*;

    /// Explains each job but one of this name, and leaves something out.
    struct Incomplete(&'static str);

    impl AnswerSource for Incomplete {
        fn revision(&self) -> Result<String, Problem> {
            Ok("1".to_owned())
        }

        async fn ask(&self, question: Question) -> Result<Answered, Problem> {
            let Question::Explanation(asked) = question else { panic!("{question:?}") };
            if asked.name == self.0 {
                return Err(Problem::unavailable("of the test"));
            }
            let mut one = ExplanationJson::gone(EvictedPodJson::default(), AsOfJson::default());
            one.blocking = Some(BlockingJson {
                even_empty: None,
                complete: false,
                left_out: Vec::new(),
                helps_waiting: true,
                atoms: Vec::new(),
                sets: Vec::new(),
            });
            Ok(Answered { document: Document::Explanation(Box::new(one)), names: Arc::default() })
        }
    }

    #[tokio::test]
    async fn metrics_17_requests_and_incomplete_answers_are_counted() {
        let meter = Arc::new(Meter::default());
        let observer = Arc::new(RequestLog(meter.clone()));
        let options = RouteOptions { has_page: false };
        let routes = vc_page::routes(Everybody, Incomplete("away"), observer, options);
        for (name, code) in [("train", 200), ("train", 200), ("away", 503)] {
            let path = format!("{BASE}/namespaces/ml/explanations/{name}");
            let request = http::Request::get(path).body(Body::empty()).unwrap();
            let answer = routes.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), code, "{name}");
        }
        let exported = meter.metrics.encode();
        let route = "route=\"/namespaces/{namespace}/explanations/{name}\"";
        for line in [
            format!("volcano_answers_requests_total{{code=\"200\",{route}}} 2"),
            format!("volcano_answers_requests_total{{code=\"503\",{route}}} 1"),
            format!("volcano_answers_duration_seconds_count{{{route}}} 3"),
            format!("volcano_answers_incomplete_total{{{route}}} 2"),
        ] {
            assert!(exported.lines().any(|it| it == line), "{line}: {exported}");
        }
    }
}
