//! Signals that end the demo, and the one that says that the terminal has another size.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, the wish of a process manager, and the end of the terminal.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    pub(super) fn listen() -> io::Result<Interrupts> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one. May be dropped and called again.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Changes of the terminal's size.
pub(super) struct Resizes(Signal);

impl Resizes {
    pub(super) fn listen() -> io::Result<Resizes> {
        Ok(Resizes(signal(SignalKind::window_change())?))
    }

    /// Waits for one. May be dropped and called again.
    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}
