//! Parser of Go's duration texts. Specification: core.md 3.3 (waiting times),
//! plugins-jobs-queues.md 8.

/// Returns the microseconds of a text like `1h30m`, `-5s` or `1.5h`. Returns `None` if it is not a
/// Go duration, or exceeds the 292 years that Go can represent.
pub fn go_duration_micros(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if text == "0" {
        return Some(0);
    }
    if text.is_empty() {
        return None;
    }
    let (mut rest, mut micros) = (text, 0.0_f64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let (unit, scale) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        micros += value * scale;
        rest = &rest[unit.len()..];
    }
    (micros < MAX_MICROS).then_some((sign * micros).round() as i64)
}

/// Upper bound of Go's durations, which are nanoseconds in 63 bits.
const MAX_MICROS: f64 = 9_223_372_036_854_775.0;

/// Units with their microseconds. A unit precedes the units that are prefixes of it.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-3),
    ("us", 1.0),
    ("µs", 1.0),
    ("μs", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("m", 6e7),
    ("h", 3.6e9),
];

#[cfg(test)]
mod tests {
    use super::go_duration_micros;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("1h", Some(3_600_000_000)),
            ("1h30m", Some(5_400_000_000)),
            ("1.5s", Some(1_500_000)),
            ("-1h", Some(-3_600_000_000)),
            ("250ms", Some(250_000)),
            ("0", Some(0)),
            ("5", None),
            ("", None),
            ("-", None),
            ("bad", None),
            ("1d", None),
            ("2562047h", Some(9_223_369_200_000_000)),
            ("2562048h", None),
        ];
        for (text, micros) in cases {
            assert_eq!(go_duration_micros(text), micros, "{text:?}");
        }
    }
}
