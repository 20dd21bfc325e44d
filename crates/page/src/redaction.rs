//! Takes out of a finished answer what its reader may not see: names of jobs of other namespaces,
//! names of nodes, numbers of queues. Amounts, counts and codes stay. Specification: answers.md 12
//! (ANS-79).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::access::Visible;
use crate::cluster::WaitingJobJson;
use crate::document::Document;
use crate::explanation::{
    ExplanationJson, LineJson, NeighbourJson, NodeNumbersJson, QuotaJson, RemedyJson,
};
use crate::start::{EvictJson, StartJson};
use crate::timeline::TimelineJson;
use crate::what_if::WhatIfResultJson;

/// Plugins that order jobs by amounts that jobs or accounts of the queue hold or have held.
const PLUGINS_OF_AMOUNTS: [&str; 2] = ["drf", "fairshare"];

/// Names of the cluster, by which they are found in sentences.
#[derive(Clone, Debug, Default)]
pub struct ClusterNames {
    /// Namespaces that exist, or have jobs or pods.
    pub namespaces: BTreeSet<Arc<str>>,
    /// Nodes.
    pub nodes: BTreeSet<Arc<str>>,
}

/// What is a name in a sentence of an answer.
struct KnownNames<'a> {
    of_cluster: &'a ClusterNames,
    /// Namespaces of the jobs that the answer names in fields. One that is gone is known only there.
    of_jobs: BTreeSet<String>,
}

impl KnownNames<'_> {
    fn has_namespace(&self, word: &str) -> bool {
        self.of_cluster.namespaces.contains(word) || self.of_jobs.contains(word)
    }
}

/// A name of a job, with the mark that says whether it is hidden.
struct JobName<'a> {
    job: &'a mut String,
    hidden: Option<&'a mut bool>,
}

