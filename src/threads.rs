//! Threads that wait for the network, each with a runtime of its own: their tasks wake each other
//! all the time, which costs no switch on one thread. rust-ecosystem.md 3 (K-05).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use vc_engine::Engine;
use vc_kube::{Backlog, ClientError, Feeds, LeaderThreads, SchedulerLoop};

use crate::fatal::Fatal;

use crate::meter::Meter;

/// How often such a thread may wake up at once, and in a second.
const BURST: f64 = 64.0;
const PER_SECOND: f64 = 300.0;
/// How long it sleeps before it waits when it has woken up more often: what comes meanwhile is
/// handled together, as network cards do it.
const NAP: Duration = Duration::from_millis(2);

/// The threads of a leader: `reader`, `writer` and `engine`.
pub struct OwnThreads {
    meter: Arc<Meter>,
    backlog: Backlog,
    /// The thread of the watches ends with this value.
    reading: Option<oneshot::Sender<()>>,
}

impl OwnThreads {
    pub(crate) fn new(meter: &Arc<Meter>, backlog: &Backlog) -> Self {
        Self { meter: meter.clone(), backlog: backlog.clone(), reading: None }
    }

    fn runtime(&self) -> std::io::Result<Runtime> {
        calm_runtime(&self.meter, &self.backlog)
    }
}

impl LeaderThreads for OwnThreads {
    type Error = Fatal;

    fn read(
        &mut self,
        follow: impl FnOnce() -> Result<Feeds, ClientError>,
    ) -> Result<Feeds, Fatal> {
        let runtime = self.runtime()?;
        let feeds = {
            let _inside = runtime.enter();
            follow()?
        };
        let (reading, read_enough) = oneshot::channel::<()>();
        let _ends_with_reading = spawn("reader", move || drop(runtime.block_on(read_enough)))?;
        self.reading = Some(reading);
        Ok(feeds)
    }

    fn write<W: Future<Output = ()> + Send + 'static>(
        &mut self,
        writer: impl FnOnce() -> Result<W, ClientError>,
    ) -> Result<oneshot::Receiver<()>, Fatal> {
        let runtime = self.runtime()?;
        let writer = {
            let _inside = runtime.enter();
            writer()?
        };
        Ok(spawn("writer", move || runtime.block_on(writer))?)
    }

    fn decide(
        &mut self,
        scheduler_loop: SchedulerLoop,
        engine: Engine,
    ) -> Result<oneshot::Receiver<()>, Fatal> {
        let runtime = self.runtime()?;
        Ok(spawn("engine", move || scheduler_loop.run(engine, &runtime))?)
    }
}

/// A thread of its own; the receiver tells its end, however that comes.
pub(crate) fn spawn(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<oneshot::Receiver<()>> {
    let (guard, ended) = oneshot::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _guard: oneshot::Sender<()> = guard;
        run();
    })?;
    Ok(ended)
}

/// For one thread that wakes up rarely enough once everything is listed: first lists are long, and
/// wait for nothing. A wake-up finds the caches cold, which costs more than most of what it is for:
/// docs/performance.md (On the wire).
fn calm_runtime(meter: &Arc<Meter>, backlog: &Backlog) -> std::io::Result<Runtime> {
    let (wakes, meter, backlog) =
        (Mutex::new(WakeBudget::default()), meter.clone(), backlog.clone());
    Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || {
            let mut wakes = wakes.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let nap = wakes.nap(now, backlog.rest(now));
            if let Some(nap) = nap.filter(|_| meter.state.borrow().is_ready()) {
                std::thread::sleep(nap);
            }
        })
        .build()
}

/// A bucket of wake-ups that are free.
struct WakeBudget {
    tokens: f64,
    filled: Option<Instant>,
}

impl Default for WakeBudget {
    fn default() -> Self {
        Self { tokens: BURST, filled: None }
    }
}

impl WakeBudget {
    /// How long the thread that wants to wait sleeps before; `rest`: how long nobody misses it.
    fn nap(&mut self, now: Instant, rest: Option<Duration>) -> Option<Duration> {
        let often = (!self.allow(now)).then_some(NAP);
        rest.max(often)
    }

    /// Whether one more is.
    fn allow(&mut self, now: Instant) -> bool {
        let before = self.filled.replace(now);
        let since = before.map_or(Duration::ZERO, |before| now.saturating_duration_since(before));
        self.tokens = (self.tokens + since.as_secs_f64() * PER_SECOND).min(BURST);
        let allowed = 1.0 <= self.tokens;
        self.tokens -= if allowed { 1.0 } else { 0.0 };
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many wake-ups at that distance.
    fn n_naps(n_wakes: u32, distance: Duration) -> u32 {
        let (mut wakes, mut now, mut n_naps) = (WakeBudget::default(), Instant::now(), 0);
        for _ in 0..n_wakes {
            let napped = !wakes.allow(now);
            n_naps += u32::from(napped);
            now += distance + if napped { NAP } else { Duration::ZERO };
        }
        n_naps
    }

    #[test]
    fn only_who_wakes_up_often_naps() {
        let cases = [(64, 0), (1000, 10_000), (60, 1000)];
        for (n_wakes, micros) in cases {
            assert_eq!(n_naps(n_wakes, Duration::from_micros(micros)), 0, "{n_wakes} {micros}");
        }
        // Of ten thousand a second only those are left that fit between naps.
        assert!(500 < n_naps(1000, Duration::from_micros(100)));
    }

    #[test]
    fn who_is_not_missed_naps_and_who_wakes_up_often_no_less() {
        let (now, [short, long]) = (Instant::now(), [1, 9].map(Duration::from_millis));
        let mut wakes = WakeBudget::default();
        let mut naps = |rests: [Option<Duration>; 3]| rests.map(|rest| wakes.nap(now, rest));
        assert_eq!(naps([None, Some(short), Some(long)]), [None, Some(short), Some(long)]);
        for _ in 3..BURST as u32 {
            naps([None; 3]);
        }
        assert_eq!(naps([None, Some(short), Some(long)]), [Some(NAP), Some(NAP), Some(long)]);
    }

    #[test]
    fn a_calm_runtime_runs_what_it_is_given() {
        let runtime = calm_runtime(&Arc::default(), &Backlog::default()).unwrap();
        let answer = runtime.block_on(async {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            tokio::spawn(async { 7 }).await.unwrap()
        });
        assert_eq!(answer, 7);
    }
}
