//! The file of a bundle: a compressed tar archive with a manifest. Nothing is unpacked to disk.
//! Specification: answers.md 15 (ANS-103), 16.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use vc_engine::Checkpoint;

use crate::RecordedInput;
use crate::history::{EncodedCheckpoint, HistoryCopy, Segment, confs_in_force};
use crate::manifest::{FORMAT, KIND, Manifest, NAME, OBJECTS};

/// Why a bundle cannot be written or read. The texts name the file inside of the bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// There is no state from which anything could follow.
    #[error("there is no state yet")]
    Empty,
    /// It cannot be read or written as an archive.
    #[error("no bundle: {0}")]
    Archive(#[from] std::io::Error),
    /// More would have to be kept in memory than any scheduler writes.
    #[error(
        "no bundle: it has more than {mib} MiB\nhint: was it written by --bundle, or by `kubectl vc bundle`?"
    )]
    Large {
        /// The most that is read.
        mib: u64,
    },
    /// It has no manifest, or one that cannot be read.
    #[error("{NAME}: {0}")]
    Manifest(String),
    /// It was written in another format.
    #[error(
        "{NAME}: format {format}, this version reads {FORMAT}\nhint: use vcsim {version}, which wrote it"
    )]
    Format {
        /// Number of the format.
        format: u64,
        /// The version that wrote it.
        version: String,
    },
    /// A file is missing, is not in the manifest, or differs.
    #[error("{name}: {problem}")]
    File {
        /// Name of the file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It is not decided as it was recorded, so nothing can be made of the decisions and later states.
    #[error("cycle {cycle} is decided otherwise than it was\nhint: {hint}")]
    Differs {
        /// The first cycle that differs.
        cycle: u64,
        /// What to do.
        hint: String,
    },
    /// Its copy without names is decided otherwise.
    #[error(
        "cycle {cycle} is decided otherwise without names: {without}, not {with}\n\
         hint: something depends on more than the order of names; share the bundle as it is, or a \
         cycle of it with --to-scenario --anonymize"
    )]
    NamesDecide {
        /// The first cycle that differs.
        cycle: u64,
        /// The first decision that differs, with the names of the copy.
        with: String,
        /// What the copy decides in its place.
        without: String,
    },
    /// The cycle is not in it.
    #[error("cycle {cycle} is not in the bundle: {first}..{last}")]
    Cycle {
        /// The cycle that was asked for.
        cycle: u64,
        /// The first cycle.
        first: u64,
        /// The last cycle.
        last: u64,
    },
}

/// Bytes of all files of a bundle that are read.
const MOST_BYTES: u64 = 4 << 30;

/// Collects the files of a bundle.
pub struct BundleWriter {
    manifest: Manifest,
    files: Vec<(String, Contents)>,
}

/// A file of a bundle that is compressed in memory.
#[derive(Debug)]
pub struct CompressedFile(Vec<u8>);

impl CompressedFile {
    /// Compresses what `write` writes.
    ///
    /// # Errors
    /// `write` fails.
    pub fn new(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<Self> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        write(&mut encoder)?;
        encoder.finish().map(Self)
    }
}

/// The contents of a file. What is compressed in memory is decompressed while it is written.
enum Contents {
    Plain(Vec<u8>),
    Compressed(CompressedFile),
    State(EncodedCheckpoint),
    Inputs(Segment),
}

impl Contents {
    fn reader(&self) -> Box<dyn Read + '_> {
        match self {
            Self::Plain(bytes) => Box::new(&**bytes),
            Self::Compressed(file) => Box::new(GzDecoder::new(&*file.0)),
            Self::State(checkpoint) => Box::new(GzDecoder::new(&**checkpoint.bytes)),
            Self::Inputs(segment) => {
                let blocks: Box<dyn Read> = Box::new(std::io::empty());
                let decoders = segment.blocks.iter().map(|block| GzDecoder::new(&**block));
                let blocks = decoders.fold(blocks, |before, next| Box::new(before.chain(next)));
                Box::new(blocks.chain(&*segment.uncompressed))
            }
        }
    }
}

