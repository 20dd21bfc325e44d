//! `vc-scheduler check --scheduler-conf FILE`: what the file means, every warning with its remedy.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use vc_conf::Loaded;

use crate::conf::load;

/// Prints what is in force, or on stderr why nothing is; 1 on any error.
pub fn check(path: &Path, out: &mut impl Write) -> ExitCode {
    let Loaded { config, mut warnings } = match load(path).1 {
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
