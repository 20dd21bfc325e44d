//! The scheduler as a process of its own, with the configuration of the chart and its metrics.

use std::fs::{self, File};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use vc_sim::load::{SchedulerProcess, WriteCounts};

use crate::Context;
use crate::server::{Server, directory};

/// How long nothing may have been written until everything is.
const CALM: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(500);
/// Part of a core that the process uses when it writes nothing.
const IDLE: f64 = 0.04;
/// When to stop waiting for that.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) struct Scheduler {
    child: Child,
    metrics: String,
    pub(crate) started: Instant,
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Scheduler {
    pub(crate) fn start(context: &Context, server: &Server) -> anyhow::Result<Self> {
        Self::start_with(context, server, &[])
    }

    /// With further flags.
    pub(crate) fn start_with(
        context: &Context,
        server: &Server,
        flags: &[String],
    ) -> anyhow::Result<Self> {
        let dir = directory("scheduler")?;
        let conf = dir.join("volcano-scheduler.conf");
        fs::write(&conf, vc_conf::CHART)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let started = Instant::now();
        let child = Command::new(&context.scheduler)
            .arg(server.flag())
            .arg(format!("--scheduler-conf={}", conf.display()))
            .arg(format!("--cache-dump-dir={}", dir.display()))
            .arg(format!("--listen-address=127.0.0.1:{port}"))
            .args(["--leader-elect=false", "--enable-metrics", "--kube-api-qps=-1"])
            .args(flags)
            .env("DEBUG_SOCKET_DIR", &dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.join("stderr.log"))?)
            .spawn()?;
        Ok(Self { child, metrics: format!("http://127.0.0.1:{port}/metrics"), started })
    }

    pub(crate) fn process(&self) -> SchedulerProcess {
        SchedulerProcess { pid: self.child.id() }
    }

    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let seconds = self.process().cpu_seconds();
        seconds.ok_or_else(|| anyhow::anyhow!("the scheduler is gone"))
    }

    pub(crate) async fn writes(&self) -> anyhow::Result<WriteCounts> {
        Ok(WriteCounts::scrape(&self.metrics).await?)
    }

    /// Returns the text of its metrics.
    pub(crate) async fn metrics(&self) -> anyhow::Result<String> {
        Ok(vc_sim::load::metrics(&self.metrics).await?)
    }

    /// Waits until the first lists are in and it listens.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        while self.writes().await.is_err() {
            ensure!(self.started.elapsed() < LIMIT, "the scheduler does not start");
            tokio::time::sleep(POLL).await;
        }
        self.calm().await.map(drop)
    }

    /// Waits until nothing more is written, and says what was. While the process computes it is not
    /// asked for its metrics: of ten thousand jobs they are long, and their making would count.
    pub(crate) async fn calm(&self) -> anyhow::Result<WriteCounts> {
        let start = Instant::now();
        loop {
            self.idle(start).await?;
            let before = self.writes().await?;
            tokio::time::sleep(CALM).await;
            let after = self.writes().await?;
            if before == after || LIMIT <= start.elapsed() {
                return Ok(after);
            }
        }
    }

    /// Waits until the process hardly computes.
    async fn idle(&self, start: Instant) -> anyhow::Result<()> {
        let mut cpu = self.cpu_seconds()?;
        while start.elapsed() < LIMIT {
            tokio::time::sleep(POLL).await;
            let before = std::mem::replace(&mut cpu, self.cpu_seconds()?);
            if cpu - before <= IDLE * POLL.as_secs_f64() {
                break;
            }
        }
        Ok(())
    }
}