impl BundleWriter {
    /// Begins with the last `n_cycles` cycles of a history; `None`: all. A few more may be in it,
    /// because it begins with a checkpoint. Each configuration in force is a file `conf/<cycle>.yaml`.
    ///
    /// # Errors
    /// The history is empty.
    pub fn new(history: &HistoryCopy, n_cycles: Option<u64>) -> Result<Self, BundleError> {
        let segments = history.last(n_cycles);
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Err(BundleError::Empty);
        };
        let manifest = Manifest {
            kind: KIND.to_owned(),
            format: FORMAT,
            version: String::new(),
            flags: Vec::new(),
            engine_options: first.checkpoint.as_ref().map(EncodedCheckpoint::options),
            first_cycle: first.cycle,
            last_cycle: last.last_cycle,
            anonymized: false,
            files: BTreeMap::new(),
        };
        let mut files = Vec::new();
        for segment in segments {
            let state = segment.checkpoint.clone().map(Contents::State);
            files.extend(state.map(|state| (state_name(segment.cycle), state)));
            files.push((inputs_name(segment.cycle), Contents::Inputs(segment.clone())));
        }
        for (cycle, conf) in confs_in_force(segments) {
            files.push((conf_name(cycle), Contents::Plain(conf.as_bytes().to_vec())));
        }
        Ok(Self { manifest, files })
    }

    /// Sets the version and the flags of the process.
    pub fn set_process(&mut self, version: &str, flags: Vec<String>) {
        (self.manifest.version, self.manifest.flags) = (version.to_owned(), flags);
    }

    /// Adds a file for people.
    pub fn add(&mut self, name: &str, contents: Vec<u8>) {
        self.files.push((name.to_owned(), Contents::Plain(contents)));
    }

    /// Adds the last state as Kubernetes objects: the file [`OBJECTS`].
    pub fn add_objects(&mut self, objects: CompressedFile) {
        self.files.push((OBJECTS.to_owned(), Contents::Compressed(objects)));
    }

    /// Writes the archive, the manifest first. All times in it are 0, so that equal contents are
    /// equal files.
    ///
    /// # Errors
    /// `out` refuses.
    pub fn write(mut self, out: impl Write) -> Result<(), BundleError> {
        let mut sizes = Vec::new();
        for (name, contents) in &self.files {
            let (sum, size) = sha256(contents.reader())?;
            self.manifest.files.insert(name.clone(), sum);
            sizes.push(size);
        }
        let manifest = serde_json::to_vec_pretty(&self.manifest)
            .map_err(|error| BundleError::Manifest(error.to_string()))?;
        let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
        append(&mut archive, (NAME, manifest.len() as u64), &*manifest)?;
        for ((name, contents), size) in self.files.iter().zip(sizes) {
            append(&mut archive, (name, size), contents.reader())?;
        }
        archive.into_inner()?.finish()?.flush()?;
        Ok(())
    }
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    (name, size): (&str, u64),
    contents: impl Read,
) -> Result<(), BundleError> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_cksum();
    Ok(archive.append_data(&mut header, name, contents)?)
}

/// A bundle in memory. The file [`OBJECTS`] is checked when it is read, and is not kept: it may be larger than all
/// others, and it follows from them.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) manifest: Manifest,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// The last state as objects, if it was made since.
    pub(crate) objects: Option<CompressedFile>,
    /// The last cycles before each list of inputs.
    pub(crate) segments: Vec<u64>,
}

impl Bundle {
    /// Reads a bundle and checks its files against the manifest.
    ///
    /// # Errors
    /// It is no bundle, of another format, damaged, or has more than 4 GiB.
    pub fn read(input: impl Read) -> Result<Self, BundleError> {
        Self::read_at_most(input, MOST_BYTES)
    }

