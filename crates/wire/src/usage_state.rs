//! Usage of the plugin `fairshare` as texts of a ConfigMap: one as Volcano writes it, and one with
//! exact amounts. Specification: fair-share.md 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_model::{SavedAccount, SavedShare, SavedUsage, UsageScale};

use crate::time::{format_micros, parse_time};

/// Key of the text that Volcano reads and writes.
pub const USAGE_KEY: &str = "state.json";
/// Key of the text with exact amounts.
pub const EXACT_USAGE_KEY: &str = "exact.json";
/// Key of a text that could not be read.
pub const BAD_USAGE_KEY: &str = "state.json.bad";

/// The version of the exact text that is read and written.
const VERSION: u32 = 1;
/// Most bytes of both texts. A ConfigMap holds 1 MiB.
const MOST_BYTES: usize = 900 << 10;
/// Amounts of at least this size are no usage that was ever written.
const MOST_AMOUNT: i128 = 1 << 100;
/// Most half-lives between the origin and the time of exact amounts.
const MOST_HALF_LIVES: i64 = 17;
const MICROS_PER_SECOND: f64 = 1e6;

/// By queue and account.
type ByAccount<T> = BTreeMap<Arc<str>, BTreeMap<Arc<str>, T>>;

/// The text of Volcano.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct VolcanoState {
    last_cycle: String,
    /// Charge times seconds. Go writes `null` for a map that was never made.
    queues: Option<ByAccount<f64>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExactState {
    version: u32,
    half_life_micros: i64,
    origin_micros: i64,
    time_micros: i64,
    charge: Arc<str>,
    /// The amounts `closed` and `rate` as decimal texts.
    queues: ByAccount<[String; 2]>,
    /// The same amounts by queue and resource, for deserved shares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    shares: ByAccount<[String; 2]>,
    /// What the cluster had, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    capacity: BTreeMap<Arc<str>, [String; 2]>,
}

/// The texts of a usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageTexts {
    /// For [`USAGE_KEY`].
    pub state: String,
    /// For [`EXACT_USAGE_KEY`].
    pub exact: String,
    /// Number of accounts for which there was no room. They have the smallest usage.
    pub n_left_out: usize,
}

/// What the texts of a ConfigMap say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadUsage {
    /// `None`: there is no text that can be read.
    pub usage: Option<SavedUsage>,
    /// What is wrong with each text, with its key.
    pub problems: Vec<String>,
    /// The text that Volcano or an earlier process wrote, if it cannot be read.
    pub bad_text: Option<String>,
}

/// Returns the texts of a usage. If they were too large for a ConfigMap, accounts with the smallest
/// usage are left out.
pub fn usage_texts(usage: &SavedUsage) -> UsageTexts {
    let mut kept: Vec<&SavedAccount> = usage.accounts.iter().collect();
    let mut texts = write(usage, &kept);
    if MOST_BYTES < texts.state.len() + texts.exact.len() {
        let key = |account: &SavedAccount| (account.queue.clone(), account.account.clone());
        kept.sort_by(|l, r| {
            r.decayed_micros.cmp(&l.decayed_micros).then_with(|| key(l).cmp(&key(r)))
        });
    }
    while MOST_BYTES < texts.state.len() + texts.exact.len() {
        let bytes = texts.state.len() + texts.exact.len();
        let fits = kept.len() * MOST_BYTES / bytes;
        kept.truncate(fits.min(kept.len().saturating_sub(1)));
        texts = write(usage, &kept);
    }
    UsageTexts { n_left_out: usage.accounts.len() - kept.len(), ..texts }
}

