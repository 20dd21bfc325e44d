//! The name under which run times of equal pods are learned. Specification: answers.md 7 (ANS-36).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::selector::Labels;

/// Annotation of a PodGroup or pod: the name under which its run times are learned.
pub const RUN_TEMPLATE: &str = "reservation.volcano.sh/template";
/// Characters of generated names. None of them is a vowel, so that no word is generated.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

/// What pods that do the same work have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTemplate {
    /// The annotation, or the name of the owner without what generators append.
    pub name: Arc<str>,
    /// True if it is the annotation.
    pub is_stated: bool,
}

impl RunTemplate {
    /// Returns the template that an object names, itself or by its owner. Returns `None` if it has
    /// neither.
    pub fn of(annotations: &Labels, owner: Option<&Arc<str>>) -> Option<Self> {
        let stated = annotations.get(RUN_TEMPLATE).filter(|name| !name.is_empty());
        match stated {
            Some(name) => Some(Self { name: name.clone(), is_stated: true }),
            None => owner.map(|owner| Self { name: of_owner(owner), is_stated: false }),
        }
    }

    /// Returns the template of a pod. What objects state comes before names of owners, and a PodGroup
    /// before its pods.
    pub fn chosen<'a>(of_group: Option<&'a Self>, of_pod: Option<&'a Self>) -> Option<&'a Self> {
        let stated = [of_group, of_pod].into_iter().flatten().find(|template| template.is_stated);
        stated.or(of_group).or(of_pod)
    }
}

fn of_owner(owner: &Arc<str>) -> Arc<str> {
    let name = without_generated(owner);
    if name.len() == owner.len() { owner.clone() } else { name.into() }
}

/// Strips what CronJobs, Jobs, Deployments and the like append to a name: numbers, and texts of the
/// alphabet of generated names.
fn without_generated(mut name: &str) -> &str {
    while let Some((rest, last)) = name.rsplit_once('-')
        && !rest.is_empty()
        && is_generated(last)
    {
        name = rest;
    }
    name
}

fn is_generated(part: &str) -> bool {
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number || (5..=10).contains(&part.len()) && part.chars().all(|it| GENERATED.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_36_generated_suffixes_are_no_part_of_a_template() {
        for (owner, template) in [
            ("etl-28473829", "etl"),
            ("etl-x7k2p", "etl"),
            ("etl-28473829-x7k2p", "etl"),
            ("web-6d4cf56db6-x7k2p", "web"),
            ("a-1-2", "a"),
            ("plane", "plane"),
            ("big-train", "big-train"),
            ("bcdfg", "bcdfg"),
            ("a-bcdf", "a-bcdf"),
            ("a-bcdfghjklmn", "a-bcdfghjklmn"),
            ("-12", "-12"),
            ("a-", "a-"),
        ] {
            assert_eq!(without_generated(owner), template, "{owner}");
            assert_eq!(without_generated(template), template, "nothing more goes");
        }
    }

    #[test]
    fn ans_36_what_is_stated_comes_before_owners_and_groups_before_pods() {
        let template = |stated: &str, owner: &str| {
            let annotations: Labels = match stated {
                "" => Labels::new(),
                _ => [(RUN_TEMPLATE.into(), stated.into())].into_iter().collect(),
            };
            let owner: Option<Arc<str>> = (!owner.is_empty()).then(|| owner.into());
            RunTemplate::of(&annotations, owner.as_ref())
        };
        let chosen = |group: (&str, &str), pod: (&str, &str)| {
            let (group, pod) = (template(group.0, group.1), template(pod.0, pod.1));
            RunTemplate::chosen(group.as_ref(), pod.as_ref()).map(|it| it.name.to_string())
        };
        assert_eq!(chosen(("a", "b"), ("c", "d")).as_deref(), Some("a"));
        assert_eq!(chosen(("", "b"), ("c", "d")).as_deref(), Some("c"));
        assert_eq!(chosen(("", "b-12345"), ("", "d")).as_deref(), Some("b"));
        assert_eq!(chosen(("", ""), ("", "d")).as_deref(), Some("d"));
        assert_eq!(chosen(("", ""), ("", "")), None);
    }
}
