//! Logs on stderr as klog writes them or as JSON, and klog's `-v`: 0-2 info, 3-4 debug, from 5 on
//! trace; an event with a field `v` above the flag is left out. Specification: core.md 1.1, 1.8,
//! rust-ecosystem.md 9.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt as text};
use vc_daemon::flags::LogFormat;
use vc_text::{JsonEscaper, escape};

/// Starts to log; of a second call only the level is remembered.
pub fn start(verbosity: i64, format: LogFormat) -> Level {
    let layer = match format {
        LogFormat::Text => text::layer().event_format(Klog).with_writer(std::io::stderr).boxed(),
        LogFormat::Json => json().with_writer(|| JsonEscaper(std::io::stderr())).boxed(),
    };
    let level = Level::new(verbosity);
    let filter = Verbosity(level.now.clone());
    // A test that starts two schedulers keeps the first log.
    drop(tracing_subscriber::registry().with(layer.with_filter(filter)).try_init());
    level
}

/// One object a line, with message and fields side by side.
fn json<S>() -> text::Layer<S, JsonFields, text::format::Format<text::format::Json>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    text::layer().json().flatten_event(true)
}

/// The verbosity, which can be changed while the process runs.
#[derive(Clone)]
pub struct Level {
    /// `-v`.
    pub start: i64,
    now: Arc<AtomicI64>,
}

impl Level {
    fn new(verbosity: i64) -> Self {
        Self { start: verbosity, now: Arc::new(AtomicI64::new(verbosity)) }
    }

    /// The verbosity in force.
    pub fn get(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Takes another verbosity.
    pub fn set(&self, verbosity: i64) {
        self.now.store(verbosity, Ordering::Relaxed);
        // Places in the code remember whether they are silent.
        tracing_core::callsite::rebuild_interest_cache();
    }
}

/// The filter of `-v`.
struct Verbosity(Arc<AtomicI64>);

impl Verbosity {
    fn number(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn level(&self) -> LevelFilter {
        match self.number() {
            ..=2 => LevelFilter::INFO,
            3..=4 => LevelFilter::DEBUG,
            5.. => LevelFilter::TRACE,
        }
    }

    /// Libraries repeat what we report ourselves, or print whole bodies (K-15).
    fn of(&self, target: &str) -> LevelFilter {
        match target.split("::").next().unwrap_or_default() {
            "kube_client" => LevelFilter::OFF,
            "kube_runtime" | "tower" | "hyper" | "hyper_util" | "h2" | "rustls" => {
                LevelFilter::WARN
            }
            _ => self.level(),
        }
    }
}

impl<S> Filter<S> for Verbosity {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        *metadata.level() <= self.of(metadata.target())
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let mut line = LogLine::default();
        event.record(&mut line);
        line.v <= self.number()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level())
    }
}

/// `I1121 13:42:25.000000       1 file.rs:12] message key=value`.
struct Klog;

impl<S, N> FormatEvent<S, N> for Klog
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let letter = match *metadata.level() {
            tracing::Level::ERROR => 'E',
            tracing::Level::WARN => 'W',
            _ => 'I',
        };
        let mut line = LogLine::default();
        event.record(&mut line);
        let file = metadata.file().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let (time, process) = (stamp(SystemTime::now()), std::process::id());
        let place = metadata.line().unwrap_or_default();
        writeln!(out, "{letter}{time} {process:>7} {file}:{place}] {}", line.text())
    }
}

/// An event as text.
#[derive(Default)]
struct LogLine {
    message: String,
    rest: String,
    v: i64,
}

impl LogLine {
    /// Message and fields as one line. Names that a user of the cluster has chosen are part of it, so
    /// that whatever would begin another line, or turn the direction of writing, is escaped.
    fn text(self) -> String {
        let text = self.message + &self.rest;
        escape(&text.replace("\nhint: ", "; hint: ")).into_owned()
    }
}

impl Visit for LogLine {
    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "v" => self.v = value,
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.rest, " {name}={value:?}"),
        };
    }
}

