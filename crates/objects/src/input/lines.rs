//! Files with one JSON object in each line, which are read object by object. Specification: answers.md 13 (ANS-92).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files::{InputError, failure};

/// A file with one JSON object in each line. One of them at a time is in memory.
#[derive(Debug)]
pub struct ObjectLines {
    file: File,
    path: PathBuf,
}

/// Where an object stands in a file of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// Bytes before the line.
    offset: u64,
    n_bytes: usize,
}

impl ObjectLines {
    /// Opens a file.
    ///
    /// # Errors
    /// It does not exist or may not be read.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let file = File::open(path).map_err(|error| failure(path, error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands over each object with its place, in the order of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no JSON.
    pub fn read(&self, take: impl FnMut(LinePlace, Value)) -> Result<(), InputError> {
        self.read_lines(take).map_err(|error| failure(&self.path, error))
    }

    fn read_lines(&self, mut take: impl FnMut(LinePlace, Value)) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(file);
        let (mut line, mut offset) = (Vec::new(), 0);
        loop {
            line.clear();
            let n_bytes = reader.read_until(b'\n', &mut line)?;
            if n_bytes == 0 {
                return Ok(());
            }
            take(LinePlace { offset, n_bytes }, serde_json::from_slice(&line)?);
            offset += n_bytes as u64;
        }
    }

    /// Reads one object again.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn object(&self, place: LinePlace) -> Result<Value, InputError> {
        let read = || -> io::Result<Value> {
            let mut line = vec![0; place.n_bytes];
            self.file.read_exact_at(&mut line, place.offset)?;
            Ok(serde_json::from_slice(&line)?)
        };
        read().map_err(|error| failure(&self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ans_92_objects_are_read_one_by_one_and_again() {
        let path = std::env::temp_dir().join(format!("vc-objects-lines-{}", std::process::id()));
        let expected = [json!({"kind": "Pod", "text": "é\n"}), json!({}), json!({"kind": "Node"})];
        let lines: Vec<String> = expected.iter().map(ToString::to_string).collect();
        // The last line need not end.
        std::fs::write(&path, lines.join("\n")).unwrap();
        let lines = ObjectLines::open(&path).unwrap();
        let read_all = || {
            let mut found = Vec::new();
            lines.read(|place, object| found.push((place, object))).unwrap();
            found
        };
        let found = read_all();
        assert_eq!(found, read_all());
        for ((place, object), expected) in found.into_iter().zip(&expected).rev() {
            assert_eq!((&object, &lines.object(place).unwrap()), (expected, expected));
        }
        std::fs::write(&path, "{}\n{").unwrap();
        let broken = ObjectLines::open(&path).unwrap().read(|_, _| {}).unwrap_err();
        assert!(broken.to_string().starts_with("cannot read "), "{broken}");
        std::fs::remove_file(&path).unwrap();
        assert!(ObjectLines::open(&path).is_err());
    }
}
