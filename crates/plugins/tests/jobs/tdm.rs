//! Cases 91-95 of plugins-jobs-queues.md: tdm. The clock of a session is at midnight UTC, plus so
//! many seconds.

use std::cmp::Ordering;

use vc_framework::SessionState;
use vc_model::{Code, Finding, TaskId, UtcOffset, fixture};

use crate::support::{
    Cycles, evict, in_session, in_session_of, job, names, plugin, series, task, tasks, warnings,
};

const NOON: i64 = 12 * 3600;
/// `rz1` is always open, `rz2` closed at noon.
const ZONES: &str = "tdm tdm.revocable-zone.rz1=0:00-0:00 tdm.revocable-zone.rz2=0:00-0:01";

fn zoned(node: &str, zone: &str) -> String {
    format!("node {node} cpu=20 label.volcano.sh/revocable-zone={zone}\n")
}

fn nodes() -> String {
    let zones = [zoned("open", "rz1"), zoned("shut", "rz2"), zoned("other", "rz3")];
    format!("{}node plain cpu=20\n", zones.concat())
}

/// Texts of the findings on a node, all of them beyond the help of evictions.
fn findings(session: &SessionState<'_>, task: TaskId, node: &str) -> Vec<String> {
    let mut found: Vec<Finding> = Vec::new();
    let node = fixture::node(session, node);
    session.plugins().predicate(session.view(), task, node, &mut found);
    assert!(found.iter().all(|finding| finding.code == Code::Unresolvable));
    found.iter().map(|finding| finding.reason.text(&session.dims)).collect()
}

#[test]
fn jobs_92_marked_pods_use_open_zones_and_others_do_not() {
    let text = format!(
        "{}job j\n task any cpu=1 annotation.volcano.sh/revocable-zone=*
         task marked cpu=1 preemptable\n task none cpu=1
         task named cpu=1 preemptable annotation.volcano.sh/revocable-zone=rz1",
        nodes()
    );
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| {
        let on = |task, node| findings(session, task, node);
        let closed = "current time beyond revocable zone rz2:0:00-0:01";
        for path in ["j/any", "j/marked", "j/none", "j/named"] {
            let task = task(session, path);
            assert_eq!(on(task, "plain"), [""; 0]);
            assert_eq!(on(task, "shut"), [closed]);
            assert_eq!(on(task, "other"), ["revocable zone rz3 not support"]);
        }
        let allowed = |path| on(task(session, path), "open");
        assert_eq!(allowed("j/any"), [""; 0]);
        assert_eq!(allowed("j/marked"), [""; 0]);
        for path in ["j/none", "j/named"] {
            assert_eq!(allowed(path), ["not allow to dispatch to revocable node"]);
        }
        let nodes = ["open", "plain"].map(|name| fixture::node(session, name));
        let scores = |path| session.plugins().scores(session.view(), task(session, path), &nodes);
        assert_eq!(scores("j/any"), [100.0, 0.0]);
        assert_eq!(scores("j/none"), [0.0, 0.0]);
        let tdm = plugin(ZONES);
        for (node, error) in [("shut", closed), ("other", "revocable zone rz3 not support")] {
            let node = fixture::node(session, node);
            let score = tdm.node_order(session.view(), task(session, "j/any"), node);
            assert_eq!(score, Err(error.to_owned()));
        }
    });
}

#[test]
fn jobs_93_a_window_over_midnight_is_open_after_it() {
    let text = format!("{}job j\n task any cpu=1 annotation.volcano.sh/revocable-zone=*", nodes());
    let night = "tdm tdm.revocable-zone.rz1=22:00-6:00";
    let is_open = |offset: fn(i64) -> i64, hour: i64| {
        let mut cluster = fixture::cluster(&text);
        cluster.settings.utc_offset = UtcOffset::Local(offset);
        in_session_of(cluster, night, hour * 3600, |session| {
            findings(session, task(session, "j/any"), "open").is_empty()
        })
    };
    for (hour, expected) in [(3, true), (6, true), (7, false), (21, false), (22, true)] {
        assert_eq!(is_open(|_| 0, hour), expected, "{hour}:00");
        assert_eq!(is_open(|_| 7200, hour - 2), expected, "{hour}:00 two hours ahead of UTC");
    }
}

