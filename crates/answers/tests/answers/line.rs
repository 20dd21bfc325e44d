//! The place in the line. Specification: answers.md 20, cases 37, 38.

use proptest::prelude::*;

use vc_answers::{Depth, explain_line};
use vc_engine::Evaluator;
use vc_model::fixture::job;

use crate::examples::two_ways_out;
use crate::support::{Asked, EXAMPLE, conf, random_cases};

#[test]
fn ans_37_place_and_neighbours() {
    let line = two_ways_out().why("ml/train").line.unwrap();
    assert_eq!((line.in_queue, line.of_queue, line.queue_turn), (1, 2, 1));
    assert_eq!((line.turn, line.before), (Some(1), None));
    let behind = line.behind.unwrap();
    assert_eq!((behind.job.to_string().as_str(), behind.decided_by), ("ml/sweep", "created"));
    let values = behind.values.unwrap().texts();
    assert_eq!(values, ["2026-01-01T00:00:00Z", "2026-01-01T00:40:00Z"]);
    assert_eq!((line.ahead.jobs, line.ahead.pods, line.ahead.blocked), (0, 0, Some(0)));
}

#[test]
fn ans_37_each_decider_with_its_values() {
    for (words, plugins, decided_by, values) in [
        ("priority=5", EXAMPLE, "priority", Some(("0", "5"))),
        ("created=-60", EXAMPLE, "created", None),
        ("sla=2h", "gang sla predicates", "sla", Some(("no waiting time", "2026-01-01T02:00:00Z"))),
        ("", EXAMPLE, "name", Some(("default/j", "default/a"))),
        ("", "gang drf predicates", "drf", Some(("0.25", "0.00"))),
    ] {
        let held = if decided_by == "drf" { " task r cpu=1 @m running\n" } else { "" };
        let text = format!(
            "node n cpu=1\nnode m cpu=3\njob a min=3 {words}\n task a cpu=3 x3
             job j min=3\n{held} task a cpu=3 x3"
        );
        let line = Asked::new(&conf("allocate", plugins), &text).why("j").line.unwrap();
        let before = line.before.unwrap();
        assert_eq!((before.decided_by, line.in_queue), (decided_by, 2), "{words}");
        if let Some((own, other)) = values {
            assert_eq!(before.values.unwrap().texts(), [own, other]);
        }
        assert_eq!((line.ahead.jobs, line.ahead.pods, line.ahead.blocked), (1, 3, Some(1)));
        assert_eq!(line.ahead.amounts, [("cpu".to_owned(), "9".to_owned())]);
    }
}

/// The account of the job with less projected usage comes first. The one of the other has used a cpu for an hour and a
/// half, with a half-life of four hours, and is charged five minutes ahead.
#[test]
fn ans_37_fairshare_compares_usage_and_weight() {
    let tiers = "gang fairshare{fairshare.resourceKey=cpu} predicates";
    for (quota, weight) in
        [("", ""), ("quota b/q hard.volcano.sh/namespace.weight=2\n", ", weight 2")]
    {
        let text = format!(
            "{quota}node n cpu=1\nnode m cpu=3\njob a/first\n task a cpu=3
             job b/run running\n task a cpu=1 @m running started=0
             job b/second\n task a cpu=3"
        );
        let line = Asked::new(&conf("allocate", tiers), &text).why("b/second").line.unwrap();
        let before = line.before.unwrap();
        assert_eq!((before.job.to_string().as_str(), before.decided_by), ("a/first", "fairshare"));
        let own = format!("1.405 hours of cpu, 1 held{weight}");
        assert_eq!(before.values.unwrap().texts(), [own.as_str(), "0.000 hours of cpu, 0 held"]);
    }
}

/// Jobs that may be preempted come last.
#[test]
fn ans_37_tdm_compares_whether_jobs_may_be_preempted() {
    let text = "node n cpu=1\njob a preemptable\n task a cpu=3\njob b\n task a cpu=3";
    let line = Asked::new(&conf("allocate", "gang tdm predicates"), text).why("a").line.unwrap();
    let before = line.before.unwrap();
    assert_eq!((before.job.to_string().as_str(), before.decided_by), ("default/b", "tdm"));
    assert_eq!(before.values.unwrap().texts(), ["preemptable", "not preemptable"]);
}

