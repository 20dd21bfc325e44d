//! Tells the binary which compiler and which target made it (core.md 1.8, `--version`).

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    println!("cargo:rustc-env=VC_RUSTC={}", version.trim().trim_start_matches("rustc "));
    println!("cargo:rerun-if-changed=build.rs");
}
