//! The table of routes. Router, rights and OpenAPI document follow from it. Specification:
//! answers.md 11.

use std::sync::Arc;

use serde_json::{Value, json};
use vc_objects::duration::parse_micros;
use vc_objects::input::{ANSWERS, Input, InputObject};
use vc_objects::parse_time;
use vc_objects::what_if::{WhatIfTexts, split};

use crate::access::Right;
use crate::document::{AskedJob, PageRange, Question};
use crate::limits::QuestionCost;
use crate::problem::Problem;
use crate::timeline::{AskedTime, AskedTimeline};

/// Path of the version.
pub const BASE: &str = "/apis/answers.volcano.sh/v1";
/// Another path of the bundle, which is not below [`BASE`].
const DEBUG_BUNDLE: &str = "/debug/bundle";

/// What a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAnswer {
    /// Why one job waits.
    Explanation,
    /// Which jobs wait, in one namespace or in all.
    Explanations,
    /// Which jobs hold nodes, and until when.
    Runs,
    /// All queues.
    Queues,
    /// One queue.
    Queue,
    /// The jobs that wait in a queue.
    Line,
    /// All nodes.
    Nodes,
    /// The labels that nodes have.
    NodeLabels,
    /// One node.
    Node,
    /// All HyperNodes.
    HyperNodes,
    /// Sums over the cluster.
    Summary,
    /// What happened lately.
    Timeline,
    /// The last cycles.
    Cycles,
    /// What would happen with the changes of the body.
    WhatIf,
    /// What the scheduler was given lately, as a file.
    Bundle,
}

/// A route below [`BASE`].
#[derive(Debug)]
pub struct Route {
    /// Path with `{namespace}` and `{name}`.
    pub path: &'static str,
    /// What it answers.
    pub answer: RouteAnswer,
    /// Verb of the right.
    pub verb: &'static str,
    /// Resource of the right.
    pub resource: &'static str,
    /// Name of the schema of the answer.
    pub schema: &'static str,
    /// Parameters of the query.
    pub query: &'static [&'static str],
    /// What it says.
    pub about: &'static str,
}

/// Cycles if nobody says how many, and at most.
const CYCLES: usize = 100;
const MOST_CYCLES: usize = 5_000;

const RANGE: &[&str] = &["offset", "limit"];
const LIST: &[&str] = &["queue", "code", "offset", "limit"];
const RUNS: &[&str] = &["queue", "offset", "limit"];
const NODES: &[&str] = &["labels", "offset", "limit"];