impl Document {
    /// Returns the namespaces and queues that the answer says something about.
    pub fn mentions(&mut self, names: &ClusterNames) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut namespaces, mut queues) = (self.namespaces_of_jobs(), BTreeSet::new());
        self.visit_texts(&mut |text| {
            for word in words(text) {
                let namespace = word.split_once('/').map(|(namespace, _)| namespace);
                let known = namespace.filter(|it| names.namespaces.contains(*it));
                namespaces.extend(known.map(str::to_owned));
            }
        });
        self.visit_explanations(&mut |it| {
            namespaces.insert(it.subject.namespace.clone());
            queues.extend(it.quota.iter().filter_map(|row| row.queue.clone()));
            queues.extend(it.unblock.iter().filter_map(raised_queue).map(str::to_owned));
            if neighbours_of(it).any(|other| compares_amounts(&other.decided_by)) {
                queues.extend(it.subject.queue.clone());
            }
        });
        match self {
            Self::WhatIf(result) => {
                queues.extend(result.queues.iter().map(|row| row.queue.clone()));
            }
            // Sums over all queues are for whoever may ask for them.
            Self::Timeline(timeline) => queues.extend(timeline.content.queue.clone()),
            _ => {}
        }
        (namespaces, queues)
    }

    /// Takes out what is not visible. Equal jobs stay equal within the answer.
    pub fn redact(&mut self, names: &ClusterNames, visible: &Visible) {
        let mut aliases = Aliases::default();
        let known = KnownNames { of_cluster: names, of_jobs: self.namespaces_of_jobs() };
        self.visit_jobs(&mut |name| {
            let namespace = name.job.split_once('/').map_or("", |(namespace, _)| namespace);
            if !visible.shows(namespace) {
                *name.job = aliases.of(name.job);
                name.hidden.into_iter().for_each(|hidden| *hidden = true);
            }
        });
        self.visit_explanations(&mut |it| {
            hide_queue_numbers(it, visible);
            hide_compared_amounts(it, visible);
            if !visible.shows(&it.subject.namespace) {
                let subject = &mut it.subject;
                subject.name = aliases.of(&format!("{}/{}", subject.namespace, subject.name));
                subject.namespace.clear();
                (subject.job, subject.job_kind, subject.pod) = (None, None, None);
                it.unblock.iter_mut().for_each(drop_changes);
            }
            let remedies = it.unblock.iter_mut();
            remedies.for_each(|remedy| hide_change_of_others(remedy, visible));
            if !visible.nodes {
                it.nodes.iter_mut().for_each(hide_nodes);
                visit_atoms(it, &mut |atom| hide_node_of_atom(atom, &names.nodes));
                let remedies = it.unblock.iter_mut();
                remedies.for_each(|remedy| hide_nodes_of_remedy(remedy, &names.nodes));
                let awaited = it.start.iter_mut().flat_map(|start| &mut start.waits_for);
                awaited.for_each(|awaited| awaited.nodes.clear());
            }
        });
        match self {
            Self::WhatIf(result) => {
                result.queues.retain(|row| visible.queues.contains(&row.queue));
                if !visible.nodes {
                    hide_supposed_nodes(result);
                }
            }
            Self::Timeline(timeline) => hide_samples(&mut timeline.content, visible),
            Self::Line(list) => hide_amounts_of_line(&mut list.items, visible),
            Self::Runs(list) => {
                let hidden = list.items.iter_mut().filter(|row| row.hidden);
                hidden.for_each(|row| row.namespace = None);
            }
            _ => {}
        }
        self.visit_texts(&mut |text| *text = redacted(text, &known, visible, &mut aliases));
    }

    /// Returns the namespaces of all jobs that are named in a field.
    fn namespaces_of_jobs(&mut self) -> BTreeSet<String> {
        let mut namespaces = BTreeSet::new();
        self.visit_jobs(&mut |name| {
            namespaces.extend(name.job.split_once('/').map(|(namespace, _)| namespace.to_owned()));
        });
        namespaces
    }

    fn visit_explanations(&mut self, visit: &mut dyn FnMut(&mut ExplanationJson)) {
        match self {
            Self::Explanation(one) => visit(one),
            Self::Explanations(list) => list.items.iter_mut().for_each(visit),
            Self::Queues(_)
            | Self::Queue(_)
            | Self::Runs(_)
            | Self::Line(_)
            | Self::Nodes(_)
            | Self::NodeLabels(_)
            | Self::Node(_)
            | Self::HyperNodes(_)
            | Self::Summary(_)
            | Self::Timeline(_)
            | Self::Cycles(_)
            | Self::WhatIf(_)
            | Self::Bundle(_) => {}
        }
    }

    /// Visits every name of a job that is a field of its own, but for those of subjects.
    fn visit_jobs(&mut self, visit: &mut dyn FnMut(JobName<'_>)) {
        let mut neighbours = |line: &mut LineJson| {
            for other in line.before.iter_mut().chain(line.behind.iter_mut()) {
                visit(JobName { job: &mut other.job, hidden: Some(&mut other.hidden) });
            }
        };
        self.visit_explanations(&mut |it| it.line.iter_mut().for_each(&mut neighbours));
        self.visit_explanations(&mut |it| {
            for awaited in it.start.iter_mut().flat_map(|start| &mut start.waits_for) {
                visit(JobName { job: &mut awaited.job, hidden: Some(&mut awaited.hidden) });
            }
            for row in &mut it.evictions {
                let names = [&mut row.pod, &mut row.pod_group].into_iter().chain(&mut row.r#for);
                names.for_each(|job| visit(JobName { job, hidden: None }));
            }
        });
        match self {
            Self::Line(list) => {
                for it in &mut list.items {
                    visit(JobName { job: &mut it.job, hidden: Some(&mut it.hidden) });
                }
            }
            Self::Runs(list) => {
                for it in &mut list.items {
                    visit(JobName { job: &mut it.job, hidden: Some(&mut it.hidden) });
                }
            }
            Self::Node(node) => {
                for it in &mut node.content.jobs {
                    visit(JobName { job: &mut it.job, hidden: Some(&mut it.hidden) });
                }
            }
            Self::Timeline(timeline) => {
                for it in &mut timeline.content.jobs {
                    visit(JobName { job: &mut it.job, hidden: Some(&mut it.hidden) });
                }
                for it in &mut timeline.content.evictions {
                    visit(JobName { job: &mut it.pod, hidden: Some(&mut it.hidden) });
                    let others = [&mut it.pod_group, &mut it.r#for].into_iter().flatten();
                    others.for_each(|job| visit(JobName { job, hidden: None }));
                }
            }
            Self::WhatIf(result) => {
                supposed_jobs(result, &mut |job: &mut String| {
                    visit(JobName { job, hidden: None });
                });
            }
            _ => {}
        }
    }

    /// Visits every sentence.
    fn visit_texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        match self {
            Self::WhatIf(result) => {
                result.waiting.iter_mut().for_each(|row| visit(&mut row.text));
                result.warnings.iter_mut().for_each(&mut *visit);
            }
            Self::Line(list) => {
                let values = list.items.iter_mut().filter_map(|row| row.values.as_mut());
                values.flatten().for_each(&mut *visit);
                list.items.iter_mut().filter_map(|row| row.text.as_mut()).for_each(&mut *visit);
            }
            _ => {}
        }
        self.visit_explanations(&mut |it| {
            visit(&mut it.verdict.text);
            it.classes.iter_mut().for_each(|row| visit(&mut row.text));
            let groups = it.nodes.iter_mut().flat_map(|nodes| &mut nodes.groups);
            groups.for_each(|group| visit(&mut group.text));
            it.last_condition.iter_mut().for_each(|condition| visit(&mut condition.message));
            it.unblock.iter_mut().for_each(|remedy| visit(&mut remedy.text));
            it.start.iter_mut().for_each(|start| visit_start(start, visit));
            it.evict.iter_mut().for_each(|evict| visit_eviction(evict, visit));
            it.evictions.iter_mut().for_each(|row| visit(&mut row.text));
            for other in neighbours_of(it) {
                other.values.iter_mut().flatten().for_each(&mut *visit);
                visit(&mut other.text);
            }
        });
    }
}

/// Names in place of hidden ones.
#[derive(Default)]
struct Aliases(BTreeMap<String, usize>);

impl Aliases {
    fn of(&mut self, name: &str) -> String {
        let next = self.0.len() + 1;
        format!("other-{}", self.0.entry(name.to_owned()).or_insert(next))
    }
}

/// True for what names of Kubernetes objects are made of, and for the slash behind a namespace.
fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '/' | '_')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter| !is_of_name(letter)).map(|word| word.trim_end_matches('.'))
}

