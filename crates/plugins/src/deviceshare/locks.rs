//! Locks of nodes: while a device plugin gives a pod its devices, no other pod of that kind is bound
//! to the node. A lock is an annotation of the node, which the edge writes before the bind and the
//! device plugin removes. Specification: plugins-nodes.md 16.8.

use std::collections::BTreeMap;

use vc_framework::{Clock, SessionView};
use vc_model::{NodeId, TaskStatus};

use super::family::DeviceNode;

/// How long a lock holds that nobody removes.
const LOCKED_MICROS: i64 = 5 * 60 * 1_000_000;

/// Annotations that lock a node, one for each kind of devices.
pub(super) const GPU: &str = "gpu";
pub(super) const VGPU: &str = "hamivgpu";
pub(super) const HAMI: &str = "hami.io/mutex.lock";

/// The locks of this session.
#[derive(Default)]
pub(super) struct NodeLocks {
    /// End of each lock, in microseconds since 1970.
    until: BTreeMap<(NodeId, &'static str), i64>,
    revision: u64,
}

impl NodeLocks {
    /// Reads the locks that hold at the time of the session.
    pub(super) fn open(&mut self, view: SessionView<'_>) {
        let now = view.now_micros();
        let mut until = BTreeMap::new();
        for &id in &*view.info.nodes {
            let Some(devices) = &view.cluster.nodes[id].devices else { continue };
            for lock in [GPU, VGPU, HAMI] {
                let since = devices.get(lock).and_then(|time| unix_micros(time));
                let end = since.map(|since| since.saturating_add(LOCKED_MICROS));
                if let Some(end) = end.filter(|&end| now < end) {
                    until.insert((id, lock), end);
                }
            }
        }
        self.revision += u64::from(!until.keys().eq(self.until.keys()));
        self.until = until;
    }

    /// True if the node is locked, or a pod that locks it was given devices there and is not bound.
    pub(super) fn is_locked(&self, at: DeviceNode<'_>, lock: &'static str) -> bool {
        let binds = |row: &vc_model::Task| {
            matches!(row.status, TaskStatus::Allocated | TaskStatus::Binding)
                && row.node_lock.as_deref() == Some(lock)
        };
        let mut tasks = at.node().tasks.iter().map(|&task| &at.cluster.tasks[task]);
        self.until.contains_key(&(at.node, lock)) || tasks.any(binds)
    }

    /// Returns when a lock ends by itself.
    pub(super) fn clock(&self) -> Clock {
        self.until.values().min().map_or(Clock::Ignores, |&until| Clock::Until(until))
    }

    /// Returns a number that grows when the time has ended locks.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }
}

/// Reads an RFC 3339 time as microseconds since 1970. A text that is none locks nothing.
fn unix_micros(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => {
            let (time, offset) = time.split_at_checked(time.len().checked_sub(6)?)?;
            let sign = if offset.starts_with('+') { 1 } else { -1 };
            let (hours, minutes) = offset.trim_start_matches(['+', '-']).split_once(':')?;
            (time, sign * (number(hours)? * 60 + number(minutes)?))
        }
    };
    let time = time.split('.').next()?;
    let [year, month, day] = numbers(date.split('-'))?;
    let [hour, minute, second] = numbers(time.split(':'))?;
    let days = days_since_1970(year, month, day)?;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1_000_000)
}

fn numbers<'a>(mut parts: impl Iterator<Item = &'a str>) -> Option<[i64; 3]> {
    let numbers = [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
    parts.next().is_none().then_some(numbers)
}

fn number(text: &str) -> Option<i64> {
    let is_short = !text.is_empty() && text.len() <= 4;
    (is_short && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Returns the days from 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = DAYS_BEFORE.get(usize::try_from(month - 1).ok()?)?;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let before_year = 365 * (year - 1970) + leap_days(year - 1) - leap_days(1969);
    let leap_day = i64::from(2 < month && is_leap(year));
    Some(before_year + before + leap_day + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_device_plugins_write_them() {
        let seconds = |text| unix_micros(text).map(|micros| micros / 1_000_000);
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2026-01-01T00:00:00Z"), Some(1_767_225_600));
        assert_eq!(seconds("2024-02-29T12:30:15.25Z"), Some(1_709_209_815));
        assert_eq!(seconds("2024-03-01T00:00:00+08:00"), Some(1_709_222_400));
        assert_eq!(seconds("2024-02-29T11:00:00-05:00"), Some(1_709_222_400));
        for text in ["", "now", "2024-13-01T00:00:00Z", "2024-01-01", "2024-01-01T00:00Z", "T+"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
