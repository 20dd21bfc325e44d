//! Reports about network topologies of PodGroups that cannot mean what their author wanted: an event
//! when a problem begins, the fields for metrics, and a sentence in the text of a job that waits.
//! Specification: actions.md 2.12, core.md 3.7.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{About, Effect, Sample, Session, SessionState};
use vc_model::{
    ChangeReader, HyperNodeProblem, HyperNodeTree, Job, JobId, NetworkTopology, ObjectKey,
    SubGroupPolicy, TaskId,
};

/// The problems that were reported, by PodGroup.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TopologyProblems {
    #[serde(skip)]
    changed_jobs: ChangeReader<JobId>,
    /// The tree of the last report.
    #[serde(skip)]
    tree: Option<Arc<HyperNodeTree>>,
    /// Uid and problems of each PodGroup. One that was made anew is another one.
    known: BTreeMap<ObjectKey, (Arc<str>, BTreeSet<String>)>,
    /// The fields of the last sample.
    #[serde(skip)]
    sampled: Vec<(ObjectKey, Arc<str>)>,
}

impl TopologyProblems {
    /// Adds events about new problems and the texts of all to the session. Only jobs that changed
    /// are looked at, unless the HyperNodes did.
    pub(crate) fn report(&mut self, session: &mut Session<'_>) {
        self.known.retain(|key, (uid, _)| is_known(session, key, uid));
        if !session.hyper_nodes.is_listed() {
            // What is known is not told again when the HyperNodes are back.
            return;
        }
        let tree = session.info().hyper_nodes.clone();
        let is_same = self.tree.as_ref().is_some_and(|known| Arc::ptr_eq(known, &tree));
        let changed = self.changed_jobs.read(session.job_changes()).filter(|_| is_same);
        let jobs: Vec<JobId> = match changed {
            Some(changed) => changed.collect(),
            None => session.view().all_jobs().collect(),
        };
        self.tree = Some(tree);
        let is_there = |job: &JobId| session.view().has_job(*job);
        let jobs: Vec<JobId> = jobs.into_iter().filter(is_there).collect();
        let found = jobs.iter().flat_map(|&job| self.news_of(session, job));
        let mut news: Vec<(ObjectKey, Effect)> = found.collect();
        // The order of a log depends on when it was read last.
        news.sort_by(|l, r| l.0.cmp(&r.0));
        session.outcome.out.effects.extend(news.into_iter().map(|(_, event)| event));
        self.note_all(session);
    }

    /// Adds the problems to the texts of the jobs. Jobs in hard mode also hear of fields of HyperNodes
    /// that are wrong, since one of these might be theirs.
    fn note_all(&self, session: &mut Session<'_>) {
        let mut texts: BTreeMap<JobId, BTreeSet<String>> = BTreeMap::new();
        for (key, (_, problems)) in &self.known {
            if let Some(job) = session.job(key) {
                texts.insert(job, problems.clone());
            }
        }
        let of_hyper_nodes = wrong_fields(&session.info().hyper_nodes);
        if !of_hyper_nodes.is_empty() {
            for job in session.view().all_jobs().filter(|&job| is_hard(&session.jobs[job])) {
                texts.entry(job).or_default().extend(of_hyper_nodes.iter().cloned());
            }
        }
        for (job, texts) in texts {
            let texts: Vec<String> = texts.into_iter().collect();
            session.note_field_problems(job, texts.join("; "));
        }
    }

    /// Returns the fields with problems if they have changed, after all actions: those that cannot mean
    /// what was wanted, and those that leave no HyperNode which could hold the pods.
    pub(crate) fn sample(&mut self, session: &SessionState<'_>) -> Option<Sample> {
        let mut fields = match session.hyper_nodes.is_listed() {
            true => self.fields(),
            false => Vec::new(),
        };
        let unmet = session.unmet_topology_fields();
        fields.extend(unmet.map(|(job, field)| (session.jobs[job].key.clone(), field.clone())));
        fields.sort_unstable();
        if fields == self.sampled {
            return None;
        }
        self.sampled = fields.clone();
        Some(Sample::NetworkTopologyProblems(fields))
    }

    /// Returns the fields that cannot mean what was wanted, by PodGroup.
    fn fields(&self) -> Vec<(ObjectKey, Arc<str>)> {
        let field = |text: &String| text.split(": ").next().unwrap_or_default().into();
        let of_group = |(key, (_, problems)): (&ObjectKey, &(Arc<str>, BTreeSet<String>))| {
            problems.iter().map(|text| (key.clone(), field(text))).collect::<Vec<_>>()
        };
        self.known.iter().flat_map(of_group).collect()
    }

