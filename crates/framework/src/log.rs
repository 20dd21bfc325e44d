//! Log lines that operators grep for, at klog's levels. Specification: actions.md 10.5.

/// Writes a log line of the given level, `-v=3` by default: `klog!(4; "text {x}")`. The field `v`
/// lets the log filter match the level exactly.
#[macro_export]
macro_rules! klog {
    (3; $($text:tt)+) => { $crate::tracing::debug!(v = 3, $($text)+) };
    (4; $($text:tt)+) => { $crate::tracing::debug!(v = 4, $($text)+) };
    (5; $($text:tt)+) => { $crate::tracing::trace!(v = 5, $($text)+) };
}
