//! What a watch tells, line by line: an object that is there now or is gone, a version, an error. What comes in
//! bulk is decoded by several tasks, and handed on in its order all the same. Specification: core.md 4.1.

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use crate::lines::{LineBuffer, LineChunk};
use crate::slim::{DecodedObject, Slim};
use crate::source::SourceError;

/// Number of chunks that are decoded at once, at most.
const AT_ONCE: usize = 4;
/// Number of bytes from which a chunk is decoded in a task of its own.
const BULK: usize = 16 * 1024;
/// In the bookmark that ends a streaming list.
const INITIAL_END: &str = "k8s.io/initial-events-end";

pub(crate) type WatchLine = Result<WatchEvent, SourceError>;

/// A line of a watch.
pub(crate) enum WatchEvent {
    Applied(DecodedObject),
    Deleted(DecodedObject),
    Bookmark { seen: String, ends_list: bool },
    Error { code: u16, message: String },
}

fn read<S: Slim>(line: &[u8]) -> WatchLine {
    if let Ok(text) = std::str::from_utf8(line)
        && let Some((label @ ("ADDED" | "MODIFIED" | "DELETED"), object)) = parts(text)
        && let Some(slim) = S::read(object)
    {
        return Ok(event(label, DecodedObject::with_text(slim, object)));
    }
    let whole: Value = serde_json::from_slice(line)?;
    let object = &whole["object"];
    match whole["type"].as_str() {
        Some("ERROR") => Ok(WatchEvent::Error {
            code: object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            message: object["message"].as_str().unwrap_or_default().to_owned(),
        }),
        Some("BOOKMARK") => {
            let metadata = &object["metadata"];
            Ok(WatchEvent::Bookmark {
                seen: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
                ends_list: metadata["annotations"][INITIAL_END].is_string(),
            })
        }
        label => Ok(event(label.unwrap_or(""), DecodedObject::of(S::deserialize(object)?))),
    }
}

fn event(label: &str, object: DecodedObject) -> WatchEvent {
    if label == "DELETED" { WatchEvent::Deleted(object) } else { WatchEvent::Applied(object) }
}

/// Returns the label and the object of a line in the form in which API servers write it. Returns `None` for another
/// form.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    Some((label, rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?))
}

/// The lines of a body as they come, decoded.
pub(crate) fn decoded<S: Slim>(
    pieces: impl Stream<Item = Result<Bytes, kube::Error>>,
    bulk: Handle,
) -> impl Stream<Item = Result<Vec<WatchLine>, SourceError>> {
    let mut lines = LineBuffer::default();
    let chunks = pieces.map_ok(move |piece| lines.split(piece));
    let decode = move |chunk: Result<LineChunk, kube::Error>| {
        let bulk = bulk.clone();
        async move { read_chunk::<S>(chunk?, &bulk).await }
    };
    chunks.map(decode).buffered(AT_ONCE)
}

async fn read_chunk<S: Slim>(
    chunk: LineChunk,
    bulk: &Handle,
) -> Result<Vec<WatchLine>, SourceError> {
    if chunk.len() < BULK {
        return Ok(read_all::<S>(&chunk));
    }
    let task = bulk.spawn(async move { read_all::<S>(&chunk) });
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(lines) => Ok(lines),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The process ends.
        Err(Err(_)) => std::future::pending().await,
    }
}

fn read_all<S: Slim>(chunk: &LineChunk) -> Vec<WatchLine> {
    chunk.lines().map(read::<S>).collect()
}

#[cfg(test)]
mod tests {
    use vc_wire::SlimPod;

    use super::*;

    fn text(lines: impl IntoIterator<Item = WatchLine>) -> Vec<String> {
        let text = |line: WatchLine| match line {
            Ok(WatchEvent::Applied(object)) => {
                format!("+ {:?} {:?}", object.identity, object.version)
            }
            Ok(WatchEvent::Deleted(object)) => {
                format!("- {:?} {:?}", object.identity, object.version)
            }
            Ok(WatchEvent::Bookmark { seen, ends_list }) => format!("{seen} {ends_list}"),
            Ok(WatchEvent::Error { code, message }) => format!("{code} {message}"),
            Err(error) => error.to_string(),
        };
        lines.into_iter().map(text).collect()
    }

    /// The tasks end in no order.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn what_comes_in_bulk_is_handed_on_in_order() {
        let mut body = String::new();
        for number in 0..2000 {
            let label = ["ADDED", "DELETED"][number % 5 / 4];
            let padding = "x".repeat(number * 31 % 1500);
            body.push_str(&match number % 97 {
                13 => "{\"type\":\"ADDED\",\"object\":\n".to_owned(),
                14 => format!(r#"{{"type":"ERROR","object":{{"code":{number}}}}}"#) + "\n",
                _ => {
                    format!(r#"{{"type":"{label}","object":{{"metadata":{{"name":"p{number}","#)
                        + &format!(r#""uid":"{padding}","resourceVersion":"{number}"}}}}}}"#)
                        + "\n"
                }
            });
        }
        let whole = LineBuffer::default().split(body.clone().into());
        let wanted = text(read_all::<SlimPod>(&whole));
        assert_eq!(wanted.len(), 2000);
        for size in [1000, BULK, 70_000] {
            let pieces: Vec<Bytes> =
                body.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let pieces = futures::stream::iter(pieces.into_iter().map(Ok));
            let chunks: Vec<Vec<WatchLine>> =
                decoded::<SlimPod>(pieces, Handle::current()).try_collect().await.unwrap();
            assert_eq!(text(chunks.into_iter().flatten()), wanted, "pieces of {size}");
        }
    }
}
