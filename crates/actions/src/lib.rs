//! The steps of a cycle, one file each.
