//! A scorer that declares what it reads runs in the fast evaluator with the one form of its rule: the
//! score of a node is asked for again only after a change of the node, not for every task.

use std::sync::atomic::{AtomicUsize, Ordering};

use vc_engine::Evaluator;
use vc_framework::{Depends, Inputs, Plugin, PluginEntry, Points, SessionView};
use vc_model::{NodeId, TaskId};

use crate::scheduler::cycles;

/// Prefers nodes whose name is late in the alphabet, and counts how often it is asked.
struct ByName {
    reads: Inputs,
    n_asked: &'static AtomicUsize,
}

impl Plugin for ByName {
    fn points(&self) -> Points {
        Points::NODE_ORDER
    }

    fn depends(&self) -> Depends {
        Depends::of(&[(Points::NODE_ORDER, self.reads)])
    }

    fn node_order(
        &self,
        view: SessionView<'_>,
        _task: TaskId,
        node: NodeId,
    ) -> Result<f64, String> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        Ok(f64::from(view.cluster.nodes[node].name.as_bytes()[1]))
    }
}

static WITH: AtomicUsize = AtomicUsize::new(0);
static WITHOUT: AtomicUsize = AtomicUsize::new(0);

const DECLARES: PluginEntry = PluginEntry::new("by-name", |_, _| {
    Box::new(ByName { reads: Inputs::NODE_OBJECT, n_asked: &WITH })
});
const DECLARES_NOTHING: PluginEntry = PluginEntry::new("by-name", |_, _| {
    Box::new(ByName { reads: Inputs::EVERYTHING, n_asked: &WITHOUT })
});

const CONF: &str = r#"
    actions: "enqueue, allocate"
    tiers:
    - plugins:
      - name: gang
      - name: predicates
      - name: by-name
"#;
/// With few nodes the evaluator computes all scores anew, because that is not slower.
const N_NODES: usize = 512;
const N_TASKS: usize = 8;

#[test]
fn a_declared_score_is_asked_for_once_per_node_and_change() {
    let nodes: String = (1..=N_NODES).map(|at| format!("node n{at} cpu=2\n")).collect();
    let tasks: String = (1..=N_TASKS).map(|at| format!("  task t{at} cpu=1\n")).collect();
    let cluster = format!("queue default\n{nodes}job j min={N_TASKS}\n{tasks}");
    let fast = cycles(DECLARES, CONF, &cluster, Evaluator::Fast);
    let n_asked = WITH.load(Ordering::Relaxed);
    assert_eq!(fast[0].iter().filter(|line| line.starts_with("bind ")).count(), N_TASKS);
    assert_eq!(fast, cycles(DECLARES, CONF, &cluster, Evaluator::Plain));
    assert_eq!(fast, cycles(DECLARES_NOTHING, CONF, &cluster, Evaluator::Fast));
    let n_asked_anew = WITHOUT.load(Ordering::Relaxed);
    assert!(n_asked < 2 * N_NODES, "{n_asked}");
    assert!(N_TASKS * N_NODES / 2 < n_asked_anew, "{n_asked_anew}");
}
