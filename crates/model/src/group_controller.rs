//! Controllers of pods and PodGroups, as users name them. Specification: answers.md 2 (ANS-5).

use crate::record::ObjectKey;

/// Kind and name of a controller of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerName<'a> {
    /// Kind, as in `ReplicaSet`.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
}

impl<'a> ControllerName<'a> {
    /// True if a user means this controller by a kind and a name. Upper and lower case of the kind
    /// are alike; `None` means any kind.
    ///
    /// The kind `Deployment` means the ReplicaSets of the Deployment, too.
    pub fn is_meant_by(self, kind: Option<&str>, name: &str) -> bool {
        let is_kind = kind.is_none_or(|kind| kind.eq_ignore_ascii_case(self.kind));
        let is_deployment = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("Deployment"));
        let is_deployed = is_deployment && self.deployment() == Some(name);
        (is_kind && self.name == name) || is_deployed
    }

    /// Returns the name of the Deployment of this ReplicaSet, as far as names tell: a Deployment
    /// controls its pods by ReplicaSets, each named `<deployment>-<hash>`.
    ///
    /// Returns `None` for other kinds, and for a ReplicaSet without such a name.
    pub fn deployment(self) -> Option<&'a str> {
        let (deployment, hash) = self.name.rsplit_once('-')?;
        let is_replica_set = self.kind.eq_ignore_ascii_case("ReplicaSet");
        (is_replica_set && !hash.is_empty()).then_some(deployment)
    }
}

/// The controlling owner of a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupController<'a> {
    /// `metadata.uid`.
    pub uid: &'a str,
    /// Kind and name. `None` if they are not known.
    pub name: Option<ControllerName<'a>>,
}

impl<'a> GroupController<'a> {
    /// Returns the controller of a PodGroup. `kind` and `name` are those of the PodGroup's reference;
    /// where one of them is missing the PodGroup's own name counts: `<name>-<uid>` is that of a
    /// Volcano Job.
    pub fn new(
        group: &'a ObjectKey,
        uid: &'a str,
        (kind, name): (Option<&'a str>, Option<&'a str>),
    ) -> Self {
        let stated = kind.zip(name).map(|(kind, name)| ControllerName { kind, name });
        Self { uid, name: stated.or_else(|| job_of_group(group, uid)) }
    }
}

/// Returns the Volcano Job whose uid stands at the end of the PodGroup's name. Returns `None` if the
/// PodGroup has another name, such as the `podgroup-<uid>` of other controllers.
fn job_of_group<'a>(group: &'a ObjectKey, uid: &str) -> Option<ControllerName<'a>> {
    let name = group.name.strip_suffix(uid)?.strip_suffix('-')?;
    (name != "podgroup").then_some(ControllerName { kind: "Job", name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_05_a_controller_is_meant_by_its_kind_and_name() {
        let replica_set = ControllerName { kind: "ReplicaSet", name: "web-5d9f7c" };
        let job = ControllerName { kind: "Job", name: "train" };
        for (controller, kind, name, expected) in [
            (replica_set, Some("deployment"), "web", true),
            (replica_set, None, "web", false),
            (replica_set, Some("ReplicaSet"), "web-5d9f7c", true),
            (replica_set, None, "web-5d9f7c", true),
            (replica_set, Some("replicaset"), "web", false),
            (replica_set, Some("statefulset"), "web", false),
            (replica_set, Some("deployment"), "we", false),
            (replica_set, Some("deployment"), "web-5d9f7c", false),
            (ControllerName { name: "web-a-b", ..replica_set }, Some("deployment"), "web", false),
            (ControllerName { name: "web-", ..replica_set }, Some("deployment"), "web", false),
            (ControllerName { name: "web", ..replica_set }, Some("deployment"), "web", false),
            (job, Some("JOB"), "train", true),
            (job, None, "train", true),
            (job, Some("deployment"), "train", false),
            (ControllerName { name: "web-5d9f7c", ..job }, Some("deployment"), "web", false),
        ] {
            let found = controller.is_meant_by(kind, name);
            assert_eq!(found, expected, "{controller:?} {kind:?} {name}");
        }
    }

    #[test]
    fn ans_05_the_name_of_a_replica_set_tells_of_its_deployment() {
        for (kind, name, expected) in [
            ("ReplicaSet", "web-5d9f7c", Some("web")),
            ("replicaset", "web-a-b", Some("web-a")),
            ("ReplicaSet", "web-", None),
            ("ReplicaSet", "web", None),
            ("StatefulSet", "web-5d9f7c", None),
        ] {
            assert_eq!(ControllerName { kind, name }.deployment(), expected, "{kind} {name}");
        }
    }

    #[test]
    fn ans_05_the_name_of_a_group_tells_of_a_volcano_job() {
        let controller = |group: &str, stated: (Option<&'static str>, Option<&'static str>)| {
            let key = ObjectKey::new("ml", group);
            let found = GroupController::new(&key, "7f", stated).name;
            found.map(|it| format!("{} {}", it.kind, it.name)).unwrap_or_default()
        };
        assert_eq!(controller("train-7f", (None, None)), "Job train");
        assert_eq!(controller("train-7f", (None, Some("7f"))), "Job train");
        assert_eq!(controller("podgroup-7f", (None, None)), "");
        assert_eq!(controller("other", (None, Some("x"))), "");
        let stated = (Some("ReplicaSet"), Some("web-5d9f7c"));
        assert_eq!(controller("podgroup-7f", stated), "ReplicaSet web-5d9f7c");
    }
}
