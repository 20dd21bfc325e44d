//! The configuration file: read at the start, read again once a second, in force when it is good
//! and differs. The last good one stays. Specification: core.md 2.6 (C-10).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use vc_conf::{Config, Loaded, Warning};
use vc_engine::{Engine, KNOWN};
use vc_kube::{Incoming, Visit};

use crate::fatal::Fatal;
use crate::flags::Flags;
use crate::meter::Meter;

/// How often the file is read. A mounted ConfigMap changes by a swap of symlinks, which only its
/// content shows reliably.
const PERIOD: Duration = Duration::from_secs(1);

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{path}: {error}\nhint: give a readable file with --scheduler-conf")]
    Unreadable { path: String, error: std::io::Error },
    #[error("no configuration file\nhint: name one with --scheduler-conf")]
    Unnamed,
    #[error(transparent)]
    Invalid(#[from] vc_conf::ConfError),
}

/// The text of the file.
///
/// # Errors
/// It is not named, or unreadable.
pub fn read(path: &Path) -> Result<String, LoadError> {
    if path.as_os_str().is_empty() {
        return Err(LoadError::Unnamed);
    }
    let failed = |error| LoadError::Unreadable { path: path.display().to_string(), error };
    std::fs::read_to_string(path).map_err(failed)
}

/// What the text means.
///
/// # Errors
/// It is invalid.
pub fn parse(path: &Path, text: &str) -> Result<Loaded, LoadError> {
    Ok(vc_conf::parse(&path.display().to_string(), text, &KNOWN)?)
}

/// What is in force at the start.
#[derive(Debug)]
pub struct Start {
    pub config: Config,
    pub warnings: Vec<Warning>,
    /// The file, as far as it could be read: only a change of it matters from now on.
    text: Option<String>,
}

/// Reads the file; a bad one means the built-in configuration unless that is forbidden.
///
/// # Errors
/// The file is bad and the default is not wanted.
pub fn start(flags: &Flags) -> Result<Start, Fatal> {
    let path = &flags.scheduler_conf;
    let text = read(path);
    let loaded = match &text {
        Ok(text) => parse(path, text).inspect(|_| log_text(text)),
        Err(_) => Err(LoadError::Unnamed),
    };
    let error = match (loaded, text) {
        (Ok(Loaded { config, warnings }), text) => {
            return Ok(Start { config, warnings, text: text.ok() });
        }
        (_, Err(error)) if flags.strict_conf => return Err(error.into()),
        (Err(error), Ok(_)) if flags.strict_conf => return Err(error.into()),
        (_, Err(error)) => (error, None),
        (Err(error), Ok(text)) => (error, Some(text)),
    };
    let (error, text) = error;
    tracing::error!("the built-in configuration is in force: {error}");
    let built_in = vc_conf::parse("built-in configuration", vc_conf::BUILT_IN, &KNOWN);
    let Loaded { config, warnings } = built_in.map_err(LoadError::from)?;
    Ok(Start { config, warnings, text })
}
