//! `kubectl vc bundle`: what the scheduler was given lately, as a file. Specification: answers.md 15.

use std::io::Write;
use std::path::{Path, PathBuf};

use vc_kube::AnswersClient;
use vc_sim::anonymous_bundle::anonymous_archive;
use vc_sim::bundle_objects::archive_with_objects;
use vc_sim::{check_new_file, write_new_file};

use crate::attempt::{AskFailure, print_line};
use crate::output::print;

/// What to do where a file of the name exists.
const HINT: &str = "give another FILE, or - for standard output";

/// Asks for the bundle and writes it with its last state as objects, without names if it is to be anonymized. A file
/// that exists is not overwritten.
///
/// # Errors
/// There is no bundle, or it cannot be written; the text says why.
pub(crate) async fn save(
    client: &AnswersClient,
    file: Option<&Path>,
    cycles: Option<u64>,
    anonymize: bool,
) -> Result<(), AskFailure> {
    if let Some(file) = file.filter(|file| *file != Path::new("-")) {
        check_new_file(file, HINT)?;
    }
    let query = cycles.map_or_else(String::new, |cycles| format!("?cycles={cycles}"));
    let (name, mut contents) = client.file(&format!("bundles/now{query}")).await?;
    if anonymize {
        // Names are replaced in memory, so no file with names is written here. In contrast,
        // `vcsim replay --to-bundle` begins with such a file.
        contents = anonymous_archive(&contents)?.into();
    } else {
        match archive_with_objects(&contents) {
            Ok(archive) => contents = archive.into(),
            // It is kept as it came: one that is asked for later begins later.
            Err(problem) => print_line(&format!("the bundle has no objects.yaml: {problem}")),
        }
    }
    if file == Some(Path::new("-")) {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(&contents).and_then(|()| out.flush());
        return written.map_err(|error| format!("standard output: {error}").into());
    }
    // The name comes from the server: only its last part is used.
    let given = name.as_deref().and_then(|name| Path::new(name).file_name());
    let path = match file {
        Some(file) => file.to_owned(),
        None => PathBuf::from(given.unwrap_or("bundle.tar.gz".as_ref())),
    };
    write_new_file(&path, &contents, HINT)?;
    let place = path.display();
    print(&format!("wrote {place}, {} KiB\n", contents.len().div_ceil(1024)));
    Ok(())
}