fn write(usage: &SavedUsage, accounts: &[&SavedAccount]) -> UsageTexts {
    let (mut queues, mut exact) = (ByAccount::new(), ByAccount::new());
    for account in accounts {
        let seconds = account.decayed_micros as f64 / MICROS_PER_SECOND;
        let name = || account.account.clone();
        queues.entry(account.queue.clone()).or_default().insert(name(), seconds);
        let amounts = [account.closed, account.rate].map(|amount| amount.to_string());
        exact.entry(account.queue.clone()).or_default().insert(name(), amounts);
    }
    let (mut shares, mut capacity) = (ByAccount::new(), BTreeMap::new());
    for share in &usage.shares {
        let amounts = [share.closed, share.rate].map(|amount| amount.to_string());
        let of_queue = share.queue.as_ref().map(|queue| shares.entry(queue.clone()).or_default());
        of_queue.unwrap_or(&mut capacity).insert(share.resource.clone(), amounts);
    }
    let last_cycle = format_micros(usage.time_micros);
    let state = VolcanoState { last_cycle, queues: Some(queues) };
    let exact = usage.scale.as_ref().map(|scale| ExactState {
        version: VERSION,
        half_life_micros: scale.half_life_micros,
        origin_micros: scale.origin_micros,
        time_micros: usage.time_micros,
        charge: scale.charge.clone(),
        queues: exact,
        shares,
        capacity,
    });
    // Maps with texts as keys, and numbers that are finite.
    let state = serde_json::to_string(&state).expect("such values are written");
    let exact = exact.map(|exact| serde_json::to_string(&exact).expect("such values are written"));
    UsageTexts { state, exact: exact.unwrap_or_default(), n_left_out: 0 }
}

/// Reads the texts of a ConfigMap: the exact one, unless Volcano has written its own later.
pub fn read_usage(data: &BTreeMap<String, String>) -> ReadUsage {
    let mut read = ReadUsage::default();
    let text = |key: &str| data.get(key).filter(|text| !text.trim().is_empty());
    let exact = text(EXACT_USAGE_KEY).and_then(|text| {
        let problem = |problem| read.problems.push(format!("{EXACT_USAGE_KEY}: {problem}"));
        read_exact(text).map_err(problem).ok()
    });
    let volcano = text(USAGE_KEY).and_then(|text| {
        let problem = |problem| {
            read.problems.push(format!("{USAGE_KEY}: {problem}"));
            read.bad_text = Some(text.clone());
        };
        read_volcano(text).map_err(problem).ok()
    });
    read.usage = match (exact, volcano) {
        (Some(exact), Some(volcano)) if exact.time_micros < volcano.time_micros => Some(volcano),
        (Some(exact), _) => Some(exact),
        (None, volcano) => volcano,
    };
    read
}

fn read_volcano(text: &str) -> Result<SavedUsage, String> {
    let state: VolcanoState = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let wrong = || format!("lastCycle is no time: {:?}", state.last_cycle);
    let time_micros = parse_time(&state.last_cycle).ok_or_else(wrong)?;
    let mut accounts = Vec::new();
    for (queue, of_queue) in state.queues.unwrap_or_default() {
        for (account, seconds) in of_queue {
            let micros = seconds * MICROS_PER_SECOND;
            if !(0.0..MOST_AMOUNT as f64).contains(&micros) {
                return Err(format!("queues.{queue}.{account} is no usage: {seconds}"));
            }
            let (queue, decayed_micros) = (queue.clone(), micros.round() as i128);
            accounts.push(SavedAccount { queue, account, decayed_micros, ..Default::default() });
        }
    }
    Ok(SavedUsage { time_micros, scale: None, accounts, shares: Vec::new() })
}

/// Parses the two amounts of an entry. `of` is the name of the entry, for errors.
fn read_amounts(texts: &[String; 2], of: &str) -> Result<(i128, i128), String> {
    let amount = |text: &str| {
        let amount = text.parse().ok().filter(|it: &i128| it.abs() < MOST_AMOUNT);
        amount.ok_or_else(|| format!("{of} is no usage: {text}"))
    };
    Ok((amount(&texts[0])?, amount(&texts[1])?))
}

