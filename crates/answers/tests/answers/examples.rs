//! The worked examples of answers.md 18.

use crate::support::{Asked, EXAMPLE, conf, groups, sets};

/// Nodes g1 to g4 with GPUs, c1 to c6 without.
fn nodes(taints: [&str; 4]) -> String {
    let gpu = taints.iter().enumerate().map(|(at, taint)| {
        let taint = if taint.is_empty() { String::new() } else { format!("taint={taint}") };
        format!("node g{} cpu=64 gpu=8 {taint}\n", at + 1)
    });
    let cpu = (1..=6).map(|at| format!("node c{at} cpu=64\n"));
    gpu.chain(cpu).collect()
}

const TAINT: &str = "team=vision:NoSchedule";

/// The job ml/train of two pods, a job behind it, and jobs that hold GPUs on these nodes.
fn jobs(gpus: i64, busy: &[&str]) -> String {
    let mut text = format!(
        "queue research\njob ml/train queue=research min=2\n task a cpu=8 gpu={gpus} x2\n\
         job ml/sweep queue=research min=1 created=2400\n task a cpu=8 gpu={gpus}\n"
    );
    for node in busy {
        text.push_str(&format!(
            "job ml/on-{node} queue=research min=1 running\n task a gpu=5 @{node} running\n"
        ));
    }
    text
}

fn example(taints: [&str; 4], gpus: i64, busy: &[&str]) -> Asked {
    let text = nodes(taints) + &jobs(gpus, busy);
    Asked::new(&conf("enqueue, allocate", EXAMPLE), &text)
}

/// Example A: a taint on an empty node, or three nodes with too little room each.
pub(crate) fn two_ways_out() -> Asked {
    example(["", "", "", TAINT], 4, &["g1", "g2", "g3"])
}

#[test]
fn ans_18_a_two_ways_out() {
    let asked = two_ways_out();
    let why = asked.why("ml/train");
    assert_eq!(
        asked.verdict("ml/train"),
        "Fragmented: 9 nvidia.com/gpu are free on eligible nodes, but no node has 4"
    );
    assert_eq!(
        groups(&why),
        [
            "6 lacks/nvidia.com/gpu c1 c2 c3 c4 c5",
            "3 room/nvidia.com/gpu g1 g2 g3",
            "1 taint/team=vision:NoSchedule g4",
        ]
    );
    let gang = why.gang.as_ref().unwrap();
    assert_eq!((gang.needed, gang.placed, gang.ready, gang.waiting), (2, 0, 0, 2));
    assert_eq!((gang.pods.len(), gang.pods[0].count), (1, 2));
    let nodes = why.nodes.as_ref().unwrap();
    assert_eq!((nodes.total, nodes.eligible), (10, 3));
    assert_eq!(&*nodes.nearest[0].name, "g4", "a taint is one atom, and lacks nothing");
    assert_eq!(nodes.nearest[1].lacks, [("nvidia.com/gpu".to_owned(), "1".to_owned())]);
    let gpus = why.short.iter().find(|row| row.resource == "nvidia.com/gpu").unwrap();
    let row = [&gpus.need, &gpus.free, &gpus.usable, &gpus.largest, &gpus.short];
    assert_eq!(row, ["8", "9", "0", "3", "0"]);
    assert_eq!(gpus.per_pod.as_deref(), Some("1"));
    assert!(why.quota.is_empty(), "{:?}", why.quota);
    assert_eq!(sets(&why), ["taint/team=vision:NoSchedule", "room/nvidia.com/gpu"]);
    let blocking = why.blocking.unwrap();
    assert_eq!((blocking.even_empty, blocking.is_complete()), (Some(true), true));
    let taint = &blocking.sets[0];
    assert_eq!((taint.certified, &*taint.atoms[0].place), ("all", "spec.tolerations"));
    assert_eq!((taint.atoms[0].n_nodes, taint.atoms[0].who.as_str()), (Some(1), "you"));
    let room = &blocking.sets[1].atoms[0];
    assert_eq!((&*room.place, room.n_nodes, room.who.as_str()), ("running pods", Some(3), "time"));
    assert_eq!(why.subject.waiting_seconds, Some(5_400));
    assert_eq!(
        asked.remedies("ml/train"),
        [
            "you: tolerate team=vision:NoSchedule: g4",
            "you: ask for at most 3 nvidia.com/gpu a pod: g1 g2",
            "you: end ml/on-g1",
            "admin: 1 more node like g1",
        ]
    );
}

