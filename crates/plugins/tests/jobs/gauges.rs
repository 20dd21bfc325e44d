//! Numbers that plugins hand out for metrics: plugins-jobs-queues.md 2.3, 4.1, 5.4.

use vc_framework::{QueueAmount, QueueGauges, Sample, Session};

use crate::support::{allocate, in_session, queue, task};

const NODE: &str = "node n cpu=8 memory=8Gi gpu=4\n";

fn closed(session: &mut Session<'_>) -> Vec<Sample> {
    session.close_plugins();
    std::mem::take(&mut session.outcome.out.samples)
}

fn gauges(samples: Vec<Sample>) -> Vec<QueueGauges> {
    let of_queue = |sample| match sample {
        Sample::Queue(gauges) => Some(*gauges),
        _ => None,
    };
    samples.into_iter().filter_map(of_queue).collect()
}

/// Cores and whole GPUs.
fn shown(gauges: &QueueGauges, kind: QueueAmount) -> Option<(f64, Option<f64>)> {
    let (_, amounts) = gauges.amounts.iter().find(|(other, _)| *other == kind)?;
    let gpu = amounts.scalars.iter().find(|(name, _)| name == "nvidia.com/gpu");
    Some((amounts.cpu_milli / 1000.0, gpu.map(|(_, thousandths)| thousandths / 1000.0)))
}

#[test]
fn gang_tells_what_each_job_lacks() {
    let text = format!(
        "{NODE} job a min=1\n task t cpu=1 @n running\n job b min=3\n task t x2 cpu=1\n job c min=1
         job d min=1\n task t cpu=1 @n releasing\n task u cpu=1 @n releasing\n pod p"
    );
    in_session(&text, "gang", |session| {
        let state = |sample: &Sample| match sample {
            Sample::JobGang { job, state } => format!("{} {state:?}", job.name),
            other => format!("{other:?}"),
        };
        let first: Vec<String> = closed(session).iter().map(state).collect();
        let unsaid = "d Unsaid";
        assert_eq!(first, ["a Ready", "b Unready(3)", "c Unsaid", unsaid, "UnreadyJobs(1)"]);
        assert_eq!(closed(session), [Sample::UnreadyJobs(1)], "a close without news");
    });
}

#[test]
fn drf_tells_shares_that_change() {
    let text = format!("{NODE} job a\n task t cpu=2 @n running\n job b\n task t cpu=4");
    in_session(&text, "drf", |session| {
        let shares = |samples: Vec<Sample>| -> Vec<(String, f64)> {
            let share = |sample| match sample {
                Sample::JobShare { job, share } => Some((job.name.to_string(), share)),
                _ => None,
            };
            samples.into_iter().filter_map(share).collect()
        };
        assert_eq!(shares(closed(session)), [("a".to_owned(), 0.25), ("b".to_owned(), 0.0)]);
        let placed = task(session, "b/t");
        allocate(session, placed, "n");
        assert_eq!(shares(closed(session)), [("b".to_owned(), 0.5)]);
        assert_eq!(shares(closed(session)), []);
    });
}

#[test]
fn proportion_tells_amounts_of_queues_with_and_without_jobs() {
    let text = format!(
        "{NODE} queue busy weight=3\n queue idle weight=2\n job a queue=busy min=2 minres.cpu=4 \
         inqueue\n task t cpu=1 gpu=1 @n running\n task u cpu=2"
    );
    in_session(&text, "proportion", |session| {
        let first = gauges(closed(session));
        let [busy, idle] = &first[..] else { panic!("{first:?}") };
        assert_eq!((&*busy.queue, busy.weight, busy.share), ("busy", Some(3), Some(1.0)));
        assert_eq!(shown(busy, QueueAmount::Allocated), Some((1.0, Some(1.0))));
        assert_eq!(shown(busy, QueueAmount::Request), Some((3.0, Some(1.0))));
        assert_eq!(shown(busy, QueueAmount::Deserved), Some((3.0, Some(1.0))));
        assert_eq!(shown(busy, QueueAmount::Inqueue), Some((3.0, None)));
        assert_eq!(busy.overused, Some(false));
        assert_eq!((&*idle.queue, idle.weight, idle.share), ("idle", None, None));
        assert_eq!(idle.overused, None);
        assert_eq!(shown(idle, QueueAmount::Request), Some((0.0, None)));
        assert_eq!(shown(idle, QueueAmount::Deserved), None);

        let busy = queue(session, "busy");
        assert!(!session.plugins().overused(session.view(), busy));
        let placed = task(session, "a/u");
        allocate(session, placed, "n");
        let second = gauges(closed(session));
        assert_eq!(second.len(), 1, "{second:?}");
        // D53: the answer at the close, not the one that was given before the pod was placed.
        assert_eq!(second[0].overused, Some(true));
        assert_eq!(shown(&second[0], QueueAmount::Allocated), Some((3.0, Some(1.0))));
        assert!(session.plugins().overused(session.view(), busy));
        assert_eq!(gauges(closed(session)), []);
    });
}
