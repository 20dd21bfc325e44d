//! The edge to a real API server: feeds in, writes out. Nothing outside this crate performs a
//! request. Specification: core.md 1.9, 4, 7; rust-ecosystem.md 3-6.

mod backlog;
mod bind;
mod call;
mod client;
mod correlate;
mod count;
mod devices;
mod elect;
mod events;
mod evict;
mod feed;
mod feeds;
mod http2;
mod inbox;
mod kept;
mod lanes;
mod lines;
mod observe;
mod perform;
mod pre_bind;
mod pump;
mod qps;
mod queues;
mod restart;
mod resting;
mod skew;
mod slim;
mod source;
mod status;
mod version;
mod whole;
mod writer;

pub use backlog::Backlog;
pub use call::CallError;
pub use client::{Access, ClientError, Clients};
pub use devices::serves_devices;
pub use elect::{Election, Leadership, identity};
pub use feeds::{Feeds, follow};
pub use inbox::{Incoming, Pace, Trigger, Visit, inbox};
pub use observe::{Observer, Unobserved};
pub use pump::{Decisions, Pump, check};
pub use queues::{QueueError, ensure_queues};
pub use version::{ServerVersion, server_version};
pub use writer::write;