/// Returns a sentence without hidden names.
fn redacted(
    text: &str,
    known: &KnownNames<'_>,
    visible: &Visible,
    aliases: &mut Aliases,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches('.');
        let is_hidden_job = word.split_once('/').is_some_and(|(namespace, _)| {
            known.has_namespace(namespace) && !visible.shows(namespace)
        });
        if is_hidden_job {
            out.push_str(&aliases.of(word));
        } else if !visible.nodes && known.of_cluster.nodes.contains(word) {
            out.push_str("hidden");
        } else {
            out.push_str(word);
        }
        out.push_str(&rest[word.len()..end]);
        rest = &rest[end..];
        let gap = rest.find(is_of_name).unwrap_or(rest.len());
        out.push_str(&rest[..gap]);
        rest = &rest[gap..];
    }
    out
}

fn hide_nodes(nodes: &mut NodeNumbersJson) {
    nodes.groups.iter_mut().for_each(|group| group.names.clear());
    nodes.nearest.iter_mut().for_each(|node| node.name = "hidden".to_owned());
}

/// Takes out the changes of a remedy that ends jobs of which one is hidden.
fn hide_change_of_others(remedy: &mut RemedyJson, visible: &Visible) {
    let changes = remedy.change.iter().chain(&remedy.changes);
    let mut jobs = changes.filter_map(|change| change["finish"]["jobs"].as_array()).flatten();
    let namespace = |job: &Value| Some(job.as_str()?.split_once('/')?.0.to_owned());
    let is_hidden = |job: &Value| namespace(job).is_none_or(|it| !visible.shows(&it));
    if jobs.any(is_hidden) {
        drop_changes(remedy);
    }
}

/// Takes out the nodes of a remedy, and its changes if one of them names a node. With another name in its place the
/// change would do something else.
fn hide_nodes_of_remedy(remedy: &mut RemedyJson, nodes: &BTreeSet<Arc<str>>) {
    remedy.nodes.clear();
    let mut changes = remedy.change.iter().chain(&remedy.changes);
    if changes.any(|change| has_name(change, nodes)) {
        drop_changes(remedy);
    }
}