    /// Reads a bundle of at most so many bytes. What a few bytes unpack to may have no end.
    fn read_at_most(input: impl Read, most_bytes: u64) -> Result<Self, BundleError> {
        let (mut files, mut sums) = (BTreeMap::new(), BTreeMap::new());
        let mut archive = tar::Archive::new(MultiGzDecoder::new(input));
        let mut left = most_bytes;
        for entry in archive.entries()? {
            let entry = entry?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut entry = entry.take(left.saturating_add(1));
            let (sum, size) = if name == OBJECTS {
                sha256(entry)?
            } else {
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents)?;
                let checked = sha256(&*contents)?;
                files.insert(name.clone(), contents);
                checked
            };
            left = left.checked_sub(size).ok_or(BundleError::Large { mib: most_bytes >> 20 })?;
            sums.insert(name, sum);
        }
        let manifest = files.remove(NAME).ok_or_else(|| missing(NAME))?;
        let manifest = read_manifest(&manifest)?;
        sums.remove(NAME);
        check(&manifest, &sums)?;
        let number = |name: &String| {
            name.strip_prefix("inputs-")?.strip_suffix(".cbor")?.parse::<u64>().ok()
        };
        let mut segments: Vec<u64> = files.keys().filter_map(number).collect();
        segments.sort_unstable();
        Ok(Self { manifest, files, objects: None, segments })
    }

    /// Writes the bundle as an archive, with the checksums of its files.
    ///
    /// # Errors
    /// `out` refuses, or the bundle was read with objects and they were not made anew.
    pub fn write(self, out: impl Write) -> Result<(), BundleError> {
        let Self { manifest, files, objects, .. } = self;
        if objects.is_none() && manifest.files.contains_key(OBJECTS) {
            let problem = "it has to be made anew".to_owned();
            return Err(BundleError::File { name: OBJECTS.to_owned(), problem });
        }
        let plain = |(name, contents)| (name, Contents::Plain(contents));
        let mut writer = BundleWriter { manifest, files: files.into_iter().map(plain).collect() };
        if let Some(objects) = objects {
            writer.add_objects(objects);
        }
        writer.write(out)
    }

    /// Adds the last state as Kubernetes objects, or replaces it: the file [`OBJECTS`].
    pub fn add_objects(&mut self, objects: CompressedFile) {
        self.objects = Some(objects);
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns a file. Returns `None` if there is none of this name, and of [`OBJECTS`], which is not kept.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(|contents| &**contents)
    }

    /// Returns the last state at or before the end of a cycle; `None`: the first one.
    ///
    /// # Errors
    /// The bundle does not have the cycle, or the state cannot be read.
    pub(crate) fn checkpoint(&self, at: Option<u64>) -> Result<Checkpoint, BundleError> {
        let Manifest { first_cycle: first, last_cycle: last, .. } = self.manifest;
        if let Some(cycle) = at.filter(|at| !(first..=last).contains(at)) {
            return Err(BundleError::Cycle { cycle, first, last });
        }
        let at = at.unwrap_or(first);
        let before = self.segments.iter().rev().filter(|&&cycle| cycle <= at);
        let name = before.map(|&cycle| state_name(cycle)).find(|it| self.files.contains_key(it));
        let name = name.ok_or_else(|| missing(&state_name(first)))?;
        let contents = &*self.files[&name];
        ciborium::from_reader(contents).map_err(|error| self.unreadable(&name, &error))
    }

    pub(crate) fn unreadable(&self, name: &str, error: &dyn std::fmt::Display) -> BundleError {
        let (theirs, own) = (&self.manifest.version, env!("CARGO_PKG_VERSION"));
        let problem = match theirs == own {
            true => error.to_string(),
            false => format!("{error}\nhint: use vcsim {theirs}, which wrote it; this is {own}"),
        };
        BundleError::File { name: name.to_owned(), problem }
    }

    /// Returns the inputs after this cycle, in order.
    ///
    /// # Errors
    /// An input cannot be read.
    pub(crate) fn inputs(&self, after: u64) -> Result<Vec<RecordedInput>, BundleError> {
        let mut inputs = Vec::new();
        for &cycle in self.segments.iter().filter(|&&cycle| after <= cycle) {
            inputs.extend(self.inputs_of_segment(cycle)?);
        }
        Ok(inputs)
    }

    /// Returns the inputs of the segment that begins after this cycle, in order.
    ///
    /// # Errors
    /// An input cannot be read.
    pub(crate) fn inputs_of_segment(&self, cycle: u64) -> Result<Vec<RecordedInput>, BundleError> {
        let mut inputs = Vec::new();
        let name = inputs_name(cycle);
        let mut rest = self.file(&name).unwrap_or_default();
        while !rest.is_empty() {
            let input = ciborium::from_reader(&mut rest);
            inputs.push(input.map_err(|error| self.unreadable(&name, &error))?);
        }
        Ok(inputs)
    }
}

/// Reads the manifest. What every format has is looked at first.
fn read_manifest(text: &[u8]) -> Result<Manifest, BundleError> {
    let wrong = |error: serde_json::Error| BundleError::Manifest(error.to_string());
    let manifest: Value = serde_json::from_slice(text).map_err(wrong)?;
    let word = |name: &str| manifest[name].as_str().unwrap_or_default().to_owned();
    if word("kind") != KIND {
        return Err(BundleError::Manifest(format!("kind {:?}, not {KIND}", word("kind"))));
    }
    let format = manifest["format"].as_u64().unwrap_or_default();
    if format != u64::from(FORMAT) {
        return Err(BundleError::Format { format, version: word("version") });
    }
    serde_json::from_value(manifest).map_err(wrong)
}