    /// Returns events about new problems of a job.
    fn news_of(&mut self, session: &Session<'_>, job: JobId) -> Vec<(ObjectKey, Effect)> {
        let row = &session.jobs[job];
        let problems = problems(session, row);
        let known = self.known.get(&row.key).map(|(_, known)| known);
        let Some(group) = row.pod_group.as_ref().filter(|_| !problems.is_empty()) else {
            if known.is_some() {
                self.known.remove(&session.jobs[job].key);
            }
            return Vec::new();
        };
        let uid = group.uid.clone();
        let about = About::PodGroup { key: row.key.clone(), uid: uid.clone() };
        let is_new = |text: &&String| known.is_none_or(|known| !known.contains(*text));
        let event = |text: &String| Effect::Event {
            about: about.clone(),
            warning: true,
            reason: "InvalidNetworkTopology",
            message: text.as_str().into(),
        };
        let new = problems.iter().filter(is_new).map(|text| (row.key.clone(), event(text)));
        let new = new.collect();
        self.known.insert(row.key.clone(), (uid, problems));
        new
    }
}

/// True if the PodGroup of this name still has this uid.
fn is_known(session: &SessionState<'_>, key: &ObjectKey, uid: &Arc<str>) -> bool {
    let group = session.job(key).and_then(|job| session.jobs[job].pod_group.as_ref());
    group.is_some_and(|group| group.uid == *uid)
}

/// The number of HyperNodes whose wrong fields a text names.
const HYPER_NODES_IN_TEXT: usize = 3;

/// Returns the fields of HyperNodes that are wrong, of the first ones by name.
fn wrong_fields(tree: &HyperNodeTree) -> Vec<String> {
    let is_field = |problem: &&HyperNodeProblem| matches!(problem, HyperNodeProblem::Field { .. });
    let texts: BTreeSet<String> =
        tree.problems().iter().filter(is_field).map(ToString::to_string).collect();
    texts.into_iter().take(HYPER_NODES_IN_TEXT).collect()
}

/// True if the job or one of its sub-groups must stay in a HyperNode.
fn is_hard(job: &Job) -> bool {
    job.pod_group.as_ref().is_some_and(|group| {
        let of_policies = group.policies.iter().filter_map(|it| it.network_topology.as_ref());
        let mut all = group.network_topology.as_deref().into_iter().chain(of_policies);
        all.any(|topology| !topology.soft)
    })
}

/// Returns what is wrong with the topologies of a job, each with the field.
fn problems(session: &SessionState<'_>, job: &Job) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Some(group) = &job.pod_group else { return found };
    let tree = &session.info().hyper_nodes;
    let own = group.network_topology.as_deref();
    found.extend(own.and_then(|topology| of_topology(tree, "spec", topology)));
    for (index, policy) in group.policies.iter().enumerate() {
        let field = format!("spec.subGroupPolicy[{index}]");
        let topology = policy.network_topology.as_ref();
        found.extend(topology.and_then(|topology| of_topology(tree, &field, topology)));
        found.extend(missing_key(session, job, policy, &field));
    }
    found
}

fn of_topology(tree: &HyperNodeTree, field: &str, topology: &NetworkTopology) -> Option<String> {
    if tree.is_empty() || topology.soft {
        return None;
    }
    let (lowest, _) = tree.tiers();
    match (topology.highest_tier_allowed, &*topology.highest_tier_name) {
        (Some(tier), _) if tier < lowest => Some(format!(
            "{field}.networkTopology.highestTierAllowed: no HyperNode has tier {tier} or a lower one; \
             the lowest tier is {lowest}"
        )),
        (None, name) if !name.is_empty() && tree.tier(name).is_none() => Some(format!(
            "{field}.networkTopology.highestTierName: no HyperNode has the tier name {name}, so that it \
             sets no limit"
        )),
        _ => None,
    }
}

/// Returns the match key that is missing on pods of no sub-group, for a policy that would else
/// select them.
fn missing_key(
    session: &SessionState<'_>,
    job: &Job,
    policy: &SubGroupPolicy,
    field: &str,
) -> Option<String> {
    let outside = job.sub_jobs.iter().filter(|sub_job| sub_job.policy.is_none());
    let lacking = |key: &str, task: TaskId| {
        let labels = &session.classes[session.tasks[task].class].labels;
        let is_selected =
            policy.label_selector.as_ref().is_none_or(|selector| selector.matches(labels));
        is_selected && labels.get(key).is_none_or(|value| value.is_empty())
    };
    let tasks: Vec<TaskId> = outside.flat_map(|sub_job| sub_job.tasks.iter().copied()).collect();
    policy.match_label_keys.iter().find_map(|key| {
        let lacking: Vec<TaskId> =
            tasks.iter().copied().filter(|&task| lacking(key, task)).collect();
        let first = lacking.first()?;
        Some(format!(
            "{field}.matchLabelKeys: label {key} is missing on {} pods, first on {}, so that they are \
             in no sub-group",
            lacking.len(),
            session.tasks[*first].key.name
        ))
    })
}
