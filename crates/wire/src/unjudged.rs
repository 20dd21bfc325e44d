//! Hard constraints of a pod that no filter built so far reads: required pod affinity, topology spread, resource claims.
//! Such a pod is never a reason to evict others, since nobody can tell whether that would help.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::soft::{List, Shape, Soft, object};

/// Whether a list or map is there and has an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Present(bool);

impl Shape for Present {
    const WANTED: &'static str = "a list or a map";
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut any = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(Some(Self(any)))
    }
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(Self(true)))
    }
}

/// `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodTerms {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Soft<Present>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimSpread {
    when_unsatisfiable: Soft<Arc<str>>,
}

object!(SlimPodTerms, SlimSpread);

/// The parts of a pod's spec that carry such constraints.
pub(crate) struct Constraints<'a> {
    pub(crate) affinity: [&'a Soft<SlimPodTerms>; 2],
    pub(crate) spread: &'a List<SlimSpread>,
    pub(crate) claims: &'a Soft<Present>,
}

impl Constraints<'_> {
    /// What the pod asks for that is not judged, if anything. A malformed constraint counts: it is there.
    pub(crate) fn unjudged(&self) -> Option<&'static str> {
        let terms = |terms: &Soft<SlimPodTerms>| match terms {
            Soft::Absent => false,
            Soft::Good(terms) => asks(&terms.required),
            Soft::Bad(_) => true,
        };
        if self.affinity.iter().any(|side| terms(side)) {
            return Some("required pod affinity");
        }
        if any(self.spread, |one| {
            !matches!(&one.when_unsatisfiable,
            Soft::Good(action) if &**action == "ScheduleAnyway")
        }) {
            return Some("topology spread");
        }
        asks(self.claims).then_some("resource claims")
    }
}

fn asks(field: &Soft<Present>) -> bool {
    !matches!(field, Soft::Absent | Soft::Good(Present(false)))
}

fn any<T>(list: &List<T>, test: impl Fn(&T) -> bool) -> bool {
    let element = |element: &Soft<T>| match element {
        Soft::Absent => false,
        Soft::Good(element) => test(element),
        Soft::Bad(_) => true,
    };
    match list {
        Soft::Absent => false,
        Soft::Good(elements) => elements.iter().any(element),
        Soft::Bad(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::SlimPod;

    fn unjudged(spec: &str) -> Option<&'static str> {
        let text = format!(
            r#"{{"metadata": {{"name": "p", "namespace": "d", "uid": "u"}}, "spec": {spec}}}"#
        );
        let pod: SlimPod = serde_json::from_str(&text).unwrap();
        pod.to_record().unwrap().0.unjudged
    }

    #[test]
    fn hard_constraints_are_noticed_and_soft_ones_are_not() {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let affinity = |side: &str, kind: &str, terms: &str| {
            format!(r#"{{"affinity": {{"{side}": {{"{kind}": {terms}}}}}}}"#)
        };
        let pod_affinity = Some("required pod affinity");
        assert_eq!(unjudged(&affinity("podAffinity", required, "[{}]")), pod_affinity);
        assert_eq!(unjudged(&affinity("podAntiAffinity", required, "[{}]")), pod_affinity);
        assert_eq!(unjudged(&affinity("podAntiAffinity", required, "[]")), None);
        assert_eq!(unjudged(&affinity("podAffinity", preferred, "[{}]")), None);
        let spread = |action: &str| {
            format!(r#"{{"topologySpreadConstraints": [{{"whenUnsatisfiable": "{action}"}}]}}"#)
        };
        assert_eq!(unjudged(&spread("DoNotSchedule")), Some("topology spread"));
        assert_eq!(unjudged(&spread("ScheduleAnyway")), None);
        let claim = r#"{"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}"#;
        assert_eq!(unjudged(claim), None);
        assert_eq!(unjudged(r#"{"resourceClaims": [{"name": "c"}]}"#), Some("resource claims"));
        assert_eq!(unjudged("{}"), None);
    }
}
