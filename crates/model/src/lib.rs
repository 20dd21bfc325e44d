//! The cluster state: typed tables, events in, derived sums.
