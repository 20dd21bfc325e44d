//! Values as Go's strconv, time and pflag read them (rust-ecosystem.md 9).

use std::time::Duration;

/// `strconv.ParseBool`.
pub(super) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("invalid bool {text:?}")),
    }
}

/// Decimal, or hexadecimal with `0x`.
pub(super) fn go_int(text: &str) -> Result<i64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("invalid integer {text:?}"))
}

/// `time.ParseDuration`, non-negative: decimals with units, or a bare `0`.
pub fn go_duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let problem = || format!("invalid duration {text:?}");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(problem());
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(problem)?;
        let number: f64 = rest[..end].parse().map_err(|_| problem())?;
        let after = &rest[end..];
        let unit = UNITS.iter().find(|(unit, _)| after.starts_with(unit));
        let (unit, scale) = unit.ok_or_else(problem)?;
        seconds += number * scale;
        rest = &after[unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| problem())
}

/// `Duration.String()`: `1m0s`, `1.5s`, `100ms`.
pub fn go_duration_text(time: Duration) -> String {
    let nanos = time.as_nanos();
    let (unit, scale) = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
    let decimals = format!("{:09}", rest % scale * (1_000_000_000 / scale));
    let number = format!("{}.{decimals}", rest / scale);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{number}{unit}"),
        (0, minutes) => format!("{minutes}m{number}{unit}"),
        (hours, minutes) => format!("{hours}h{minutes}m{number}{unit}"),
    }
}

/// `Name=true`, as text: the list of gates is put together later.
pub(super) fn gate_text(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((_, value)) => go_bool(value.trim()).map(|_| text.to_owned()),
        None => Err(format!("missing value of feature gate {text:?}")),
    }
}

/// A gate that [`gate_text`] has let through.
pub(super) fn gate(text: &str) -> (String, bool) {
    let (name, value) = text.split_once('=').unwrap_or((text, "false"));
    (name.trim().to_owned(), go_bool(value.trim()).unwrap_or(false))
}
