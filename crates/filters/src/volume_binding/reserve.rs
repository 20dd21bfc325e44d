//! Reserve: what a task is promised along with its node (plugins-nodes.md 5.6, 5.8).

use vc_model::{NodeId, PersistentVolumeClaim, Reservation, ReservedClaim};

use super::PodClaims;
use crate::rule::Pod;

/// What the pod's volumes need on the node before it may be bound there. `None`: nothing.
///
/// # Errors
/// The volumes do not fit there, or no longer.
pub fn reserve(pod: Pod<'_>, node: NodeId) -> Result<Option<Reservation>, String> {
    let text = |finding: vc_model::Finding| finding.reason.text(&pod.cluster.dims);
    let Some(claims) = PodClaims::of(pod).map_err(text)? else { return Ok(None) };
    let fit = claims.fit(node)?.map_err(str::to_owned)?;
    let volumes = &pod.cluster.volumes;
    let mut reservation = Reservation::default();
    for (claim, volume) in fit.bindings {
        // Another task binds it.
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
