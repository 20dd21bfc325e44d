//! One demo from start to end: the server, the scheduler, the workload over time, and the view of
//! it, until nothing more is to be expected.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{self, MissedTickBehavior};

use super::manifests::ManifestPlan;
use super::picture::DemoPicture;
use super::scheduler::{DemoScheduler, SchedulerStart};
use super::signals::{Interrupts, Resizes};
use super::stage::DemoStage;
use super::state::DemoState;
use super::summary::DemoSummary;
use super::terminal::{LiveTerminal, line_text};
use super::{DemoError, DemoOptions, view};
use crate::Controllers;
use crate::serve::{self, QUEUES, ServeOptions, Server};

/// How often the view is drawn and lines are written.
const TICK: Duration = Duration::from_millis(100);
/// How long the scheduler may take to come up.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// A queue that the scheduler makes when it has connected (core.md 4.7).
const FIRST_QUEUE: &str = "default";

/// Runs a demo and shows it on `out`, its summary last.
///
/// # Errors
/// The server or the scheduler cannot start, the scheduler ends too early, or a signal came.
pub async fn run<W: Write>(options: &DemoOptions, out: &mut W) -> Result<DemoSummary, DemoError> {
    let plan = ManifestPlan::read(&options.workload, options.speed)?;
    let server = serve::start(serve_options(options)).await?;
    let mut scheduler = start_scheduler(options, &server)?;
    let shown = show(options, plan, &server, &mut scheduler, out).await;
    // However it has ended: a child that nobody waits for stays behind as a zombie.
    scheduler.stop().await;
    server.stop().await;
    shown
}

async fn show<W: Write>(
    options: &DemoOptions,
    plan: ManifestPlan,
    server: &Server,
    scheduler: &mut DemoScheduler,
    out: &mut W,
) -> Result<DemoSummary, DemoError> {
    let mut interrupts = Interrupts::listen().map_err(DemoError::Signals)?;
    let running = format!("vc-scheduler (pid {}) at {}", scheduler.pid, server.url());
    let title = format!("vcsim demo: {} nodes, {running}", options.nodes);
    if options.plain {
        writeln!(out, "{title}")?;
    }
    connect(server, scheduler, &mut interrupts).await?;
    let page = scheduler.page().map(|page| format!("page: {page}"));
    if let Some(page) = page.as_ref().filter(|_| options.plain) {
        writeln!(out, "{page}")?;
    }
    let title = page.map_or(title.clone(), |page| format!("{title}, {page}"));
    let stage = DemoStage::new(plan, &server.store, options);
    let picture = options.svg.as_ref().map(|_| DemoPicture::default());
    let mut cast = DemoParts { stage, scheduler, interrupts, picture };
    let settled = match options.plain {
        true => cast.play(&mut PlainOutput { out }).await?,
        false => show_live(&mut cast, &title, out).await?,
    };
    let summary = cast.stage.summary(settled);
    if let (Some(path), Some(picture)) = (&options.svg, &cast.picture) {
        let written = fs::write(path, picture.svg(&summary));
        written.map_err(|error| DemoError::Picture { path: path.clone(), error })?;
    }
    write_summary(&summary, cast.scheduler, options, out)?;
    if options.keep {
        keep(&mut cast, out).await?;
    }
    Ok(summary)
}

/// Goes on until a signal comes, so that the scheduler may be asked.
async fn keep<W: Write>(cast: &mut DemoParts<'_>, out: &mut W) -> Result<(), DemoError> {
    if let Some(page) = cast.scheduler.page() {
        writeln!(out, "page             {page}")?;
        let server = page.strip_suffix("/ui/").unwrap_or(&page);
        writeln!(out, "ask              kubectl-vc --server {server} why giant -n default")?;
    }
    writeln!(out, "kept until Ctrl-C")?;
    out.flush()?;
    tokio::select! {
        ended = cast.scheduler.ended() => Err(cast.scheduler.failure(ended)),
        () = cast.interrupts.next() => Ok(()),
    }
}

async fn show_live<W: Write>(
    cast: &mut DemoParts<'_>,
    title: &str,
    out: &mut W,
) -> Result<bool, DemoError> {
    let mut view = ScreenOutput { live: LiveTerminal::enter(out)?, title };
    let settled = cast.play(&mut view).await?;
    let screen = view.live.screen;
    drop(view);
    // The view is gone with its screen: its last state stays readable.
    for line in view::frame(&cast.stage.state, title, cast.stage.now(), screen) {
        writeln!(out, "{}", line_text(&line, screen.color))?;
    }
    writeln!(out)?;
    Ok(settled)
}

