//! A recorder around a plugin, for tests: it compares what each answer reads with what the plugin
//! declares, and panics if an answer reads more. [`check_reads`] switches it on; without debug
//! assertions there is no recorder. The recorder sees:
//! - rows of the cluster as a whole, but not which field of a row is read;
//! - state of queues, jobs and pods that a plugin keeps, if its accessor notes the read;
//! - the time and the total, through [`SessionView::now_micros`] and [`SessionView::total`].
//!
//! Keys, tests and columns are not recorded: tests compare the fast evaluator with the plain one
//! instead.

mod context;
mod wrapper;

use std::cell::Cell;
use std::collections::BTreeSet;

use vc_model::reads::{self, Read};

use crate::depends::{Depends, Inputs};
use crate::plugin::{Plugin, SessionView};
use crate::points::{ALL_POINTS, Points};
use context::Context;

pub(crate) use context::Asked;

/// Switches the comparison of reads with declared inputs on. It has no effect without debug
/// assertions.
pub fn check_reads() {
    reads::switch_on();
}

thread_local! {
    static UNDECLARED: Cell<(&'static str, Inputs)> = const { Cell::new(("", Inputs::NONE)) };
}

/// Runs the code as if the plugin of this name did not declare these inputs, to test the recorder.
pub fn with_undeclared<T>(plugin: &'static str, inputs: Inputs, code: impl FnOnce() -> T) -> T {
    struct Restore((&'static str, Inputs));
    impl Drop for Restore {
        fn drop(&mut self) {
            UNDECLARED.set(self.0);
        }
    }
    let _restore = Restore(UNDECLARED.replace((plugin, inputs)));
    code()
}

/// Returns the plugin behind a recorder, or the plugin itself if reads are not checked.
pub(crate) fn recorded(name: &'static str, plugin: Box<dyn Plugin>) -> Box<dyn Plugin> {
    if !reads::is_on() {
        return plugin;
    }
    let declared = plugin.depends().stated_by(plugin.points());
    let declared = match UNDECLARED.get() {
        (liar, inputs) if liar == name => declared.without(inputs),
        _ => declared,
    };
    Box::new(RecordedPlugin { name, plugin, declared })
}

/// A plugin whose reads are recorded and compared with its declared inputs.
struct RecordedPlugin {
    name: &'static str,
    plugin: Box<dyn Plugin>,
    declared: Depends,
}

impl RecordedPlugin {
    /// Runs a query at one of these points and checks what it has read.
    fn query<T>(
        &self,
        points: &[Points],
        view: SessionView<'_>,
        asked: Asked<'_>,
        answer: impl FnOnce(&dyn Plugin) -> T,
    ) -> T {
        let declared = self.declared.at_any(points);
        if declared == Inputs::EVERYTHING {
            return answer(&*self.plugin);
        }
        let (result, reads) = reads::record(|| answer(&*self.plugin));
        self.check(points, view, asked, &reads);
        result
    }

    fn check(
        &self,
        points: &[Points],
        view: SessionView<'_>,
        asked: Asked<'_>,
        reads: &BTreeSet<Read>,
    ) {
        let declared = self.declared.at_any(points);
        let context = Context::new(view.cluster, asked);
        for &read in reads {
            let inputs = context.inputs(read);
            if !declared.has_any(inputs) {
                let named = ALL_POINTS.iter().filter(|(point, ..)| points.contains(point));
                let names: Vec<&str> = named.map(|(_, name, _)| *name).collect();
                panic!(
                    "plugin {}: {} reads {} ({read:?}), which it does not declare",
                    self.name,
                    names.join(", "),
                    inputs.names().join(" or "),
                );
            }
        }
    }
}
