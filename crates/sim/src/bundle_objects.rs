//! A bundle with its last state as Kubernetes objects. A scheduler makes bundles without the objects: with 200,000 pods
//! they take half a minute. Specification: answers.md 15 (ANS-103).

use std::panic::{AssertUnwindSafe, catch_unwind};

use vc_bundle::{Bundle, BundleError, CompressedFile, OBJECTS, Replay};
use vc_objects::written::write_objects;

/// Returns an archive of a bundle with its last state as objects.
///
/// # Errors
/// It is no bundle, or it is decided otherwise than it was; the text says why.
pub fn archive_with_objects(contents: &[u8]) -> Result<Vec<u8>, String> {
    new_archive(|| {
        let mut bundle = Bundle::read(contents)?;
        if bundle.manifest().files.contains_key(OBJECTS) {
            return Ok(contents.to_vec());
        }
        add_objects(&mut bundle)?;
        let mut archive = Vec::new();
        bundle.write(&mut archive)?;
        Ok(archive)
    })
}

/// Adds the last state as objects. They have the names of the state.
///
/// # Errors
/// The last state cannot be read, or what follows it is decided otherwise than it was.
pub(crate) fn add_objects(bundle: &mut Bundle) -> Result<(), BundleError> {
    let mut replay = Replay::new(bundle, Some(bundle.manifest().last_cycle))?;
    while let Some(step) = replay.step() {
        if !step.is_same {
            let hint = "`vcsim replay FILE` shows what differs".to_owned();
            return Err(BundleError::Differs { cycle: step.cycle, hint });
        }
    }
    let objects = CompressedFile::new(|out| write_objects(replay.engine().cluster(), out))?;
    bundle.add_objects(objects);
    Ok(())
}

/// Makes an archive of a bundle. Returns a text for people if there is none.
pub(crate) fn new_archive(
    make: impl FnOnce() -> Result<Vec<u8>, BundleError>,
) -> Result<Vec<u8>, String> {
    // A state that was changed by hand may break any rule of the tables.
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(made) => made.map_err(|error| error.to_string()),
        Err(_) => Err("the state of the bundle cannot be replayed".to_owned()),
    }
}
