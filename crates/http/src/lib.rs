//! HTTP/1.1 servers that one client cannot exhaust. A server holds a limited number of connections:
//! beyond it the connection that has been silent for longest is closed, so that a new client (the
//! kubelet's probe) always gets its answer. Specification: core.md 1.8 (limits of the servers).

mod connections;
mod host;
mod peer;
mod server;

use std::time::Duration;

pub use host::is_local_host;
pub use peer::PeerCertificates;
pub use server::serve;

/// What one server holds, and how long it waits.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at once.
    pub connections: usize,
    /// For the head of a request, and for a TLS handshake; a kept connection may be idle so long.
    pub head: Duration,
    /// The same for a connection that comes when three quarters of the places are taken.
    pub short_head: Duration,
    /// For a client that does not read what is sent to it.
    pub write: Duration,
    /// Bytes of answers that wait for one client to read them, beside the system's own buffers. The head of
    /// a request that is not over after so many bytes is answered by 431; bodies may be longer. At least
    /// 8,192.
    pub buffer: usize,
    /// For a whole connection. `None`: as long as the client wants.
    pub connection: Option<Duration>,
}

impl ServerLimits {
    /// Limits of a port for probes and for Prometheus, which ask seldom and for little.
    pub const SMALL: Self = Self {
        connections: 64,
        head: Duration::from_secs(5),
        short_head: Duration::from_secs(1),
        write: Duration::from_secs(5),
        buffer: 64 * 1024,
        connection: Some(Duration::from_secs(600)),
    };

    /// The time for a head while `open` connections are there, the new one among them.
    fn head(&self, open: usize) -> Duration {
        if self.connections * 3 / 4 < open { self.short_head } else { self.head }
    }
}
