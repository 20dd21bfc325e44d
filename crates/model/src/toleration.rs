//! Matching of tolerations and taints (plugins-nodes.md 3.3).

use crate::selector::{TaintEffect, Toleration, TolerationOperator};

/// True if any of the tolerations tolerates the taint with this key, value and effect.
pub fn any_tolerates(
    tolerations: &[Toleration],
    (key, value, effect): (&str, &str, TaintEffect),
) -> bool {
    let tolerates = |toleration: &Toleration| {
        is_about(toleration, key, effect)
            && match toleration.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => &*toleration.value == value,
                // `Gt` and `Lt` while the feature gate TaintTolerationComparisonOperators is off,
                // and operators of later API servers.
                TolerationOperator::Other => false,
            }
    };
    tolerations.iter().any(tolerates)
}

/// True if effect and key of the toleration match, or are left open.
fn is_about(toleration: &Toleration, key: &str, effect: TaintEffect) -> bool {
    let names_effect = toleration.effect.is_none_or(|named| named == effect);
    names_effect && (toleration.key.is_empty() || &*toleration.key == key)
}

#[cfg(test)]
mod tests {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    use TolerationOperator::{Equal, Exists, Other};

    use super::*;
    use crate::fixture::parts::toleration;

    const TAINTS: [(&str, &str, TaintEffect); 5] = [
        ("k", "v", NoSchedule),
        ("k", "v", NoExecute),
        ("k", "v", PreferNoSchedule),
        ("k", "w", NoSchedule),
        ("l", "v", NoSchedule),
    ];

    /// Returns the [`TAINTS`] that the toleration tolerates.
    fn tolerated(toleration: Toleration) -> Vec<usize> {
        let all = 0..TAINTS.len();
        all.filter(|&at| any_tolerates(std::slice::from_ref(&toleration), TAINTS[at])).collect()
    }

    #[test]
    fn nodes_25_exists_without_key_tolerates_everything() {
        assert_eq!(tolerated(toleration("", Exists, "", None)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn nodes_26_no_effect_means_every_effect() {
        assert_eq!(tolerated(toleration("k", Equal, "v", None)), [0, 1, 2]);
    }

    #[test]
    fn nodes_27_comparison_operators_tolerate_nothing() {
        assert!(tolerated(toleration("k", Other, "v", None)).is_empty());
    }

    #[test]
    fn key_value_and_effect_must_agree() {
        assert_eq!(tolerated(toleration("k", Exists, "", Some(NoSchedule))), [0, 3]);
        assert_eq!(tolerated(toleration("k", Equal, "w", Some(NoSchedule))), [3]);
        assert_eq!(tolerated(toleration("", Exists, "", Some(NoExecute))), [1]);
        assert!(tolerated(toleration("k", Equal, "", None)).is_empty());
        assert!(tolerated(toleration("k", Exists, "", Some(TaintEffect::Unknown))).is_empty());
    }
}