#[test]
fn ans_18_b_a_pair() {
    let asked = example([TAINT; 4], 4, &["g1", "g2", "g3", "g4"]);
    assert_eq!(
        asked.verdict("ml/train"),
        "NodesRefuse: no node is eligible: 6 nodes have no nvidia.com/gpu; 4 nodes lack room: 1 \
         nvidia.com/gpu each, taint team=vision:NoSchedule also Fragmented"
    );
    let why = asked.why("ml/train");
    assert_eq!(sets(&why), ["taint/team=vision:NoSchedule + room/nvidia.com/gpu"]);
    let blocking = why.blocking.unwrap();
    assert_eq!((blocking.sets[0].certified, blocking.even_empty), ("all", Some(false)));
    assert!(!blocking.helps_waiting());
    assert_eq!(asked.remedies("ml/train"), [""; 0], "a node like g1 has the taint");
}

#[test]
fn ans_18_c_never() {
    let asked = example(["", "", "", TAINT], 12, &["g1", "g2", "g3"]);
    assert_eq!(
        asked.verdict("ml/train"),
        "NeverFits: no eligible node is large enough: 12 nvidia.com/gpu asked, 8 on the largest"
    );
    let blocking = asked.why("ml/train").blocking.unwrap();
    assert_eq!((blocking.sets.len(), blocking.even_empty), (0, Some(false)));
    assert!(blocking.is_complete() && !blocking.helps_waiting());
    let remedies = asked.remedies("ml/train");
    assert_eq!(remedies, ["you: ask for at most 3 nvidia.com/gpu a pod: g1 g2"]);
}

/// Example D: the capability of the queue has room for one of two pods.
pub(crate) fn quota() -> Asked {
    let mut text: String = (1..=7).map(|at| format!("node g{at} cpu=64 gpu=8\n")).collect();
    text.push_str(
        "queue research cap.gpu=16\njob ml/train queue=research min=2\n task a gpu=4 x2
         job ml/eval queue=research min=2 running
         task a gpu=6 @g1 running\n task b gpu=6 @g2 running",
    );
    let tiers = "gang priority predicates capacity nodeorder";
    Asked::new(&conf("enqueue, allocate", tiers), &text)
}

#[test]
fn ans_18_d_quota() {
    let asked = quota();
    assert_eq!(
        asked.verdict("ml/train"),
        "GangShort: 1 of 2 needed pods finds a node; the others: capacity: queue research holds 16 \
         of 16 nvidia.com/gpu, 4 more asked"
    );
    let rows = asked.why("ml/train").quota;
    let row = &rows[0];
    assert_eq!((rows.len(), row.plugin, row.limit.as_str()), (1, "capacity", "capability"));
    assert_eq!([&row.amount, &row.used, &row.asked, &row.short], ["16", "16", "4", "4"]);
    assert_eq!(asked.sets("ml/train"), ["share/capacity", "minimum"]);
    assert!(asked.why("ml/train").blocking.unwrap().helps_waiting());
    assert_eq!(
        asked.remedies("ml/train"),
        [
            "you: lower the minimum from 2 to 1: g3",
            "you: end ml/eval",
            "admin: raise spec.capability of Queue research to 20 nvidia.com/gpu",
        ]
    );
}

/// Example E: the cluster is promised beyond its factor.
pub(crate) fn not_admitted() -> Asked {
    let mut text: String = (1..=15).map(|at| format!("node n{at} cpu=64\n")).collect();
    text.push_str("job ml/held min=1 inqueue minres.cpu=200\n");
    text.push_str("job ml/etl min=15 running\n");
    (1..=15).for_each(|at| text.push_str(&format!(" task a{at} cpu=60 @n{at} running\n")));
    text.push_str("job ml/train min=2 minres.cpu=100\n task a cpu=50 x2\n");
    let tiers = "gang priority overcommit predicates nodeorder";
    Asked::new(&conf("enqueue, allocate", tiers), &text)
}

#[test]
fn ans_18_e_not_admitted() {
    let asked = not_admitted();
    assert_eq!(
        asked.verdict("ml/train"),
        "NotAdmitted: overcommit: 1200 cpu wanted of 1152 also NoRoom"
    );
    let rows = asked.why("ml/train").quota;
    let row = &rows[0];
    assert_eq!((rows.len(), row.plugin, row.limit.as_str()), (1, "overcommit", "overcommit"));
    assert_eq!([&row.amount, &row.used, &row.asked, &row.short], ["1152", "1100", "100", "48"]);
    assert_eq!(asked.sets("ml/train"), ["admission/overcommit + room/cpu"]);
}
