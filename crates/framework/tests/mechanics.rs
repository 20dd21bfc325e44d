//! The shared mechanics of actions.md 2 and the numbered cases of core.md 48-94 that sessions,
//! dispatch and statements decide, on clusters from text and a plugin that answers what a test
//! tells it.
#![allow(clippy::unwrap_used)]
#![allow(non_snake_case, reason = "cases of actions.md are found by their slug, `tier/abstain`")]

#[path = "mechanics/choice.rs"]
mod choice;
#[path = "mechanics/commit.rs"]
mod commit;
#[path = "mechanics/eviction_holds.rs"]
mod eviction_holds;
#[path = "mechanics/fake.rs"]
mod fake;
#[path = "mechanics/laws.rs"]
mod laws;
#[path = "mechanics/memory.rs"]
mod memory;
#[path = "mechanics/messages.rs"]
mod messages;
#[path = "mechanics/orders.rs"]
mod orders;
#[path = "mechanics/plugin_set.rs"]
mod plugin_set;
#[path = "mechanics/reserve.rs"]
mod reserve;
#[path = "mechanics/session.rs"]
mod session;
#[path = "mechanics/statement.rs"]
mod statement;
#[path = "mechanics/support.rs"]
mod support;
#[path = "mechanics/tiers.rs"]
mod tiers;
