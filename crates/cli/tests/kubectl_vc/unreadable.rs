//! Files that cannot be read. Specification: answers.md 13 (ANS-88), 16, case 79.

use std::path::Path;

use serde_json::json;

use crate::front::{Front, serve};
use crate::{call, examples, kubeconfig_of_user, text};

const ABSENT: &str = "No such file or directory (os error 2)\n";

/// Asks, and returns what is said of the question, which has no answer.
fn refused(words: &[&str], config: &Path) -> String {
    let called = call(words, config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert_eq!((called.status.code(), out.as_str()), (Some(1), ""), "{words:?}: {said}");
    said
}

#[test]
fn ans_88_files_of_objects_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.tar.gz");
    std::fs::write(&junk, "junk").unwrap();
    let (junk, taint) = (junk.to_str().unwrap(), examples("taint.yaml"));
    let taint = taint.to_str().unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["why", "--from", "missing.yaml"], "cannot read missing.yaml: "),
        (&["queues", "--from", taint, "--from", "missing.yaml"], "cannot read missing.yaml: "),
        (&["why", "--from", taint, "--scheduler-conf", "none.conf"], "cannot read none.conf: "),
        (&["what-if", "--from", taint, "-f", "none.yaml"], "cannot read none.yaml: "),
        (&["what-if", "--from", taint, "--conf", "none.conf"], "cannot read none.conf: "),
        (&["why", "x", "--from", "missing.tar.gz"], "missing.tar.gz: "),
        (&["why", "x", "--from", junk], junk),
    ];
    for (words, expected) in cases {
        let said = refused(words, Path::new("/nonexistent"));
        assert!(said.starts_with(&format!("error: {expected}")), "{words:?}: {said}");
        assert_eq!(said.ends_with(ABSENT), expected != junk, "{words:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_kubeconfig_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = serve(folder.path(), Front::default()).await;
    let absent = folder.path().join("absent");
    let [absent, place] = [&absent, folder.path()].map(|path| path.to_str().unwrap());
    let config = |name: &str, user: serde_json::Value| {
        let path = kubeconfig_of_user(folder.path(), name, &user);
        path.to_str().unwrap().to_owned()
    };
    let no_key = config("no-key", json!({"client-certificate": absent, "client-key": absent}));
    let no_token = config("no-token", json!({"tokenFile": absent}));
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "clusters: [").unwrap();
    let no_authority = folder.path().join("no-authority");
    let text = std::fs::read_to_string(&good).unwrap();
    let server = r#""cluster":{"#;
    assert!(text.contains(server), "{text}");
    let changed = text.replace(server, &format!("{server}\"certificate-authority\":{absent:?},"));
    std::fs::write(&no_authority, changed).unwrap();
    let [broken, no_authority] = [&broken, &no_authority].map(|path| path.to_str().unwrap());
    let cases = [
        (absent, "error: kubeconfig: failed to read kubeconfig from ", "absent"),
        (place, "error: kubeconfig: failed to read kubeconfig from ", "Is a directory"),
        (broken, "error: kubeconfig: failed to parse kubeconfig YAML: ", "unclosed bracket"),
        (no_authority, "error: kubeconfig: failed to load certificate authority: ", "absent"),
        (&*no_key, "error: client: ", "absent"),
        (&*no_token, "error: client: ", "absent"),
    ];
    for (file, expected, detail) in cases {
        // A file that is named is read, whichever way is taken.
        for way in
            [&[][..], &["--service", "a/b"], &["--local"], &["--server", "https://127.0.0.1:1"]]
        {
            let said = refused(&[&["why", "x", "--kubeconfig", file], way].concat(), &good);
            assert!(said.starts_with(expected), "{file} {way:?}: {said}");
            assert!(said.contains(detail) && said.contains("\nhint: check "), "{file}: {said}");
        }
    }
    let said = refused(&["why", "x", "--context", "other"], &good);
    assert!(
        said.starts_with("error: kubeconfig: failed to load current context: other\n"),
        "{said}"
    );
}

#[test]
fn ans_88_an_authority_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let empty = empty.to_str().unwrap();
    let hint = "hint: check --certificate-authority\n";
    for (file, problem) in [("none.pem", ABSENT), (empty, "it has no certificate\n")] {
        let server = ["--server", "https://127.0.0.1:1", "--certificate-authority", file];
        let said = refused(&[&["why", "x"], &server[..]].concat(), Path::new("/nonexistent"));
        assert_eq!(said, format!("error: cannot read {file}: {problem}{hint}"));
    }
}
