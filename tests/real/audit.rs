//! What the scheduler asked the API server for, as the server's audit log has it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

use crate::api::{text, until};

/// A request of the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Name of the ServiceAccount that asked.
    pub(crate) account: String,
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With the subresource: `pods/binding`.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What comes after the path.
    pub(crate) query: String,
    /// HTTP status of the answer.
    pub(crate) code: u64,
    /// What was sent.
    pub(crate) body: Value,
}

impl Asked {
    /// `None`: the server was killed while it wrote the line.
    fn read(line: &str) -> Option<Self> {
        let entry: Value = serde_json::from_str(line).ok()?;
        let object = &entry["objectRef"];
        let part = |field: &str| text(&object[field]).to_owned();
        let resource = match text(&object["subresource"]) {
            "" => part("resource"),
            sub => format!("{}/{sub}", part("resource")),
        };
        let user = text(&entry["user"]["username"]);
        Some(Self {
            account: user.rsplit(':').next().unwrap_or_default().to_owned(),
            verb: text(&entry["verb"]).to_owned(),
            group: part("apiGroup"),
            resource,
            namespace: part("namespace"),
            name: part("name"),
            query: text(&entry["requestURI"]).split_once('?').unwrap_or_default().1.to_owned(),
            code: entry["responseStatus"]["code"].as_u64().unwrap_or(0),
            body: entry["requestObject"].clone(),
        })
    }

    pub(crate) fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }

    pub(crate) fn is_binding(&self) -> bool {
        self.is("create", "pods/binding")
    }

    pub(crate) fn is_write(&self) -> bool {
        !["get", "list", "watch", ""].contains(&self.verb.as_str())
    }

    pub(crate) fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// The log from some moment on.
#[derive(Clone)]
pub(crate) struct Audit {
    path: PathBuf,
    from: u64,
}

impl Audit {
    /// From now on. Answers come before their line, so what was asked just now may be included.
    pub(crate) fn from_now(path: PathBuf) -> Self {
        let from = std::fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, from }
    }

    /// All requests that have an answer, in the order of the answers.
    pub(crate) fn all(&self) -> Vec<Asked> {
        let (mut file, mut log) = (File::open(&self.path).unwrap(), String::new());
        file.seek(SeekFrom::Start(self.from)).unwrap();
        file.read_to_string(&mut log).unwrap();
        // The last line may be half written.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().filter_map(Asked::read).collect()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Asked) -> bool) -> usize {
        self.all().iter().filter(|asked| wanted(asked)).count()
    }

    /// How many bindings of each pod the server accepted.
    pub(crate) fn binds(&self) -> BTreeMap<String, usize> {
        let mut binds = BTreeMap::new();
        let bound = |asked: &Asked| asked.is_binding() && asked.is_done();
        for asked in self.all().into_iter().filter(bound) {
            *binds.entry(asked.name).or_default() += 1;
        }
        binds
    }

    /// Waits until there are so many requests like that: what they have done may be seen before
    /// their lines are written. There are no more then.
    pub(crate) async fn comes_to(&self, wanted: usize, like: impl Fn(&Asked) -> bool) {
        let enough = async || (wanted <= self.count(&like)).then_some(());
        until(&format!("{wanted} requests like that"), enough).await;
        assert_eq!(self.count(&like), wanted);
    }

    /// Each of these pods was bound, and only once.
    pub(crate) async fn bound_once<'a>(&self, pods: impl IntoIterator<Item = &'a str>) {
        for pod in pods {
            let of_pod = |asked: &Asked| asked.is_binding() && asked.is_done() && asked.name == pod;
            self.comes_to(1, of_pod).await;
        }
    }
}