fn read_shares(
    shares: ByAccount<[String; 2]>,
    capacity: BTreeMap<Arc<str>, [String; 2]>,
) -> Result<Vec<SavedShare>, String> {
    let of_queues = shares.into_iter().map(|(queue, of_queue)| (Some(queue), of_queue));
    let mut read = Vec::new();
    for (queue, amounts) in of_queues.chain([(None, capacity)]) {
        for (resource, texts) in amounts {
            let of = match &queue {
                Some(queue) => format!("shares.{queue}.{resource}"),
                None => format!("capacity.{resource}"),
            };
            let (closed, rate) = read_amounts(&texts, &of)?;
            read.push(SavedShare { queue: queue.clone(), resource, closed, rate });
        }
    }
    Ok(read)
}

fn read_exact(text: &str) -> Result<SavedUsage, String> {
    let state: ExactState = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if state.version != VERSION {
        return Err(format!("version {} is unknown, expected {VERSION}", state.version));
    }
    let age = state.time_micros.saturating_sub(state.origin_micros);
    let is_scale = 0 < state.half_life_micros
        && (0..=state.half_life_micros.saturating_mul(MOST_HALF_LIVES)).contains(&age);
    if !is_scale {
        return Err("halfLifeMicros, originMicros and timeMicros do not match".to_owned());
    }
    let mut accounts = Vec::new();
    for (queue, of_queue) in state.queues {
        for (account, texts) in of_queue {
            let (closed, rate) = read_amounts(&texts, &format!("queues.{queue}.{account}"))?;
            let queue = queue.clone();
            accounts.push(SavedAccount { queue, account, closed, rate, decayed_micros: 0 });
        }
    }
    let scale = UsageScale {
        half_life_micros: state.half_life_micros,
        origin_micros: state.origin_micros,
        charge: state.charge,
    };
    let shares = read_shares(state.shares, state.capacity)?;
    Ok(SavedUsage { time_micros: state.time_micros, scale: Some(scale), accounts, shares })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONDAY: i64 = 1_780_300_800_000_000;

    fn account(name: &str, closed: i128, rate: i128, decayed_micros: i128) -> SavedAccount {
        SavedAccount { queue: "q".into(), account: name.into(), closed, rate, decayed_micros }
    }

    fn usage(accounts: Vec<SavedAccount>) -> SavedUsage {
        let scale = UsageScale {
            half_life_micros: 14_400_000_000,
            origin_micros: MONDAY - 7,
            charge: "nvidia.com/gpu".into(),
        };
        let share = |queue: Option<&str>, closed: i128| SavedShare {
            queue: queue.map(Into::into),
            resource: "cpu".into(),
            closed,
            rate: 7,
        };
        let shares = vec![share(Some("q"), -(1 << 90)), share(None, 1 << 91)];
        SavedUsage { time_micros: MONDAY + 250_000, scale: Some(scale), accounts, shares }
    }

    fn data(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    /// FS-80: the exact amounts come back, and Volcano finds its own text.
    #[test]
    fn fs_state_roundtrip() {
        let usage = usage(vec![account("a", -(1 << 90), 8_000, 0), account("b", 5, 0, 1_500_000)]);
        let texts = usage_texts(&usage);
        assert_eq!(texts.n_left_out, 0);
        let expected =
            r#"{"lastCycle":"2026-06-01T08:00:00.25Z","queues":{"q":{"a":0.0,"b":1.5}}}"#;
        assert_eq!(texts.state, expected);
        let data = data(&[(USAGE_KEY, &texts.state), (EXACT_USAGE_KEY, &texts.exact)]);
        let read = read_usage(&data);
        assert_eq!((read.problems, read.bad_text), (Vec::new(), None));
        let found = read.usage.expect("it was just written");
        assert_eq!((found.time_micros, &found.scale), (usage.time_micros, &usage.scale));
        assert_eq!(found.shares, usage.shares);
        let amounts = |of: &SavedUsage| -> Vec<(i128, i128)> {
            of.accounts.iter().map(|account| (account.closed, account.rate)).collect()
        };
        assert_eq!(amounts(&found), amounts(&usage));
    }

    /// FS-80, FS-82: what Volcano has written later counts.
    #[test]
    fn fs_state_from_volcano() {
        let exact = usage_texts(&usage(vec![account("a", 5, 0, 0)])).exact;
        let volcano = |time: &str| {
            format!(r#"{{"lastCycle":"{time}","queues":{{"q":{{"b":100.25,"c":0.5}}}}}}"#)
        };
        for (time, is_volcano) in [
            ("2026-06-01T10:00:00.2+02:00", false),
            ("2026-06-01T10:00:00.25000001+02:00", false),
            ("2026-06-01T10:00:00.250001999+02:00", true),
        ] {
            let read = read_usage(&data(&[(USAGE_KEY, &volcano(time)), (EXACT_USAGE_KEY, &exact)]));
            let usage = read.usage.expect("both can be read");
            assert_eq!(usage.scale.is_none(), is_volcano, "{time}");
        }
        let read = read_usage(&data(&[(USAGE_KEY, &volcano("2026-06-01T10:00:00+02:00"))]));
        let usage = read.usage.expect("it can be read");
        assert_eq!(usage.time_micros, MONDAY);
        let amounts: Vec<i128> = usage.accounts.iter().map(|it| it.decayed_micros).collect();
        assert_eq!(amounts, [100_250_000, 500_000]);
        let empty = r#"{"lastCycle":"0001-01-01T00:00:00Z","queues":null}"#;
        let read = read_usage(&data(&[(USAGE_KEY, empty)]));
        assert_eq!(read.usage.map(|usage| usage.accounts.len()), Some(0));
    }

    /// FS-82: a text that cannot be read is named and kept.
    #[test]
    fn fs_state_corrupt() {
        let good = usage_texts(&usage(vec![account("a", 5, 0, 0)])).exact;
        let other = |from: &str, to: &str| good.replace(from, to);
        for (text, problem) in [
            (good[1..].to_owned(), "exact.json: "),
            (other("\"version\":1", "\"version\":2"), "version 2 is unknown, expected 1"),
            (other("14400000000", "0"), "do not match"),
            (other("14400000000", "9"), "do not match"),
            (other("[\"5\"", "[\"x\""), "queues.q.a is no usage: x"),
            (other("\"7\"", "\"x\""), "shares.q.cpu is no usage: x"),
            (other("[\"5\"", "[\"9999999999999999999999999999999999999\""), "is no usage"),
        ] {
            let read = read_usage(&data(&[(EXACT_USAGE_KEY, &text)]));
            assert_eq!(read.usage, None, "{text}");
            assert!(read.problems[0].contains(problem), "{:?}", read.problems);
        }
        for text in [
            "{",
            r#"{"lastCycle":"monday","queues":{}}"#,
            r#"{"lastCycle":"2026-06-01T10:00:00Z","queues":{"q":{"a":-1}}}"#,
            r#"{"lastCycle":"2026-06-01T10:00:00Z","queues":{"q":{"a":1e99}}}"#,
        ] {
            let read = read_usage(&data(&[(USAGE_KEY, text), (EXACT_USAGE_KEY, &good)]));
            assert!(read.usage.is_some(), "{text}: the exact text is good");
            assert_eq!((read.problems.len(), read.bad_text.as_deref()), (1, Some(text)));
        }
        assert_eq!(read_usage(&data(&[("other", "x")])), ReadUsage::default());
    }

    /// FS-86: the accounts that have used most are kept.
    #[test]
    fn fs_state_too_big() {
        let of = |at: i128| account(&format!("account-{at:05}"), at << 60, 1_000, at * 1_000);
        let texts = usage_texts(&usage((0..20_000).map(of).collect()));
        let bytes = texts.state.len() + texts.exact.len();
        assert!((MOST_BYTES * 9 / 10..=MOST_BYTES).contains(&bytes), "{bytes}");
        let read = read_usage(&data(&[(EXACT_USAGE_KEY, &texts.exact)]));
        let kept = read.usage.expect("it can be read").accounts;
        assert_eq!(kept.len() + texts.n_left_out, 20_000);
        assert_eq!(&*kept[0].account, format!("account-{:05}", texts.n_left_out));
        assert_eq!(&*kept[kept.len() - 1].account, "account-19999");
    }
}
