//! The delays and the fault of one request, drawn from the seed, each kind whether it may strike or
//! not, so that leaving out a kind moves no other.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::{Method, Uri};

use super::answer;
use super::fault::{self, FaultKind};
use crate::rng::Rng;
use crate::serve::CacheLag;

/// Objects of a page of a list that is cut in pages.
const PAGE: &str = "limit=3";

/// A watch that is cut after some lines has this many at most.
const MOST_LINES: u128 = 24;

/// Largest number of versions by which the watch cache of the server is behind.
const MOST_VERSIONS_BEHIND: u64 = 200;
/// Longest time until the watch cache shows anything newer, in milliseconds.
const MOST_MILLIS_BEHIND: u64 = 20_000;

/// True if any version of the objects satisfies the request, so that it is answered from the watch
/// cache. A request that names no version gets the newest one.
pub(super) fn takes_any_version(query: &str) -> bool {
    query.split('&').any(|part| part == "resourceVersion=0")
}

/// Draws how far the watch cache is behind for one request.
pub(super) fn draw_cache_lag(rng: &mut Rng) -> CacheLag {
    let versions = rng.below(MOST_VERSIONS_BEHIND + 1);
    CacheLag { versions, time: Duration::from_millis(rng.below(MOST_MILLIS_BEHIND + 1)) }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Get,
    Write,
    /// A list, or a page of one.
    List {
        is_continued: bool,
    },
    Watch {
        lists: bool,
    },
}

impl RequestKind {
    pub(super) fn of(method: &Method, query: &str) -> Self {
        match () {
            () if method != Method::GET => Self::Write,
            () if query.contains("watch=true") => {
                Self::Watch { lists: query.contains("sendInitialEvents=true") }
            }
            () if query.contains("limit=") => {
                Self::List { is_continued: query.contains("continue=") }
            }
            () => Self::Get,
        }
    }

    /// True if all objects of a kind are asked for, or a page of them.
    pub(super) fn lists(self) -> bool {
        matches!(self, Self::List { .. } | Self::Watch { lists: true })
    }
}

/// The delays and the fault of one request, and of the watch that it opens.
pub(super) struct RequestFaults {
    pub(super) before: Duration,
    pub(super) after: Duration,
    pub(super) fault: Option<FaultKind>,
    /// A watch ends after this time.
    pub(super) cut_after: Option<Duration>,
    /// A watch ends after so many lines.
    pub(super) most_lines: Option<usize>,
    /// A list ends after so many bytes.
    pub(super) most_bytes: Option<usize>,
    /// The events of a watch come so much later.
    pub(super) lag: Duration,
    pub(super) retry_after: Option<u64>,
    /// The server has no streaming lists.
    has_no_streaming: bool,
    /// Pages are small.
    has_small_pages: bool,
    /// The token of the page has expired.
    is_expired: bool,
}

impl RequestFaults {
    /// Draws the delays and the fault of a request.
    pub(super) fn drawn(rng: &mut Rng, faults: &BTreeSet<FaultKind>, kind: RequestKind) -> Self {
        let (is_write, is_watch) =
            (kind == RequestKind::Write, matches!(kind, RequestKind::Watch { .. }));
        let fault = fault::of_request(rng, faults, is_write);
        let slow = if fault == Some(FaultKind::Slow) { rng.between(1_000, 40_000) } else { 0 };
        let [before, after] = [rng.between(1, 9) + slow, rng.between(1, 9)];
        let (cut, lag) = (rng.between(0, 120_000), rng.between(0, 3_000));
        let [is_cut, lags] = [rng.happens(500), rng.happens(200)];
        let may = |kind| is_watch && faults.contains(&kind);
        let is_cut = is_cut && may(FaultKind::WatchCut);
        let lags = lags && may(FaultKind::WatchLag);
        let retry_after = rng.happens(500).then(|| rng.between(1, 3));
        let [no_streaming, expired, short] = [rng.happens(250), rng.happens(60), rng.happens(60)];
        let most_bytes = usize::try_from(rng.below(4_000)).unwrap_or_default();
        let cuts_lists = faults.contains(&FaultKind::ListCut);
        Self {
            before: Duration::from_millis(before),
            after: Duration::from_millis(after),
            // A watch that is lost is one that is cut.
            fault: fault.filter(|_| !is_watch || !may(FaultKind::WatchCut)),
            cut_after: is_cut.then(|| Duration::from_millis(cut)),
            most_lines: None,
            most_bytes: (cuts_lists && kind.lists() && short).then_some(most_bytes),
            lag: Duration::from_millis(if lags { lag } else { 0 }),
            retry_after,
            has_no_streaming: cuts_lists
                && no_streaming
                && kind == RequestKind::Watch { lists: true },
            has_small_pages: cuts_lists && matches!(kind, RequestKind::List { .. }),
            is_expired: cuts_lists && expired && kind == RequestKind::List { is_continued: true },
        }
    }

