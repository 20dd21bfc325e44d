//! PodGroups as the server answered our last write of them, for the next one: it needs no list then.
//! Few, and only while more is to be written; a stale one is refused with 409 and listed after all.
//! Specification: core.md 7.6 (C-29), DESIGN.md 3 row 9a.

use std::sync::{Mutex, PoisonError};

use kube::api::DynamicObject;
use rustc_hash::FxHashMap;
use vc_model::ObjectKey;

/// A PodGroup is some kilobytes here.
const MOST: usize = 1024;

/// They may be forgotten at any time.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<FxHashMap<ObjectKey, DynamicObject>>);

impl Kept {
    /// The object, if it is this one; it is forgotten.
    pub(crate) fn take(&self, key: &ObjectKey, uid: &str) -> Option<DynamicObject> {
        let kept = self.lock().remove(key);
        kept.filter(|object| object.metadata.uid.as_deref() == Some(uid))
    }

    /// For the next write of it.
    pub(crate) fn keep(&self, key: &ObjectKey, object: DynamicObject) {
        let mut kept = self.lock();
        if kept.len() < MOST {
            kept.insert(key.clone(), object);
        } else {
            // Those that nobody wrote again must not stay for ever.
            kept.clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<ObjectKey, DynamicObject>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, uid: &str) -> DynamicObject {
        let mut object = DynamicObject::new(name, &crate::call::pod_group_resource());
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    #[test]
    fn an_object_is_given_out_once_and_only_to_its_uid() {
        let (kept, key) = (Kept::default(), ObjectKey::new("ns", "a"));
        kept.keep(&key, object("a", "1"));
        assert!(kept.take(&key, "1").is_some());
        assert!(kept.take(&key, "1").is_none());
        kept.keep(&key, object("a", "1"));
        assert!(kept.take(&key, "2").is_none());
    }

    #[test]
    fn their_number_is_bounded() {
        let kept = Kept::default();
        for number in 0..3 * MOST {
            let name = number.to_string();
            kept.keep(&ObjectKey::new("ns", &name), object(&name, "1"));
            assert!(kept.lock().len() <= MOST);
        }
    }
}
