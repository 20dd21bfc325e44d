//! A monitoring server that does as it is told: it answers, or misbehaves in one of several ways.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    /// Status, more lines of the head, body.
    Answer(u16, &'static str, String),
    /// The connection stays open, and nothing comes.
    Hang,
    /// The head and a part of the body come, then nothing.
    Stall,
    /// The connection ends in the middle of the body.
    Cut,
    /// An answer that is no HTTP.
    Garbage,
    /// So many bytes of JSON that never ends.
    Flood(usize),
}

impl Reaction {
    pub(crate) fn json(text: impl Into<String>) -> Self {
        Self::Answer(200, "content-type: application/json\r\n", text.into())
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct MonitorRequest {
    /// The head with all headers, and path and query decoded.
    pub(crate) head: String,
    pub(crate) body: String,
}

type React = Arc<Mutex<Box<dyn Fn(&MonitorRequest) -> Reaction + Send>>>;

pub(crate) struct Monitor {
    pub(crate) address: String,
    /// The requests, as they come.
    pub(crate) requests: mpsc::UnboundedReceiver<MonitorRequest>,
    react: React,
}

impl Monitor {
    pub(crate) async fn start(
        tls: Option<TlsAcceptor>,
        react: impl Fn(&MonitorRequest) -> Reaction + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let (tell, requests) = mpsc::unbounded_channel();
        let react: React = Arc::new(Mutex::new(Box::new(react)));
        let reacts = react.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tell, react) = (tell.clone(), reacts.clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, tell, react).await,
                        // A client that does not trust us goes away.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, tell, react).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, requests, react }
    }

    /// The server does something else from now on.
    pub(crate) fn react(&self, react: impl Fn(&MonitorRequest) -> Reaction + Send + 'static) {
        *self.react.lock().unwrap() = Box::new(react);
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    tell: mpsc::UnboundedSender<MonitorRequest>,
    react: React,
) {
    let Some(request) = request(&mut stream).await else { return };
    let reaction = (react.lock().unwrap())(&request);
    let _nobody_asks = tell.send(request);
    // A client that has seen enough goes away.
    let _gone = perform(&mut stream, reaction).await;
}

async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<MonitorRequest> {
    let mut text = Vec::new();
    let end = loop {
        let mut buffer = [0; 4096];
        let n_bytes = stream.read(&mut buffer).await.ok().filter(|n_bytes| 0 < *n_bytes)?;
        text.extend_from_slice(&buffer[..n_bytes]);
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(text[..end].to_vec()).unwrap();
    let length = head.to_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").map(|length| length.parse::<usize>().unwrap())
    });
    let mut body = text.split_off(end);
    while body.len() < length.unwrap_or(0) {
        let mut buffer = [0; 4096];
        let n_bytes = stream.read(&mut buffer).await.ok().filter(|n_bytes| 0 < *n_bytes)?;
        body.extend_from_slice(&buffer[..n_bytes]);
    }
    Some(MonitorRequest { head: decoded(&head), body: String::from_utf8(body).unwrap() })
}

/// The text without percent-encoding.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

async fn perform(
    stream: &mut (impl AsyncWrite + Unpin),
    reaction: Reaction,
) -> std::io::Result<()> {
    let head = |code: u16, more: &str, length: usize| {
        format!("HTTP/1.1 {code} x\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n")
    };
    match reaction {
        Reaction::Answer(code, more, body) => {
            stream.write_all(head(code, more, body.len()).as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
        }
        Reaction::Hang => std::future::pending().await,
        Reaction::Stall => {
            stream.write_all(head(200, "", 1000).as_bytes()).await?;
            stream.write_all(b"{\"status\": ").await?;
            stream.flush().await?;
            std::future::pending::<()>().await;
        }
        Reaction::Cut => {
            stream.write_all(head(200, "", 1000).as_bytes()).await?;
            stream.write_all(b"{\"status\": ").await?;
        }
        Reaction::Garbage => stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await?,
        Reaction::Flood(most) => {
            stream.write_all(b"HTTP/1.1 200 x\r\nconnection: close\r\n\r\n[").await?;
            let part = "0,".repeat(32 << 10);
            for _ in 0..most.div_ceil(part.len()) {
                stream.write_all(part.as_bytes()).await?;
            }
        }
    }
    stream.flush().await
}
