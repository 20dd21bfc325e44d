//! The log level socket: `/setlevel` raises the verbosity for a while, `/getlevel` tells it.
//! Specification: core.md 1.8.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::UnixListener;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use vc_http::ServerLimits;

use super::serve;
use crate::flags::{go_duration, go_duration_text};
use crate::log::Level;

const NAME: &str = "klog-klog.sock";
const USAGE: &str = "usage: /setlevel?level=N&duration=D, where N is an integer above 0 and D \
    a duration of at least 1ms, like 90s or 1m30s\n";

/// Serves the socket for ever. That it cannot be made is not worth a word.
pub async fn socket(folder: &Path, level: Level) {
    match bind(folder) {
        Ok(listener) => serve(listener, ServerLimits::SMALL, None, routes(level)).await,
        Err(error) => tracing::debug!(v = 4, %error, "no log level socket"),
    }
}

fn bind(folder: &Path) -> io::Result<UnixListener> {
    DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
    let path = folder.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o700))?;
    Ok(listener)
}

/// The level, and the timer that takes it back.
struct LevelControl {
    level: Level,
    timer: Mutex<Option<AbortHandle>>,
}

fn routes(level: Level) -> Router {
    let control = Arc::new(LevelControl { level, timer: Mutex::default() });
    Router::new().route("/setlevel", get(set)).route("/getlevel", get(tell)).with_state(control)
}

async fn tell(State(control): State<Arc<LevelControl>>) -> String {
    format!("Current klog log level: {}\n", control.level.get())
}

async fn set(
    State(control): State<Arc<LevelControl>>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    let Some((level, time)) = read(&query.unwrap_or_default()) else {
        return (StatusCode::BAD_REQUEST, USAGE.to_owned());
    };
    control.raise(level, time);
    let time = go_duration_text(time);
    (StatusCode::OK, format!("Change klog log level to {level} successfully and  for {time}\n"))
}

impl LevelControl {
    /// A later call replaces the timer of an earlier one.
    fn raise(&self, level: i64, time: Duration) {
        let (log, start) = (self.level.clone(), self.level.start);
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = timer.take() {
            earlier.abort();
        }
        log.set(level);
        tracing::info!("log level {level} for {time:?}");
        let later = tokio::spawn(async move {
            sleep(time).await;
            log.set(start);
            tracing::info!("log level {start} again");
        });
        *timer = Some(later.abort_handle());
    }
}

fn read(query: &str) -> Option<(i64, Duration)> {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let level: i64 = value("level")?.parse().ok()?;
    let time = go_duration(value("duration")?).ok()?;
    (0 < level && Duration::from_millis(1) <= time).then_some((level, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::LogFormat;
    use crate::log::start;
    use crate::serve::testing::get;

    #[tokio::test(start_paused = true)]
    async fn core_16_the_level_is_raised_for_a_while() {
        let routes = routes(start(3, LogFormat::Text));
        let reported = async || get(&routes, "/getlevel").await.1;
        let bad = ["level=0&duration=1s", "level=x&duration=1s", "level=5", "level=5&duration=1us"];
        for query in bad {
            let (code, text) = get(&routes, &format!("/setlevel?{query}")).await;
            assert_eq!(code, 400, "{query}");
            assert!(text.starts_with("usage: "), "{text}");
        }
        let (code, text) = get(&routes, "/setlevel?level=5&duration=1s").await;
        assert_eq!(code, 200);
        assert_eq!(text, "Change klog log level to 5 successfully and  for 1s\n");
        assert_eq!(reported().await, "Current klog log level: 5\n");
        sleep(Duration::from_millis(900)).await;
        assert_eq!(reported().await, "Current klog log level: 5\n");
        // The timer starts anew.
        let text = get(&routes, "/setlevel?level=7&duration=1m").await.1;
        assert_eq!(text, "Change klog log level to 7 successfully and  for 1m0s\n");
        sleep(Duration::from_secs(59)).await;
        assert_eq!(reported().await, "Current klog log level: 7\n");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(reported().await, "Current klog log level: 3\n");
    }

    #[tokio::test]
    async fn an_old_socket_is_replaced_and_nobody_else_may_use_it() {
        let folder = std::env::temp_dir().join(format!("vc-level-{}", std::process::id()));
        drop(bind(&folder).unwrap());
        let listener = bind(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o750);
        assert_eq!(mode(&folder.join(NAME)), 0o700);
        drop(listener);
        fs::remove_dir_all(&folder).unwrap();
        // A file in the place of the directory is no reason to fail.
        fs::write(&folder, "").unwrap();
        socket(&folder, start(0, LogFormat::Text)).await;
        fs::remove_file(&folder).unwrap();
    }
}
