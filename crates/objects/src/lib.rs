//! Kubernetes objects as users write them: files and texts, what an API server and the controllers
//! of a cluster would add, and documents with changes to suppose. Specification: answers.md 9,
//! core.md 3.9, 4.2.

pub mod admission;
mod cluster_objects;
pub mod duration;
pub mod field;
pub mod input;
pub mod live;
mod scope;
pub mod what_if;
pub mod workload;
pub mod written;

pub use cluster_objects::ClusterObjects;
pub use scope::is_namespaced;
pub use vc_wire::parse_time;