#[test]
fn d24_values_that_are_no_windows_are_reported_and_do_no_harm() {
    let text = warnings("tdm tdm.revocable-zone.rz1=5").concat();
    assert!(text.starts_with("tdm.revocable-zone.rz1: expected a string, found 5"), "{text}");
    let bad = "tdm tdm.revocable-zone.rz2=0:00_1:00 tdm.evict.period=x";
    let text = warnings(bad).join("\n");
    assert!(text.contains("tdm.revocable-zone.rz2: not a daily window: \"0:00_1:00\""), "{text}");
    assert!(text.contains("tdm.evict.period: not a duration: \"x\""), "{text}");
    assert_eq!(warnings("tdm tdm.evict.period=30s my.tdm.revocable-zone.a=1:00-2:00"), [""; 0]);
    let cluster = format!(
        "{}job j\n task a cpu=1 @shut running preemptable\n task b cpu=1 preemptable",
        nodes()
    );
    in_session_of(fixture::cluster(&cluster), bad, NOON, |session| {
        let problem = "revocable zone rz2 has no readable window: 0:00_1:00";
        assert_eq!(findings(session, task(session, "j/b"), "shut"), [problem]);
        assert_eq!(victims(session), [""; 0]);
    });
}

fn victims(session: &SessionState<'_>) -> Vec<String> {
    names(session, &session.plugins().victim_tasks(session.view(), &[]))
}

/// How many of five Running pods in the closed zone go, of which `marked` are preemptable.
fn drained(budget: &str, marked: usize) -> usize {
    let tasks: String = (0..5)
        .map(|n| {
            let mark = if n < marked { "preemptable" } else { "" };
            format!("task t{n} cpu=1 @shut running {mark}\n")
        })
        .collect();
    let text = format!("{}job j {budget}\n{tasks}", nodes());
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| victims(session).len())
}

#[test]
fn jobs_94_a_closed_zone_is_drained_within_the_budgets() {
    let max = |text: &str| format!("annotation.volcano.sh/jdb-max-unavailable={text}");
    let min = |text: &str| format!("annotation.volcano.sh/jdb-min-available={text}");
    for (budget, marked, expected) in [
        (max("30%"), 5, 2),
        (max("99%"), 3, 3),
        (max("50%"), 5, 3),
        (max("3"), 5, 3),
        (max("0"), 5, 0),
        (max("-1"), 5, 0),
        (min("3"), 5, 2),
        (min("30%"), 5, 3),
        (min("5"), 5, 0),
        (min("2147483647"), 5, 0),
        (format!("{} {}", min("4"), max("5")), 5, 1),
        (String::new(), 5, 1),
        (String::new(), 0, 0),
        (max("x"), 5, 0),
        (min("half"), 5, 0),
    ] {
        assert_eq!(drained(&budget, marked), expected, "{budget}");
    }
}

#[test]
fn jobs_94_an_open_zone_is_not_drained() {
    let text = format!(
        "{}job j annotation.volcano.sh/jdb-max-unavailable=5
         task a x5 cpu=1 @open running preemptable
         task p cpu=1 @plain running preemptable\n task o cpu=1 @other running preemptable",
        nodes()
    );
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| {
        assert_eq!(victims(session), [""; 0]);
    });
}

#[test]
fn jobs_94_budgets_are_per_job_and_the_least_valuable_go_first() {
    let text = format!(
        "{}{}job a annotation.volcano.sh/jdb-max-unavailable=3
           task t0 cpu=1 @shut running preemptable priority=2
           task t1 cpu=1 @shut2 running preemptable created=5
           task t2 cpu=1 @shut running preemptable created=9
           task t3 cpu=1 @shut2 running preemptable created=9
           task t4 cpu=1 @shut bound preemptable
         job b preemptable annotation.volcano.sh/jdb-min-available=2
           task t x4 cpu=1 @shut running
         pod lone cpu=1 @shut running preemptable
         job orphan queue=missing\n task t cpu=1 @shut running preemptable",
        nodes(),
        zoned("shut2", "rz2"),
    );
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| {
        // `a` has one task that does not run: two are left of its budget, over all zones.
        assert_eq!(victims(session), ["a-t2", "a-t3", "b-t-0", "b-t-1"]);
    });
}

#[test]
fn jobs_95_below_the_minimum_nobody_goes() {
    let text = format!(
        "{}job j annotation.volcano.sh/jdb-min-available=4
         task t x3 cpu=1 @shut running preemptable",
        nodes()
    );
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| {
        assert_eq!(victims(session), [""; 0]);
    });
}

