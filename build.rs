//! Tells the binary which compiler and which commit made it (core.md 1.8, `--version`).

use std::path::Path;
use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    println!("cargo:rustc-env=VC_RUSTC={}", version.trim().trim_start_matches("rustc "));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=VC_GIT_SHA");
    // The image's build has no repository and is told.
    if std::env::var_os("VC_GIT_SHA").is_none()
        && let Some(commit) = commit()
    {
        println!("cargo:rustc-env=VC_GIT_SHA={commit}");
    }
}

/// The commit that is checked out. `None` without git, and for sources that are no repository of
/// their own, as from an archive that was unpacked inside of another one.
///
/// The script runs again when another commit is checked out: what names it are files of the
/// repository. Changes that are not committed do not show, because nothing would say when to look.
fn commit() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let same = |path: &Path| path.canonicalize().ok();
    if same(Path::new(&top)) != same(Path::new(&here)) {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = git(&["rev-parse", "--git-path", name])?;
        // A file that is not there would make the script run at each build.
        if Path::new(&file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// The only line that git answers.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
