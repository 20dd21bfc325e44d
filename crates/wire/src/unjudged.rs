//! Hard constraints of a pod that no filter built so far reads: resource claims.
//! Such a pod is never a reason to evict others, since nobody can tell whether that would help.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::soft::{Shape, Soft};

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

/// What the pod asks for that is not judged, if anything. A malformed constraint counts: it is there.
pub(crate) fn unjudged(claims: &Soft<Present>) -> Option<&'static str> {
    asks(claims).then_some("resource claims")
}

fn asks(field: &Soft<Present>) -> bool {
    !matches!(field, Soft::Absent | Soft::Good(Present(false)))
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
        let claim = r#"{"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}"#;
        assert_eq!(unjudged(claim), None);
        assert_eq!(unjudged(r#"{"resourceClaims": [{"name": "c"}]}"#), Some("resource claims"));
        assert_eq!(unjudged("{}"), None);
    }
}
