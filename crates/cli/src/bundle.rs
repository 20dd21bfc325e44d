//! `kubectl vc bundle`: what the scheduler was given lately, as a file. Specification: answers.md 15.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use vc_kube::AnswersClient;
use vc_sim::anonymous_bundle::anonymous_archive;

use crate::attempt::AskFailure;
use crate::output::print;

/// Asks for the bundle and writes it, without names if it is to be anonymized. A file that exists is
/// not overwritten.
///
/// # Errors
/// There is no bundle, or it cannot be written; the text says why.
pub(crate) async fn save(
    client: &AnswersClient,
    file: Option<&Path>,
    cycles: Option<u64>,
    anonymize: bool,
) -> Result<(), AskFailure> {
    let query = cycles.map_or_else(String::new, |cycles| format!("?cycles={cycles}"));
    let (name, mut contents) = client.file(&format!("bundles/now{query}")).await?;
    if anonymize {
        // Names are replaced in memory, so no file with names is written here. In contrast,
        // `vcsim replay --to-bundle` begins with such a file.
        contents = anonymous_archive(&contents)?.into();
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
    // Whoever reads it learns the state of the whole cluster.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = created.and_then(|mut file| file.write_all(&contents));
    let place = path.display();
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{place} exists\nhint: give another FILE, or - for standard output")
        }
        _ => format!("{place}: {error}"),
    })?;
    print(&format!("wrote {place}, {} KiB\n", contents.len().div_ceil(1024)));
    Ok(())
}
