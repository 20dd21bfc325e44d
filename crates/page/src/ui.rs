//! The page: its files with a hash of the content in their names, and the same page as a report of
//! one file. Specification: answers.md 14 (ANS-93, ANS-94, ANS-96).
//!
//! A report joins the modules into one script. So in all modules of `assets` an import is named,
//! without `as`, a line of its own; `export` stands before a declaration; a name at the top level of
//! a module is in no other module. A test checks it.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Digest, SHA256, digest};
use serde_json::{Map, Value};

/// Content-Security-Policy of the page: nothing inline, nothing from another origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// Name of the file that names the others.
const INDEX_NAME: &str = "index.html";
/// Bytes of the hash in a name. Each is two digits.
const HASH_BYTES: usize = 8;

/// A file of `assets`.
struct SourceFile {
    name: &'static str,
    text: &'static str,
}

macro_rules! source_files {
    ($($name:literal),* $(,)?) => {
        &[$(SourceFile { name: $name, text: include_str!(concat!("../assets/", $name)) }),*]
    };
}

/// The files of the page. A file names only files before it.
#[rustfmt::skip] // an order is read by its rows
const SOURCE_FILES: &[SourceFile] = source_files![
    "vendor/uPlot.min.css",
    "app.css",
    "vendor/uPlot.iife.min.js",
    "vendor/lit-html.js",
    "format.js",
    "answers.js",
    "parts.js",
    "summary.js",
    "queues.js",
    "jobs.js",
    "whatif.js",
    "job.js",
    "nodes.js",
    "timeline.js",
    "app.js",
    "index.html",
];

/// A file as it is served.
#[derive(Debug)]
pub(crate) struct PageFile {
    /// Path below `/ui/`.
    pub(crate) path: String,
    /// MIME type.
    pub(crate) content_type: &'static str,
    /// Content, in which other files have the names that they are served under.
    pub(crate) text: String,
}

static PAGE_FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| hash_names(SOURCE_FILES));

/// Returns the files of the page as they are served. They are made once.
pub(crate) fn files() -> &'static [PageFile] {
    &PAGE_FILES
}

/// Returns the routes below `/ui/`. They have no data of the cluster, so anybody may ask.
pub fn page_routes() -> Router {
    // A relative address: the page may be behind a proxy that puts a path before it.
    let slash = [(LOCATION, HeaderValue::from_static("ui/"))];
    Router::new()
        .route("/ui", get(move || async move { (StatusCode::TEMPORARY_REDIRECT, slash) }))
        .route("/ui/", get(|| async { respond(INDEX_NAME) }))
        .route("/ui/{*path}", get(|Path(path): Path<String>| async move { respond(&path) }))
}

/// Returns the response to a path below `/ui/`.
fn respond(path: &str) -> Response {
    let nosniff = (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let Some(file) = files().iter().find(|file| file.path == path) else {
        return (StatusCode::NOT_FOUND, [nosniff], "no such file of the page\n").into_response();
    };
    let is_index = file.path == INDEX_NAME;
    // The content of a name with a hash never changes.
    let caching = if is_index { "no-store" } else { "public, max-age=31536000, immutable" };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(file.content_type)),
        (CACHE_CONTROL, HeaderValue::from_static(caching)),
        nosniff,
    ];
    let mut response = (headers, file.text.as_str()).into_response();
    if is_index {
        let policy = HeaderValue::from_static(POLICY);
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Puts the hash of each file into its name, and the new names into the files that name it.
fn hash_names(sources: &[SourceFile]) -> Vec<PageFile> {
    let mut renamed: Vec<(&str, String)> = Vec::new();
    let mut files = Vec::new();
    for source in sources {
        let mut text = source.text.to_owned();
        for (name, path) in &renamed {
            for quote in ['\'', '"'] {
                let (old, new) =
                    (format!("{quote}./{name}{quote}"), format!("{quote}./{path}{quote}"));
                text = text.replace(&old, &new);
            }
        }
        let path = match source.name {
            INDEX_NAME => INDEX_NAME.to_owned(),
            name => hashed_name(name, &text),
        };
        renamed.push((source.name, path.clone()));
        files.push(PageFile { path, content_type: content_type(source.name), text });
    }
    files
}

/// Returns `app.<hash>.js` for `app.js`.
fn hashed_name(name: &str, text: &str) -> String {
    let hash = hex(&sha256(text).as_ref()[..HASH_BYTES]);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "txt"));
    format!("{stem}.{hash}.{extension}")
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "html")) => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

