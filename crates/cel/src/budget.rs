//! What an expression may cost: estimated from its form before it is ever evaluated, so that no
//! selector can hold up a cycle. Specification: plugins-nodes.md 6.6 (cost limit).

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};

/// The limit of Kubernetes.
const LIMIT: u64 = 1_000_000;

/// Elements of what a comprehension goes over, where the expression does not say: a device has at
/// most 32 attributes and capacities.
const ELEMENTS: u64 = 32;

/// Whether the estimate is within the limit.
pub(crate) fn is_within(expression: &IdedExpr) -> bool {
    cost(expression) <= LIMIT
}

/// Evaluations of nodes of the expression.
fn cost(expression: &IdedExpr) -> u64 {
    let all = |parts: &[IdedExpr]| parts.iter().map(cost).fold(0, u64::saturating_add);
    let inner = match &expression.expr {
        Expr::Call(call) => call.target.as_deref().map_or(0, cost).saturating_add(all(&call.args)),
        Expr::Comprehension(loops) => {
            let n_elements = match &loops.iter_range.expr {
                Expr::List(list) => list.elements.len() as u64,
                _ => ELEMENTS,
            };
            let step = cost(&loops.loop_cond).saturating_add(cost(&loops.loop_step));
            [&loops.iter_range, &loops.accu_init, &loops.result]
                .into_iter()
                .map(cost)
                .fold(step.saturating_mul(n_elements), u64::saturating_add)
        }
        Expr::List(list) => all(&list.elements),
        Expr::Map(map) => {
            let entries = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => cost(&entry.key).saturating_add(cost(&entry.value)),
                EntryExpr::StructField(field) => cost(&field.value),
            });
            entries.fold(0, u64::saturating_add)
        }
        Expr::Select(select) => cost(&select.operand),
        _ => 0,
    };
    inner.saturating_add(1)
}
