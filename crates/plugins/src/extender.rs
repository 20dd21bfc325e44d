//! Plugin `extender`: a service outside decides about nodes, victims, queues and jobs.
//! Specification: plugins-jobs-queues.md 15.

mod arguments;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use vc_conf::{Config, EnqueueVote, PluginOption, Warning};
use vc_framework::{
    Admission, ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, Outbox, Plugin,
    PluginEntry, Points, Records, SessionView, VictimVote,
};
use vc_model::{Code, Finding, JobId, NodeId, QueueId, Reason, Reservation, TaskId, TaskStatus};
use vc_resource::Dim;

use arguments::{ExtenderHook, ExtenderSettings};
use service::{ExtenderService, shown};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("extender", build)
    .arguments(arguments::ALL)
    .enqueue_vote(EnqueueVote::IgnoresEvictions);

/// Returns true if the configuration asks services outside, so that decisions depend on more than
/// the state.
pub fn asks_services(config: &Config) -> bool {
    let mut options = config.tiers.iter().flat_map(|tier| &tier.plugins);
    options.any(|option| option.name == ENTRY.name())
}

struct Extender {
    settings: ExtenderSettings,
    service: ExtenderService,
    /// False if the service failed when the session began, and is not ignorable: then no hook is
    /// called.
    is_active: bool,
    /// The task whose placement was announced by Reserve and has not happened yet.
    announced: Mutex<Option<TaskId>>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    Box::new(Extender {
        settings: ExtenderSettings::read(option, warnings),
        service: ExtenderService::default(),
        is_active: true,
        announced: Mutex::default(),
    })
}

/// The answers may change at any time, so the plugin declares nothing: they are never cached.
impl Plugin for Extender {
    fn points(&self) -> Points {
        self.settings.points()
    }

    fn connect(&mut self, client: &Arc<dyn ExtenderClient>) {
        self.service.client = Some(client.clone());
    }

    fn open(&mut self, view: SessionView<'_>) {
        self.service.begin_session();
        self.is_active = true;
        let opened = self.ask(view, ExtenderHook::SessionOpen, ExtenderQuery::SessionOpen);
        self.is_active = self.settings.is_ignorable || !matches!(opened, Some(Err(_)));
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        self.take_back_announced(view);
        let query = ExtenderQuery::SessionClose;
        self.service.ask(&self.settings, view, ExtenderHook::SessionClose, query);
        out.warnings.extend(self.service.warnings(&self.settings));
    }

