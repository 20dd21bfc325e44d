//! Limits of queues, as random clusters reach them. Specification: answers.md 20, case 14.

use proptest::prelude::*;
use vc_answers::{Explanation, QuotaRow, WaitCode};
use vc_resource::{Quantity, amount};

use crate::support::{Asked, conf, random_cases};

/// The resources of a queue, with the suffix of their smallest amount.
const RESOURCES: [(&str, &str, &str); 3] =
    [("cpu", "cpu", "m"), ("memory", "memory", ""), ("gpu", "nvidia.com/gpu", "m")];
/// What the only node has of each resource, in smallest amounts.
const TOTAL: i64 = 64_000;

/// A queue in which a job runs and another one waits. Amounts are those of [`RESOURCES`].
#[derive(Clone, Debug)]
struct LimitedQueue {
    plugin: &'static str,
    /// True if the guarantee of another queue is the limit, false if it is the own capability.
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
        let queues = match self.is_by_guarantee {
            true => {
                let guarantee = limits.map(|limit| TOTAL - limit);
                format!("queue q\nqueue other {}", Self::words("guarantee.", guarantee))
            }
            false => format!("queue q {}", Self::words("cap.", limits)),
        };
        let (running, asked) = (Self::words("", self.used), Self::words("", self.asked));
        let minimum = Self::words("minres.", self.used);
        let job = match self.is_admission {
            true => format!("job j queue=q {}", Self::words("minres.", self.asked)),
            false => format!("job j queue=q\n task a {asked}"),
        };
        format!(
            "node n cpu=64 memory={TOTAL} gpu=64\n{queues}
             job k queue=q running {minimum}\n task a {running} @n running\n{job}"
        )
    }

    fn why(&self, limits: [i64; 3]) -> Explanation {
        let tiers = format!("gang predicates {}", self.plugin);
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

fn limited_queue() -> impl Strategy<Value = LimitedQueue> {
    let plugin = prop::sample::select(vec!["capacity", "proportion"]);
    let kinds = (any::<bool>(), any::<bool>());
    let amounts = (prop::array::uniform3(1..4_000_i64), prop::array::uniform3(1..6_000_i64));
    (plugin, kinds, amounts).prop_map(|(plugin, kinds, (used, asked))| {
        let (is_by_guarantee, is_admission) = kinds;
        LimitedQueue { plugin, is_by_guarantee, is_admission, used, asked }
    })
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

    /// Case 14: raised by `short` the limits let the job pass; if one of them is a smallest amount
    /// lower, they do not, and that is what is short.
    #[test]
    fn ans_14_limits_of_random_queues_turn_by_short(
        queue in limited_queue(),
        limits in prop::array::uniform3(1..8_000_i64),
    ) {
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
    }
}
