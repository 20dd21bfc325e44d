//! Daily windows of revocable zones. Specification: plugins-jobs-queues.md 13, D23.

const DAY_SECONDS: i64 = 86_400;

/// A daily interval in seconds after midnight, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    start_seconds: i64,
    end_seconds: i64,
}

impl Window {
    /// Parses `H:MM-HH:MM`. Returns `None` if the text has another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.trim().split_once('-')?;
        Some(Self { start_seconds: seconds(start)?, end_seconds: seconds(end)? })
    }

    /// True if the window is open at this number of seconds after midnight. D23: a window whose end
    /// is not after its start lasts until the next day. The window that began yesterday counts too.
    pub(super) fn is_active(self, seconds: i64) -> bool {
        let (start, end) = (self.start_seconds, self.end_seconds);
        match start < end {
            true => start <= seconds && seconds <= end,
            false => start <= seconds || seconds <= end,
        }
    }

    /// Returns the number of seconds until the window next opens or has closed, counted from
    /// `seconds` after midnight; at least 1.
    pub(super) fn seconds_to_turn(self, seconds: i64) -> i64 {
        let until = |turn: i64| (turn - seconds - 1).rem_euclid(DAY_SECONDS) + 1;
        until(self.start_seconds).min(until(self.end_seconds + 1))
    }
}

/// Offsets from UTC change at a multiple of a quarter of an hour.
const QUARTER_MICROS: i64 = 900_000_000;

/// Returns the first time after `now_micros` at which the UTC offset may change. Both are
/// microseconds since 1970.
pub(super) fn offset_may_change_micros(now_micros: i64) -> i64 {
    now_micros - now_micros.rem_euclid(QUARTER_MICROS) + QUARTER_MICROS
}

/// Returns the seconds after midnight in local time.
pub(super) fn seconds_of_day(now_micros: i64, utc_offset_seconds: i64) -> i64 {
    (now_micros.div_euclid(1_000_000) + utc_offset_seconds).rem_euclid(DAY_SECONDS)
}

/// Parses a time of day as seconds after midnight: hours of one or two digits, minutes of two.
fn seconds(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str, longest: usize, below: i64| {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        let right = is_number && digits.len() <= longest;
        digits.parse().ok().filter(|&value: &i64| right && value < below)
    };
    let minutes = Some(minutes).filter(|minutes| minutes.len() == 2);
    Some(number(hours, 2, 24)? * 3600 + number(minutes?, 2, 60)? * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes of the day in which a window is in force.
    fn minutes(text: &str) -> Option<usize> {
        let window = Window::parse(text)?;
        Some((0..1440).filter(|minute| window.is_active(minute * 60)).count())
    }

    #[test]
    fn the_wall_clock_jumps_on_quarters_of_an_hour() {
        let cases = [(0, 900), (899, 900), (900, 1_800), (-1, 0)];
        for (now, expected) in cases {
            assert_eq!(offset_may_change_micros(now * 1_000_000), expected * 1_000_000, "{now}");
        }
    }

    #[test]
    fn nothing_changes_before_the_next_turn() {
        for text in ["00:00-01:00", "22:00-6:00", "0:01-0:00", "8:00-8:00", "12:00-23:59"] {
            let window = Window::parse(text).expect("a window");
            for seconds in 0..DAY_SECONDS {
                let step = window.seconds_to_turn(seconds);
                let later = (seconds + step) % DAY_SECONDS;
                let is_turn =
                    window.is_active(seconds) != window.is_active((seconds + 1) % DAY_SECONDS);
                assert!((1..=DAY_SECONDS).contains(&step), "{text} {seconds}");
                assert!(!is_turn || step == 1, "{text} {seconds} {later}");
            }
        }
    }

    #[test]
    fn jobs_91_windows() {
        for (text, expected) in [
            ("00:00-01:00", Some(61)),
            ("0:00-23:59", Some(1440)),
            ("1:00-0:00", Some(23 * 60 + 1)),
            ("  0:00-23:59  ", Some(1440)),
            ("23:59-23:59", Some(1440)),
            ("0:00-0:00", Some(1440)),
            ("00:00_01:00", None),
            ("0:00", None),
            ("1:0-0:0", None),
            ("63:59-23:59", None),
            ("0:60-1:00", None),
            ("24:00-1:00", None),
            ("001:00-2:00", None),
            ("1:00-2:00-3:00", None),
            ("+1:00-2:00", None),
            ("1:00 - 2:00", None),
            ("", None),
        ] {
            assert_eq!(minutes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn jobs_93_a_window_over_midnight_is_one() {
        let night = Window::parse("22:00-6:00").unwrap();
        for (text, expected) in [
            ("3:00-3:00", true),
            ("6:00-6:00", true),
            ("6:01-6:01", false),
            ("21:59-22:00", false),
            ("22:00-22:00", true),
        ] {
            let at = Window::parse(text).unwrap().start_seconds;
            assert_eq!(night.is_active(at), expected, "{text}");
        }
        assert!(!night.is_active(6 * 3600 + 1), "whole seconds count");
    }

    #[test]
    fn the_day_is_that_of_the_wall() {
        assert_eq!(seconds_of_day(0, 0), 0);
        assert_eq!(seconds_of_day(0, -3600), 23 * 3600);
        assert_eq!(seconds_of_day(86_399_999_999, 3600), 3599);
        assert_eq!(seconds_of_day(-1, 0), 86_399);
    }
}
