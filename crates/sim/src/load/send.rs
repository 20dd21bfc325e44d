//! Sends requests over a bounded number of connections, at a given rate or as fast as they are
//! answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use hyper::body::Bytes;
use serde_json::json;
use tokio::task::JoinSet;

use super::client::{ApiConnection, Client, refused};
use super::{LoadError, LoadObject, Workload};

/// How much is asked of the server at once.
#[derive(Clone, Copy, Debug)]
pub struct RequestRate {
    /// Requests under way at most.
    pub in_flight: usize,
    /// Requests per second; absent: as many as are answered.
    pub rate: Option<f64>,
}

impl RequestRate {
    /// As fast as the server answers.
    pub fn full(in_flight: usize) -> RequestRate {
        RequestRate { in_flight, rate: None }
    }
}

/// Sends `n` requests, each made by `ask` of its number, and answers when each was answered.
///
/// # Errors
/// The first one that was refused; the others are given up.
async fn send_all<F, A>(
    client: &Client,
    n: usize,
    pressure: RequestRate,
    ask: F,
) -> Result<Vec<Instant>, LoadError>
where
    F: Fn(usize, ApiConnection) -> A + Clone + Send + 'static,
    A: Future<Output = (ApiConnection, Result<(), LoadError>)> + Send,
{
    let (next, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..pressure.in_flight.clamp(1, n.max(1)) {
        let (mut connection, next, ask) = (client.connection(), next.clone(), ask.clone());
        workers.spawn(async move {
            let mut answered = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if n <= number {
                    return Ok(answered);
                }
                if let Some(rate) = pressure.rate {
                    let due = start + Duration::from_secs_f64(number as f64 / rate);
                    tokio::time::sleep_until(due.into()).await;
                }
                let answer;
                (connection, answer) = ask(number, connection).await;
                answer?;
                answered.push((number, Instant::now()));
            }
        });
    }
    let mut times = vec![start; n];
    while let Some(worker) = workers.join_next().await {
        let answered: Result<_, LoadError> = worker.expect("a worker neither panics nor is ended");
        for (number, at) in answered? {
            times[number] = at;
        }
    }
    Ok(times)
}

/// Creates objects, each made of its number, and answers when each was created.
///
/// # Errors
/// The server is gone, or refuses one.
pub async fn create(
    client: &Client,
    n: usize,
    pressure: RequestRate,
    make: impl Fn(usize) -> LoadObject + Clone + Send + 'static,
) -> Result<Vec<Instant>, LoadError> {
    let ask = move |number, mut connection: ApiConnection| {
        let made = make(number);
        async move {
            let answer = connection.create(&made).await;
            (connection, answer)
        }
    };
    send_all(client, n, pressure, ask).await
}

/// Creates the nodes of a workload.
///
/// # Errors
/// The server is gone, or refuses one.
pub async fn create_nodes(
    client: &Client,
    workload: &Workload,
    in_flight: usize,
) -> Result<(), LoadError> {
    let (n, of) = (workload.nodes, workload.clone());
    let make = move |number: usize| of.node(u32::try_from(number).unwrap_or(u32::MAX));
    create(client, n as usize, RequestRate::full(in_flight), make).await.map(drop)
}

/// Creates the gangs of a workload, each PodGroup before its pods, and answers when each pod was
/// created, by position. The rate counts pods.
///
/// # Errors
/// The server is gone, or refuses an object.
pub async fn create_gangs(
    client: &Client,
    workload: &Workload,
    pressure: RequestRate,
) -> Result<Vec<Instant>, LoadError> {
    let (size, of) = (workload.size as usize, workload.clone());
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let make = move |number: usize| {
        let (gang, index) = (short(number / (size + 1)), number % (size + 1));
        match index {
            0 => of.pod_group(gang),
            _ => of.pod(gang, short(index - 1)),
        }
    };
    let rate = pressure.rate.map(|rate| rate * (size as f64 + 1.0) / size.max(1) as f64);
    let n = workload.gangs as usize * (size + 1);
    let times = create(client, n, RequestRate { rate, ..pressure }, make).await?;
    let is_pod = |(number, at): (usize, Instant)| (number % (size + 1) != 0).then_some(at);
    Ok(times.into_iter().enumerate().filter_map(is_pod).collect())
}

/// Binds every pod of a workload to the nodes in turn, without any scheduler: what the server can
/// do at most. Answers when each was bound.
///
/// # Errors
/// The server is gone, or refuses a binding.
pub async fn bind_all(
    client: &Client,
    workload: &Workload,
    in_flight: usize,
) -> Result<Vec<Instant>, LoadError> {
    let of = workload.clone();
    let ask = move |position: usize, mut connection: ApiConnection| {
        let (path, name) = (of.binding_path(position), of.pod_name(position));
        let node = format!("node-{:05}", position % (of.nodes.max(1) as usize));
        let body = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": of.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        async move {
            let body = Bytes::from(body.to_string());
            let answer = match connection.call(&Method::POST, &path, body).await {
                Ok((code, _)) if code.is_success() => Ok(()),
                Ok((code, answer)) => Err(refused(&path, code, &answer)),
                Err(error) => Err(error),
            };
            (connection, answer)
        }
    };
    send_all(client, workload.n_pods(), RequestRate::full(in_flight), ask).await
}
