//! The texts of licences that a package needs in the notices.

use std::fs;
use std::path::{Path, PathBuf};

use crate::graph::Package;

/// How deep in a package licences are looked for: code that it has copied has them in its folder.
const DEPTH: usize = 4;

const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the \"Software\"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense,
and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.";

/// The texts to print for a package.
pub(crate) fn of(package: &Package) -> Vec<String> {
    let mut files = Vec::new();
    collect(&package.folder, DEPTH, &mut files);
    files.sort();
    let is_apache = offers_apache(&package.license);
    let is_needed = |file: &&PathBuf| is_needed(&package.folder, file, is_apache);
    let mut found: Vec<String> = files.iter().filter(is_needed).map(|file| read(file)).collect();
    if found.is_empty() && !is_apache {
        found.push(without_file(package));
    }
    found
}

/// True if the package can be used under Apache-2.0 alone.
fn offers_apache(license: &str) -> bool {
    let parts = license.split(" AND ");
    parts.map(|part| part.trim_matches(['(', ')'])).all(|part| {
        let mut choices = part.split([' ', '(', ')']);
        choices.any(|choice| choice == "Apache-2.0")
    })
}

/// True if the text of this file has to be in the notices.
fn is_needed(folder: &Path, file: &Path, is_apache: bool) -> bool {
    let name = file.file_name().unwrap().to_string_lossy().to_lowercase();
    let is_nested = file.parent() != Some(folder);
    let is_standard = ["apache", "unlicense"].iter().any(|part| name.contains(part));
    name.starts_with("notice") || !is_standard && (is_nested || !is_apache)
}

/// Files whose names are those of licences.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];
    const CODE: [&str; 3] = [".rs", ".c", ".h"];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().to_lowercase();
        if path.is_dir() {
            if 0 < depth && !["tests", "examples", "benches"].contains(&name.as_str()) {
                collect(&path, depth - 1, found);
            }
        } else if NAMES.iter().any(|prefix| name.starts_with(prefix))
            && !CODE.iter().any(|suffix| name.ends_with(suffix))
        {
            found.push(path);
        }
    }
}

/// The text without spaces at the ends of its lines.
fn read(file: &Path) -> String {
    let text = fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// For a package that has no file with its licence.
fn without_file(package: &Package) -> String {
    assert_eq!(package.license, "MIT", "{} has no file with its licence", package.name);
    format!("MIT License\n\nCopyright (c) {}\n\n{MIT}", package.authors.join(", "))
}

#[test]
fn expressions_offer_apache_or_do_not() {
    for (license, wanted) in [
        ("Apache-2.0", true),
        ("MIT OR Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
        ("(Apache-2.0 OR MIT) AND BSD-3-Clause", false),
        ("MIT", false),
        ("Apache-2.0 AND ISC", false),
    ] {
        assert_eq!(offers_apache(license), wanted, "{license}");
    }
}