fn sha256(text: &str) -> Digest {
    digest(&SHA256, text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _infallible = write!(out, "{byte:02x}");
        out
    })
}

/// Returns the page as one file with its answers: no request leaves it. `data` has an answer for each
/// path below the base of the API, without its query, such as `/queues`. A list serves every part,
/// filter and item of itself.
pub fn report_html(data: &Map<String, Value>) -> String {
    let data = escape_data(&serde_json::to_string(data).unwrap_or_default());
    let styles: Vec<&str> =
        SOURCE_FILES.iter().filter(|it| is_style(it)).map(|it| it.text).collect();
    let styles = styles.join("\n");
    let (chart, modules) = (source_text("vendor/uPlot.iife.min.js"), joined_modules());
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        source_hash(chart),
        source_hash(&modules),
        source_hash(&styles),
    );
    let head = format!(
        "<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <style>{styles}</style>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{chart}</script>\n\
         <script type=\"module\">{modules}</script>",
    );
    let is_kept = |line: &&str| !line.contains("\"stylesheet\"") && !line.contains("<script");
    let index = source_text(INDEX_NAME).lines().filter(is_kept);
    let lines = index.map(|line| if line == "<meta charset=\"utf-8\">" { &*head } else { line });
    lines.fold(String::new(), |page, line| page + line + "\n")
}

fn is_style(file: &SourceFile) -> bool {
    file.name.ends_with(".css")
}

/// True for the modules of the page itself.
fn is_own_module(file: &SourceFile) -> bool {
    file.name.ends_with(".js") && !file.name.starts_with("vendor/")
}

fn source_text(name: &str) -> &'static str {
    SOURCE_FILES.iter().find(|file| file.name == name).map_or("", |file| file.text)
}

/// Returns JSON that cannot end the element that it is in, nor begin a comment. `<` is only in strings.
fn escape_data(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Returns what a policy calls an inline script or style with this text.
fn source_hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(sha256(text).as_ref()))
}

/// Returns lit-html and the modules of the page as one script without imports.
fn joined_modules() -> String {
    let lit = closed_module(source_text("vendor/lit-html.js")).unwrap_or_default();
    let modules = SOURCE_FILES.iter().filter(|file| is_own_module(file));
    modules.fold(lit, |script, file| script + &without_imports(file.text))
}

/// Returns a module without its imports and exports.
fn without_imports(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    let lines = lines.map(|line| line.strip_prefix("export ").unwrap_or(line));
    lines.fold(String::new(), |script, line| script + line + "\n")
}

