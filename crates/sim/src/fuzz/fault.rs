//! The kinds of faults, and where they strike.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::rng::Rng;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A write is answered by 409, as if somebody else had written.
    Conflict,
    /// 429, with or without Retry-After.
    TooManyRequests,
    /// 500.
    ServerError,
    /// 503.
    Unavailable,
    /// A request is lost before the server has it.
    LostRequest,
    /// The server has done it, and the answer is lost.
    LostAnswer,
    /// A request takes seconds until the server has it. Its answer comes as fast as others.
    Slow,
    /// A watch ends at any point.
    WatchCut,
    /// A watch is silent for a while, and its events come late.
    WatchLag,
    /// The server forgets old events: watches from an older version get 410.
    Compaction,
    /// The server is away for a while.
    Outage,
    /// A scheduler process ends at any point, and is started again.
    Crash,
    /// Somebody else writes himself into the Lease.
    LeaseStolen,
    /// A node goes, with its pods, or comes back.
    NodeLost,
    /// Pods and jobs are deleted by others in whatever state they are.
    Deletion,
    /// Lists come in pages, and end in the middle: 410 for a continue token, or a body that is cut off.
    ListCut,
    /// A process is nobody for a while: 401 until its token is renewed.
    TokenExpired,
    /// The right to a resource is taken away for a while: 403.
    RightTaken,
    /// Writes are refused for a while, by a webhook or a quota.
    Refusal,
    /// The clock of a process is set, up to 15 minutes ahead or back.
    Clock,
    /// The server begins anew from a backup: objects and versions go back.
    Restore,
    /// A node is not ready, and ready again.
    NodeFlap,
    /// A pod or a node is deleted, and another one of the same name is there at once.
    Replacement,
    /// The configuration file is rewritten, with a good or a bad one.
    Reload,
    /// A process is told to end, and is started again.
    Restart,
    /// The second process is of another version: the plain evaluator at a fixed pace.
    OldVersion,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 26] = [
        Self::Conflict,
        Self::TooManyRequests,
        Self::ServerError,
        Self::Unavailable,
        Self::LostRequest,
        Self::LostAnswer,
        Self::Slow,
        Self::WatchCut,
        Self::WatchLag,
        Self::Compaction,
        Self::Outage,
        Self::Crash,
        Self::LeaseStolen,
        Self::NodeLost,
        Self::Deletion,
        Self::ListCut,
        Self::TokenExpired,
        Self::RightTaken,
        Self::Refusal,
        Self::Clock,
        Self::Restore,
        Self::NodeFlap,
        Self::Replacement,
        Self::Reload,
        Self::Restart,
        Self::OldVersion,
    ];

    /// Returns the word of `--fault`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::TooManyRequests => "too-many-requests",
            Self::ServerError => "server-error",
            Self::Unavailable => "unavailable",
            Self::LostRequest => "lost-request",
            Self::LostAnswer => "lost-answer",
            Self::Slow => "slow",
            Self::WatchCut => "watch-cut",
            Self::WatchLag => "watch-lag",
            Self::Compaction => "compaction",
            Self::Outage => "outage",
            Self::Crash => "crash",
            Self::LeaseStolen => "lease-stolen",
            Self::NodeLost => "node-lost",
            Self::Deletion => "deletion",
            Self::ListCut => "list-cut",
            Self::TokenExpired => "token-expired",
            Self::RightTaken => "right-taken",
            Self::Refusal => "refusal",
            Self::Clock => "clock",
            Self::Restore => "restore",
            Self::NodeFlap => "node-flap",
            Self::Replacement => "replacement",
            Self::Reload => "reload",
            Self::Restart => "restart",
            Self::OldVersion => "old-version",
        }
    }
}

/// How often each kind of fault has struck. A fault that was planned and met nothing does not count: a
/// refusal without a request, or a crash of a process that does not run. A watch that will be cut or
/// late counts when it is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strikes(BTreeMap<FaultKind, u64>);

impl Strikes {
    pub(super) fn add(&mut self, kind: FaultKind) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Returns how often a kind has struck.
    #[cfg(test)]
    pub(super) fn count(&self, kind: FaultKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// Adds the strikes of another story.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(kind, count)| *self.0.entry(*kind).or_default() += count);
    }
}

/// The word of each kind that has struck, with its number.
impl fmt::Display for Strikes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().map(|(kind, count)| format!("{} {count}", kind.word()));
        let texts: Vec<String> = texts.collect();
        out.write_str(if texts.is_empty() { "none" } else { "" })?;
        out.write_str(&texts.join(", "))
    }
}

/// A word of `--fault` that names no kind.
#[derive(Debug, thiserror::Error)]
#[error("no kind of fault is called {word:?}\nhint: one of {}, or none", all())]
pub struct UnknownFault {
    word: String,
}

fn all() -> String {
    FaultKind::ALL.map(FaultKind::word).join(", ")
}

impl FromStr for FaultKind {
    type Err = UnknownFault;
    fn from_str(word: &str) -> Result<Self, UnknownFault> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| UnknownFault { word: word.to_owned() })
    }
}

/// Kinds that strike single requests, with how often of a thousand each does.
const OF_REQUESTS: [(FaultKind, u64); 7] = [
    (FaultKind::Conflict, 8),
    (FaultKind::TooManyRequests, 8),
    (FaultKind::ServerError, 8),
    (FaultKind::Unavailable, 8),
    (FaultKind::LostRequest, 8),
    (FaultKind::LostAnswer, 12),
    (FaultKind::Slow, 8),
];

/// Returns the kind that strikes a request. `None`: none of those that may.
pub(super) fn of_request(
    rng: &mut Rng,
    allowed: &BTreeSet<FaultKind>,
    is_write: bool,
) -> Option<FaultKind> {
    // Each kind is drawn whether it may strike or not, so that the others stay where they are.
    let struck = OF_REQUESTS.map(|(kind, often)| (kind, rng.happens(often)));
    let may =
        |kind: FaultKind| allowed.contains(&kind) && (is_write || kind != FaultKind::Conflict);
    struck.into_iter().find_map(|(kind, strikes)| (strikes && may(kind)).then_some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_others_refused() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.word().parse::<FaultKind>().unwrap(), kind);
        }
        let error = "flood".parse::<FaultKind>().unwrap_err().to_string();
        assert!(error.starts_with("no kind of fault is called \"flood\"\nhint: one of conflict, "));
    }

    #[test]
    fn strikes_of_stories_are_summed_up() {
        let mut strikes = Strikes::default();
        assert_eq!(strikes.to_string(), "none");
        strikes.add(FaultKind::Slow);
        strikes.merge(&strikes.clone());
        strikes.add(FaultKind::Conflict);
        assert_eq!(strikes.to_string(), "conflict 1, slow 2");
    }

    #[test]
    fn a_kind_that_may_not_strike_moves_no_other() {
        let strikes = |allowed: &[FaultKind]| {
            let (mut rng, allowed) = (Rng::new(3), allowed.iter().copied().collect());
            let drawn = (0..2_000).map(|_| of_request(&mut rng, &allowed, true));
            drawn.map(|kind| kind == Some(FaultKind::Slow)).collect::<Vec<_>>()
        };
        assert_eq!(strikes(&[FaultKind::Slow]), strikes(&[FaultKind::Slow, FaultKind::Outage]));
        assert!(strikes(&[FaultKind::Slow]).contains(&true));
    }
}
