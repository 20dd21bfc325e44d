//! The filters that read volumes, on clusters from text. Specification: plugins-nodes.md 4.6-4.9,
//! 5, test cases 47 to 60.

mod binding;
mod in_tree;
mod laws;
mod limits;
mod plain;
mod reserve;
mod support;
mod zones;
