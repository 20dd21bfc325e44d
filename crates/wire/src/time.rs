//! RFC 3339 time stamps as the API writes them, in microseconds since 1970.

use crate::soft::FieldShape;

/// A time stamp in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Micros(pub i64);

impl FieldShape for Micros {
    const WANTED: &'static str = "a time stamp such as 2026-01-31T12:00:00Z";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        let wrong = || format!("must be {}: {text:?}", Self::WANTED);
        Some(parse_time(text).map(Micros).ok_or_else(wrong))
    }
}

/// The microseconds of an RFC 3339 text; digits beyond microseconds are cut off, as client-go does.
pub fn parse_time(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, b':', [2, 2, 2])?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    let (micros, zone) = fraction(rest)?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset_seconds(zone)?) * 1_000_000 + micros)
}

/// The text of that moment in UTC, whole seconds: `2026-01-31T12:00:00Z`.
pub fn format_time(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The text of that moment in UTC with microseconds, as Go writes a time: without zeros at the end.
pub(crate) fn format_micros(micros: i64) -> String {
    let text = format_time(micros);
    match micros.rem_euclid(1_000_000) {
        0 => text,
        part => {
            let part = format!("{part:06}");
            text.replace('Z', &format!(".{}Z", part.trim_end_matches('0')))
        }
    }
}

/// Numbers of so many digits each, with this byte between two of them and nothing behind.
fn numbers<const N: usize>(text: &str, by: u8, widths: [usize; N]) -> Option<[i64; N]> {
    let mut rest = text.as_bytes();
    let mut values = [0; N];
    for (index, (value, width)) in values.iter_mut().zip(widths).enumerate() {
        if index != 0 {
            rest = rest.strip_prefix(&[by])?;
        }
        let (digits, after) = rest.split_at_checked(width)?;
        for digit in digits {
            *value = *value * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        }
        rest = after;
    }
    rest.is_empty().then_some(values)
}

/// Microseconds of an optional `.digits`, and what follows.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = digits.bytes().position(|c| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, zone) = digits.split_at(end);
    let micros = digits.bytes().chain([b'0'; 6]).take(6);
    let micros = micros.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (!digits.is_empty()).then_some((micros, zone))
}

fn offset_seconds(zone: &str) -> Option<i64> {
    let (sign, offset) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", offset) => (1, offset),
        ("-", offset) => (-1, offset),
        _ => return None,
    };
    let [hours, minutes] = numbers(offset, b':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar. Years begin in March here, so that
/// the leap day is the last of its year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_era_year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_era_year + of_era_year / 4 - of_era_year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    (era * 400 + of_era_year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_read_and_print() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:00Z", 1_767_225_600),
            ("2024-02-29T23:59:59Z", 1_709_251_199),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(parse_time(text), Some(seconds * 1_000_000), "{text}");
            assert_eq!(format_time(seconds * 1_000_000), text);
        }
    }

    #[test]
    fn fractions_and_offsets_count() {
        let base = parse_time("2026-01-01T00:00:00Z").unwrap();
        let at = |text| parse_time(text).map(|micros| micros - base);
        assert_eq!(at("2026-01-01T00:00:00.5Z"), Some(500_000));
        assert_eq!(at("2026-01-01T00:00:00.123456789Z"), Some(123_456));
        assert_eq!(at("2026-01-01T01:30:00+01:30"), Some(0));
        assert_eq!(at("2025-12-31T19:00:00-05:00"), Some(0));
    }

    #[test]
    fn what_is_not_a_time_stamp_is_refused() {
        for text in [
            "",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "2026-1-01T00:00:00Z",
            "2026-01-01T00:00:0éZ",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
