//! Cases of plugins-nodes.md for the plugins that choose nodes: predicates, nodeorder, binpack.

mod bed;
mod binpack;
mod nodeorder;
mod predicates;