    /// Asks about a placement before it happens, so that a refusal changes nothing. After a refusal
    /// the service hears that the task has no place.
    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        self.take_back_announced(view);
        let query = ExtenderQuery::Allocate { task, placed: Some((status, node)) };
        let Some(answer) = self.ask_about(view, task, ExtenderHook::Allocate, query) else {
            return Ok(None);
        };
        let refusal = match answer {
            Ok(answer) => Some(answer.message).filter(|message| !message.is_empty()),
            Err(error) => Some(error.to_string()).filter(|_| !self.settings.is_ignorable),
        };
        match refusal {
            None => {
                self.set_announced(Some(task));
                Ok(None)
            }
            Some(why) => {
                self.deallocated(view, task);
                Err(format!("extender: {}", shown(&why)))
            }
        }
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        if self.set_announced(None) != Some(task) {
            let query = ExtenderQuery::Allocate { task, placed: None };
            self.ask_about(view, task, ExtenderHook::Allocate, query);
        }
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.take_back_announced(view);
        self.deallocated(view, task);
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let query = ExtenderQuery::Predicate { task, node };
        let answer = self.ask_about(view, task, ExtenderHook::Predicate, query);
        findings.extend(answer.and_then(|answer| self.finding(answer)));
    }

    /// One request for each node; they are under way together.
    fn predicate_all(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
    ) -> Option<Vec<Vec<Finding>>> {
        if nodes.is_empty() || !self.is_active || !self.is_of_interest(view, task) {
            return Some(vec![Vec::new(); nodes.len()]);
        }
        let query = |&node: &NodeId| ExtenderQuery::Predicate { task, node };
        let queries: Vec<ExtenderQuery<'_>> = nodes.iter().map(query).collect();
        let answers =
            self.service.ask_all(&self.settings, view, ExtenderHook::Predicate, &queries)?;
        Some(answers.into_iter().map(|answer| Vec::from_iter(self.finding(answer))).collect())
    }

    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        let query = ExtenderQuery::Prioritize { task, nodes };
        match self.ask_about(view, task, ExtenderHook::Prioritize, query) {
            None => Ok(()),
            Some(Ok(answer)) if answer.message.is_empty() => {
                self.add_scores(view, nodes, &answer.scores, out);
                Ok(())
            }
            Some(Ok(answer)) => Err(format!("extender: {}", shown(&answer.message))),
            Some(Err(_)) if self.settings.is_ignorable => Ok(()),
            Some(Err(error)) => Err(format!("extender: {error}")),
        }
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        evictor: TaskId,
        evictees: &[TaskId],
    ) -> VictimVote {
        let query = ExtenderQuery::Preemptable { evictor, evictees };
        self.vote(view, evictor, evictees, (ExtenderHook::Preemptable, query))
    }

    fn reclaimable(
        &self,
        view: SessionView<'_>,
        evictor: TaskId,
        evictees: &[TaskId],
    ) -> VictimVote {
        let query = ExtenderQuery::Reclaimable { evictor, evictees };
        self.vote(view, evictor, evictees, (ExtenderHook::Reclaimable, query))
    }

    fn overused(&self, view: SessionView<'_>, queue: QueueId) -> bool {
        match self.ask(view, ExtenderHook::QueueOverused, ExtenderQuery::QueueOverused(queue)) {
            None => false,
            Some(Ok(answer)) => answer.is_true,
            Some(Err(_)) => !self.settings.is_ignorable,
        }
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        match self.ask(view, ExtenderHook::JobEnqueueable, ExtenderQuery::JobEnqueueable(job)) {
            None => Admission::Abstain,
            Some(Ok(answer)) => match answer.code {
                0 => Admission::Abstain,
                1.. => Admission::Permit,
                _ => Admission::Reject(None),
            },
            Some(Err(_)) if self.settings.is_ignorable => Admission::Permit,
            Some(Err(_)) => Admission::Reject(None),
        }
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        self.ask(view, ExtenderHook::JobEnqueued, ExtenderQuery::JobEnqueued(job));
    }

    /// D33: after a failure a job is ready exactly if the service is ignorable.
    fn job_ready(&self, view: SessionView<'_>, job: JobId) -> bool {
        match self.ask(view, ExtenderHook::JobReady, ExtenderQuery::JobReady(job)) {
            None => true,
            Some(Ok(answer)) => answer.is_true,
            Some(Err(_)) => self.settings.is_ignorable,
        }
    }
}

type ExchangeResult = Result<ExtenderAnswer, ExtenderError>;

impl Extender {
    /// Asks a hook. Returns `None` if it is not called in this session.
    fn ask(
        &self,
        view: SessionView<'_>,
        hook: ExtenderHook,
        query: ExtenderQuery<'_>,
    ) -> Option<ExchangeResult> {
        let called = self.is_active.then_some(&self.service)?;
        called.ask(&self.settings, view, hook, query)
    }

    /// Asks a hook about a task. Returns `None` if the task is of no interest, or the hook is not
    /// called in this session.
    fn ask_about(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        hook: ExtenderHook,
        query: ExtenderQuery<'_>,
    ) -> Option<ExchangeResult> {
        let is_asked = self.is_of_interest(view, task);
        is_asked.then(|| self.ask(view, hook, query)).flatten()
    }

