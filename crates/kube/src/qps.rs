//! `--kube-api-qps` and `--kube-api-burst`: a token bucket in front of every request of one client.
//! Specification: core.md 1.9, rust-ecosystem.md 5.7 (tower's own limiter has no burst, K-04).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer, Service};

/// Rate and size of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateLimit {
    /// Tokens per second, positive.
    qps: f64,
    /// At least 1.
    burst: u32,
}

/// Slowest rate that is honoured, so that a wait stays a representable duration.
const SLOWEST: f64 = 0.001;

impl RateLimit {
    /// As client-go reads the flags: 0 means its defaults 5 and 10, a negative rate means no limit.
    pub(crate) fn from_flags(qps: f64, burst: u32) -> Option<Self> {
        let qps = if qps == 0.0 { 5.0 } else { qps };
        let burst = if burst == 0 { 10 } else { burst };
        (0.0 < qps).then(|| Self { qps: qps.max(SLOWEST), burst })
    }

    /// A full bucket.
    pub(crate) fn bucket(self) -> QpsLayer {
        let tokens = f64::from(self.burst);
        let bucket = TokenBucket { limit: self, tokens, refilled: Instant::now() };
        QpsLayer(Arc::new(Mutex::new(bucket)))
    }
}

/// A bucket; all services behind it share it.
#[derive(Clone)]
pub(crate) struct QpsLayer(Arc<Mutex<TokenBucket>>);

struct TokenBucket {
    limit: RateLimit,
    /// Negative when two services have taken the last one at once.
    tokens: f64,
    refilled: Instant,
}

impl QpsLayer {
    fn with<T>(&self, act: impl FnOnce(&mut TokenBucket) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S> Layer<S> for QpsLayer {
    type Service = QpsService<S>;

    fn layer(&self, inner: S) -> QpsService<S> {
        QpsService { inner, bucket: self.clone(), wait: None }
    }
}

/// A service behind a bucket; requests wait in the order in which they came.
pub(crate) struct QpsService<S> {
    inner: S,
    bucket: QpsLayer,
    wait: Option<Pin<Box<Sleep>>>,
}

impl TokenBucket {
    /// `None`: a token is there. Otherwise how long until there is one.
    fn missing(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let earned = (now - self.refilled).as_secs_f64() * self.limit.qps;
        self.tokens = (self.tokens + earned).min(f64::from(self.limit.burst));
        self.refilled = now;
        // Timers round up to a millisecond; a rounding error of the sum must not cost another one.
        let lacking = 1.0 - self.tokens;
        (1e-9 < lacking).then(|| Duration::from_secs_f64(lacking / self.limit.qps))
    }
}

impl<S: Service<R>, R> Service<R> for QpsService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(context));
                self.wait = None;
            }
            match self.bucket.with(TokenBucket::missing) {
                None => return self.inner.poll_ready(context),
                Some(time) => self.wait = Some(Box::pin(sleep(time))),
            }
        }
    }

    fn call(&mut self, request: R) -> S::Future {
        self.bucket.with(|bucket| bucket.tokens -= 1.0);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use super::*;

    /// Of calls of several services in turn.
    async fn elapsed(limit: RateLimit, n_services: usize, calls: usize) -> Duration {
        let start = Instant::now();
        let answer = |_: ()| async { Ok::<(), Infallible>(()) };
        let bucket = limit.bucket();
        let mut services: Vec<_> =
            (0..n_services).map(|_| bucket.layer(tower::service_fn(answer))).collect();
        for call in 0..calls {
            let service = &mut services[call % n_services];
            poll_fn(|context| service.poll_ready(context)).await.unwrap();
            service.call(()).await.unwrap();
        }
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn eco_11_burst_is_free_then_the_rate_holds() {
        let limit = RateLimit { qps: 100.0, burst: 50 };
        for n_services in [1, 2] {
            assert_eq!(elapsed(limit, n_services, 50).await, Duration::ZERO);
            let time = elapsed(limit, n_services, 250).await;
            assert!(
                (Duration::from_millis(1990)..Duration::from_millis(2250)).contains(&time),
                "{n_services}: {time:?}"
            );
        }
    }

    #[test]
    fn flags_as_client_go_reads_them() {
        assert_eq!(RateLimit::from_flags(-1.0, 5), None);
        assert_eq!(RateLimit::from_flags(0.0, 0), Some(RateLimit { qps: 5.0, burst: 10 }));
        assert_eq!(RateLimit::from_flags(1e-30, 3), Some(RateLimit { qps: SLOWEST, burst: 3 }));
    }
}