/// Every route that answers about the cluster.
#[rustfmt::skip] // a table is read by its rows
pub const ROUTES: &[Route] = &[
    Route { path: "/namespaces/{namespace}/explanations/{name}", answer: RouteAnswer::Explanation,
        verb: "get", resource: "explanations", schema: "Explanation",
        query: &["kind", "controllerUid", "depth", "when"], about: "Why a job waits" },
    Route { path: "/namespaces/{namespace}/explanations", answer: RouteAnswer::Explanations,
        verb: "list", resource: "explanations", schema: "ExplanationList", query: LIST,
        about: "Jobs of a namespace that wait" },
    Route { path: "/explanations", answer: RouteAnswer::Explanations,
        verb: "list", resource: "explanations", schema: "ExplanationList", query: LIST,
        about: "Jobs that wait" },
    Route { path: "/namespaces/{namespace}/runs", answer: RouteAnswer::Runs,
        verb: "list", resource: "explanations", schema: "RunList", query: RUNS,
        about: "Jobs of a namespace that hold nodes, with their expected ends" },
    Route { path: "/runs", answer: RouteAnswer::Runs,
        verb: "list", resource: "explanations", schema: "RunList", query: RUNS,
        about: "Jobs that hold nodes, with their expected ends" },
    Route { path: "/queues", answer: RouteAnswer::Queues,
        verb: "list", resource: "queues", schema: "QueueList", query: &[], about: "All queues" },
    Route { path: "/queues/{name}", answer: RouteAnswer::Queue,
        verb: "get", resource: "queues", schema: "Queue", query: &[], about: "One queue" },
    Route { path: "/queues/{name}/line", answer: RouteAnswer::Line,
        verb: "get", resource: "queues", schema: "Line", query: RANGE,
        about: "The jobs that wait in a queue, in their order" },
    Route { path: "/nodes", answer: RouteAnswer::Nodes,
        verb: "list", resource: "nodes", schema: "NodeList", query: NODES,
        about: "All nodes, each with the label of the key that is given" },
    Route { path: "/nodelabels", answer: RouteAnswer::NodeLabels,
        verb: "list", resource: "nodes", schema: "NodeLabelList", query: &[],
        about: "The labels that nodes have" },
    Route { path: "/nodes/{name}", answer: RouteAnswer::Node,
        verb: "get", resource: "nodes", schema: "Node", query: &[], about: "One node" },
    Route { path: "/hypernodes", answer: RouteAnswer::HyperNodes,
        verb: "list", resource: "nodes", schema: "HyperNodeList", query: RANGE,
        about: "All HyperNodes, with the sums over their nodes" },
    Route { path: "/summary", answer: RouteAnswer::Summary,
        verb: "list", resource: "summaries", schema: "Summary", query: &[],
        about: "Sums over the cluster" },
    Route { path: "/timeline", answer: RouteAnswer::Timeline,
        verb: "list", resource: "timelines", schema: "Timeline",
        query: &["from", "to", "queue", "namespace"], about: "What happened lately" },
    Route { path: "/cycles", answer: RouteAnswer::Cycles,
        verb: "list", resource: "cycles", schema: "CycleList", query: &["last"],
        about: "The last cycles that decided something or learned something new" },
    Route { path: "/whatifs", answer: RouteAnswer::WhatIf,
        verb: "create", resource: "whatifs", schema: "WhatIfResult", query: &["namespace"],
        about: "What would happen with changes" },
    Route { path: "/namespaces/{namespace}/whatifs", answer: RouteAnswer::WhatIf,
        verb: "create", resource: "whatifs", schema: "WhatIfResult", query: &[],
        about: "What would happen with changes of objects of a namespace" },
    Route { path: "/bundles/now", answer: RouteAnswer::Bundle,
        verb: "get", resource: "bundles", schema: "Bundle", query: &["cycles"],
        about: "What the scheduler was given lately, as a file for vcsim replay" },
];

/// What the path and the query of a request say.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteValues {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: String,
}

impl RouteValues {
    fn value(&self, name: &str) -> Option<String> {
        let found = self.query.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }

    /// Returns true for the second of two words, false for the first one or none.
    fn choice(&self, name: &str, [first, second]: [&str; 2]) -> Result<bool, Problem> {
        match self.value(name) {
            None => Ok(false),
            Some(word) if word == first => Ok(false),
            Some(word) if word == second => Ok(true),
            Some(other) => {
                let wanted = format!("{second} or {first} wanted");
                Err(Problem::invalid(format!("{name}: {wanted}, not {other:?}")))
            }
        }
    }

    fn number(&self, name: &str) -> Result<Option<usize>, Problem> {
        let parse = |text: String| {
            let invalid = || Problem::invalid(format!("{name}: {text:?} is no number"));
            text.parse().map_err(|_| invalid())
        };
        self.value(name).map(parse).transpose()
    }

    /// Returns a time, or how long ago it is.
    fn time(&self, name: &str) -> Result<Option<AskedTime>, Problem> {
        let parse = |text: String| {
            let at = parse_time(&text).map(AskedTime::At);
            let time = at.or_else(|| parse_micros(&text).map(AskedTime::Ago));
            time.ok_or_else(|| {
                Problem::invalid(format!("{name}: {text:?} is no time"))
                    .hint("write 2026-06-01T10:00:00Z, or 1h30m for so long ago")
            })
        };
        self.value(name).map(parse).transpose()
    }

    fn range(&self) -> Result<PageRange, Problem> {
        let first = PageRange::default();
        Ok(PageRange {
            offset: self.number("offset")?.unwrap_or(first.offset),
            limit: self.number("limit")?.unwrap_or(first.limit),
        })
    }
}

