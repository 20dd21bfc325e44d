//! Reserve: the volumes that are reserved for a task together with its node.
//! Specification: plugins-nodes.md 5.6, 5.8.

use vc_model::{NodeId, PersistentVolumeClaim, Reservation, ReservedClaim};

use super::PodVolumeClaims;
use crate::rule::Pod;

/// Returns what must happen to the pod's volumes on the node before it is bound. Returns `None` if
/// the pod has no claims.
///
/// # Errors
///
/// The volumes do not fit on the node, or no longer do.
pub fn reserve(pod: Pod<'_>, node: NodeId) -> Result<Option<Reservation>, String> {
    let text = |finding: vc_model::Finding| finding.reason.text(&pod.cluster.dims);
    let Some(claims) = PodVolumeClaims::of(pod).map_err(text)? else { return Ok(None) };
    let fit = claims.fit(node)?.map_err(str::to_owned)?;
    let volumes = &pod.cluster.volumes;
    let mut reservation = Reservation::default();
    for (claim, volume) in fit.bindings {
        // A claim that another task binds is only awaited.
        match volumes.decision(&claim.key) {
            Some(_) => reservation.awaited.push(reserved(claim)),
            None => reservation.bindings.push((reserved(claim), volume.name.clone())),
        }
    }
    reservation.provisions.extend(fit.provisions.iter().map(|(claim, _)| reserved(claim)));
    reservation.awaited.extend(fit.awaited.into_iter().map(reserved));
    Ok((!reservation.is_empty()).then_some(reservation))
}

fn reserved(claim: &PersistentVolumeClaim) -> ReservedClaim {
    ReservedClaim { key: claim.key.clone(), uid: claim.uid.clone() }
}
