//! The lines that a piece of code logs, for tests.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A second subscriber, which takes nothing. With one alone, tracing decides for good by the thread that reaches a line
/// first, and that may be a test without a subscriber.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// Returns the lines of level info and above that `act` logs.
pub(crate) fn logged(act: impl FnOnce()) -> Vec<String> {
    LazyLock::force(&SECOND);
    let memory = LogBuffer::default();
    let writer = memory.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, act);
    let bytes = memory.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}