/// Of more than 20 jobs the first 20 are tried. A quick explanation tries none then.
#[test]
fn ans_33_the_first_jobs_of_a_long_line_are_tried() {
    // Every third job has room on the larger node.
    let text: String = (0..30)
        .map(|at| {
            let cpu = if at % 3 == 0 { 1 } else { 4 };
            format!("job j{at:02} queue=q created={at}\n task a cpu={cpu}\n")
        })
        .collect();
    let text = format!("node n cpu=500m\nqueue q\n{text}");
    let config = conf("allocate", "gang priority predicates");
    for evaluator in [Evaluator::Fast, Evaluator::Plain] {
        let mut it = Asked::evaluated(evaluator, &config, &text);
        it.apply("node n cpu=2");
        let ahead = |name: &str, depth| {
            let line = it.why_to(&mut it.state(), name, depth).line.unwrap();
            (line.ahead.jobs, line.ahead.tried, line.ahead.blocked)
        };
        assert_eq!(ahead("j29", Depth::Full), (29, Some(20), Some(13)));
        for depth in [Depth::Quick, Depth::Sets] {
            assert_eq!(ahead("j29", depth), (29, None, None));
        }
        for depth in [Depth::Full, Depth::Sets, Depth::Quick] {
            assert_eq!(ahead("j20", depth), (20, Some(20), Some(13)));
            assert_eq!(ahead("j02", depth), (2, Some(2), Some(1)));
        }
        let mut state = it.state();
        let jobs = ["j00", "j02", "j29"].map(|name| job(state.cluster(), name));
        let rows = explain_line(&mut state, jobs.to_vec()).into_iter();
        let rows = rows.map(|row| row.line.map(|line| (line.ahead.tried, line.ahead.blocked)));
        let expected =
            [(0, 0), (2, 1), (20, 13)].map(|(n, blocked)| Some((Some(n), Some(blocked))));
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}

/// Sums are kept for some places only.
#[test]
fn ans_37_what_waits_before_each_place_of_a_long_line() {
    let job = |at: i64| {
        let n_pods = at % 3 + 1;
        format!("job j{at:03} min={n_pods} created={at}\n task a cpu=2 x{n_pods}\n")
    };
    let jobs: String = (0..150).map(job).collect();
    let text = format!("node n cpu=1\n{jobs}");
    let all = Asked::new(&conf("allocate", "gang priority predicates"), &text).all();
    assert_eq!(all.len(), 150);
    for line in all.into_iter().map(|it| it.line.unwrap()) {
        let n_pods: i64 = (0..line.in_queue as i64 - 1).map(|at| at % 3 + 1).sum();
        assert_eq!(line.ahead.pods as i64, n_pods, "{}", line.in_queue);
        let amounts = [("cpu".to_owned(), (2 * n_pods).to_string())];
        let wanted = if n_pods == 0 { &[] } else { &amounts[..] };
        assert_eq!(line.ahead.amounts, wanted, "{}", line.in_queue);
    }
}

proptest! {
    #![proptest_config(random_cases(60))]

    #[test]
    fn ans_38_the_line_is_the_order_of_turns(
        jobs in prop::collection::vec((0..3_i64, 0..4_i64), 1..9),
    ) {
        let mut text = "node n cpu=1\nqueue q\n".to_owned();
        for (at, (priority, created)) in jobs.iter().enumerate() {
            text.push_str(&format!(
                "job j{at} queue=q priority={priority} created={created}\n task a cpu=2\n"
            ));
        }
        let it = Asked::new(&conf("allocate", "gang priority predicates"), &text);
        let all = it.all();
        prop_assert_eq!(all.len(), jobs.len());
        for line in all.into_iter().map(|it| it.line.unwrap()) {
            prop_assert_eq!((Some(line.in_queue), line.of_queue), (line.turn, jobs.len()));
            let n_ahead = line.in_queue - 1;
            prop_assert_eq!((line.ahead.jobs, line.ahead.pods), (n_ahead, n_ahead));
        }
    }
}