    /// True if the service manages a resource that the task requests, or if it manages all tasks.
    /// The API server makes a limit without request a request of the same amount.
    fn is_of_interest(&self, view: SessionView<'_>, task: TaskId) -> bool {
        let names = &self.settings.managed_resources;
        let request = view.cluster.request(task);
        let is_named = |dim: Dim| match dim {
            Dim::PODS => false,
            Dim::CPU | Dim::MEMORY => request.get(dim) != 0,
            _ => request.has(dim),
        };
        let mut dims = names.iter().filter_map(|name| view.cluster.dims.get(name));
        names.is_empty() || dims.any(is_named)
    }

    /// Returns the finding in an answer of predicate. Returns `None` if the node passes.
    fn finding(&self, answer: ExchangeResult) -> Option<Finding> {
        let (code, text) = match answer {
            Ok(answer) if answer.message.is_empty() => return None,
            Ok(answer) => (answer.code, answer.message),
            Err(_) if self.settings.is_ignorable => return None,
            Err(error) => (1, format!("extender: {error}")),
        };
        let code = match code {
            2 => Code::Unschedulable,
            3 => Code::Unresolvable,
            _ => Code::Error,
        };
        Some(Finding { code, reason: Reason::Owned(shown(&text).into()) })
    }

    /// Adds the scores of nodes that were offered. Others are left out.
    fn add_scores(
        &self,
        view: SessionView<'_>,
        nodes: &[NodeId],
        scores: &[(String, f64)],
        out: &mut [f64],
    ) {
        let name = |&node: &NodeId| &*view.cluster.nodes[node].name;
        let places: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(place, node)| (name(node), place)).collect();
        for (name, score) in scores {
            match places.get(name.as_str()) {
                Some(&place) => out[place] += score,
                None => self.service.note_odd(ExtenderHook::Prioritize, || {
                    format!("the answer scores node {name}, which was not offered; it is left out")
                }),
            }
        }
    }

    /// Returns the vote on victims (D34: an ignorable failure abstains).
    fn vote(
        &self,
        view: SessionView<'_>,
        evictor: TaskId,
        evictees: &[TaskId],
        (hook, query): (ExtenderHook, ExtenderQuery<'_>),
    ) -> VictimVote {
        match self.ask_about(view, evictor, hook, query) {
            None => VictimVote::Abstain,
            Some(Ok(answer)) if answer.code == 0 => VictimVote::Abstain,
            Some(Ok(answer)) => {
                VictimVote::Victims(self.offered(view, evictees, hook, &answer.victims))
            }
            Some(Err(_)) if self.settings.is_ignorable => VictimVote::Abstain,
            Some(Err(_)) => VictimVote::Victims(Vec::new()),
        }
    }

    /// Returns the candidates that an answer names, in the order in which they were offered (D36:
    /// unknown uids are dropped).
    fn offered(
        &self,
        view: SessionView<'_>,
        evictees: &[TaskId],
        hook: ExtenderHook,
        victims: &[String],
    ) -> Vec<TaskId> {
        let mut named: BTreeSet<&str> = victims.iter().map(String::as_str).collect();
        let is_named = |task: &TaskId| named.remove(&*view.cluster.tasks[*task].uid);
        let offered = evictees.iter().copied().filter(is_named).collect();
        if let Some(uid) = named.first() {
            self.service.note_odd(hook, || {
                format!(
                    "the answer names the victim {uid:?}, which was not offered; it is left out"
                )
            });
        }
        offered
    }

    /// Tells the service that the task lost its place. An error has no effect.
    fn deallocated(&self, view: SessionView<'_>, task: TaskId) {
        self.ask_about(view, task, ExtenderHook::Deallocate, ExtenderQuery::Deallocate(task));
    }

    /// Takes an announced placement back that another plugin has refused.
    fn take_back_announced(&self, view: SessionView<'_>) {
        if let Some(task) = self.set_announced(None) {
            self.deallocated(view, task);
        }
    }

    /// Returns the task that was announced before.
    fn set_announced(&self, task: Option<TaskId>) -> Option<TaskId> {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *announced, task)
    }
}