fn write_summary<W: Write>(
    summary: &DemoSummary,
    scheduler: &DemoScheduler,
    options: &DemoOptions,
    out: &mut W,
) -> io::Result<()> {
    for line in summary.lines() {
        writeln!(out, "{line}")?;
    }
    if options.verbose {
        writeln!(out, "scheduler log    {}", scheduler.log().display())?;
    }
    out.flush()
}

fn serve_options(options: &DemoOptions) -> ServeOptions {
    ServeOptions {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        nodes: options.nodes,
        expander: Some(Arc::new(Controllers)),
        ..ServeOptions::default()
    }
}

fn start_scheduler(options: &DemoOptions, server: &Server) -> Result<DemoScheduler, DemoError> {
    let name = format!("vcsim-demo-{}-{}", std::process::id(), server.addr.port());
    DemoScheduler::start(SchedulerStart {
        url: &server.url(),
        program: options.scheduler.as_deref(),
        configuration: options.scheduler_conf.as_deref(),
        default_configuration: options.workload.configuration(),
        verbosity: if options.verbose { 3 } else { 0 },
        directory: std::env::temp_dir().join(name),
        keep_files: options.verbose,
    })
}

async fn connect(
    server: &Server,
    scheduler: &mut DemoScheduler,
    interrupts: &mut Interrupts,
) -> Result<(), DemoError> {
    let mut queues = server.store.subscribe(&QUEUES);
    let connected = async {
        while server.store.get(&QUEUES, "", FIRST_QUEUE).is_none() {
            // What has changed is read from the store, a gap in the events too.
            drop(queues.next().await);
        }
    };
    tokio::select! {
        () = connected => return Ok(()),
        ended = scheduler.ended() => return Err(scheduler.failure(ended)),
        () = interrupts.next() => return Err(DemoError::Interrupted),
        () = time::sleep(CONNECT_LIMIT) => {}
    }
    Err(DemoError::Silent { limit: CONNECT_LIMIT.as_secs(), tail: scheduler.tail() })
}

/// Where a demo is shown.
trait DemoOutput {
    fn update(&mut self, state: &mut DemoState, now: Duration) -> io::Result<()>;
    fn resized(&mut self);
}

/// Plain lines of what happens.
struct PlainOutput<'a, W: Write> {
    out: &'a mut W,
}

impl<W: Write> DemoOutput for PlainOutput<'_, W> {
    fn update(&mut self, state: &mut DemoState, _now: Duration) -> io::Result<()> {
        for note in state.take_notes() {
            writeln!(self.out, "{}", view::note(&note).text())?;
        }
        self.out.flush()
    }

    fn resized(&mut self) {}
}

/// The view of a terminal.
struct ScreenOutput<'a, 't, W: Write> {
    live: LiveTerminal<'a, W>,
    title: &'t str,
}

impl<W: Write> DemoOutput for ScreenOutput<'_, '_, W> {
    fn update(&mut self, state: &mut DemoState, now: Duration) -> io::Result<()> {
        state.take_notes();
        let lines = view::frame(state, self.title, now, self.live.screen);
        self.live.draw(&lines)
    }

    fn resized(&mut self) {
        self.live.resized();
    }
}

/// Everything that takes part.
struct DemoParts<'a> {
    stage: DemoStage,
    scheduler: &'a mut DemoScheduler,
    interrupts: Interrupts,
    /// Absent: nobody wants one.
    picture: Option<DemoPicture>,
}

impl DemoParts<'_> {
    /// Shows the workload to its end. Whether it has settled, or the time was up.
    async fn play(&mut self, show: &mut impl DemoOutput) -> Result<bool, DemoError> {
        let mut resizes = Resizes::listen().map_err(DemoError::Signals)?;
        let mut ticks = time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                seen = self.stage.watch.next() => self.stage.observe(&seen),
                ended = self.scheduler.ended() => return Err(self.scheduler.failure(ended)),
                () = self.interrupts.next() => return Err(DemoError::Interrupted),
                () = resizes.next() => show.resized(),
                _ = ticks.tick() => {
                    self.stage.apply_due();
                    let now = self.stage.now();
                    show.update(&mut self.stage.state, now)?;
                    if let Some(picture) = &mut self.picture {
                        picture.observe(&self.stage.state, now);
                    }
                    if let Some(settled) = self.stage.end() {
                        return Ok(settled);
                    }
                }
            }
        }
    }
}
