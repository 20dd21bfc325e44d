#![allow(clippy::unwrap_used, dead_code)]
#[path = "edge/fake.rs"]
mod fake;
#[path = "edge/shards.rs"]
mod shards;
