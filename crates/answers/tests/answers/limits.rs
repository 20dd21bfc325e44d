//! Limits of queues, as random clusters reach them. Specification: answers.md 20, case 14.

use proptest::prelude::*;
use vc_answers::{Explanation, QuotaRow, WaitCode};
use vc_resource::{Quantity, amount};

use crate::support::{Asked, conf, random_cases};

/// The resources of a queue, with the suffix of their smallest amount.
const RESOURCES: [(&str, &str, &str); 3] =
    [("cpu", "cpu", "m"), ("memory", "memory", ""), ("gpu", GPU, "m")];
const GPU: &str = "nvidia.com/gpu";
/// Plugins that only admit.
const ADMITTING: [&str; 2] = ["overcommit", "resourcequota"];
/// What the only node has of each resource, in smallest amounts.
const TOTAL: i64 = 64_000;

/// A queue in which a job runs and another one waits. Amounts are those of [`RESOURCES`].
#[derive(Clone, Debug)]
struct LimitedQueue {
    plugin: &'static str,
    /// True if the guarantee of another queue is the limit, or what a cohort has; false if it is the
    /// own capability. Other plugins have one limit.
    is_by_guarantee: bool,
    /// True if the job waits for admission, false if it waits for its share.
    is_admission: bool,
    used: [i64; 3],
    asked: [i64; 3],
}

impl LimitedQueue {
    /// Returns these amounts as words: `cap.cpu=3m cap.memory=3 cap.gpu=3m`.
    fn words(prefix: &str, amounts: [i64; 3]) -> String {
        let words = RESOURCES.iter().zip(amounts);
        let words = words.map(|((name, _, unit), amount)| format!("{prefix}{name}={amount}{unit}"));
        words.collect::<Vec<String>>().join(" ")
    }

    fn text(&self, limits: [i64; 3]) -> String {
        let cap = Self::words("cap.", limits);
        let deserved =
            format!("queue root reclaimable=false\nqueue q {}", Self::words("deserved.", limits));
        let queues = match (self.plugin, self.is_by_guarantee) {
            ("overcommit", _) => "queue q".to_owned(),
            ("resourcequota", _) => {
                let [hard, used] = [("hard.", limits), ("used.", self.used)]
                    .map(|(prefix, amounts)| Self::words(prefix, amounts).replace("gpu", GPU));
                format!("queue q\nquota of-namespace {hard} {used}")
            }
            ("cohort", true) => deserved,
            ("cohort", false) => format!("{deserved} {cap}"),
            (_, true) => {
                let guarantee = limits.map(|limit| TOTAL - limit);
                format!("queue q\nqueue other {}", Self::words("guarantee.", guarantee))
            }
            (_, false) => format!("queue q {cap}"),
        };
        let node = match self.plugin {
            "overcommit" => Self::words("", limits),
            _ => format!("cpu=64 memory={TOTAL} gpu=64"),
        };
        let (running, asked) = (Self::words("", self.used), Self::words("", self.asked));
        let minimum = match self.plugin {
            "capacity" | "proportion" => Self::words("minres.", self.used),
            _ => String::new(),
        };
        let job = match self.is_admission {
            true => format!("job j queue=q {}", Self::words("minres.", self.asked)),
            false => format!("job j queue=q\n task a {asked}"),
        };
        format!(
            "node n {node}\n{queues}
             job k queue=q running {minimum}\n task a {running} @n running\n{job}"
        )
    }

    fn why(&self, limits: [i64; 3]) -> Explanation {
        let tiers = match self.plugin {
            "overcommit" => "gang predicates overcommit{overcommit-factor=1.0}".to_owned(),
            "cohort" => "priority gang | cohort predicates".to_owned(),
            plugin => format!("gang predicates {plugin}"),
        };
        Asked::new(&conf("enqueue, allocate", &tiers), &self.text(limits)).why("j")
    }

    /// Returns by how much each limit is too low, by own arithmetic.
    fn short(&self, limits: [i64; 3]) -> [i64; 3] {
        std::array::from_fn(|at| (self.used[at] + self.asked[at] - limits[at]).max(0))
    }

    /// Returns the code of a job that the limit keeps waiting.
    fn refused(&self) -> WaitCode {
        match self.is_admission {
            true => WaitCode::NotAdmitted,
            false => WaitCode::QueueFull,
        }
    }
}

