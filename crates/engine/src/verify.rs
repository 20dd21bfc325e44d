//! Checks the certificates of transactions that evict. It shares no code with the actions: it
//! replays a certificate on the state before it. The rules are those of actions.md 2.1, 2.3, 2.4,
//! 6.2, 6.3, 7.3 and 9.

mod candidates;
mod quota;
mod replay;

use std::sync::Arc;

use vc_conf::{ActionSettings, Config};
use vc_framework::{
    ActiveJobs, Caches, Certificate, CertifiedVictim, EvictReason, EvictionHolds, EvictionSides,
    GangEviction, Opening, PluginSet, Question, Relation, Session, Witness,
};
use vc_model::{Cluster, JobId, NodeId, TaskId};

use crate::engine::CycleTime;

/// A certificate with its names resolved.
struct ResolvedCertificate<'a> {
    certificate: &'a Certificate,
    /// The preempting job. `None` for shuffle, or if the PodGroup is not known.
    job: Option<JobId>,
    victims: Vec<TaskId>,
    /// The pod for which each victim is evicted. `None` if no single pod benefits.
    beneficiaries: Vec<Option<TaskId>>,
    placements: Vec<(TaskId, NodeId)>,
}

/// Returns the opening of a session that looks at a copy of the state, without caches.
pub(crate) fn opening_of_copy(
    config: &Config,
    eviction_holds: EvictionHolds,
    now: CycleTime,
) -> Opening {
    Opening {
        now_micros: now.unix_micros,
        previous_micros: None,
        session_id: String::new(),
        sides: EvictionSides::of(config.actions.iter().map(String::as_str)),
        enqueue_configured: config.actions.iter().any(|action| action == "enqueue"),
        eviction_holds,
        caches: Caches::default(),
        active_jobs: ActiveJobs::default(),
    }
}

/// Returns one text for every rule that a certificate breaks. The list is empty if the certificate
/// is valid.
pub(crate) fn verify(
    mut plugin_set: PluginSet,
    config: &Config,
    Witness { cluster: witness, eviction_holds }: &Witness,
    certificate: &Certificate,
    now: CycleTime,
) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(case) = resolve(witness, certificate, &mut faults) else { return faults };
    let mut cluster = witness.clone();
    let earlier = replay::rewind(&mut cluster, &case);
    let settings = ActionSettings::from(config, &mut Vec::new());
    let opening = opening_of_copy(config, eviction_holds.clone(), now);
    let mut session = Session::open(&mut cluster, &mut plugin_set, &settings, opening);
    replay::redo(&mut session, earlier, &mut faults);
    candidates::check(&session, &case, &mut faults);
    if certificate.is_for_quota() {
        quota::check(&session, config, &case, &mut faults);
    }
    replay::check(&mut session, config, &case, &mut faults);
    session.finish();
    let about =
        |fault: String| format!("{} for {}: {fault}", certificate.action.as_str(), case.name());
    faults.into_iter().map(about).collect()
}

fn resolve<'a>(
    witness: &Cluster,
    certificate: &'a Certificate,
    faults: &mut Vec<String>,
) -> Option<ResolvedCertificate<'a>> {
    let mut task = |uid: &str| {
        let found = witness.task(uid);
        if found.is_none() {
            faults.push(format!("no pod has the uid {uid}"));
        }
        found
    };
    let victims: Option<Vec<TaskId>> =
        certificate.victims.iter().map(|victim| task(&victim.uid)).collect();
    let of_uid = |uid: &Arc<str>| witness.task(uid);
    let beneficiary = |victim: &CertifiedVictim| victim.for_uid.as_ref().and_then(of_uid);
    let beneficiaries = certificate.victims.iter().map(beneficiary).collect();
    let place =
        |placed: &vc_framework::Placement| Some((task(&placed.uid)?, witness.node(&placed.node)?));
    let placements: Option<Vec<(TaskId, NodeId)>> =
        certificate.placements.iter().map(place).collect();
    let job = certificate.pod_group.as_ref().and_then(|key| witness.job(key));
    Some(ResolvedCertificate {
        certificate,
        job,
        victims: victims?,
        beneficiaries,
        placements: placements?,
    })
}

impl ResolvedCertificate<'_> {
    fn name(&self) -> String {
        self.certificate.pod_group.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string)
    }

    /// Returns the question to the plugins about the victim at index `place`. Returns `None` if no
    /// task gets its room.
    fn question(&self, place: usize) -> Option<Question> {
        let task = self.beneficiaries.get(place).copied().flatten();
        match self.certificate.action {
            EvictReason::Preempt => task.map(Question::Preempt),
            EvictReason::Reclaim => task.map(Question::Reclaim),
            EvictReason::GangPreempt => {
                self.job.map(|job| Question::Gang(job, GangEviction::Preempt))
            }
            EvictReason::GangReclaim => {
                self.job.map(|job| Question::Gang(job, GangEviction::Reclaim))
            }
            EvictReason::Shuffle => Some(Question::Shuffle),
        }
    }

    /// True in phase 2 of preempt: members of the job make room for another member.
    fn is_inside_job(&self) -> bool {
        self.certificate.victims.iter().all(|victim| victim.relation == Relation::OwnJob)
    }
}
