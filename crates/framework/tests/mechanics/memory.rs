//! What the fast evaluator keeps: its bytes are counted, whatever they are spent on, and what was used
//! last stays. Specification: actions.md 12.2 S2.

use vc_framework::{Caches, Evaluator, Filter, Opening, PluginSet, Session};
use vc_model::{Cluster, TaskId, fixture};

use super::fake;
use super::support::*;

/// As long as no class comes back that had to go.
const MOST_BYTES: usize = 8 << 20;
/// Of whatever has no part by node, at least.
const BYTES_OF_CLASS: usize = 400;

/// Asks for each of these tasks and answers what is kept then.
fn kept(cluster: &mut Cluster, asked: impl Iterator<Item = TaskId>) -> Caches {
    let (mut plugins, _) = PluginSet::new(&config(""), fake::ALL);
    let settings = vc_conf::ActionSettings::default();
    let opening = Opening { caches: Caches::new(Evaluator::Fast), ..opening(Default::default()) };
    let mut session = Session::open(cluster, &mut plugins, &settings, opening);
    for task in asked {
        assert!(session.find_cached(task, Filter::Allocate).is_some());
    }
    session.finish().2
}

#[test]
fn on_few_nodes_what_is_kept_is_bounded_too() {
    const N_SHAPES: usize = 20_000;
    let task = |index| format!("  task t{index} cpu={}m\n", index + 1);
    let tasks: String = (0..N_SHAPES).map(task).collect();
    let mut cluster = fixture::cluster(&format!("node n cpu=4\njob j min=1\n{tasks}"));
    let all: Vec<TaskId> = cluster.tasks.iter().map(|(id, _)| id).collect();
    let caches = kept(&mut cluster, all.iter().copied());
    let score_cache = caches.score_cache().expect("the fast evaluator");
    assert!(MOST_BYTES - (16 << 10) < score_cache.n_bytes() && score_cache.n_bytes() <= MOST_BYTES);
    assert!(BYTES_OF_CLASS * score_cache.n_classes() < score_cache.n_bytes());
    assert_eq!(score_cache.paths().filled, N_SHAPES as u64);
    // One that is asked for again and again never has to go.
    let first = all[0];
    let caches = kept(&mut cluster, all.iter().flat_map(|&task| [task, first]));
    let score_cache = caches.score_cache().expect("the fast evaluator");
    assert!(score_cache.n_classes() < N_SHAPES && score_cache.n_bytes() <= MOST_BYTES);
    assert_eq!(score_cache.paths().filled, N_SHAPES as u64);
}
