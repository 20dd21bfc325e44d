//! A service for the plugin `extender` whose answers are drawn from the question, the time and, for
//! scores, the state of the nodes: equal questions get equal answers of both evaluators.

use std::hash::{DefaultHasher, Hash, Hasher};

use vc_framework::{ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest};
use vc_model::{Cluster, TaskId};
use vc_resource::Dim;

/// A service that says yes for the most part.
#[derive(Debug)]
pub(crate) struct DrawnExtender;

impl ExtenderClient for DrawnExtender {
    fn exchange(&self, request: &ExtenderRequest<'_>) -> Result<ExtenderAnswer, ExtenderError> {
        let (cluster, now) = (request.view.cluster, request.view.now_micros());
        let drawn = |about: &str| draw((request.url, now, about));
        let uid = |task: TaskId| &*cluster.tasks[task].uid;
        let pair = |task, other: &str| drawn(&format!("{} {other}", uid(task)));
        let mut answer = ExtenderAnswer::default();
        let number = match request.query {
            ExtenderQuery::SessionOpen | ExtenderQuery::SessionClose => drawn(""),
            ExtenderQuery::Predicate { task, node } => {
                let number = pair(task, &cluster.nodes[node].name);
                answer.code = (number % 4) as i64;
                answer.message = no_every(5, number / 4);
                number / 16
            }
            ExtenderQuery::Prioritize { task, nodes } => {
                for &node in nodes {
                    let row = &cluster.nodes[node];
                    let number = draw((pair(task, &row.name), row.idle.get(Dim::CPU)));
                    answer.scores.push((row.name.to_string(), (number % 100) as f64));
                }
                pair(task, "scores")
            }
            ExtenderQuery::Preemptable { evictor, evictees }
            | ExtenderQuery::Reclaimable { evictor, evictees } => {
                let goes = |task: &&TaskId| pair(evictor, uid(**task)) % 4 != 0;
                let victims = evictees.iter().filter(goes);
                answer.victims = victims.map(|&victim| uid(victim).to_owned()).collect();
                answer.code = i64::from(pair(evictor, "vote") % 2 == 0);
                pair(evictor, "victims")
            }
            ExtenderQuery::JobEnqueueable(job) => {
                let number = drawn(&key(cluster, job));
                answer.code = (number % 4) as i64 - 1;
                number / 4
            }
            ExtenderQuery::JobEnqueued(job) => drawn(&key(cluster, job)),
            ExtenderQuery::JobReady(job) => {
                answer.is_true = drawn(&key(cluster, job)) % 8 != 0;
                0
            }
            ExtenderQuery::QueueOverused(queue) => {
                let number = drawn(&cluster.queues[queue].name);
                answer.is_true = number % 6 == 0;
                number / 6
            }
            ExtenderQuery::Allocate { task, .. } | ExtenderQuery::Deallocate(task) => {
                let number = pair(task, "event");
                answer.message = no_every(8, number);
                number / 8
            }
        };
        match number % 40 {
            7 => Err(ExtenderError::BadAnswer("status 500".to_owned())),
            _ => Ok(answer),
        }
    }
}

fn key(cluster: &Cluster, job: vc_model::JobId) -> String {
    cluster.jobs[job].key.to_string()
}

fn no_every(nth: u64, number: u64) -> String {
    if number.is_multiple_of(nth) { "no".to_owned() } else { String::new() }
}

fn draw(about: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    about.hash(&mut hasher);
    hasher.finish()
}
