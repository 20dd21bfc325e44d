//! A stable sort for orders that need not be transitive. Pod indexes are compared only where both
//! pods have one (core.md 5.4), so three pods may form a cycle. The sort of the standard library
//! may panic on such an order, which would end the scheduler. For a total order both sorts give the
//! same result; the test shows both.

use std::cmp::Ordering;

/// Sorts by merging; parts that are already in order cost no further comparisons.
pub fn sort_stably<T: Copy>(items: &mut [T], order: impl Fn(&T, &T) -> Ordering) {
    let mut merged = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        for pair in items.chunks_mut(2 * width) {
            if width < pair.len() && order(&pair[width - 1], &pair[width]).is_gt() {
                merge(pair, width, &mut merged, &order);
            }
        }
        width *= 2;
    }
}

fn merge<T: Copy>(
    pair: &mut [T],
    middle: usize,
    merged: &mut Vec<T>,
    order: &impl Fn(&T, &T) -> Ordering,
) {
    merged.clear();
    let (mut left, mut right) = (&pair[..middle], &pair[middle..]);
    while let ([l, rest_of_left @ ..], [r, rest_of_right @ ..]) = (left, right) {
        // Equal items keep their order.
        if order(l, r).is_gt() {
            merged.push(*r);
            right = rest_of_right;
        } else {
            merged.push(*l);
            left = rest_of_left;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    pair.copy_from_slice(merged);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_order_is_sorted_as_by_the_standard_library(
            keys in prop::collection::vec(0..9_u8, 0..200),
        ) {
            let items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let (mut ours, mut theirs) = (items.clone(), items);
            sort_stably(&mut ours, |l, r| l.0.cmp(&r.0));
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn no_order_at_all_loses_nobody(
            pods in prop::collection::vec((prop::option::of(0..9_u8), 0..9_u8), 0..300),
        ) {
            let mut items: Vec<((Option<u8>, u8), usize)> = pods.into_iter().zip(0..).collect();
            let n_items = items.len();
            sort_stably(&mut items, |(l, _), (r, _)| match (l.0, r.0) {
                (Some(l), Some(r)) if l != r => l.cmp(&r),
                _ => l.1.cmp(&r.1),
            });
            items.sort_unstable_by_key(|(_, place)| *place);
            prop_assert!(items.iter().map(|(_, place)| *place).eq(0..n_items));
        }
    }
}
