//! Answers of the server on their way to a process: refusals in their place, and bodies that come late
//! or end in the middle.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, header};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tower::BoxError;

/// Code, reason and message.
pub(super) type Refusal = (u16, &'static str, Cow<'static, str>);

/// Returns a refusal as the server words it.
pub(super) fn refusal(
    (code, reason, message): Refusal,
    retry_after: Option<u64>,
) -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut answer = Response::builder().status(code).header("content-type", "application/json");
    if code == 429
        && let Some(seconds) = retry_after
    {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    answer.body(Body::from(status.to_string())).unwrap_or_default()
}

/// Search for the end of a list in the pieces of its body: the end of the last page, or the bookmark of a streaming
/// list.
#[derive(Debug, Default)]
pub(super) struct EndOfList {
    is_last_page: bool,
}

impl EndOfList {
    /// True if the list has come to its end with this piece.
    pub(super) fn comes_with(&mut self, piece: &Bytes) -> bool {
        let text = String::from_utf8_lossy(piece);
        let head = text.split("\"items\":").next().unwrap_or_default();
        self.is_last_page |= head.starts_with("{\"kind\":\"")
            && head.len() < text.len()
            && !head.contains("\"continue\"");
        text.contains("k8s.io/initial-events-end") || (self.is_last_page && text == "]}")
    }
}

/// The lines of a piece, each with its end.
fn lines(piece: &Bytes) -> Vec<Bytes> {
    let lines = piece.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| piece.slice_ref(line)).collect()
}

/// How the body of a list or a watch comes.
pub(super) struct Passing {
    /// It ends after this time.
    pub(super) cut_after: Option<Duration>,
    /// It ends after so many lines.
    pub(super) most_lines: Option<usize>,
    /// The connection is lost after so many bytes.
    pub(super) most_bytes: Option<usize>,
    /// Each piece comes so much later.
    pub(super) lag: Duration,
    /// It ends when this does.
    pub(super) cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Is told each piece that comes.
    pub(super) listed: Box<dyn FnMut(&Bytes) + Send>,
}

impl Passing {
    /// Returns the answer as it comes.
    pub(super) fn through(self, answer: Response<Body>) -> Response<Body> {
        let Self { cut_after, most_lines, most_bytes, lag, cut, mut listed } = self;
        let (parts, body) = answer.into_parts();
        let time_is_over: Pin<Box<dyn Future<Output = ()> + Send>> = match cut_after {
            Some(after) => Box::pin(sleep_until(Instant::now() + after)),
            None => Box::pin(std::future::pending()),
        };
        let late = body.into_data_stream().then(move |piece| async move {
            sleep(lag).await;
            piece.map_err(BoxError::from)
        });
        let mut left = most_bytes;
        // Each with whether it came whole.
        let pieces = late.flat_map(move |piece| match (piece, left.as_mut()) {
            (Ok(piece), Some(left)) if *left < piece.len() => {
                let begin = piece.slice(..*left);
                *left = 0;
                stream::iter(vec![
                    (Ok(begin), false),
                    (Err("the connection was lost".into()), false),
                ])
            }
            (Ok(piece), left) => {
                left.into_iter().for_each(|left| *left -= piece.len());
                let parts = if most_lines.is_some() { lines(&piece) } else { vec![piece] };
                stream::iter(parts.into_iter().map(|part| (Ok(part), true)).collect::<Vec<_>>())
            }
            (Err(error), _) => stream::iter(vec![(Err(error), false)]),
        });
        let pieces = pieces.take(most_lines.unwrap_or(usize::MAX)).map(move |(piece, is_whole)| {
            if let Ok(piece) = piece.as_ref()
                && is_whole
            {
                listed(piece);
            }
            piece
        });
        let pieces = pieces.take_until(time_is_over).take_until(cut);
        Response::from_parts(parts, Body::from_stream(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_list_is_known() {
        let ends = |pieces: &[&'static str]| {
            let mut end = EndOfList::default();
            let is_end = |text: &&'static str| end.comes_with(&Bytes::from_static(text.as_bytes()));
            pieces.iter().map(is_end).collect::<Vec<bool>>()
        };
        let last = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#;
        let other = r#"{"kind":"PodList","metadata":{"continue":"7:a/b"},"items":["#;
        assert_eq!(ends(&[last, "{}", "]}"]), [false, false, true]);
        assert_eq!(ends(&[other, "{}", "]}"]), [false; 3]);
        assert_eq!(ends(&[r#"{"type":"ADDED","object":{"metadata":{}}}"#]), [false]);
        let bookmark = r#"{"type":"BOOKMARK","object":{"k8s.io/initial-events-end":"true"}}"#;
        assert_eq!(ends(&[bookmark]), [true]);
    }

    fn passing(most_lines: Option<usize>, most_bytes: Option<usize>) -> Passing {
        Passing {
            cut_after: None,
            most_lines,
            most_bytes,
            lag: Duration::ZERO,
            cut: Box::pin(std::future::pending()),
            listed: Box::new(|_| {}),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_can_end_in_the_middle() {
        let answer = Response::new(Body::from("0123456789"));
        let mut pieces = passing(None, Some(5)).through(answer).into_body().into_data_stream();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "01234");
        assert!(pieces.next().await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_can_end_between_two_lines_that_come_together() {
        let answer = Response::new(Body::from("a\nb\nc\n"));
        let pieces = passing(Some(2), None).through(answer).into_body().into_data_stream();
        let pieces: Vec<_> = pieces.map(|piece| piece.unwrap()).collect().await;
        assert_eq!(pieces, ["a\n", "b\n"]);
    }
}
