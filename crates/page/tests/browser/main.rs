//! The page in a real browser, over the routes of a cluster as text. Specification: answers.md 14
//! (ANS-93 to ANS-99).
//!
//! `BROWSER_PART=polling` runs only the parts that have this in their name.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod accessible;
mod chromium;
mod demo;
mod expected;
mod files;
mod history;
mod job;
mod large;
mod looks;
mod pictures;
mod polling;
mod rights;
mod served;
#[path = "../page/support.rs"]
#[allow(dead_code)] // The other test program of this crate needs the rest of the file.
mod support;
mod tab;
mod views;
mod what_if;

use std::any::Any;
use std::env;
use std::io::{Write, stderr};
use std::panic::AssertUnwindSafe;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{StreamExt, iter};

use chromium::Chromium;

/// Every view of the usual cluster: what stands behind `/ui/`, and its title.
const VIEWS: &[(&str, &str)] = &[
    ("#/summary", "Summary"),
    ("#/queues", "Queues"),
    ("#/queues/research", "Queue research"),
    ("#/jobs", "Jobs that wait"),
    ("#/jobs?show=running", "Jobs that run"),
    ("#/jobs/ml/train", "Job ml/train"),
    ("#/nodes", "Nodes"),
    ("#/nodes/g1", "Node g1"),
    ("#/timeline", "Timeline"),
    ("#/whatif", "What if"),
];

/// Parts that run at once. Some of them mostly wait for polls of the page.
const AT_ONCE: usize = 4;

type Part<'a> = (&'static str, BoxFuture<'a, ()>);

macro_rules! parts {
    ($chromium:ident: $($module:ident::$function:ident),* $(,)?) => {
        vec![$((
            concat!(stringify!($module), "::", stringify!($function)),
            $module::$function($chromium).boxed(),
        )),*]
    };
}

/// Returns the parts. Those that wait for polls come first: the others run meanwhile.
fn parts(chromium: &Chromium) -> Vec<Part<'_>> {
    parts![chromium:
        polling::ask_only_for_what_is_new,
        polling::rest_while_hidden,
        polling::show_the_age_while_nobody_answers,
        accessible::walk_by_keyboard,
        accessible::name_everything,
        views::show_what_is_answered,
        views::load_rows_as_they_come_in_sight,
        views::show_hyper_nodes,
        views::show_starts_and_ends,
        views::group_nodes_and_show_what_they_lack,
        demo::show_its_cluster,
        history::show_evictions_with_their_certificates,
        job::show_explanations,
        what_if::try_a_remedy,
        what_if::wait_when_there_are_too_many,
        what_if::fill_in_the_form,
        what_if::send_wrong_documents,
        rights::ask_for_a_token,
        rights::hide_what_a_reader_may_not_see,
        rights::try_with_the_rights_of_a_namespace,
        looks::have_contrast_in_both_schemes,
        looks::fit_a_narrow_window,
        looks::keep_names_text,
        looks::keep_texts_text,
        files::report_nothing,
        files::open_a_report_without_network,
        pictures::draw_pictures_of_documents,
    ]
}

/// Returns the parts that measure, which run only if they are asked for.
fn measurements(chromium: &Chromium) -> Vec<Part<'_>> {
    parts![chromium: large::measure_views]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_99_the_page_works_in_a_browser() {
    let Some(program) = chromium::find_program() else {
        assert!(env::var_os("CI").is_none(), "no Chromium: tests/browser/install.sh installs it");
        // Not `eprintln!`: what a test prints is shown only if it fails.
        writeln!(stderr(), "the page is not tested in a browser: no Chromium is installed")
            .unwrap();
        return;
    };
    let chromium = Chromium::launch(&program).await;
    let wanted = env::var("BROWSER_PART").unwrap_or_default();
    let mut parts = parts(&chromium);
    if wanted == "large" {
        parts.extend(measurements(&chromium));
    }
    let parts = parts.into_iter().filter(|(name, _)| name.contains(&wanted));
    let ends = iter(parts).map(run).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    chromium.close().await;
    assert!(!ends.is_empty(), "no part has {wanted:?} in its name");
    let failed: Vec<String> = ends.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} parts failed:\n\n{}", failed.len(), failed.join("\n\n"));
}

/// Runs a part. Returns its name and why it has failed. Returns `None` if it has not.
async fn run((name, part): Part<'_>) -> Option<String> {
    let failure = AssertUnwindSafe(part).catch_unwind().await.err()?;
    Some(format!("{name}: {}", message(&*failure)))
}

fn message(failure: &(dyn Any + Send)) -> &str {
    let text = failure.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
