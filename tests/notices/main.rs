//! `THIRD_PARTY_NOTICES.txt`: every package of the lock file whose code ends in the binaries of a
//! release, with its licence. `make notices` writes the file, this test compares it.
//!
//! A package that offers Apache-2.0 is used under that licence, whose text is the file LICENSE of the
//! project. Of the others, and of code that a package has copied, the texts are in the notices.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod graph;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use graph::Package;

const HEAD: &str = "\
Third-party notices of vc-scheduler

The binaries vc-scheduler, vcsim and kubectl-vc contain the packages below. This file is generated from
Cargo.lock (`make notices`). Packages that offer the Apache License 2.0 are used under it; its text is in the file
LICENSE. The texts of all other licences follow the table.

The binaries also contain the standard library of Rust (MIT OR Apache-2.0, Copyright The Rust Project
contributors), its unwinder (Apache-2.0 WITH LLVM-exception), and the C library musl (MIT, Copyright
2005-2020 Rich Felker, et al.).
";

/// Scripts of the page: name, version, licence and source. Their licences are beside them.
const SCRIPTS: [(&str, &str, &str, &str); 2] = [
    ("lit-html", "3.3.3", "BSD-3-Clause", "https://github.com/lit/lit"),
    ("uPlot", "1.6.32", "MIT", "https://github.com/leeoniya/uPlot"),
];
const SCRIPTS_HEAD: &str = "\nThe page that they serve contains these scripts.\n\n";

/// Text of the licence of a script.
fn script_license(name: &str) -> String {
    let folder = project().join("crates/page/assets/vendor");
    let text = fs::read_to_string(folder.join(format!("{name}.LICENSE"))).unwrap();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file() -> PathBuf {
    project().join("THIRD_PARTY_NOTICES.txt")
}

/// The whole file.
fn notices(packages: &[Package]) -> String {
    let mut page = format!("{HEAD}\n{}", row("Package", "Version", "Licence", "Source"));
    for package in packages {
        page.push_str(&row(&package.name, &package.version, &package.license, &package.source));
    }
    page.push_str(SCRIPTS_HEAD);
    for (name, version, license, source) in SCRIPTS {
        page.push_str(&row(name, version, license, source));
    }
    // Equal texts are printed once.
    let mut users = BTreeMap::<String, BTreeSet<&str>>::new();
    for package in packages {
        for text in texts::of(package) {
            users.entry(text).or_default().insert(&package.name);
        }
    }
    for (name, ..) in SCRIPTS {
        users.entry(script_license(name)).or_default().insert(name);
    }
    let mut sections: Vec<(Vec<&str>, String)> =
        users.into_iter().map(|(text, names)| (names.into_iter().collect(), text)).collect();
    sections.sort();
    for (names, text) in sections {
        writeln!(page, "\n{}\n{}\n\n{text}", "=".repeat(80), names.join(", ")).unwrap();
    }
    page
}

fn row(name: &str, version: &str, license: &str, source: &str) -> String {
    format!("{name:28} {version:24} {license:50} {source}\n")
}

#[test]
fn every_package_of_the_binaries_is_in_the_notices() {
    let packages = graph::packages_of_binaries();
    assert!(100 < packages.len(), "{} packages", packages.len());
    let text = notices(&packages);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(file(), &text).unwrap();
    }
    let there = fs::read_to_string(file()).unwrap_or_default();
    let lists = |package: &&Package| {
        there.contains(&row(&package.name, &package.version, &package.license, &package.source))
    };
    let missing: Vec<String> = packages
        .iter()
        .filter(|package| !lists(package))
        .map(|package| format!("{} {}", package.name, package.version))
        .collect();
    assert!(missing.is_empty(), "`make notices` adds {}", missing.join(", "));
    assert!(there == text, "THIRD_PARTY_NOTICES.txt is not as `make notices` writes it");
}

#[test]
fn scripts_of_the_page_have_the_version_of_the_notices() {
    let vendor = project().join("crates/page/assets/vendor");
    let versions = [
        ("lit-html.js", format!("\"{}\"", SCRIPTS[0].1)),
        ("uPlot.iife.min.js", format!("(v{})", SCRIPTS[1].1)),
    ];
    for (file, version) in versions {
        let text = fs::read_to_string(vendor.join(file)).unwrap();
        assert!(text.contains(&version), "{file} is not {version}");
    }
}

#[test]
fn packages_that_are_linked_are_told_from_others() {
    let names: Vec<String> =
        graph::packages_of_binaries().into_iter().map(|package| package.name).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    // One of each kind: a library, a C library, a crate of the image's features.
    for name in ["tokio", "libmimalloc-sys", "backtrace"] {
        assert!(has(name), "{name}");
    }
    // Of tests, of build scripts, of macros, of other systems, and ours.
    for name in ["proptest", "cc", "serde_derive", "windows-sys", "vc-scheduler"] {
        assert!(!has(name), "{name}");
    }
}
