//! How often the load source of a configuration is read. Specification: core.md 2.5.

use vc_conf::{Config, Warning};
use vc_model::{LOAD_INTERVAL_MICROS, go_duration_micros};

const INTERVAL: &str = "interval";

/// Returns the time between two readings of the load source in microseconds. A text that is no
/// duration above 0 counts as the default.
pub fn load_interval_micros(config: &Config) -> i64 {
    interval(config).flatten().unwrap_or(LOAD_INTERVAL_MICROS)
}

/// Returns a warning if the time between two readings cannot be used.
pub(crate) fn interval_warning(config: &Config) -> Option<Warning> {
    let is_unusable = interval(config)?.is_none();
    is_unusable.then(|| {
        let text = config.metrics.get(INTERVAL).map_or("", String::as_str);
        let message = format!("not a duration above 0: {text:?}");
        let remedy = "write one such as 30s; until then 30s is in force";
        Warning::new(None, "metrics.interval", message, remedy)
    })
}

/// Returns the configured time. `None`: there is none. `Some(None)`: it cannot be used.
fn interval(config: &Config) -> Option<Option<i64>> {
    let text = config.metrics.get(INTERVAL).filter(|text| !text.is_empty())?;
    Some(go_duration_micros(text.trim()).filter(|micros| 0 < *micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_no_use_is_the_default() {
        for (text, micros, warns) in [
            ("", LOAD_INTERVAL_MICROS, false),
            ("1m30s", 90_000_000, false),
            ("0s", LOAD_INTERVAL_MICROS, true),
            ("-5s", LOAD_INTERVAL_MICROS, true),
            ("30", LOAD_INTERVAL_MICROS, true),
        ] {
            let metrics = [(INTERVAL.to_owned(), text.to_owned())].into();
            let config = Config { metrics, ..Config::default() };
            assert_eq!(load_interval_micros(&config), micros, "{text}");
            let warning = interval_warning(&config);
            assert_eq!(warning.is_some(), warns, "{text}");
        }
        assert_eq!(load_interval_micros(&Config::default()), LOAD_INTERVAL_MICROS);
    }
}
