//! What the code under test logs on the thread of a test.

use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;

use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use vc_framework::tracing::{Event, Level, Subscriber, field, subscriber};

thread_local! {
    /// `None`: nobody listens.
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs the work and gives its lines as `level text`, where the level is klog's number or `error`.
pub(crate) fn log_of(work: impl FnOnce()) -> Vec<String> {
    LINES.set(Some(Vec::new()));
    work();
    LINES.take().expect("just set, and no test nests")
}

/// Runs work whose lines nobody wants.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let lines = LINES.take();
    let done = work();
    LINES.set(lines);
    done
}

/// Before anything is logged: tracing remembers per place in the code whether somebody listens, so
/// a collector that comes later may miss the place.
pub(super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let collector = tracing_subscriber::registry().with(Collector);
        subscriber::set_global_default(collector).expect("nobody else sets one");
    });
}

struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        LINES.with_borrow_mut(|lines| {
            let Some(lines) = lines else { return };
            let mut fields = Fields::default();
            event.record(&mut fields);
            let level = match (fields.v, *event.metadata().level()) {
                (Some(v), _) => v.to_string(),
                (None, Level::ERROR) => "error".to_owned(),
                (None, level) => level.to_string(),
            };
            lines.push(format!("{level} {}", fields.message));
        });
    }
}

#[derive(Default)]
struct Fields {
    v: Option<i64>,
    message: String,
}

impl field::Visit for Fields {
    fn record_i64(&mut self, field: &field::Field, value: i64) {
        if field.name() == "v" {
            self.v = Some(value);
        }
    }
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}