/// True if a text in this value is one of the names.
fn has_name(value: &Value, names: &BTreeSet<Arc<str>>) -> bool {
    match value {
        Value::String(text) => names.contains(text.as_str()),
        Value::Array(items) => items.iter().any(|item| has_name(item, names)),
        Value::Object(fields) => fields.values().any(|field| has_name(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Visits the name of every atom.
fn visit_atoms(it: &mut ExplanationJson, visit: &mut dyn FnMut(&mut String)) {
    if let Some(nodes) = &mut it.nodes {
        let groups = nodes.groups.iter_mut().flat_map(|group| &mut group.atoms);
        let nearest = nodes.nearest.iter_mut().flat_map(|node| &mut node.atoms);
        groups.chain(nearest).for_each(&mut *visit);
    }
    if let Some(blocking) = &mut it.blocking {
        blocking.atoms.iter_mut().for_each(&mut *visit);
        let sets = blocking.sets.iter_mut().flat_map(|set| &mut set.atoms);
        sets.for_each(|row| visit(&mut row.atom));
    }
}

/// Hides the name of a node in the name of an atom, as in sentences. Only the value of a taint can be one:
/// `taint/owner=g1:NoSchedule`.
fn hide_node_of_atom(atom: &mut String, nodes: &BTreeSet<Arc<str>>) {
    let parts = atom.split_once('=').and_then(|(key, rest)| Some((key, rest.split_once(':')?)));
    if let Some((key, (_, effect))) = parts.filter(|(_, (value, _))| nodes.contains(*value)) {
        *atom = format!("{key}=hidden:{effect}");
    }
}

fn drop_changes(remedy: &mut RemedyJson) {
    remedy.change = None;
    remedy.changes.clear();
}

/// Visits every name of a job in a result of changes.
fn supposed_jobs(result: &mut WhatIfResultJson, visit: &mut dyn FnMut(&mut String)) {
    for row in result.placed.iter_mut().chain(&mut result.not_placed) {
        visit(&mut row.pod);
        row.pod_group.iter_mut().for_each(&mut *visit);
    }
    for row in &mut result.moved {
        visit(&mut row.pod);
        row.pod_group.iter_mut().for_each(&mut *visit);
    }
    for row in result.evicted.iter_mut().chain(&mut result.spared) {
        visit(&mut row.pod);
        let others = [&mut row.pod_group, &mut row.r#for, &mut row.for_job];
        others.into_iter().flatten().for_each(&mut *visit);
    }
    for row in &mut result.waiting {
        visit(&mut row.pod_group);
        visit(&mut row.job);
    }
    result.unplaced.iter_mut().for_each(visit);
}

fn hide_supposed_nodes(result: &mut WhatIfResultJson) {
    let hidden = || "hidden".to_owned();
    for row in result.placed.iter_mut().chain(&mut result.not_placed) {
        row.node = hidden();
    }
    for row in &mut result.moved {
        (row.from, row.to) = (hidden(), hidden());
    }
}

fn visit_start(it: &mut StartJson, visit: &mut dyn FnMut(&mut String)) {
    it.text.iter_mut().for_each(&mut *visit);
    let unknown = [&mut it.earliest_unknown, &mut it.latest_unknown].into_iter().flatten();
    unknown.for_each(|unknown| visit(&mut unknown.text));
}

fn visit_eviction(it: &mut EvictJson, visit: &mut dyn FnMut(&mut String)) {
    visit(&mut it.text);
    it.compared.iter_mut().for_each(&mut *visit);
    it.remedy.iter_mut().for_each(&mut *visit);
    let causes = it.actions.iter_mut().flat_map(|action| &mut action.causes);
    causes.for_each(|cause| visit(&mut cause.text));
}

/// Leaves of the samples of one queue the numbers of its jobs, if the queue is not visible.
fn hide_samples(it: &mut TimelineJson, visible: &Visible) {
    if it.queue.as_ref().is_some_and(|queue| !visible.queues.contains(queue)) {
        for sample in &mut it.samples {
            sample.allocated.clear();
            sample.deserved.clear();
        }
    }
}

/// Leaves of a limit what is short, if its queue is not visible, or the namespace of its ResourceQuota.
fn hide_queue_numbers(it: &mut ExplanationJson, visible: &Visible) {
    let sees_namespace = visible.shows(&it.subject.namespace);
    let is_hidden = |row: &&mut QuotaJson| match &row.queue {
        Some(queue) => !visible.queues.contains(queue),
        None => row.resource_quota.is_some() && !sees_namespace,
    };
    let mut has_hidden = false;
    for row in it.quota.iter_mut().filter(is_hidden) {
        (row.amount, row.used, row.resource_quota, has_hidden) = (None, None, None, true);
        let QuotaJson { plugin, resource, short, .. } = &*row;
        let text = &mut it.verdict.text;
        if let Some(at) = text.find(&format!("{plugin}: ")) {
            let owner = match &row.queue {
                Some(name) if text[at..].contains(&format!("cohort {name} ")) => {
                    format!("cohort {name}")
                }
                Some(name) => format!("queue {name}"),
                None => "a ResourceQuota".to_owned(),
            };
            text.truncate(at);
            text.push_str(&format!("{plugin}: {owner} has no room: {short} {resource} short"));
        }
    }
    let tells_numbers = |remedy: &&mut RemedyJson| {
        let is_visible = raised_queue(remedy).is_some_and(|it| visible.queues.contains(it));
        remedy.kind == "raiseQuota" && (has_hidden || !is_visible)
    };
    for remedy in it.unblock.iter_mut().filter(tells_numbers) {
        remedy.text = "raise the limit of the queue".to_owned();
        remedy.change = None;
    }
}

/// Returns the neighbours of the job in its line.
fn neighbours_of(it: &mut ExplanationJson) -> impl Iterator<Item = &mut NeighbourJson> {
    it.line.iter_mut().flat_map(|line| line.before.iter_mut().chain(&mut line.behind))
}

fn compares_amounts(decided_by: &str) -> bool {
    PLUGINS_OF_AMOUNTS.contains(&decided_by)
}

/// Takes out the amounts by which a job and a neighbour are ordered, if one of the two or their queue is not visible.
/// What decides stays.
fn hide_compared_amounts(it: &mut ExplanationJson, visible: &Visible) {
    let queue = it.subject.queue.as_ref();
    let sees_queue = queue.is_some_and(|queue| visible.queues.contains(queue));
    let sees_own = sees_queue && visible.shows(&it.subject.namespace);
    let others = neighbours_of(it).filter(|other| other.hidden || !sees_own);
    for other in others.filter(|other| compares_amounts(&other.decided_by)) {
        other.values = None;
        other.text.clone_from(&other.decided_by);
    }
}

/// Takes out the amounts by which neighbours in a line are ordered, if one of the two is hidden. The queue is visible
/// to whoever may ask for its line.
fn hide_amounts_of_line(rows: &mut [WaitingJobJson], visible: &Visible) {
    // The job before the first row is not in the answer.
    let mut is_before_hidden = !visible.all_namespaces;
    for row in rows {
        let compares = row.decided_by.as_deref().is_some_and(compares_amounts);
        if compares && (row.hidden || is_before_hidden) {
            row.values = None;
            row.text.clone_from(&row.decided_by);
        }
        is_before_hidden = row.hidden;
    }
}

/// Returns the queue that a remedy changes. Returns `None` if it changes none.
fn raised_queue(remedy: &RemedyJson) -> Option<&str> {
    remedy.change.as_ref()?["setQueue"]["name"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ClusterNames {
        let of = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        ClusterNames { namespaces: of(&["ml", "prod"]), nodes: of(&["g1", "g2.example.org"]) }
    }

    #[test]
    fn ans_79_names_in_sentences_are_hidden_and_words_stay() {
        let cases = [
            ("prod/web is first: claim", "other-1 is first: claim"),
            ("behind (prod/web, ml/a), then prod/web.", "behind (other-1, ml/a), then other-1."),
            ("room on g1, g2.example.org.", "room on hidden, hidden."),
            ("4 nvidia.com/gpu short on g10", "4 nvidia.com/gpu short on g10"),
            ("prods/web", "prods/web"),
            ("übrig: prod/x", "übrig: other-1"),
            ("evicted for gone/urgent", "evicted for other-1"),
            ("", ""),
        ];
        let visible =
            Visible { namespaces: BTreeSet::from(["ml".to_owned()]), ..Visible::default() };
        let names = names();
        let of_jobs = BTreeSet::from(["gone".to_owned()]);
        let known = KnownNames { of_cluster: &names, of_jobs };
        for (text, expected) in cases {
            let found = redacted(text, &known, &visible, &mut Aliases::default());
            assert_eq!(found, expected);
        }
        let all = Visible { all_namespaces: true, nodes: true, ..Visible::default() };
        for (text, _) in cases {
            assert_eq!(redacted(text, &known, &all, &mut Aliases::default()), text);
        }
    }
}
