//! `kubectl vc ui --html`: the page with its answers as one file. The answers are those of a scheduler, asked for one
//! after the other, of files, or of a bundle. Specification: answers.md 14 (ANS-96).

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use vc_kube::{AnswersClient, AnswersError};
use vc_page::{MOST_CYCLES, MOST_EXPLAINED, MOST_STARTS, report_html};
use vc_sim::replay::bundle_page;
use vc_sim::report::report;
use vc_sim::run::RunOptions;
use vc_sim::{check_new_file, write_new_file};
use vc_text::escape_lines;

use crate::Answer;
use crate::ask::part;
use crate::attempt::{AskFailure, first_line, print_line};
use crate::output::print;

/// Queues whose line is asked for, and nodes whose jobs are. A scheduler answers 20 questions a second.
const MOST_LINES: usize = 200;
const MOST_NODES: usize = 200;
/// Items of one part of a list.
const LONGEST_PART: usize = 5_000;
/// Time until a question that is too much just now is asked again, and how often it is.
const PAUSE: Duration = Duration::from_millis(250);
const MOST_PAUSES: u32 = 40;
/// What to do where a file of the name exists.
const HINT: &str = "give another FILE, or - for standard output";

/// Asks a scheduler for all that the page shows, and writes the page.
///
/// # Errors
/// An answer is not there, or the file cannot be written.
pub(crate) async fn save_answers(client: &AnswersClient, file: &Path) -> Result<(), AskFailure> {
    check_is_new(file)?;
    let mut collector = Collector { client, answers: Map::new() };
    collector.collect().await?;
    Ok(write(file, &report_html(&collector.answers))?)
}

/// Writes the page about files with objects of a cluster.
///
/// # Errors
/// The files cannot be read, or the page cannot be written.
pub(crate) fn save_of_files(run: &RunOptions, file: &Path) -> Result<Answer, String> {
    check_is_new(file)?;
    let made = report(run).map_err(|error| error.to_string())?;
    for problem in &made.problems {
        eprintln!("{}", escape_lines(problem));
    }
    write(file, &made.html)?;
    Ok(Answer::default())
}

/// Writes the page about the end of a bundle.
///
/// # Errors
/// The bundle cannot be read, or the page cannot be written.
pub(crate) fn save_of_bundle(bundle: &Path, file: &Path) -> Result<Answer, String> {
    check_is_new(file)?;
    let made = bundle_page(bundle).map_err(|error| error.to_string())?;
    if !made.is_same {
        let bundle = bundle.display();
        print_line(&format!("{bundle} is decided otherwise here: vcsim replay shows what differs"));
    }
    if let Some(note) = made.unrecorded_note {
        print_line(note);
    }
    write(file, &made.html)?;
    Ok(Answer::default())
}

/// Checks that the file does not exist yet, before anything is asked.
///
/// # Errors
/// The file exists, or its folder does not.
fn check_is_new(file: &Path) -> Result<(), String> {
    match file == Path::new("-") {
        true => Ok(()),
        false => check_new_file(file, HINT),
    }
}

fn write(file: &Path, page: &str) -> Result<(), String> {
    if file == Path::new("-") {
        print(page);
        return Ok(());
    }
    write_new_file(file, page.as_bytes(), HINT)?;
    print(&format!("wrote {}, {} KiB\n", file.display(), page.len().div_ceil(1024)));
    Ok(())
}

/// The answers of a scheduler for the page, as far as they have come.
struct Collector<'a> {
    client: &'a AnswersClient,
    /// Answers by path below that of the version, without queries.
    answers: Map<String, Value>,
}

