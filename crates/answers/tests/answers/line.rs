//! The place in the line. Specification: answers.md 20, cases 37, 38.

use proptest::prelude::*;

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