#[test]
fn jobs_95_one_round_in_a_period() {
    let text = format!("{}job j\n task t x3 cpu=1 @shut running preemptable", nodes());
    let mut cycles = Cycles::new(&text, &format!("{ZONES} tdm.evict.period=30s"));
    for (seconds, expected) in [(0, 1), (29, 0), (30, 1), (31, 0), (60, 1), (61, 0)] {
        let found = cycles.session(NOON + seconds, |session| victims(session).len());
        assert_eq!(found, expected, "{seconds}");
    }
    let mut cycles = Cycles::new(&text, ZONES);
    for (seconds, expected) in [(0, 1), (59, 0), (60, 1)] {
        let found = cycles.session(NOON + seconds, |session| victims(session).len());
        assert_eq!(found, expected, "the default is a minute: {seconds}");
    }
}

#[test]
fn the_clock_of_the_rounds_outlives_a_reload() {
    let text = format!("{}job j\n task t x5 cpu=1 @shut running preemptable", nodes());
    let mut cycles = Cycles::new(&text, ZONES);
    assert_eq!(cycles.session(NOON, |session| victims(session).len()), 1);
    cycles.reload(&format!("{ZONES} tdm.evict.period=30s"));
    assert_eq!(cycles.session(NOON + 29, |session| victims(session).len()), 0);
    assert_eq!(cycles.session(NOON + 30, |session| victims(session).len()), 1);
}

#[test]
fn preemption_stays_on_plain_nodes_and_within_the_budgets() {
    let text = format!(
        "{}job j annotation.volcano.sh/jdb-max-unavailable=2
           task t x3 cpu=1 @plain running preemptable
           task zone cpu=1 @open running preemptable
           task normal cpu=1 @plain running
           task bound cpu=1 @plain bound preemptable
         job one\n task t x2 cpu=1 @plain running preemptable
         job own\n task a cpu=1\n task marked cpu=1 preemptable
           task any cpu=1 annotation.volcano.sh/revocable-zone=*",
        nodes()
    );
    in_session(&text, ZONES, |session| {
        let mut candidates = tasks(session, &["j/zone", "j/normal", "j/bound"]);
        candidates.extend(series(session, "one/t", 2).into_iter().rev());
        candidates.extend(series(session, "j/t", 3));
        let victims = |session: &SessionState<'_>, own| {
            let own = task(session, own);
            names(session, &session.plugins().preemptable(session.view(), own, &candidates))
        };
        // One of `j` does not run yet.
        assert_eq!(victims(session, "own/a"), ["one-t-0", "j-t-0"]);
        assert_eq!(victims(session, "own/marked"), [""; 0]);
        assert_eq!(victims(session, "own/any"), [""; 0]);
        let first = series(session, "j/t", 1);
        evict(session, &first);
        assert_eq!(victims(session, "own/a"), ["one-t-0"]);
    });
}

#[test]
fn d26_only_what_is_marked_is_preemptable() {
    let text = format!(
        "{}job plain\n task a cpu=1 @shut running
         job marked preemptable\n task a cpu=1 @shut running
         job but preemptable\n task a cpu=1 @shut running label.volcano.sh/preemptable=false",
        nodes()
    );
    in_session_of(fixture::cluster(&text), ZONES, NOON, |session| {
        assert_eq!(victims(session), ["marked-a"]);
    });
}

#[test]
fn jobs_that_may_be_preempted_come_last_and_never_starve() {
    let text = "node n cpu=9
                job soft preemptable min=2\n task a cpu=1\n task b cpu=1 @n running
                job hard min=2\n task a cpu=1\n task b cpu=1 @n running
                job done\n task b cpu=1 @n running";
    in_session(text, "tdm", |session| {
        let (view, plugins) = (session.view(), session.plugins());
        let [soft, hard, done] = ["soft", "hard", "done"].map(|name| job(session, name));
        assert_eq!(plugin("tdm").job_order(view, hard, soft), Ordering::Less);
        assert_eq!(plugin("tdm").job_order(view, soft, hard), Ordering::Greater);
        assert_eq!(plugin("tdm").job_order(view, hard, done), Ordering::Equal);
        let values = [hard, soft].map(|job| plugin("tdm").order_value(view, job));
        let expected = ["not preemptable", "preemptable"].map(|text| Some(text.to_owned()));
        assert_eq!(values, expected, "what answers show");
        assert!(plugins.job_starving(view, hard));
        assert!(!plugins.job_starving(view, soft) && !plugins.job_starving(view, done));
        assert!(plugins.job_pipelined(view, done) && !plugins.job_pipelined(view, hard));
    });
}