/// Returns queues that these plugins limit. Those of [`ADMITTING`] only admit.
fn limited_queue(plugins: &[&'static str]) -> impl Strategy<Value = LimitedQueue> + use<> {
    let plugin = prop::sample::select(plugins.to_vec());
    let kinds = (any::<bool>(), any::<bool>());
    let amounts = (prop::array::uniform3(1..4_000_i64), prop::array::uniform3(1..6_000_i64));
    (plugin, kinds, amounts).prop_map(|(plugin, kinds, (used, asked))| {
        let is_by_guarantee = kinds.0;
        let is_admission = kinds.1 || ADMITTING.contains(&plugin);
        LimitedQueue { plugin, is_by_guarantee, is_admission, used, asked }
    })
}

/// Raised by `short` the limits let the job pass; if one of them is a smallest amount lower, they do
/// not, and that is what is short.
fn turns_by_short(queue: &LimitedQueue, limits: [i64; 3]) -> Result<(), TestCaseError> {
    let short = queue.short(limits);
    prop_assume!(short != [0; 3]);
    let why = queue.why(limits);
    prop_assert_eq!(why.verdict.code, queue.refused(), "{}", queue.text(limits));
    prop_assert!(why.quota.iter().all(|row| row.plugin == queue.plugin), "{:?}", why.quota);
    prop_assert_eq!(told(&why.quota), short, "{:?}", why.quota);
    let enough: [i64; 3] = std::array::from_fn(|at| limits[at] + short[at]);
    let passes = queue.why(enough);
    prop_assert_ne!(passes.verdict.code, queue.refused(), "{}", queue.text(enough));
    prop_assert!(passes.quota.is_empty(), "{:?}", passes.quota);
    for at in (0..3).filter(|&at| 0 < short[at]) {
        let mut less = enough;
        less[at] -= 1;
        let why = queue.why(less);
        prop_assert_eq!(why.verdict.code, queue.refused(), "{}", queue.text(less));
        let mut lacking = [0; 3];
        lacking[at] = 1;
        prop_assert_eq!(told(&why.quota), lacking, "{:?}", why.quota);
    }
    Ok(())
}

/// Explains the job of an account that has used GPUs of a queue with this capability, which it shares
/// with another account. Amounts are thousandths.
fn why_in_shared_queue(capability: i64, used: i64, asked: i64) -> Explanation {
    let text = format!(
        "node n cpu=64 gpu=64\nqueue q cap.gpu={capability}m
         job k queue=q running\n task a gpu={used}m @n running
         job b/w queue=q\n task a gpu=60 selector.zone=none
         job j queue=q minres.gpu={asked}m"
    );
    let tiers = "gang predicates fairshare{fairshare.enableEnqueueGate=true}";
    Asked::new(&conf("enqueue, allocate", tiers), &text).why("j")
}

/// Returns what is short in the rows, in smallest amounts. Resources without a row have 0.
fn told(rows: &[QuotaRow]) -> [i64; 3] {
    let units = |resource: &str, text: &str| {
        let quantity: Quantity = text.parse().unwrap();
        amount(resource, quantity).unwrap()
    };
    RESOURCES.map(|(_, resource, _)| {
        let rows = rows.iter().filter(|row| row.resource == resource);
        rows.map(|row| {
            let [limit, used, asked, short] =
                [&row.amount, &row.used, &row.asked, &row.short].map(|text| units(resource, text));
            assert_eq!(short, used + asked - limit, "{row:?}");
            short
        })
        .sum()
    })
}

proptest! {
    #![proptest_config(random_cases(60))]

    /// Case 14.
    #[test]
    fn ans_14_limits_of_random_queues_turn_by_short(
        queue in limited_queue(&["capacity", "proportion"]),
        limits in prop::array::uniform3(1..8_000_i64),
    ) {
        turns_by_short(&queue, limits)?;
    }

    #[test]
    fn ans_14_limits_of_random_cohorts_turn_by_short(
        queue in limited_queue(&["cohort"]),
        limits in prop::array::uniform3(1..8_000_i64),
    ) {
        turns_by_short(&queue, limits)?;
    }

    /// What runs has room, so that the node of `overcommit` is none that holds more than it has.
    #[test]
    fn ans_14_limits_of_random_admissions_turn_by_short(
        queue in limited_queue(&ADMITTING),
        free in prop::array::uniform3(0..8_000_i64),
    ) {
        let limits: [i64; 3] = std::array::from_fn(|at| queue.used[at] + free[at]);
        turns_by_short(&queue, limits)?;
    }

    /// Two accounts of equal weight want more than all, so each has half of the queue.
    #[test]
    fn ans_14_shares_of_random_accounts_turn_by_short(
        (used, capability) in (1..4_000_i64).prop_flat_map(|used| (Just(used), 2..=2 * used + 1)),
        asked in 1..6_000_i64,
    ) {
        let short = used + 1 - capability / 2;
        let why = why_in_shared_queue(capability, used, asked);
        prop_assert_eq!(why.verdict.code, WaitCode::NotAdmitted, "{:?}", why.verdict);
        let row = &why.quota[0];
        let names = (row.plugin, row.limit.as_str(), row.queue.as_deref());
        prop_assert_eq!(names, ("fairshare", "share", Some("q")));
        prop_assert_eq!(told(&why.quota), [0, 0, short], "{:?}", why.quota);
        let enough = 2 * (capability / 2 + short);
        let passes = why_in_shared_queue(enough, used, asked);
        prop_assert_ne!(passes.verdict.code, WaitCode::NotAdmitted, "{:?}", passes.verdict);
        let less = why_in_shared_queue(enough - 2, used, asked);
        prop_assert_eq!(less.verdict.code, WaitCode::NotAdmitted, "{:?}", less.verdict);
        prop_assert_eq!(told(&less.quota), [0, 0, 1], "{:?}", less.quota);
    }
}

/// Each ResourceQuota of the namespace has its rows, as each has to hold the job. Names are those of
/// the object, also those that are no resource of nodes.
#[test]
fn ans_14_resource_quotas_are_named_with_their_amounts() {
    let text = "node n cpu=8\nquota a hard.cpu=2 used.cpu=500m
        quota b hard.cpu=9 hard.requests.memory=1Gi used.requests.memory=1Gi\nquota other/c hard.cpu=0
        job j min=2 minres.cpu=4 minres.requests.memory=1";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates resourcequota"), text);
    assert_eq!(
        it.verdict("j"),
        "NotAdmitted: resourcequota: ResourceQuota default/a holds 500m of 2 cpu, 4 more asked; \
         ResourceQuota default/b holds 1Gi of 1Gi requests.memory, 1 more asked"
    );
    let rows = it.why("j").quota;
    let row = |row: &QuotaRow| {
        let quota = row.resource_quota.as_deref().unwrap_or_default();
        format!("{quota} {} {} {}", row.limit, row.resource, row.short)
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    assert_eq!(rows, ["a hard cpu 2500m", "b hard requests.memory 1"]);
}