/// Compares the checksums of the files that were read with the manifest.
fn check(manifest: &Manifest, sums: &BTreeMap<String, String>) -> Result<(), BundleError> {
    for name in sums.keys() {
        if !manifest.files.contains_key(name) {
            let problem = "not in the manifest".to_owned();
            return Err(BundleError::File { name: name.clone(), problem });
        }
    }
    for (name, expected) in &manifest.files {
        if sums.get(name).ok_or_else(|| missing(name))? != expected {
            let problem = "checksum differs".to_owned();
            return Err(BundleError::File { name: name.clone(), problem });
        }
    }
    Ok(())
}

fn missing(name: &str) -> BundleError {
    BundleError::File { name: name.to_owned(), problem: "missing".to_owned() }
}

pub(crate) fn state_name(cycle: u64) -> String {
    format!("state-{cycle}.cbor")
}

pub(crate) fn inputs_name(cycle: u64) -> String {
    format!("inputs-{cycle}.cbor")
}

/// Returns the name of the configuration that is in force after this cycle.
fn conf_name(cycle: u64) -> String {
    format!("conf/{cycle}.yaml")
}

/// Returns the checksum in hexadecimal digits, and the number of bytes.
fn sha256(mut contents: impl Read) -> Result<(String, u64), BundleError> {
    let (mut sum, mut size) = (Context::new(&SHA256), 0);
    let mut part = vec![0; 64 << 10];
    loop {
        let n_read = contents.read(&mut part)?;
        if n_read == 0 {
            let digits = sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok((digits, size));
        }
        sum.update(&part[..n_read]);
        size += n_read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for &(name, contents) in files {
            append(&mut archive, (name, contents.len() as u64), contents).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn ans_101_a_file_without_end_is_refused() {
        for second in ["b", OBJECTS] {
            let zeros = vec![0; 8 << 20];
            let zeros = archive(&[("a", &zeros[..1 << 20]), (second, &zeros[..])]);
            let refused = |most| Bundle::read_at_most(&*zeros, most).unwrap_err().to_string();
            let expected = "no bundle: it has more than 4 MiB\nhint: was it written by";
            assert!(refused(4 << 20).starts_with(expected), "{}", refused(4 << 20));
            assert_eq!(refused(9 << 20), "manifest.json: missing");
        }
    }

    #[test]
    fn ans_103_objects_are_checked_and_made_anew() {
        let manifest = Manifest {
            kind: KIND.to_owned(),
            format: FORMAT,
            version: String::new(),
            flags: Vec::new(),
            engine_options: None,
            first_cycle: 0,
            last_cycle: 0,
            anonymized: false,
            files: BTreeMap::new(),
        };
        let (files, segments) = (BTreeMap::new(), Vec::new());
        let mut bundle = Bundle { manifest, files, objects: None, segments };
        let objects = || CompressedFile::new(|out| out.write_all(b"kind: Node\n")).unwrap();
        bundle.add_objects(objects());
        let mut written = Vec::new();
        bundle.write(&mut written).unwrap();

        let mut read = Bundle::read(&*written).unwrap();
        assert!(read.manifest().files.contains_key(OBJECTS) && read.file(OBJECTS).is_none());
        // An earlier version writes no options.
        assert_eq!(read.manifest().engine_options, None);
        let manifest = serde_json::to_vec(read.manifest()).unwrap();
        assert!(!String::from_utf8_lossy(&manifest).contains("engineOptions"));
        read.add_objects(objects());
        let mut again = Vec::new();
        read.write(&mut again).unwrap();
        assert!(again == written);
        let lost = Bundle::read(&*written).unwrap().write(std::io::sink()).unwrap_err();
        assert_eq!(lost.to_string(), "objects.yaml: it has to be made anew");

        let other = archive(&[(NAME, &manifest[..]), (OBJECTS, &b"kind: Pod\n"[..])]);
        let refused = Bundle::read(&*other).unwrap_err();
        assert_eq!(refused.to_string(), "objects.yaml: checksum differs");
        let none = archive(&[(NAME, &manifest[..])]);
        assert_eq!(Bundle::read(&*none).unwrap_err().to_string(), "objects.yaml: missing");
    }
}