impl Route {
    /// Returns the paths of the route.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        let other = (self.answer == RouteAnswer::Bundle).then(|| DEBUG_BUNDLE.to_owned());
        std::iter::once(format!("{BASE}{}", self.path)).chain(other)
    }

    /// Returns the right that a reader needs.
    pub(crate) fn right(&self, values: &RouteValues) -> Right {
        Right {
            verb: self.verb,
            resource: self.resource,
            namespace: values.namespace.clone(),
            name: values.name.clone(),
        }
    }

    /// Returns which limit of its user a question counts against.
    pub(crate) fn cost(&self) -> QuestionCost {
        match self.answer {
            RouteAnswer::WhatIf => QuestionCost::WhatIf,
            RouteAnswer::Bundle => QuestionCost::Bundle,
            _ => QuestionCost::Plain,
        }
    }

    /// Returns true if the question is in the body of the request.
    pub fn takes_body(&self) -> bool {
        self.answer == RouteAnswer::WhatIf
    }

    /// Returns the question of a request.
    pub(crate) fn question(&self, values: &RouteValues) -> Result<Question, Problem> {
        if let Some((unknown, _)) =
            values.query.iter().find(|(key, _)| !self.query.contains(&key.as_str()))
        {
            let known = match self.query {
                [] => "there are no parameters".to_owned(),
                known => format!("known are {}", known.join(", ")),
            };
            return Err(Problem::invalid(format!("{unknown}: unknown parameter")).hint(known));
        }
        let name = values.name.clone().unwrap_or_default();
        Ok(match self.answer {
            RouteAnswer::Explanation => Question::Explanation(AskedJob {
                namespace: values.namespace.clone().unwrap_or_default(),
                name,
                kind: values.value("kind").map(|kind| kind.to_lowercase()),
                controller_uid: values.value("controllerUid"),
                quick: values.choice("depth", ["full", "quick"])?,
                when: values.choice("when", ["false", "true"])?,
            }),
            RouteAnswer::Explanations => Question::Explanations {
                namespace: values.namespace.clone(),
                queue: values.value("queue"),
                code: values.value("code"),
                range: values.range()?,
            },
            RouteAnswer::Runs => Question::Runs {
                namespace: values.namespace.clone(),
                queue: values.value("queue"),
                range: values.range()?,
            },
            RouteAnswer::Queues => Question::Queues,
            RouteAnswer::Queue => Question::Queue { name },
            RouteAnswer::Line => Question::Line { queue: name, range: values.range()? },
            RouteAnswer::Nodes => {
                Question::Nodes { range: values.range()?, label: values.value("labels") }
            }
            RouteAnswer::NodeLabels => Question::NodeLabels,
            RouteAnswer::Node => Question::Node { name },
            RouteAnswer::HyperNodes => Question::HyperNodes { range: values.range()? },
            RouteAnswer::Summary => Question::Summary,
            RouteAnswer::Timeline => Question::Timeline(AskedTimeline {
                from: values.time("from")?,
                to: values.time("to")?,
                queue: values.value("queue"),
                namespace: values.value("namespace"),
            }),
            RouteAnswer::Cycles => {
                let last = values.number("last")?.unwrap_or(CYCLES);
                Question::Cycles { last: last.min(MOST_CYCLES) }
            }
            RouteAnswer::Bundle => Question::Bundle {
                n_cycles: values.number("cycles")?.map(|n_cycles| n_cycles as u64),
            },
            RouteAnswer::WhatIf => {
                let texts = what_if(&values.body)?;
                let is_confined = values.namespace.is_some();
                let namespace = values.namespace.clone().or_else(|| values.value("namespace"));
                Question::WhatIf(Box::new(WhatIfTexts { namespace, is_confined, ..texts }))
            }
        })
    }
}

/// Reads what is to be supposed: a document `WhatIf`, or objects to apply.
fn what_if(body: &str) -> Result<WhatIfTexts, Problem> {
    let mut input = Input::default();
    input.add_text(&Arc::from("body"), body);
    if let Some(unreadable) = input.unreadable.first() {
        return Err(Problem::invalid(unreadable.to_string()));
    }
    let (document, objects) = split(input.objects).map_err(Problem::invalid)?;
    if document.is_none() && objects.is_empty() {
        let hint = "send a document with kind: WhatIf, or objects to apply";
        return Err(Problem::invalid("the body is empty").hint(hint));
    }
    if document.is_some() && !objects.is_empty() {
        return Err(Problem::invalid("one WhatIf wanted, or objects to apply"));
    }
    // Objects become a document, so that both are confined to the namespace alike.
    let document = document.unwrap_or_else(|| {
        let source = objects[0].source.clone();
        let objects: Vec<Value> = objects.into_iter().map(|object| object.value).collect();
        let changes = json!([{ "apply": objects }]);
        let value =
            json!({ "apiVersion": ANSWERS, "kind": "WhatIf", "spec": { "changes": changes } });
        InputObject { value, source }
    });
    let document = Some((String::new(), document));
    Ok(WhatIfTexts { document, ..WhatIfTexts::default() })
}
