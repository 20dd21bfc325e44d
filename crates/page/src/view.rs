//! What questions are asked of: a copy of the state after a cycle, with what the cycle recorded.
//! Specification: answers.md 1 (ANS-1), 11.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use vc_answers::{
    AnswerState, ComparedValues, Depth, Explanation, FoundSubject, JobHistory, KnownBaselines,
    RunningFilter, RunningJob, SharedNames, StartAnswer, StopCondition, SubjectError, SubjectKind,
    SubjectQuery, Timeline, WhatIfState, add_cycle_remedies, add_start, add_start_alone, explain,
    explain_line, explain_waiting, running_jobs, waiting_line,
};
use vc_engine::{Engine, QueueUse, QuotaUse, Report};
use vc_model::{Cluster, ControllerName, HyperNodeTree, JobId, ObjectKey, Revision};
use vc_objects::what_if::WhatIfTexts;

use crate::cluster::{ListJson, NodeJson, NodeLabelJson, OneJson, SummaryJson, WaitingJobJson};
use crate::convert::{Owner, StateSource, job_name, jobs_ahead, order_text};
use crate::document::{AskedJob, Document, ExplanationListJson, PageRange, Question};
use crate::explanation::{AsOfJson, ExplanationJson};
use crate::gone::gone_explanation;
use crate::history::HistoryJson;
use crate::problem::Problem;
use crate::redaction::ClusterNames;
use crate::runs::RunJson;
use crate::suppose::suppose;
use crate::tables_of_cluster::{NodeParts, hyper_nodes, node, node_labels, queues, summary};
use crate::timeline::{CycleJson, TimelineJson, evictions_about};
use crate::what_if::WhatIfResultJson;

/// A copy of the state after a cycle.
pub struct AnswerView {
    state: AnswerState,
    pub(crate) queues: Vec<QueueUse>,
    pub(crate) quotas: Vec<QuotaUse>,
    source: StateSource,
    /// Controllers of PodGroups that are known otherwise than by names.
    owners: BTreeMap<ObjectKey, Owner>,
    names: Option<Arc<ClusterNames>>,
    shared_names: OnceLock<SharedNames>,
    hyper_nodes: Arc<HyperNodeTree>,
    /// The job whose start was told last, and that start.
    told: Option<(ObjectKey, StartAnswer)>,
    /// All jobs that hold nodes, with the stamp of the timeline by which they were found. `None` until somebody
    /// asks.
    running: Option<(Revision, Arc<Vec<RunningJob>>)>,
    /// The labels that nodes have. Empty until somebody asks.
    node_labels: OnceLock<Vec<NodeLabelJson>>,
    /// What happens in this state without changes.
    baselines: KnownBaselines,
}

impl AnswerView {
    /// Copies the state of the engine. `report` is that of its last cycle; the engine must explain.
    pub fn new(engine: &Engine, report: &Report, source: StateSource) -> Self {
        Self {
            hyper_nodes: engine.cluster().shared_hyper_node_tree(),
            state: AnswerState::new(engine, report),
            queues: report.queues.clone(),
            quotas: report.quotas.clone(),
            source,
            owners: BTreeMap::new(),
            names: None,
            shared_names: OnceLock::new(),
            told: None,
            running: None,
            node_labels: OnceLock::new(),
            baselines: KnownBaselines::default(),
        }
    }

    /// Returns what what-ifs about this state have found of what happens without changes, for others about it.
    pub fn baselines(&self) -> KnownBaselines {
        self.baselines.clone()
    }

    /// Adds what is known of the controllers of PodGroups.
    pub fn set_owners(&mut self, owners: BTreeMap<ObjectKey, Owner>) {
        self.owners = owners;
    }

