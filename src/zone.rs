//! The local time zone, in which daily windows are meant (plugins-jobs-queues.md 13): `TZ`, else
//! `/etc/localtime`, else UTC, as Go has it.

use std::sync::OnceLock;

use tz::TimeZone;

/// Seconds by which the clock on the wall is ahead of UTC at a time in microseconds since 1970.
pub fn utc_offset_seconds(now_micros: i64) -> i64 {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let zone = ZONE.get_or_init(|| zone(std::env::var("TZ").ok().as_deref()));
    offset_seconds(zone, now_micros)
}

/// The zone that a value of `TZ` names; empty is UTC. A container without the file of a zone runs in
/// UTC.
fn zone(name: Option<&str>) -> TimeZone {
    match name {
        None => TimeZone::local().unwrap_or_else(|_| TimeZone::utc()),
        Some("") => TimeZone::utc(),
        Some(name) => TimeZone::from_posix_tz(name).unwrap_or_else(|error| {
            let hint =
                "hint: the image may have no zone files; a text such as CET-1CEST needs none";
            tracing::warn!("TZ: unknown time zone, UTC is used: {name:?}: {error}\n{hint}");
            TimeZone::utc()
        }),
    }
}

fn offset_seconds(zone: &TimeZone, now_micros: i64) -> i64 {
    let local = zone.find_local_time_type(now_micros.div_euclid(1_000_000));
    local.map_or(0, |local| local.ut_offset().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_follows_the_season() {
        let central = zone(Some("CET-1CEST,M3.5.0,M10.5.0/3"));
        let (january, july) = (1_767_225_600_000_000, 1_782_864_000_000_000);
        assert_eq!(offset_seconds(&central, january), 3600);
        assert_eq!(offset_seconds(&central, july), 7200);
    }

    #[test]
    fn what_is_no_zone_is_utc() {
        for name in ["", "No/Such_Zone", "x"] {
            assert_eq!(offset_seconds(&zone(Some(name)), 0), 0, "{name}");
        }
    }
}
