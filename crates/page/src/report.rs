//! The answers for a page that is a file of its own. Specification: answers.md 14 (ANS-96).

use serde::Serialize;
use serde_json::{Map, Value};
use vc_answers::Timeline;
use vc_engine::Engine;

use crate::document::{AskedJob, Document, LONGEST_PAGE, PageRange, Question};
use crate::explanation::ExplanationJson;
use crate::timeline::{AskedTime, AskedTimeline};
use crate::view::AnswerView;

/// Jobs that are explained in full in a report.
pub const MOST_EXPLAINED: usize = 200;
/// Jobs of which a report says when they start: each takes cycles of its own.
pub const MOST_STARTS: usize = 20;
/// Cycles that a report shows.
pub const MOST_CYCLES: usize = 1_000;

/// Returns all that the page shows, by path below that of the version.
pub fn report_answers(
    view: &mut AnswerView,
    engine: &Engine,
    timeline: &Timeline,
) -> Map<String, Value> {
    let mut reporter = Reporter { view, engine, timeline, answers: Map::new() };
    reporter.add("/summary", &Question::Summary);
    reporter.add("/queues", &Question::Queues);
    reporter.add_timeline();
    reporter.add("/cycles", &Question::Cycles { last: MOST_CYCLES });
    reporter.add_explanations();
    reporter.add_lines();
    reporter.add_nodes();
    let range = PageRange { offset: 0, limit: LONGEST_PAGE };
    reporter.add("/hypernodes", &Question::HyperNodes { range });
    reporter.add("/nodelabels", &Question::NodeLabels);
    reporter.add("/runs", &Question::Runs { namespace: None, queue: None, range });
    reporter.answers
}

struct Reporter<'a> {
    view: &'a mut AnswerView,
    engine: &'a Engine,
    timeline: &'a Timeline,
    answers: Map<String, Value>,
}

impl Reporter<'_> {
    /// Answers. Returns `None` for what does not exist.
    fn ask(&mut self, question: &Question) -> Option<Document> {
        self.view.answer(self.engine, self.timeline, question).ok()
    }

    fn put(&mut self, path: &str, answer: &impl Serialize) {
        // The types of answers have no keys that JSON lacks.
        if let Ok(answer) = serde_json::to_value(answer) {
            self.answers.insert(path.to_owned(), answer);
        }
    }

    fn add(&mut self, path: &str, question: &Question) {
        if let Some(document) = self.ask(question) {
            self.put(path, &document);
        }
    }

    fn add_timeline(&mut self) {
        let from = Some(AskedTime::At(0));
        self.add("/timeline", &Question::Timeline(AskedTimeline { from, ..Default::default() }));
    }

    fn add_explanations(&mut self) {
        let range = PageRange { offset: 0, limit: LONGEST_PAGE };
        let all = Question::Explanations { namespace: None, queue: None, code: None, range };
        let Some(Document::Explanations(mut list)) = self.ask(&all) else { return };
        for (number, item) in list.items.iter_mut().take(MOST_EXPLAINED).enumerate() {
            if let Some(whole) = self.explained(item, number < MOST_STARTS) {
                *item = whole;
            }
        }
        self.put("/explanations", &list);
    }

    fn explained(&mut self, it: &ExplanationJson, when: bool) -> Option<ExplanationJson> {
        let kind = if it.subject.kind == "Pod" { "pod" } else { "podgroup" };
        let asked = AskedJob {
            namespace: it.subject.namespace.clone(),
            name: it.subject.name.clone(),
            kind: Some(kind.to_owned()),
            when,
            ..AskedJob::default()
        };
        match self.ask(&Question::Explanation(asked))? {
            Document::Explanation(whole) => Some(*whole),
            _ => None,
        }
    }

    fn add_lines(&mut self) {
        let Some(Document::Queues(queues)) = self.ask(&Question::Queues) else { return };
        for queue in queues.items.into_iter().filter(|queue| 0 < queue.waiting) {
            let path = format!("/queues/{}/line", part(&queue.name));
            let range = PageRange { offset: 0, limit: LONGEST_PAGE };
            self.add(&path, &Question::Line { queue: queue.name, range });
        }
    }

    /// Adds all nodes as one list, each with its jobs.
    fn add_nodes(&mut self) {
        let mut all = None;
        for page in 0.. {
            let range = PageRange { offset: page * LONGEST_PAGE, limit: LONGEST_PAGE };
            let question = Question::Nodes { range, label: None };
            let Some(Document::Nodes(list)) = self.ask(&question) else { return };
            let is_last = list.items.len() < LONGEST_PAGE;
            match &mut all {
                None => all = Some(list),
                Some(all) => all.items.extend(list.items),
            }
            if is_last {
                break;
            }
        }
        let Some(mut all) = all else { return };
        for item in &mut all.items {
            let question = Question::Node { name: item.name.clone() };
            if let Some(Document::Node(whole)) = self.ask(&question) {
                *item = whole.content;
            }
        }
        self.put("/nodes", &all);
    }
}

/// Returns a name as part of a path, as browsers write it.
fn part(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}
