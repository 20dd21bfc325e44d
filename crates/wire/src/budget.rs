//! PodDisruptionBudgets. A selector that cannot be read protects every pod of its namespace: whom it
//! means is not known. Specification: plugins-jobs-queues.md 10.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{BudgetRecord, Covers, LabelSelector, Operator};

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientMap, object};
use crate::{Kind, WireError, named};

/// A PodDisruptionBudget as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimBudget {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimBudgetSpec>,
    pub status: LenientField<SlimBudgetStatus>,
}

/// `spec` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimBudgetSpec {
    pub selector: LenientField<SlimLabelSelector>,
}

/// `status` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimBudgetStatus {
    pub disruptions_allowed: LenientField<i32>,
    pub current_healthy: LenientField<i32>,
    pub disrupted_pods: LenientField<LenientMap<Arc<str>>>,
}

object!(SlimBudgetSpec, SlimBudgetStatus);

impl SlimBudget {
    /// The record and what is wrong with the object: what cannot be read allows nothing.
    ///
    /// # Errors
    /// Namespace or name cannot be read.
    pub fn to_record(self) -> Result<(BudgetRecord, Vec<String>), WireError> {
        let mut problems = Problems::default();
        let key = metadata::read(Kind::PodDisruptionBudget, self.metadata, &mut problems)?.key();
        let covers = covers(self.spec, &mut problems);
        let path = FieldPath::root("status");
        let status = problems.or_default(self.status, &path);
        let allowed = path.field("disruptionsAllowed");
        let healthy = path.field("currentHealthy");
        let disrupted = path.field("disruptedPods");
        let record = BudgetRecord {
            covers,
            allowed: problems.or_default(status.disruptions_allowed, &allowed),
            healthy: problems.or_default(status.current_healthy, &healthy),
            disrupted: problems.labels(status.disrupted_pods, &disrupted).keys().cloned().collect(),
            key,
        };
        let (namespace, name) = (&record.key.namespace, &record.key.name);
        let problems = problems.of(&named(Kind::PodDisruptionBudget, namespace, name));
        Ok((record, problems))
    }
}

fn covers(spec: LenientField<SlimBudgetSpec>, problems: &mut Problems) -> Covers {
    let path = FieldPath::root("spec");
    let n_before = problems.len();
    let spec = problems.or_default(spec, &path);
    let path = path.field("selector");
    let slim = problems.read(spec.selector, &path);
    let selector = slim.map(|slim| label_selector(slim, &path, problems)).unwrap_or_default();
    note_misuse(&selector, &path, problems);
    if n_before < problems.len() {
        problems.note(&path, UNREADABLE);
        return Covers::Everybody;
    }
    match selector == LabelSelector::default() {
        true => Covers::Nobody,
        false => Covers::Matching(selector),
    }
}

const UNREADABLE: &str = "is not usable, so that no pod of the namespace is evicted\n\
    hint: correct the selector, or delete the budget";

/// What the API server would have refused; an unknown operator has been noted.
fn note_misuse(selector: &LabelSelector, path: &FieldPath<'_>, problems: &mut Problems) {
    let path = path.field("matchExpressions");
    for (index, rule) in selector.match_expressions.iter().enumerate() {
        let wrong = match rule.operator {
            Operator::In | Operator::NotIn => rule.values.is_empty(),
            Operator::Exists | Operator::DoesNotExist => !rule.values.is_empty(),
            Operator::Gt | Operator::Lt => true,
            Operator::Unknown => false,
        };
        if wrong {
            let message = format!(
                "does not go with {} values: {:?}\n\
                 hint: In and NotIn need values, Exists and DoesNotExist have none",
                rule.values.len(),
                rule.operator,
            );
            problems.note(&path.index(index).field("operator"), &message);
        }
    }
}