/// `MMDD hh:mm:ss.micros` in UTC.
fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (month, day) = month_and_day(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let (second, micros) = (second % 60, since.subsec_micros());
    format!("{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
}

/// Of the Gregorian calendar, from days since 1970; years are counted from March, so that the leap
/// day is last.
fn month_and_day(days: u64) -> (u64, u64) {
    let of_era = (days + 719_468) % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    (if from_march < 10 { from_march + 3 } else { from_march - 9 }, day)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io;
    use std::sync::{Arc, LazyLock, Mutex};
    use std::time::Duration;

    use tracing::Dispatch;

    use super::*;

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
    static SECOND: LazyLock<Dispatch> =
        LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

    pub(crate) fn logged(verbosity: i64, act: impl FnOnce()) -> Vec<String> {
        LazyLock::force(&SECOND);
        let memory = LogBuffer::default();
        let writer = memory.clone();
        let layer = text::layer().event_format(Klog).with_writer(move || writer.clone());
        let filter = Verbosity(Level::new(verbosity).now);
        let registry = tracing_subscriber::registry().with(layer.with_filter(filter));
        tracing::subscriber::with_default(registry, act);
        let bytes = memory.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_look_like_klog() {
        let lines = logged(0, || tracing::warn!(pod = "a/b", n = 3, "not bound"));
        let (head, tail) = lines[0].split_once("] ").unwrap();
        assert_eq!(tail, "not bound pod=\"a/b\" n=3");
        assert!(head.starts_with('W') && head.contains(" log.rs:"), "{head}");
        assert_eq!(head.find('.'), Some(14), "{head}");
    }

    #[test]
    fn nobody_forges_a_line() {
        let name = "x\n\r\tE1123 00:00:00.000000       1 a.rs:1] forged\u{202e}";
        let lines = logged(0, || {
            tracing::warn!(queue = %name, "queue {name}");
            tracing::warn!("no such file\nhint: name another");
        });
        let shown = "x\\n\\r\\tE1123 00:00:00.000000       1 a.rs:1] forged\\u{202e}";
        let [forged, hint] = &lines[..] else { panic!("{lines:?}") };
        assert!(forged.ends_with(&format!("] queue {shown} queue={shown}")), "{forged}");
        assert!(hint.ends_with("] no such file; hint: name another"), "{hint}");
    }

    #[test]
    fn verbosity_selects_by_level_and_by_the_field_v() {
        let act = || {
            tracing::info!("a");
            tracing::info!(v = 2, "b");
            tracing::debug!("c");
            tracing::debug!(v = 4, "d");
            tracing::trace!("e");
            tracing::error!(target: "kube_client::client::builder", "f");
        };
        for (verbosity, wanted) in [(0, "a"), (2, "ab"), (3, "abc"), (4, "abcd"), (5, "abcde")] {
            let ends = logged(verbosity, act);
            let ends: String = ends.iter().filter_map(|line| line.chars().last()).collect();
            assert_eq!(ends, wanted);
        }
    }

    #[test]
    fn each_line_of_json_is_an_object() {
        let memory = LogBuffer::default();
        let writer = memory.clone();
        let layer = json().with_writer(move || JsonEscaper(writer.clone()));
        let filter = Verbosity(Level::new(0).now);
        let registry = tracing_subscriber::registry().with(layer.with_filter(filter));
        tracing::subscriber::with_default(registry, || {
            tracing::warn!(pod = %"ns/p", error = %"two\nlines \"quoted\"\u{202e}", "not bound");
            tracing::debug!("not wanted");
        });
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [line] = &lines[..] else { panic!("{text}") };
        let field = |name: &str| line[name].as_str().unwrap();
        assert_eq!((field("level"), field("message"), field("pod")), ("WARN", "not bound", "ns/p"));
        assert_eq!(field("error"), "two\nlines \"quoted\"\u{202e}");
        assert!(!text.contains('\u{202e}') && text.contains("\\u202e"), "{text}");
        assert!(field("timestamp").contains('T'), "{text}");
    }

    #[test]
    fn the_level_can_be_changed_while_the_process_runs() {
        let memory = LogBuffer::default();
        let writer = memory.clone();
        let layer = text::layer().event_format(Klog).with_writer(move || writer.clone());
        let level = Level::new(0);
        let filter = Verbosity(level.now.clone());
        let registry = tracing_subscriber::registry().with(layer.with_filter(filter));
        let say = || {
            tracing::debug!("said");
            tracing::info!(v = 2, "said");
        };
        tracing::subscriber::with_default(registry, || {
            say();
            level.set(4);
            say();
            level.set(level.start);
            say();
        });
        assert_eq!(level.get(), 0);
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("said").count(), 2, "{text}");
    }

    #[test]
    fn days_become_dates() {
        let cases = [
            (0, "0101 00:00:00.000000"),
            (951_782_400, "0229 00:00:00.000000"),
            (951_868_800, "0301 00:00:00.000000"),
            (1_795_268_545, "1121 13:42:25.000000"),
            (4_107_542_400, "0301 00:00:00.000000"),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(seconds)), wanted);
        }
    }
}