    /// Returns the numbers of trials since the last call, by the shortcut that told their results; `none` for those that were
    /// run.
    pub fn take_trial_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.state.take_trial_counts()
    }

    /// Lets questions unwind with [`vc_answers::QuestionStopped`] as soon as the condition holds. The view must not be
    /// asked again then.
    pub fn stop_if(&mut self, is_due: StopCondition) {
        self.state.stop_if(is_due);
    }

    /// Sets how far the copy is behind the process that decides.
    pub fn set_behind(&mut self, behind_millis: u64) {
        self.source = StateSource::Daemon { behind_millis };
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        self.state.cluster()
    }

    /// Returns the HyperNodes of the cluster.
    pub(crate) fn hyper_nodes(&self) -> &HyperNodeTree {
        &self.hyper_nodes
    }

    /// Returns the names by which hidden ones are found in sentences.
    pub fn names(&mut self) -> Arc<ClusterNames> {
        let cluster = self.state.cluster();
        let find = || {
            let jobs = cluster.jobs_by_key().map(|job| &cluster.jobs[job].key.namespace);
            // A pod with a job is in the namespace of the job.
            let pods = cluster.tasks.iter().filter(|(_, task)| task.job.is_none());
            let pods = pods.map(|(_, task)| &task.key.namespace);
            let nodes = cluster.nodes.iter().map(|(_, node)| node.name.clone());
            let namespaces = distinct(cluster.namespaces().chain(jobs).chain(pods));
            Arc::new(ClusterNames { namespaces, nodes: nodes.collect() })
        };
        self.names.get_or_insert_with(find).clone()
    }

    fn as_of(&self) -> AsOfJson {
        self.source.as_of(self.state.as_of())
    }

    fn waiting(&mut self) -> Arc<Vec<Explanation>> {
        explain_waiting(&mut self.state)
    }

    /// Counts the jobs that wait, by queue and by the code of the cause. A job without a queue has an
    /// empty one.
    pub fn waiting_counts(&mut self) -> BTreeMap<(Arc<str>, &'static str), usize> {
        let mut counts = BTreeMap::new();
        for it in self.waiting().iter() {
            let queue: Arc<str> = it.subject.queue.as_deref().unwrap_or_default().into();
            *counts.entry((queue, it.verdict.code.as_str())).or_default() += 1;
        }
        counts
    }

    /// Returns the job whose start the last answer told, and that start. Returns `None` if it told none.
    pub fn take_told(&mut self) -> Option<(ObjectKey, StartAnswer)> {
        self.told.take()
    }

    /// Answers a question. The view must be one of this engine as it is; the timeline is what was
    /// recorded of it.
    ///
    /// # Errors
    /// Nothing has the name, or several do.
    pub fn answer(
        &mut self,
        engine: &Engine,
        timeline: &Timeline,
        question: &Question,
    ) -> Result<Document, Problem> {
        let as_of = self.as_of();
        Ok(match question {
            Question::Explanation(asked) => {
                Document::Explanation(Box::new(self.explanation(engine, timeline, asked)?))
            }
            Question::Explanations { namespace, queue, code, range } => {
                let asked = [namespace, queue, code].map(Option::as_deref);
                Document::Explanations(self.explanations(asked, *range, as_of))
            }
            Question::Runs { namespace, queue, range } => {
                let [namespace, queue] = [namespace, queue].map(Option::as_deref);
                let filter = RunningFilter { namespace, queue };
                Document::Runs(self.runs(timeline, filter, *range, as_of))
            }
            Question::Queues => Document::Queues(ListJson::new("QueueList", as_of, queues(self))),
            Question::Queue { name } => {
                let found = queues(self).into_iter().find(|queue| queue.name == *name);
                let queue = found.ok_or_else(|| Problem::not_found(format!("no queue {name}")))?;
                Document::Queue(OneJson::new("Queue", as_of, queue))
            }
            Question::Line { queue, range } => Document::Line(self.line(queue, *range, as_of)?),
            Question::Nodes { range, label } => {
                Document::Nodes(self.nodes(*range, label.as_deref(), as_of))
            }
            Question::NodeLabels => {
                let labels = self.node_labels.get_or_init(|| node_labels(self.cluster())).clone();
                Document::NodeLabels(ListJson::new("NodeLabelList", as_of, labels))
            }
            Question::HyperNodes { range } => {
                let all = hyper_nodes(self);
                let list = ListJson::new("HyperNodeList", as_of, range.of(&all).to_vec());
                Document::HyperNodes(ListJson { total: all.len(), ..list })
            }
            Question::Node { name } => {
                let cluster = self.cluster();
                let found = cluster.node(name).filter(|&id| cluster.nodes[id].present);
                let id = found.ok_or_else(|| Problem::not_found(format!("no node {name}")))?;
                Document::Node(OneJson::new("Node", as_of, node(self, id, NodeParts::All)))
            }
            Question::Summary => {
                let waiting = self.waiting();
                let sums = SummaryJson { held: held(timeline), ..summary(self, &waiting) };
                Document::Summary(OneJson::new("Summary", as_of, sums))
            }
            Question::Timeline(asked) => {
                let part = TimelineJson::new(timeline, self.cluster(), asked);
                Document::Timeline(OneJson::new("Timeline", as_of, part))
            }
            Question::Cycles { last } => {
                let cycles = timeline.cycles().take(*last).map(CycleJson::from);
                let list = ListJson::new("CycleList", as_of, cycles.collect());
                Document::Cycles(ListJson { total: timeline.cycles().count(), ..list })
            }
            Question::WhatIf(texts) => {
                Document::WhatIf(Box::new(self.what_if(engine, timeline, texts)?))
            }
            Question::Bundle { .. } => {
                let problem = Problem::not_found("there is no bundle of this state");
                return Err(problem.hint("only a scheduler that runs knows what it was given"));
            }
        })
    }

    fn what_if(
        &self,
        engine: &Engine,
        timeline: &Timeline,
        texts: &WhatIfTexts,
    ) -> Result<WhatIfResultJson, Problem> {
        let ends = timeline.ends();
        let mut state = WhatIfState::new(engine, &ends);
        state.share_baselines(self.baselines());
        suppose(&state, texts, self.source)
    }

    /// Returns the controller of a PodGroup. Its name is unique if a question with that name alone
    /// finds the job.
    pub(crate) fn owner(&self, key: &ObjectKey) -> Option<Owner> {
        let name = controller(self.cluster(), key);
        let shared = || self.shared_names.get_or_init(|| SharedNames::of_cluster(self.cluster()));
        let found = name.map(|name| Owner::of(name, !shared().contains(key)));
        let Some(known) = self.owners.get(key) else { return found };
        let is_unique = found.is_some_and(|found| found.is_unique && found.name == known.name);
        Some(Owner { is_unique, ..known.clone() })
    }

    /// Explains a job or pod, with what is remembered of evictions. One that is gone is answered
    /// from the timeline alone.
    fn explanation(
        &mut self,
        engine: &Engine,
        timeline: &Timeline,
        asked: &AskedJob,
    ) -> Result<ExplanationJson, Problem> {
        let query = SubjectQuery {
            namespace: &asked.namespace,
            name: &asked.name,
            controller_uid: asked.controller_uid.as_deref(),
            kind: SubjectKind::of(asked.kind.as_deref()),
        };
        let found = timeline.find(self.cluster(), query);
        let subject = match found.map_err(|error| not_found(error, query))? {
            FoundSubject::Present(subject) => subject,
            FoundSubject::Gone(gone) => {
                let owner = |key: &ObjectKey| self.owner(key);
                return Ok(gone_explanation(gone, timeline, &owner, self.as_of()));
            }
        };
        let depth = match (asked.quick, asked.when) {
            (false, _) => Depth::Full,
            (true, false) => Depth::Quick,
            // A start is found by the blocking sets.
            (true, true) => Depth::Sets,
        };
        let mut found = explain(&mut self.state, subject, depth);
        if asked.when {
            let add = if asked.quick { add_start_alone } else { add_start };
            add(engine, (&mut self.state, &timeline.ends()), subject, &mut found);
        } else if !asked.quick {
            add_cycle_remedies(engine, &mut self.state, subject, &mut found);
        }
        if asked.quick {
            found = Explanation { blocking: None, unblock: Vec::new(), evict: None, ..found };
        }
        let job = subject.job.map(|job| self.cluster().jobs[job].key.clone());
        self.told = job.zip(found.start.as_deref().cloned());
        let mut explanation = self.json(&found);
        if let Some(start) = &mut explanation.start {
            start.held = held(timeline);
        }
        let owner = |key: &ObjectKey| self.owner(key);
        explanation.evictions = evictions_about(timeline, &found.subject.key, &owner);
        let history = subject.job.map(|job| JobHistory::of(self.cluster(), timeline, job));
        explanation.history = history.map(HistoryJson::from);
        Ok(explanation)
    }

    fn json(&self, it: &Explanation) -> ExplanationJson {
        ExplanationJson::new(it, &|key| self.owner(key), self.source)
    }

    /// Returns the jobs that wait. `None` stands for any namespace, queue or code.
    fn explanations(
        &mut self,
        [namespace, queue, code]: [Option<&str>; 3],
        range: PageRange,
        as_of: AsOfJson,
    ) -> ExplanationListJson {
        let is_asked = |it: &&Explanation| {
            namespace.is_none_or(|name| *it.subject.key.namespace == *name)
                && queue.is_none_or(|name| it.subject.queue.as_deref() == Some(name))
                && code.is_none_or(|code| it.verdict.code.as_str() == code)
        };
        let all = self.waiting();
        let asked: Vec<&Explanation> = all.iter().filter(is_asked).collect();
        let items = range.of(&asked).iter().map(|it| self.json(it)).collect();
        let list = ListJson::new("ExplanationList", as_of, items);
        ListJson { total: asked.len(), ..list }
    }

    fn line(
        &mut self,
        queue: &str,
        range: PageRange,
        as_of: AsOfJson,
    ) -> Result<ListJson<WaitingJobJson>, Problem> {
        let cluster = self.cluster();
        let found = cluster.queue(queue).filter(|&id| cluster.queues[id].present);
        let id = found.ok_or_else(|| Problem::not_found(format!("no queue {queue}")))?;
        let line = waiting_line(&mut self.state, id);
        let list = ListJson::new("Line", as_of, self.part_of_line(range.of(&line)));
        Ok(ListJson { total: line.len(), ..list })
    }

    /// Returns jobs that are neighbours in a line.
    fn part_of_line(&mut self, jobs: &[JobId]) -> Vec<WaitingJobJson> {
        let explained = explain_line(&mut self.state, jobs.to_vec());
        let row = |it: &Explanation| {
            let line = it.line.as_ref()?;
            let before = line.before.as_ref();
            Some(WaitingJobJson {
                place: line.in_queue,
                job: job_name(&it.subject.key, &|key| self.owner(key)),
                hidden: false,
                priority: Some(it.subject.priority),
                pods: it.gang.as_ref().map_or(0, |gang| gang.waiting),
                waiting_seconds: it.subject.waiting_seconds,
                code: it.verdict.code.as_str().to_owned(),
                decided_by: before.map(|other| other.decided_by.to_owned()),
                values: before.and_then(|other| other.values.as_ref()).map(ComparedValues::texts),
                text: before.map(|other| order_text(other, true)),
                ahead: Some(jobs_ahead(&line.ahead)),
            })
        };
        explained.iter().filter_map(row).collect()
    }

    /// Returns all jobs that hold nodes. They are found once for each state, and again if what the timeline knows of
    /// them changes.
    fn running(&mut self, timeline: &Timeline) -> Arc<Vec<RunningJob>> {
        let revision = timeline.jobs_revision();
        if let Some((known_at, known)) = &self.running
            && *known_at == revision
        {
            return known.clone();
        }
        let now_micros = self.state.as_of().time_micros;
        let found = running_jobs(self.cluster(), timeline, RunningFilter::default(), now_micros);
        let found = Arc::new(found);
        self.running = Some((revision, found.clone()));
        found
    }

    /// Returns the jobs that hold nodes and are wanted.
    fn runs(
        &mut self,
        timeline: &Timeline,
        filter: RunningFilter<'_>,
        range: PageRange,
        as_of: AsOfJson,
    ) -> ListJson<RunJson> {
        let all = self.running(timeline);
        let asked: Vec<&RunningJob> = all.iter().filter(|job| filter.admits(job)).collect();
        let run = |it: &&RunningJob| RunJson::of(it, &|key: &ObjectKey| self.owner(key));
        let items = range.of(&asked).iter().map(run).collect();
        ListJson { total: asked.len(), ..ListJson::new("RunList", as_of, items) }
    }

    fn nodes(&self, range: PageRange, label: Option<&str>, as_of: AsOfJson) -> ListJson<NodeJson> {
        let parts = NodeParts::Row { label };
        let cluster = self.cluster();
        let present = cluster.nodes_by_name().iter().filter(|&&id| cluster.nodes[id].present);
        let present: Vec<_> = present.copied().collect();
        let items = range.of(&present).iter().map(|&id| node(self, id, parts)).collect();
        ListJson { total: present.len(), ..ListJson::new("NodeList", as_of, items) }
    }
}

