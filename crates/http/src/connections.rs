//! The open connections of a server, and which of them has been silent for longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The open connections of one server, by number in order of their arrival.
#[derive(Default)]
pub(crate) struct Connections(Mutex<ConnectionTable>);

#[derive(Default)]
struct ConnectionTable {
    open: BTreeMap<u64, OpenConnection>,
    /// Counts arrivals and ends of answers.
    clock: u64,
}

struct OpenConnection {
    /// When the client fell silent, by the table's clock. `None`: a request is being answered.
    silent_since: Option<u64>,
    /// Dropped: the connection is closed.
    _close: oneshot::Sender<()>,
}

/// The place of one connection; it is free again when this is dropped.
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
    /// Open connections at the arrival, this one among them.
    pub(crate) open: usize,
}

/// A request that is being answered; the client is silent again when this is dropped.
pub(crate) struct AnswerGuard {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// A place for a new connection. If `limit` connections are open, the one that has been silent
    /// for longest is closed; if none is silent, the oldest. The receiver ends when the new
    /// connection is to be closed itself.
    pub(crate) fn enter(
        self: &Arc<Self>,
        limit: usize,
    ) -> (ConnectionPlace, oneshot::Receiver<()>) {
        let mut table = self.table();
        while limit.max(1) <= table.open.len() {
            let oldest = table.oldest();
            table.open.remove(&oldest);
        }
        let (close, closed) = oneshot::channel();
        let number = table.tick();
        table.open.insert(number, OpenConnection { silent_since: Some(number), _close: close });
        let open = table.open.len();
        (ConnectionPlace { connections: self.clone(), number, open }, closed)
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The number of the connection to close first.
    fn oldest(&self) -> u64 {
        // Silent ones come first: their key is smaller.
        let key = |(number, it): &(&u64, &OpenConnection)| match it.silent_since {
            Some(since) => (false, since),
            None => (true, **number),
        };
        self.open.iter().min_by_key(key).map_or(0, |(number, _)| *number)
    }
}

impl ConnectionPlace {
    /// Marks the connection as one whose request is being answered.
    pub(crate) fn answer(&self) -> AnswerGuard {
        if let Some(connection) = self.connections.table().open.get_mut(&self.number) {
            connection.silent_since = None;
        }
        AnswerGuard { connections: self.connections.clone(), number: self.number }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.number);
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        let now = table.tick();
        if let Some(connection) = table.open.get_mut(&self.number) {
            connection.silent_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    #[test]
    fn the_longest_silent_connection_gives_up_its_place() {
        let connections = Arc::new(Connections::default());
        let mut places: Vec<_> = (0..3).map(|_| connections.enter(3)).collect();
        assert_eq!(places.iter().map(|(place, _)| place.open).collect::<Vec<_>>(), [1, 2, 3]);
        let is_open = |(_, closed): &mut (ConnectionPlace, oneshot::Receiver<()>)| {
            closed.try_recv() == Err(TryRecvError::Empty)
        };
        // The first is being answered; the second was answered and is silent for the shortest time.
        let first = places[0].0.answer();
        drop(places[1].0.answer());
        places.push(connections.enter(3));
        let open: Vec<bool> = places.iter_mut().map(is_open).collect();
        assert_eq!(open, [true, true, false, true], "the third is silent since its arrival");
        places.push(connections.enter(3));
        assert!(!is_open(&mut places[1]), "the next one");
        // All are being answered: the oldest goes.
        let _answers = [places[3].0.answer(), places[4].0.answer()];
        places.push(connections.enter(3));
        let open: Vec<bool> = places.iter_mut().map(is_open).collect();
        assert_eq!(open, [false, false, false, true, true, true]);
        // What a closed connection still drops changes nothing.
        drop(first);
        places.drain(..3);
        assert_eq!(connections.table().open.len(), 3);
    }
}
