//! Which files are meant by a path.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Input;

/// A path that cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {error}")]
pub struct InputError {
    pub path: String,
    pub error: std::io::Error,
}

/// Reads files, directories (recursively, `*.yaml`, `*.yml`, `*.json`) and `-`, standard input.
///
/// # Errors
/// A file or directory that does not exist or may not be read. Objects that cannot be read are no
/// error; they are listed in the result.
pub fn read(paths: &[PathBuf]) -> Result<Input, InputError> {
    let mut input = Input::default();
    for path in paths {
        if path.as_os_str() == "-" {
            input.add_text(&Arc::from("-"), &standard_input()?);
            continue;
        }
        for file in files(path, &["yaml", "yml", "json"])? {
            let text = text_of(&file)?;
            input.add_text(&Arc::from(file.to_string_lossy().as_ref()), &text);
        }
    }
    Ok(input)
}

/// The scenario files that the paths name: themselves, and `*.yaml` in directories.
///
/// # Errors
/// A path that does not exist or may not be read.
pub fn scenario_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(files(path, &["yaml"])?);
    }
    Ok(found)
}

/// The text of a file.
pub fn text_of(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| failure(path, error))
}

fn standard_input() -> Result<String, InputError> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| failure(Path::new("standard input"), error))?;
    Ok(text)
}

pub(super) fn failure(path: &Path, error: std::io::Error) -> InputError {
    InputError { path: path.display().to_string(), error }
}

/// The file itself, or in a directory those with such an ending, by name.
fn files(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, InputError> {
    let metadata = std::fs::metadata(path).map_err(|error| failure(path, error))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| failure(path, error))? {
        entries.push(entry.map_err(|error| failure(path, error))?.path());
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        let wanted = ending.is_some_and(|ending| endings.contains(&ending));
        // A link to a directory may lead back to its parent.
        let is_directory = entry.is_dir() && !entry.is_symlink();
        if is_directory || (wanted && !entry.is_dir()) {
            found.extend(files(&entry, endings)?);
        }
    }
    Ok(found)
}