/// Returns these names, each once. Neighbours are mostly equal.
fn distinct<'a>(names: impl Iterator<Item = &'a Arc<str>>) -> BTreeSet<Arc<str>> {
    let mut found: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut last: Option<&Arc<str>> = None;
    for name in names {
        if last != Some(name) && !found.contains(name) {
            found.insert(name.clone());
        }
        last = Some(name);
    }
    found
}

/// Returns how many of the last predictions held, and the number of these. Returns `None` if nothing
/// that was predicted has started yet.
fn held(timeline: &Timeline) -> Option<[usize; 2]> {
    timeline.held().map(|(held, of)| [held, of])
}

/// Returns the controller of a PodGroup. Returns `None` if it has none, or its name is not known.
pub(crate) fn controller<'a>(
    cluster: &'a Cluster,
    key: &'a ObjectKey,
) -> Option<ControllerName<'a>> {
    let group = cluster.jobs[cluster.job(key)?].pod_group.as_ref()?;
    group.controller(key)?.name
}

fn not_found(error: SubjectError, query: SubjectQuery<'_>) -> Problem {
    let SubjectQuery { namespace, name, kind, .. } = query;
    match error {
        SubjectError::Unknown(close) => {
            let what = match kind {
                SubjectKind::Any => "job, PodGroup or pod",
                SubjectKind::Group => "PodGroup",
                SubjectKind::Controller(kind) => kind,
                SubjectKind::Pod => "pod",
            };
            let problem = Problem::not_found(format!("no {what} {namespace}/{name}"));
            let nameless = problem.clone().hint(
                "pods of other schedulers are not known here; spec.schedulerName says whose a pod is",
            );
            match close.is_empty() {
                true => nameless,
                false => problem
                    .hint(format!("did you mean {}?", close.join(", ")))
                    .or_nameless(nameless),
            }
        }
        SubjectError::Several(names) => several(name, &names, "give the name of the PodGroup"),
        SubjectError::SeveralPods(names) => several(name, &names, "give the name of one pod"),
    }
}

/// Returns the problem of a name that means each of these jobs or pods.
fn several(name: &str, names: &[String], hint: &str) -> Problem {
    let nameless = Problem::several(format!("{name} means several")).hint(hint);
    let named = Problem::several(format!("{name} means several: {}", names.join(", ")));
    named.hint(hint).or_nameless(nameless)
}
