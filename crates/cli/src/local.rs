//! Questions about a cluster without a scheduler that answers: its objects are listed, and the same engine
//! decides. Specification: answers.md 13 (ANS-91, ANS-92).

use std::io::{self, BufWriter, Write};

use serde_json::Value;
use tempfile::NamedTempFile;
use vc_kube::ListedObjects;
use vc_text::escape_lines;

use crate::args::Arguments;
use crate::{Answer, files};

/// Printed before an answer of `--local`.
const UNKNOWN: &str = "asked without the scheduler: not known are its flags, what it has decided and not written yet, \
    and what it alone remembers: room that it holds after evictions, learned run times, the timeline, the usage of \
    accounts, the load of nodes";

/// Lists, answers, and prints the answer.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask(mut arguments: Arguments) -> Result<Answer, String> {
    if arguments.verb.is_of_process() {
        return Err(files::of_process("--local"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let places = arguments.configmap.clone().map_or_else(usual_config_maps, |given| vec![given]);
    let access = arguments.access();
    // The files are gone when the answer is there; nobody else can read them.
    let mut objects = empty_file("objects", ".json")?;
    let (listed, conf) = {
        let mut out = BufWriter::new(objects.as_file_mut());
        let namespace = arguments.namespace.as_deref();
        let read = ListedObjects::read(&access, namespace, &places, &mut out);
        let read = runtime.block_on(read).map_err(|error| error.to_string())?;
        out.flush().map_err(unwritable)?;
        read
    };
    eprintln!("{UNKNOWN}");
    for gap in &listed.gaps {
        eprintln!("{}", escape_lines(gap));
    }
    if arguments.namespace.is_none() && !arguments.all_namespaces {
        arguments.namespace = Some(listed.namespace);
    }
    arguments.from = vec![objects.path().to_owned()];
    let conf = match arguments.scheduler_conf.is_some() {
        true => None,
        false => configuration(conf, &places)?,
    };
    if let Some(conf) = &conf {
        arguments.scheduler_conf = Some(conf.path().to_owned());
    }
    files::ask_files(&arguments)
}

/// Returns the ConfigMaps of this scheduler's chart and of Volcano's.
fn usual_config_maps() -> Vec<(String, String)> {
    let named = ["vc-scheduler", "volcano-scheduler-configmap"];
    named.map(|name| ("volcano-system".to_owned(), name.to_owned())).to_vec()
}

/// Returns the configuration of the ConfigMap as a file. Returns `None` if there is none, which the user
/// is told.
fn configuration(
    values: Result<Value, String>,
    places: &[(String, String)],
) -> Result<Option<NamedTempFile>, String> {
    let names = places.iter().map(|(namespace, name)| format!("{namespace}/{name}"));
    let place = format!("ConfigMap {}", names.collect::<Vec<String>>().join(" and "));
    let problem = match values {
        Ok(values) => match values["volcano-scheduler.conf"].as_str() {
            Some(text) => return file("volcano-scheduler", ".conf", text).map(Some),
            None => "it has no volcano-scheduler.conf".to_owned(),
        },
        Err(problem) => problem,
    };
    eprintln!(
        "{}",
        escape_lines(&format!("the configuration is that of the chart: {place}: {problem}"))
    );
    eprintln!("hint: give --configmap NAMESPACE/NAME or --scheduler-conf FILE");
    Ok(None)
}

/// Returns a temporary file with a text.
fn file(name: &str, suffix: &str, text: &str) -> Result<NamedTempFile, String> {
    let mut file = empty_file(name, suffix)?;
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(unwritable)?;
    Ok(file)
}

/// Returns a temporary file.
fn empty_file(name: &str, suffix: &str) -> Result<NamedTempFile, String> {
    tempfile::Builder::new().prefix(name).suffix(suffix).tempfile().map_err(unwritable)
}

/// Says that a temporary file cannot be written.
fn unwritable(error: io::Error) -> String {
    format!("temporary file: {error}")
}
