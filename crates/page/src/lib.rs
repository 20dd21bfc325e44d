//! Answers about jobs that wait for people and programs: JSON types, texts, and the routes that
//! serve them over HTTP with rights, limits and redaction. Specification: answers.md 11, 12, 13, 16.

#![deny(missing_docs)]

mod access;
mod cluster;
mod cluster_text;
mod convert;
mod discovery;
mod document;
mod explanation;
mod gone;
mod history;
mod limits;
mod openapi;
mod problem;
mod redaction;
mod report;
mod routes;
mod runs;
mod server;
mod start;
mod start_text;
mod suppose;
mod table;
mod tables_of_cluster;
mod timeline;
mod timeline_text;
mod ui;
mod view;
mod what_if;
mod what_if_text;
mod why_text;
mod wide_text;

pub use access::{Access, Everybody, GROUP, Right, User, UserSource, Visible};
pub use cluster::{
    HyperNodeJson, ListJson, NodeJobJson, NodeJson, NodeLabelJson, OneJson, QueueJson,
    QueueQuotaJson, SummaryJson, WaitingJobJson,
};
pub use cluster_text::{
    hyper_nodes_text, line_text, node_text, nodes_text, queues_text, summary_text,
};
pub use convert::{Owner, OwnerOf, StateSource};
pub use document::{AskedJob, BundleFile, Document, ExplanationListJson, PageRange, Question};
pub use explanation::{
    API_VERSION, AheadJson, AmountsJson, AsOfJson, BlockingAtomJson, BlockingJson, BlockingSetJson,
    ConditionJson, ExplanationJson, FailingClassJson, GangJson, LineJson, NearestNodeJson,
    NeighbourJson, NodeGroupJson, NodeNumbersJson, PodClassJson, QuotaJson, RemedyJson, RoleJson,
    ShortJson, SubGroupJson, SubjectJson, VerdictJson,
};
pub use history::HistoryJson;
pub use openapi::{document as openapi, schema};
pub use problem::{Problem, StatusCauseJson, StatusDetailsJson, StatusJson};
pub use redaction::ClusterNames;
pub use report::{MOST_CYCLES, MOST_EXPLAINED, MOST_STARTS, report_answers};
pub use routes::{BASE, ROUTES, Route, RouteAnswer};
pub use runs::{RunJson, runs_text};
pub use server::{
    AnswerSource, Answered, RequestObserver, RouteOptions, Uncounted, bearer_token, routes,
};
pub use start::{
    AwaitedJson, EvictJson, EvictedPodJson, EvictingActionJson, EvictionCauseJson, StartJson,
    UnknownTimeJson,
};
pub use suppose::{difference_json, suppose};
pub use timeline::{
    AskedTime, AskedTimeline, CycleBindsJson, CycleJson, EvictionGrant, JobSpanJson,
    TimedEvictionJson, TimelineJson, TimelineSampleJson, how_evicted,
};
pub use timeline_text::{cycles_text, timeline_text, timeline_wide_text};
pub use ui::{page_routes, report_html};
pub use vc_answers::{
    ExpectedEnds, KnownBaselines, QuestionStopped, StopCondition, Timeline, TimelineStep,
    WhatIfState, time_text,
};
pub use view::AnswerView;
pub use what_if::{
    MovedPodJson, PlacedPodJson, QueueDifferenceJson, StillWaitingJson, SupposedEvictionJson,
    WhatIfBoundJson, WhatIfResultJson,
};
pub use what_if_text::what_if_text;
pub use why_text::{why_list_text, why_text};
pub use wide_text::{
    hyper_nodes_wide_text, nodes_wide_text, queues_wide_text, why_list_wide_text, why_wide_text,
};
