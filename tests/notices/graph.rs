//! Which packages end in the binaries: what `cargo metadata` resolves for the targets of a
//! release, from the programs on, without build scripts and procedural macros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::project;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
/// Packages with the programs.
const PROGRAMS: [&str; 3] = ["vc-scheduler", "vc-sim", "vc-cli"];

/// A package of somebody else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression.
    pub(crate) license: String,
    /// Address of its repository, or of its page.
    pub(crate) source: String,
    pub(crate) authors: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// All packages of others in the binaries of all targets, by name and version.
pub(crate) fn packages_of_binaries() -> Vec<Package> {
    let mut found = BTreeSet::new();
    for target in TARGETS {
        let metadata = metadata(target);
        let packages: BTreeMap<&str, &Value> =
            list(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
        let linked = linked(&metadata, &packages);
        let others = linked.into_iter().map(|id| packages[id]);
        found.extend(others.filter(|package| !package["source"].is_null()).map(package));
    }
    found.into_iter().collect()
}

/// What cargo says of the workspace. The network is asked only where a package was never fetched.
fn metadata(target: &str) -> Value {
    let ask = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform"]);
        command.arg(target).args(more);
        command.current_dir(project()).output().unwrap()
    };
    let offline = ask(&["--offline"]);
    let output = if offline.status.success() { offline } else { ask(&[]) };
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "cargo metadata: {complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Identifiers of the packages that the programs are linked of.
fn linked<'a>(metadata: &'a Value, packages: &BTreeMap<&'a str, &'a Value>) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let is_macro = |id: &str| {
        let kinds = list(&packages[id]["targets"]).flat_map(|target| list(&target["kind"]));
        kinds.into_iter().any(|kind| kind == "proc-macro")
    };
    let programs = packages.iter().filter(|(_, package)| {
        package["source"].is_null() && PROGRAMS.contains(&text(&package["name"]))
    });
    let mut open: Vec<&str> = programs.map(|(id, _)| *id).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !is_macro(id) && found.insert(id) {
            let is_normal = |dependency: &&Value| {
                list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
            };
            let dependencies = list(&nodes[id]["deps"]).filter(is_normal);
            open.extend(dependencies.map(|dependency| text(&dependency["pkg"])));
        }
    }
    found
}

fn package(package: &Value) -> Package {
    let name = text(&package["name"]).to_owned();
    let page = format!("https://crates.io/crates/{name}");
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    Package {
        version: text(&package["version"]).to_owned(),
        license: text(&package["license"]).replace('/', " OR "),
        source: package["repository"].as_str().map_or(page, str::to_owned),
        authors: list(&package["authors"]).map(|author| text(author).to_owned()).collect(),
        folder: manifest.parent().unwrap().to_owned(),
        name,
    }
}
