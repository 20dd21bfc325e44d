//! `vc-scheduler check --scheduler-conf FILE`: what the file means, every warning with its remedy.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use vc_conf::Loaded;
use vc_engine::KNOWN;

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

/// Reads a configuration file as the scheduler does.
///
/// # Errors
/// It is not named, unreadable or invalid.
pub fn load(path: &Path) -> Result<(Loaded, String), LoadError> {
    if path.as_os_str().is_empty() {
        return Err(LoadError::Unnamed);
    }
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| LoadError::Unreadable { path: name.clone(), error })?;
    Ok((vc_conf::parse(&name, &text, &KNOWN)?, text))
}

/// Prints what is in force, or on stderr why nothing is; 1 on any error.
pub fn check(path: &Path, out: &mut impl Write) -> ExitCode {
    let (Loaded { config, mut warnings }, _) = match load(path) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    warnings.extend(vc_engine::Engine::new(Default::default(), &config).1);
    let text = vc_conf::render(&Loaded { config, warnings });
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