/// Returns a module, whose exports are one list at its end, as a constant for each exported name. Its
/// other names stay its own. Returns `None` if it has no such list.
fn closed_module(module: &str) -> Option<String> {
    let (body, rest) = module.rsplit_once("export{")?;
    let (exports, _) = rest.split_once('}')?;
    let pairs = exports.split(',').filter_map(|export| export.split_once(" as "));
    let pairs: Vec<(&str, &str)> = pairs.filter(|(_, name)| !name.starts_with('_')).collect();
    let names: Vec<&str> = pairs.iter().map(|(_, name)| *name).collect();
    let fields: Vec<String> = pairs.iter().map(|(local, name)| format!("{name}:{local}")).collect();
    let (names, fields) = (names.join(","), fields.join(","));
    Some(format!("const {{{names}}}=(()=>{{{body}return{{{fields}}}}})();\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use axum::body::{Body, to_bytes};
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;

    /// Own code at most.
    const MOST_BYTES: usize = 90 * 1024;

    fn assets() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets")
    }

    async fn ask(path: &str) -> (StatusCode, axum::http::HeaderMap, String) {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = page_routes().oneshot(request).await.unwrap().into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Returns the names that a module imports, each with the file that it is from.
    fn imports(module: &str) -> Vec<(&str, &str)> {
        let lines = module.lines().filter(|line| line.starts_with("import"));
        lines
            .flat_map(|line| {
                let rest = line.strip_prefix("import { ").unwrap_or_else(|| panic!("{line}"));
                let (names, file) = rest.split_once(" } from './").unwrap();
                let file = file.strip_suffix("';").unwrap();
                names.split(", ").map(move |name| (name, file))
            })
            .collect()
    }

    /// Returns the names that a module declares at its top level, and whether each is exported.
    fn declared(module: &str) -> Vec<(&str, bool)> {
        let words = ["async function ", "function ", "const ", "let ", "class "];
        module
            .lines()
            .filter_map(|line| {
                let (is_exported, line) = match line.strip_prefix("export ") {
                    Some(line) => (true, line),
                    None => (false, line),
                };
                let rest = words.iter().find_map(|word| line.strip_prefix(word));
                assert!(rest.is_some() || !is_exported, "export before a declaration: {line}");
                let name = rest?.split(|it: char| !it.is_alphanumeric() && it != '_').next();
                name.map(|name| (name, is_exported))
            })
            .collect()
    }

    #[test]
    fn ans_93_names_have_the_hash_of_what_is_served() {
        for file in files() {
            let source = file.path.rsplit('/').next().unwrap();
            if file.path != INDEX_NAME {
                let hash = hex(&sha256(&file.text).as_ref()[..HASH_BYTES]);
                assert!(source.contains(&format!(".{hash}.")), "{source}");
            }
            for name in SOURCE_FILES.iter().map(|it| it.name) {
                for quote in ['\'', '"'] {
                    assert!(
                        !file.text.contains(&format!("{quote}./{name}{quote}")),
                        "{source}: {name}"
                    );
                }
            }
        }
        let sources = [
            SourceFile { name: "a.js", text: "export const a = 1;" },
            SourceFile { name: "b.js", text: "import { a } from './a.js';" },
        ];
        let changed = [
            SourceFile { name: "a.js", text: "export const a = 2;" },
            SourceFile { name: "b.js", text: "import { a } from './a.js';" },
        ];
        let (before, after) = (hash_names(&sources), hash_names(&changed));
        assert_ne!(before[1].path, after[1].path, "a name changes with what the file imports");
        assert_eq!(before[1].text, format!("import {{ a }} from './{}';", before[0].path));
    }

    #[tokio::test]
    async fn ans_93_files_are_kept_and_the_index_is_not() {
        let app =
            files().iter().find(|file| file.path.starts_with("app.") && file.path.ends_with(".js"));
        let app = format!("/ui/{}", app.unwrap().path);
        let cases = [
            ("/ui/", 200, "no-store", "text/html; charset=utf-8"),
            ("/ui/index.html", 200, "no-store", "text/html; charset=utf-8"),
            (&*app, 200, "public, max-age=31536000, immutable", "text/javascript; charset=utf-8"),
            ("/ui/app.js", 404, "", "text/plain; charset=utf-8"),
            ("/ui/../Cargo.toml", 404, "", "text/plain; charset=utf-8"),
        ];
        for (path, code, caching, content_type) in cases {
            let (status, headers, text) = ask(path).await;
            let header = |name| headers.get(name).map_or("", |it| it.to_str().unwrap());
            assert_eq!((status.as_u16(), header(CACHE_CONTROL)), (code, caching), "{path}");
            assert_eq!(header(CONTENT_TYPE), content_type, "{path}");
            assert_eq!(header(X_CONTENT_TYPE_OPTIONS), "nosniff", "{path}");
            let policy = if text.starts_with("<!doctype") { POLICY } else { "" };
            assert_eq!(header(CONTENT_SECURITY_POLICY), policy, "{path}");
        }
        let (status, headers, _) = ask("/ui").await;
        assert_eq!((status.as_u16(), headers[LOCATION].to_str().unwrap()), (307, "ui/"));
    }

    #[test]
    fn ans_93_own_code_is_small_and_all_of_it_is_embedded() {
        let own = SOURCE_FILES.iter().filter(|file| !file.name.starts_with("vendor/"));
        let size: usize = own.clone().map(|file| file.text.len()).sum();
        assert!(size <= MOST_BYTES, "{size} bytes of {MOST_BYTES}");
        let embedded: BTreeSet<&str> = own.map(|file| file.name).collect();
        for entry in fs::read_dir(assets()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            assert!(entry.path().is_dir() || embedded.contains(&*name), "{name} is not embedded");
        }
        for file in SOURCE_FILES.iter().filter(|file| !file.name.starts_with("vendor/")) {
            assert!(file.text.lines().count() < 600, "{}", file.name);
        }
    }

    #[test]
    fn ans_93_vendored_files_are_what_they_were_and_have_licences() {
        let sums = fs::read_to_string(assets().join("vendor/CHECKSUMS")).unwrap();
        let mut listed = BTreeSet::from(["CHECKSUMS".to_owned()]);
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let text = fs::read_to_string(assets().join("vendor").join(name)).unwrap();
            assert_eq!(hex(sha256(&text).as_ref()), sum, "{name}");
            listed.insert(name.to_owned());
        }
        let found = fs::read_dir(assets().join("vendor")).unwrap();
        let found = found.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(found.collect::<BTreeSet<_>>(), listed);
        assert!(["lit-html.LICENSE", "uPlot.LICENSE"].iter().all(|name| listed.contains(*name)));
    }

    /// So nobody has to be asked whether they prefer reduced motion.
    #[test]
    fn ans_89_nothing_moves_by_itself() {
        for file in SOURCE_FILES.iter().filter(|it| !it.name.starts_with("vendor/")) {
            for moving in
                ["transition", "animation", "@keyframes", "smooth", "requestAnimationFrame"]
            {
                assert!(!file.text.contains(moving), "{}: {moving}", file.name);
            }
        }
    }

    #[test]
    fn ans_94_nothing_is_inline() {
        let own = SOURCE_FILES.iter().filter(|it| is_own_module(it) || it.name == INDEX_NAME);
        for file in own {
            for forbidden in
                [" style=", "<style", "javascript:", "eval(", "new Function", "innerHTML"]
            {
                assert!(!file.text.contains(forbidden), "{}: {forbidden}", file.name);
            }
            for (at, _) in file.text.match_indices(" on") {
                let rest = &file.text[at + 3..];
                let end = rest.find(|it: char| !it.is_ascii_lowercase()).unwrap_or(rest.len());
                let is_handler =
                    0 < end && ["=\"", "='", "=$"].iter().any(|it| rest[end..].starts_with(it));
                assert!(!is_handler, "{}: on{}", file.name, &rest[..end]);
            }
        }
        let scripts = source_text(INDEX_NAME).matches("<script");
        assert_eq!(scripts.count(), source_text(INDEX_NAME).matches("<script src=\"./").count());
    }

    #[test]
    fn ans_96_modules_can_be_joined() {
        let lit = closed_module(source_text("vendor/lit-html.js")).unwrap();
        let (names, _) = lit.strip_prefix("const {").unwrap().split_once('}').unwrap();
        let lit: Vec<&str> = names.split(',').collect();
        assert!(["html", "svg", "nothing", "render"].iter().all(|name| lit.contains(name)));
        let mut exported: Vec<(&str, &str)> =
            lit.iter().map(|name| (*name, "vendor/lit-html.js")).collect();
        let mut all: BTreeSet<&str> = lit.iter().copied().chain(["uPlot"]).collect();
        for file in SOURCE_FILES.iter().filter(|file| is_own_module(file)) {
            for import in imports(file.text) {
                assert!(exported.contains(&import), "{}: {import:?} is not before it", file.name);
            }
            for (name, is_exported) in declared(file.text) {
                assert!(!name.is_empty() && all.insert(name), "{}: {name} twice", file.name);
                if is_exported {
                    exported.push((name, file.name));
                }
            }
        }
        let script = joined_modules();
        assert!(
            !script.lines().any(|line| line.starts_with("import") || line.starts_with("export"))
        );
    }

    #[test]
    fn ans_96_a_report_is_one_file_with_its_policy() {
        let evil = "</script><script>alert(1)</script><!--";
        let data = json!({ "/queues": { "items": [{ "name": evil }] } });
        let page = report_html(data.as_object().unwrap());
        assert!(!page.contains(evil) && page.contains("\\u003c/script>\\u003cscript>alert(1)"));
        assert_eq!(page.matches("</script>").count(), 3);
        assert_eq!((page.matches("<style>").count(), page.matches("</style>").count()), (1, 1));
        assert!(!page.contains(" src=\"./") && !page.contains("href=\"./") && !page.contains('\r'));
        let (_, policy) = page.split_once("content=\"default-src 'none'; script-src ").unwrap();
        for (begin, end) in [
            ("<script>", "</script>"),
            ("<script type=\"module\">", "</script>"),
            ("<style>", "</style>"),
        ] {
            let (_, rest) = page.split_once(begin).unwrap();
            let (text, _) = rest.split_once(end).unwrap();
            assert!(policy.contains(&source_hash(text)), "{begin}");
        }
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let found: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(found, data);
    }

    #[test]
    fn ans_94_a_policy_names_what_browsers_compute() {
        // The hash of the empty text, as browsers print it.
        assert_eq!(source_hash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
    }
}
