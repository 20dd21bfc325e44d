//! What is written into a claim once its devices are chosen. Specification: plugins-nodes.md 6.5
//! (Result per claim).

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{
    Allocation, DeviceConfig, DeviceResult, Devices, NodeSelectorTerm, Operator, Requirement,
    ResourceClaim, SliceNodes,
};

use super::search::{DeviceCandidate, DeviceChoice, DeviceFailure, exact, request_name};
use vc_model::node_selector::NAME_FIELD;

/// The devices of one claim.
pub(super) struct ClaimChoice<'a> {
    pub(super) claim: &'a ResourceClaim,
    pub(super) choices: &'a [DeviceChoice],
}

impl ClaimChoice<'_> {
    pub(super) fn allocation(
        &self,
        devices: &Devices,
        candidates: &[DeviceCandidate<'_>],
        node: &Arc<str>,
    ) -> Result<Allocation, DeviceFailure> {
        let results = self.choices.iter().map(|choice| self.result(choice, candidates)).collect();
        let config = self.class_config(devices).into_iter().chain(self.claim_config()).collect();
        let node_selector = self.node_selector(candidates, node)?;
        Ok(Allocation { results, config, node_selector })
    }

    fn result(&self, choice: &DeviceChoice, candidates: &[DeviceCandidate<'_>]) -> DeviceResult {
        let request = &self.claim.requests[choice.request];
        let exact = exact(request, choice.alternative);
        DeviceResult {
            request: request_name(request, choice.alternative).into(),
            device: candidates[choice.candidate].id.clone(),
            admin_access: exact.is_some_and(|exact| exact.admin_access),
            tolerations_json: exact.map(|e| e.tolerations_json.clone()).unwrap_or_default(),
        }
    }

    /// Each class once, with all requests that use it.
    fn class_config(&self, devices: &Devices) -> Vec<DeviceConfig> {
        let mut classes: Vec<(&Arc<str>, Vec<Arc<str>>)> = Vec::new();
        for choice in self.choices {
            let request = &self.claim.requests[choice.request];
            let Some(exact) = exact(request, choice.alternative) else { continue };
            let name: Arc<str> = request_name(request, choice.alternative).into();
            match classes.iter_mut().find(|(class, _)| **class == exact.class) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => classes.push((&exact.class, vec![name])),
            }
        }
        let of_class = |(class, requests): (&Arc<str>, Vec<Arc<str>>)| {
            let bodies = devices.class(class).map_or(&[][..], |class| &class.config);
            let config = |body: &Arc<str>| DeviceConfig {
                from_class: true,
                requests: requests.clone(),
                body: body.clone(),
            };
            bodies.iter().map(config).collect::<Vec<_>>()
        };
        classes.into_iter().flat_map(of_class).collect()
    }

    /// Those for all requests, and those for a request or the alternative that was chosen.
    fn claim_config(&self) -> impl Iterator<Item = DeviceConfig> + '_ {
        let mut names = BTreeSet::new();
        for choice in self.choices {
            let request = &self.claim.requests[choice.request];
            names.insert(request.name.to_string());
            names.insert(request_name(request, choice.alternative));
        }
        let config = self.claim.config.iter();
        let applies = move |(requests, _): &&(Vec<Arc<str>>, Arc<str>)| {
            requests.is_empty() || requests.iter().any(|name| names.contains(&**name))
        };
        config.filter(applies).map(|(requests, body)| DeviceConfig {
            from_class: false,
            requests: requests.clone(),
            body: body.clone(),
        })
    }

    /// Where the devices can be used: on this node if one of them is local, else where all of their
    /// slices say.
    fn node_selector(
        &self,
        candidates: &[DeviceCandidate<'_>],
        node: &Arc<str>,
    ) -> Result<Option<Vec<NodeSelectorTerm>>, DeviceFailure> {
        let mut union = NodeSelectorTerm::default();
        for choice in self.choices {
            match candidates[choice.candidate].nodes {
                SliceNodes::Named(_) => return Ok(Some(vec![only(node)])),
                SliceNodes::All | SliceNodes::Unjudged => {}
                SliceNodes::Matching(terms) => {
                    let [term] = &terms[..] else {
                        let key = &self.claim.key;
                        let text = format!(
                            "claim {key}: node selector of a resource slice has {} terms, must \
                             have one",
                            terms.len()
                        );
                        return Err(DeviceFailure::Wrong(text));
                    };
                    add_new(&mut union.match_expressions, &term.match_expressions);
                    add_new(&mut union.match_fields, &term.match_fields);
                }
            }
        }
        Ok((union != NodeSelectorTerm::default()).then(|| vec![union]))
    }
}

fn only(node: &Arc<str>) -> NodeSelectorTerm {
    let name =
        Requirement { key: NAME_FIELD.into(), operator: Operator::In, values: vec![node.clone()] };
    NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() }
}

fn add_new(all: &mut Vec<Requirement>, more: &[Requirement]) {
    for requirement in more {
        if !all.contains(requirement) {
            all.push(requirement.clone());
        }
    }
}