impl Collector<'_> {
    async fn collect(&mut self) -> Result<(), AskFailure> {
        self.add_explanations().await?;
        for path in ["summary", "queues", "timeline?from=1970-01-01T00%3A00%3A00Z"] {
            self.add(path).await?;
        }
        self.add(&format!("cycles?last={MOST_CYCLES}")).await?;
        self.add_lines().await?;
        self.add_nodes().await?;
        self.add_node_labels().await?;
        self.add_runs().await?;
        self.add(&format!("hypernodes?limit={LONGEST_PART}")).await
    }

    /// Adds the answer of a path. One that this user may not have is left out, and named.
    async fn add(&mut self, path: &str) -> Result<(), AskFailure> {
        let place = path.split('?').next().unwrap_or(path);
        match self.ask(path).await? {
            Ok(answer) => drop(self.answers.insert(format!("/{place}"), answer)),
            Err(problem) => print_line(&format!("without {place}: {problem}")),
        }
        Ok(())
    }

    /// Asks. The inner error says why this user has no answer, or why there is none any more.
    async fn ask(&self, path: &str) -> Result<Result<Value, String>, AskFailure> {
        let mut n_pauses = 0;
        loop {
            let error = match self.client.get(path).await {
                Ok(text) => {
                    let read = serde_json::from_str(&text);
                    return Ok(read.map_err(|error| format!("it cannot be read: {error}")));
                }
                Err(error) => error,
            };
            match error {
                AnswersError::Forbidden(text) | AnswersError::Refused(text) => {
                    return Ok(Err(first_line(&text).to_owned()));
                }
                AnswersError::TooMany(_) | AnswersError::Unavailable(_)
                    if n_pauses < MOST_PAUSES =>
                {
                    n_pauses += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                error => return Err(error.into()),
            }
        }
    }

    /// Asks for jobs of all namespaces, or of that of the context if this user may not list all.
    async fn ask_jobs(&self, list: &str, jobs: &str) -> Result<Result<Value, String>, AskFailure> {
        let query = format!("{list}?limit={LONGEST_PART}");
        let problem = match self.ask(&query).await? {
            Ok(list) => return Ok(Ok(list)),
            Err(problem) => problem,
        };
        let namespace = &self.client.namespace;
        let of_namespace = self.ask(&format!("namespaces/{}/{query}", part(namespace))).await?;
        if of_namespace.is_ok() {
            print_line(&format!("{jobs} of namespace {namespace} alone: {problem}"));
        }
        Ok(of_namespace)
    }

    /// Adds the jobs that run.
    async fn add_runs(&mut self) -> Result<(), AskFailure> {
        match self.ask_jobs("runs", "jobs that run").await? {
            Ok(list) => drop(self.answers.insert("/runs".to_owned(), list)),
            Err(problem) => print_line(&format!("without runs: {problem}")),
        }
        Ok(())
    }

    /// Adds the jobs that wait.
    async fn add_explanations(&mut self) -> Result<(), AskFailure> {
        let mut list = self.ask_jobs("explanations", "jobs").await??;
        for (number, item) in items(&mut list).iter_mut().take(MOST_EXPLAINED).enumerate() {
            let path = explanation_path(item, number < MOST_STARTS);
            // One that has started meanwhile stays as it was listed.
            if let Ok(whole) = self.ask(&path).await? {
                *item = whole;
            }
        }
        self.answers.insert("/explanations".to_owned(), list);
        Ok(())
    }

    /// Adds the lines of the queues in which something waits.
    async fn add_lines(&mut self) -> Result<(), AskFailure> {
        let Some(queues) = self.answers.get("/queues") else { return Ok(()) };
        let queues = queues["items"].as_array().map_or(&[][..], Vec::as_slice);
        let waiting = queues.iter().filter(|queue| queue["waiting"].as_u64() != Some(0));
        let names = waiting.filter_map(|queue| queue["name"].as_str()).map(part);
        let names: Vec<String> = names.take(MOST_LINES).collect();
        for name in names {
            self.add(&format!("queues/{name}/line?limit={LONGEST_PART}")).await?;
        }
        Ok(())
    }

    /// Adds all nodes as one list, the first ones with their jobs.
    async fn add_nodes(&mut self) -> Result<(), AskFailure> {
        let place = |offset: usize| format!("nodes?limit={LONGEST_PART}&offset={offset}");
        let mut all = match self.ask(&place(0)).await? {
            Ok(list) => list,
            Err(problem) => {
                print_line(&format!("without nodes: {problem}"));
                return Ok(());
            }
        };
        let mut n_listed = items(&mut all).len();
        while 0 < n_listed && n_listed.is_multiple_of(LONGEST_PART) {
            let Ok(mut list) = self.ask(&place(n_listed)).await? else { break };
            let more = std::mem::take(items(&mut list));
            if more.is_empty() {
                break;
            }
            n_listed += more.len();
            items(&mut all).extend(more);
        }
        for item in items(&mut all).iter_mut().take(MOST_NODES) {
            let name = part(item["name"].as_str().unwrap_or_default());
            if let Ok(whole) = self.ask(&format!("nodes/{name}")).await? {
                *item = whole;
            }
        }
        self.answers.insert("/nodes".to_owned(), all);
        Ok(())
    }

    /// Adds the keys of labels, by which the page groups nodes. They are left out where not all nodes have their
    /// labels: the groups would be wrong.
    async fn add_node_labels(&mut self) -> Result<(), AskFailure> {
        let nodes = self.answers.get("/nodes").and_then(|list| list["items"].as_array());
        match nodes.map_or(0, Vec::len) {
            0..=MOST_NODES => self.add("nodelabels").await,
            n_nodes => {
                print_line(&format!("without nodelabels: more than {MOST_NODES} nodes: {n_nodes}"));
                Ok(())
            }
        }
    }
}

/// Returns the items of a list. Whatever is no list gets an empty one.
fn items(list: &mut Value) -> &mut Vec<Value> {
    if !list["items"].is_array() {
        *list = serde_json::json!({ "items": [], "total": 0 });
    }
    list["items"].as_array_mut().expect("it was made a list above")
}

/// Returns the path of the whole explanation of a job that is listed.
fn explanation_path(item: &Value, when: bool) -> String {
    let subject = &item["subject"];
    let field = |name: &str| part(subject[name].as_str().unwrap_or_default());
    let kind = if subject["kind"] == "Pod" { "pod" } else { "podgroup" };
    let when = if when { "&when=true" } else { "" };
    format!("namespaces/{}/explanations/{}?kind={kind}{when}", field("namespace"), field("name"))
}
