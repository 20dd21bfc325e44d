//! Durations as Go writes them: `1s`, `1m30s`, `100ms`. Specification: core.md 1.1.

/// The microseconds of a duration; `None` when it is not one, or negative.
pub fn parse_micros(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut total) = (text, 0_f64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total += number.parse::<f64>().ok()? * micros_per(unit)?;
        rest = tail;
    }
    // A century is longer than any file means and far from the end of the range.
    (total < 3.2e15).then_some(total.round() as i64)
}

fn micros_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "h" => 3.6e9,
        "m" => 6e7,
        "s" => 1e6,
        "ms" => 1e3,
        "us" | "µs" => 1.0,
        "ns" => 1e-3,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse_micros;

    #[test]
    fn go_durations() {
        for (text, micros) in [
            ("0", Some(0)),
            ("1s", Some(1_000_000)),
            ("1m30s", Some(90_000_000)),
            ("1.5h", Some(5_400_000_000)),
            ("100ms", Some(100_000)),
            ("", None),
            ("5", None),
            ("-1s", None),
            ("1d", None),
            ("s", None),
            ("999999999h", None),
        ] {
            assert_eq!(parse_micros(text), micros, "{text}");
        }
    }
}
