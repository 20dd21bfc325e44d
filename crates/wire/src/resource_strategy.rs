//! How a pod wants its resources to be scored, in two annotations.
//! Specification: plugins-nodes.md 10.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Labels, PodResourceStrategy, ResourceStrategy};

use crate::problems::{FieldPath, Problems};

const STRATEGY: &str = "volcano.sh/resource-strategy-scoring-type";
const WEIGHTS: &str = "volcano.sh/resource-strategy-weight";

/// The strategy of a pod. `None` if the configured strategies hold for it. Annotations that cannot
/// be read leave a strategy without weights, and are noted.
pub(crate) fn resource_strategy(
    annotations: &Labels,
    problems: &mut Problems,
) -> Option<Arc<PodResourceStrategy>> {
    let name = annotations.get(STRATEGY)?;
    let metadata = FieldPath::root("metadata");
    let path = metadata.field("annotations");
    let mut note = |key, problem: &str| {
        let effect = "every node scores 0 for it in resource-strategy-fit";
        problems.note(&path.key(key), &format!("{problem}, {effect}"));
    };
    let strategy = ResourceStrategy::named(name);
    if strategy.is_none() {
        note(STRATEGY, &format!("is neither LeastAllocated nor MostAllocated: {name:?}"));
    }
    let weights = weights(annotations.get(WEIGHTS).map_or("", |text| text));
    let weights = weights.inspect_err(|problem| note(WEIGHTS, problem));
    Some(Arc::new(match (strategy, weights) {
        (Some(strategy), Ok(weights)) => PodResourceStrategy { strategy, weights },
        _ => PodResourceStrategy::default(),
    }))
}

/// The weights by resource. A `null` weight is 0, as in Go.
fn weights(text: &str) -> Result<BTreeMap<Arc<str>, i64>, String> {
    let example = r#"write a weight for each resource, such as {"cpu": 2, "memory": 1}"#;
    if text.is_empty() {
        return Err(format!("is absent or empty: {example}"));
    }
    let parsed: Result<Option<BTreeMap<String, Option<i64>>>, _> = serde_json::from_str(text);
    let parsed = parsed.map_err(|_| format!("is no JSON map of integers: {text:?}: {example}"))?;
    let weight = |(name, weight): (String, Option<i64>)| (name.into(), weight.unwrap_or_default());
    Ok(parsed.unwrap_or_default().into_iter().map(weight).collect())
}
