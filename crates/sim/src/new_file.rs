//! Files that are made for the user alone.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file that only the user can read. `hint` says what to do if one of this name exists.
///
/// # Errors
/// A file of this name exists, or it cannot be written. The text names it.
pub fn write_new_file(path: &Path, contents: &[u8], hint: &str) -> Result<(), String> {
    // Whoever reads it learns the state of the whole cluster.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = created.and_then(|mut file| file.write_all(contents));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path, hint),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Refuses a file that [`write_new_file`] would refuse because one of this name exists. A long run then does not end with
/// this error.
///
/// # Errors
/// A file of this name exists. The text names it.
pub fn check_new_file(path: &Path, hint: &str) -> Result<(), String> {
    // A link that leads nowhere is in the way, too.
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path, hint)),
        Err(_) => Ok(()),
    }
}

fn exists(path: &Path, hint: &str) -> String {
    format!("{} exists\nhint: {hint}", path.display())
}
