//! Wall clock times as the API writes them: RFC 3339 in whole seconds, and ages as `kubectl` shows
//! them. The simulated kubelets measure delays with tokio's clock instead.

const DAY_SECONDS: i64 = 86_400;

/// Seconds since 1970 now.
pub(super) fn unix_seconds() -> i64 {
    vc_kube::wall_micros().div_euclid(1_000_000)
}

/// Returns the time of day in microseconds since 1970. A store takes it as the seed of its uids.
pub(super) fn unix_micros() -> u64 {
    u64::try_from(vc_kube::wall_micros()).unwrap_or_default()
}

/// Now, as an API timestamp.
pub(super) fn timestamp() -> String {
    to_rfc3339(unix_seconds())
}

/// Now, as a `MicroTime` of the API, in whole seconds.
pub(crate) fn micro_time() -> String {
    timestamp().replace('Z', ".000000Z")
}

/// `1970-01-01T00:00:00Z` plus that many seconds.
pub(super) fn to_rfc3339(seconds: i64) -> String {
    let (day, rest) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, date) = civil_date(day);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Seconds since 1970 of a UTC timestamp; fractions of a second are dropped.
pub(super) fn from_rfc3339(text: &str) -> Option<i64> {
    if !text.ends_with('Z') {
        return None;
    }
    let field = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, date) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    let day = day_number(year, month, date);
    Some(day * DAY_SECONDS + hour * 3600 + minute * 60 + second)
}

/// `5s`, `3m12s`, `2h`, `4d`: the two leading units while the first is small.
pub(super) fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / DAY_SECONDS);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, "d", hours % 24, "h"),
        () => format!("{days}d"),
    }
}

fn pair(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

/// Year, month and date of a day counted from 1970-01-01. Years are counted from March, so that the
/// leap day is the last of its year, in eras of 400 years.
fn civil_date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, date)
}

/// The inverse of `civil_date`.
fn day_number(year: i64, month: i64, date: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + date - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_both_ways() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_763_733_000, "2025-11-21T13:50:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(to_rfc3339(seconds), text);
            assert_eq!(from_rfc3339(text), Some(seconds));
        }
        assert_eq!(from_rfc3339("2025-11-21T13:50:00.123456Z"), Some(1_763_733_000));
        assert_eq!(from_rfc3339("yesterday"), None);
        assert_eq!(from_rfc3339("€€€€€€€€€€Z"), None);
    }

    #[test]
    fn ages_as_kubectl_shows_them() {
        let cases = [
            (-3, "0s"),
            (119, "119s"),
            (180, "3m"),
            (192, "3m12s"),
            (3600, "60m"),
            (5 * 3600 + 60, "5h1m"),
            (30 * 3600, "30h"),
            (3 * 86_400 + 3600, "3d1h"),
            (90 * 86_400, "90d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(age(seconds), text);
        }
    }
}