    /// The same where nobody else shall lead: no request of the Lease is struck, one in nine evictions is
    /// lost, for there are few, and half of the cuts come between two lines, of which the second is on its
    /// way.
    pub(super) fn that_keep_the_leader(
        mut self,
        faults: &BTreeSet<FaultKind>,
        (method, path): (&Method, &str),
    ) -> Self {
        if path.contains("/leases") {
            self.fault = None;
            self.before = self.before.min(self.after);
        }
        let is_eviction = method == Method::DELETE && path.contains("/pods/");
        if is_eviction && self.before.as_millis() <= 1 && faults.contains(&FaultKind::LostRequest) {
            self.fault = Some(FaultKind::LostRequest);
        }
        let cut = self.cut_after.map_or(1, |cut| cut.as_millis());
        if cut.is_multiple_of(2) {
            self.most_lines = usize::try_from(cut / 2 % MOST_LINES + 1).ok();
            self.cut_after = None;
        }
        self
    }

    /// The address with smaller pages. `None`: it stays.
    pub(super) fn changed_query(&self, uri: &Uri) -> Option<Uri> {
        let changed = uri.to_string().replace("limit=500", PAGE);
        self.has_small_pages.then(|| changed.parse().ok())?
    }

    /// The kinds that strike the answer of a list or a watch on its way.
    pub(super) fn on_the_way(&self) -> impl Iterator<Item = FaultKind> {
        let is_cut = self.cut_after.is_some() || self.most_lines.is_some();
        let kinds = [
            (FaultKind::WatchCut, is_cut),
            (FaultKind::WatchLag, !self.lag.is_zero()),
            (FaultKind::ListCut, self.most_bytes.is_some()),
        ];
        kinds.into_iter().filter_map(|(kind, strikes)| strikes.then_some(kind))
    }

    /// The answer in place of the server's, with its kind of fault. `None`: the server answers.
    pub(super) fn refusal(&self) -> Option<(FaultKind, answer::Refusal)> {
        if self.has_no_streaming {
            let message = "sendInitialEvents: is forbidden for watch";
            return Some((FaultKind::ListCut, (422, "Invalid", message.into())));
        }
        if self.is_expired {
            let message = "The provided continue parameter is too old";
            return Some((FaultKind::ListCut, (410, "Expired", message.into())));
        }
        let kind = self.fault?;
        let (code, reason) = match kind {
            FaultKind::Conflict => (409, "Conflict"),
            FaultKind::TooManyRequests => (429, "TooManyRequests"),
            FaultKind::ServerError => (500, "InternalError"),
            FaultKind::Unavailable => (503, "ServiceUnavailable"),
            _ => return None,
        };
        Some((kind, (code, reason, "a fault of the simulation".into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_0_is_any_version() {
        for (query, expected) in [
            ("watch=true&resourceVersion=0&sendInitialEvents=true", true),
            ("limit=500&resourceVersion=0", true),
            ("watch=true&resourceVersion=01", false),
            ("resourceVersionMatch=NotOlderThan&sendInitialEvents=true", false),
            ("", false),
        ] {
            assert_eq!(takes_any_version(query), expected, "{query}");
        }
    }

    #[test]
    fn pages_become_small_only_where_lists_are_cut() {
        let uri: Uri = "/api/v1/pods?limit=500&continue=7%3Aa%2Fb".parse().unwrap();
        let kind = RequestKind::of(&Method::GET, uri.query().unwrap());
        assert_eq!(kind, RequestKind::List { is_continued: true });
        let changed = |faults: &[FaultKind]| {
            let faults = faults.iter().copied().collect();
            RequestFaults::drawn(&mut Rng::new(1), &faults, kind).changed_query(&uri)
        };
        assert_eq!(changed(&[FaultKind::Outage]), None);
        let small: Uri = "/api/v1/pods?limit=3&continue=7%3Aa%2Fb".parse().unwrap();
        assert_eq!(changed(&[FaultKind::ListCut]), Some(small));
    }
}
