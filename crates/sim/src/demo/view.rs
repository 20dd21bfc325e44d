//! The live view as lines: queues with use against share, gangs, nodes filling, the last events. A
//! pure function of the state and the screen.

use std::time::Duration;

use super::line::{Style, StyledLine, column};
use super::state::{DemoState, GangView, LogNote, MemberCounts, Tone, span};

/// The screen to draw on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// In characters.
    pub width: usize,
    /// In lines.
    pub height: usize,
    /// Block characters, or else only ASCII.
    pub unicode: bool,
    /// Whether lines are shown with their styles.
    pub color: bool,
}

/// Shortest bar that says something.
const SHORTEST_BAR: usize = 8;
/// Widest; longer ones say no more.
const LONGEST_BAR: usize = 60;
const NAME: usize = 14;
const NODE_NAME: usize = 8;
/// Rows of nodes at most.
const NODE_ROWS: usize = 12;
/// Events at least, where the screen is high enough for the rest.
const FEWEST_EVENTS: usize = 4;
const MOST_EVENTS: usize = 12;

/// Everything, cut to the screen. `title` says what is running.
pub fn frame(state: &DemoState, title: &str, now: Duration, screen: Screen) -> Vec<StyledLine> {
    let mut lines = vec![header(title, now, screen)];
    section(&mut lines, queues(state, screen));
    section(&mut lines, hyper_nodes(state, screen));
    let nodes = nodes(state, screen);
    let rest = lines.len() + nodes.len() + FEWEST_EVENTS + 6;
    section(&mut lines, gangs(state, screen, screen.height.saturating_sub(rest)));
    section(&mut lines, nodes);
    let room = screen.height.saturating_sub(lines.len() + 2).min(MOST_EVENTS);
    section(&mut lines, events(state, room));
    lines.truncate(screen.height);
    // A full line would leave the cursor on its last character.
    lines.iter().map(|line| line.cut(screen.width.saturating_sub(1))).collect()
}

/// Time, then what happened; as in the live view, so without one.
pub fn note(note: &LogNote) -> StyledLine {
    let style = match note.tone {
        Tone::Plain => Style::Plain,
        Tone::Good => Style::Good,
        Tone::Waiting => Style::Waiting,
        Tone::Bad => Style::Bad,
    };
    let at = format!("{:7.3} s  ", note.at.as_secs_f64());
    StyledLine::of(Style::Dim, at).then(style, &note.text)
}

fn header(title: &str, now: Duration, screen: Screen) -> StyledLine {
    let clock = format!("{:.1} s", now.as_secs_f64());
    let left = screen.width.saturating_sub(clock.len() + 2);
    StyledLine::of(Style::Bold, column(title, left)).then(Style::Plain, format!(" {clock}"))
}

fn section(lines: &mut Vec<StyledLine>, of: Vec<StyledLine>) {
    if !of.is_empty() {
        lines.push(StyledLine::default());
        lines.extend(of);
    }
}

fn queues(state: &DemoState, screen: Screen) -> Vec<StyledLine> {
    let head = format!("{} WEIGHT  CPU IN USE, {} = SHARE", column("QUEUE", NAME), mark(screen));
    let mut lines = vec![StyledLine::of(Style::Dim, head)];
    let total = state.total_cpu();
    let width = screen.width.saturating_sub(NAME + 31).clamp(SHORTEST_BAR, LONGEST_BAR);
    for queue in state.queues() {
        let bar = bar(screen, width, (queue.used, total), Some((queue.share, total)));
        let style = if queue.share < queue.used { Style::Waiting } else { Style::Good };
        let figures = format!("  {} / {}", cpu_number(queue.used), cpu(queue.share));
        let line = StyledLine::of(Style::Bold, column(&queue.name, NAME));
        let line = line.then(Style::Plain, format!(" {:>6}  ", queue.weight));
        lines.push(line.then(style, bar).then(Style::Plain, figures));
    }
    lines
}

/// The gangs that fit into so many lines: finished ones give way, then the newest.
fn gangs(state: &DemoState, screen: Screen, room: usize) -> Vec<StyledLine> {
    let mut shown = state.gangs();
    let mut surplus = shown.len().saturating_sub(room.max(1));
    let hidden = surplus;
    shown.retain(|(gang, _)| {
        let goes = 0 < surplus && gang.phase == "Completed";
        surplus -= usize::from(goes);
        !goes
    });
    shown.truncate(shown.len() - surplus);
    let titles = [column("GANG", NAME), column("QUEUE", 9)].join(" ");
    let mut head = format!("{titles} MEMBERS, {} = MIN", mark(screen));
    if 0 < hidden {
        head += &format!("  ({hidden} more not shown)");
    }
    let mut lines = vec![StyledLine::of(Style::Dim, head)];
    lines.extend(shown.into_iter().map(|(gang, members)| gang_line(gang, members, screen)));
    lines
}

fn gang_line(gang: &GangView, members: MemberCounts, screen: Screen) -> StyledLine {
    let (total, min) = (to_i64(members.total.max(gang.min)), to_i64(gang.min));
    let bar = bar(screen, 16, (to_i64(members.placed()), total), Some((min, total)));
    let running = match &*gang.phase {
        "Completed" => format!(" {:>3} done       ", members.ended),
        _ => format!(" {:>3}/{:<3}running ", members.running, gang.min),
    };
    let (style, what) = gang_story(gang, members);
    StyledLine::of(Style::Bold, column(&gang.title, NAME))
        .then(Style::Plain, format!(" {} ", column(&gang.queue, 9)))
        .then(style, bar)
        .then(Style::Plain, running)
        .then(style, format!("{} {what}", column(&gang.phase, 10)))
}

fn gang_story(gang: &GangView, members: MemberCounts) -> (Style, String) {
    let Some(took) = gang.completed else {
        return (Style::Waiting, gang.reason.clone());
    };
    let complete = format!("complete in {}", span(took));
    match members.waiting() {
        _ if gang.phase == "Completed" => (Style::Dim, complete),
        0 => (Style::Good, complete),
        waiting => (Style::Good, format!("{complete}, {waiting} more would start")),
    }
}

/// Returns a line per HyperNode, lower ones indented, with the gangs that have pods there.
/// Returns no line if there are no HyperNodes.
fn hyper_nodes(state: &DemoState, screen: Screen) -> Vec<StyledLine> {
    let loads = state.hyper_nodes();
    if loads.is_empty() {
        return Vec::new();
    }
    let head = format!("{} TIER  CPU IN USE", column("HYPERNODE", NAME));
    let mut lines = vec![StyledLine::of(Style::Dim, head)];
    for load in loads {
        let name = column(&format!("{}{}", "  ".repeat(load.depth), load.name), NAME);
        let gangs = load.gangs.iter().map(|(title, n_pods)| format!("{title} {n_pods}"));
        let figures = format!(" {:>3}/{:<5}", cpu_number(load.used), cpu_number(load.total));
        lines.push(
            StyledLine::of(Style::Bold, name)
                .then(Style::Plain, format!(" {:>4}  ", load.tier))
                .then(Style::Good, bar(screen, 16, (load.used, load.total), None))
                .then(Style::Plain, figures)
                .then(Style::Dim, gangs.collect::<Vec<_>>().join(", ")),
        );
    }
    lines
}

fn nodes(state: &DemoState, screen: Screen) -> Vec<StyledLine> {
    let nodes = state.nodes();
    let columns = (screen.width / 32).max(1);
    let width = (screen.width / columns).saturating_sub(NODE_NAME + 11).clamp(4, 24);
    let shown = nodes.len().min(columns * NODE_ROWS);
    let mut head = "NODES, CPU IN USE".to_owned();
    if shown < nodes.len() {
        head += &format!("  ({} more not shown)", nodes.len() - shown);
    }
    let mut lines = vec![StyledLine::of(Style::Dim, head)];
    for row in nodes[..shown].chunks(columns) {
        let mut line = StyledLine::default();
        for node in row {
            let figures = format!(" {:>3}/{:<5}", cpu_number(node.used), cpu_number(node.total));
            line = line
                .then(Style::Plain, format!("{} ", column(&node.name, NODE_NAME)))
                .then(Style::Good, bar(screen, width, (node.used, node.total), None))
                .then(Style::Plain, figures);
        }
        lines.push(line);
    }
    lines
}

fn events(state: &DemoState, room: usize) -> Vec<StyledLine> {
    let recent = state.recent();
    let first = recent.len().saturating_sub(room);
    recent[first..].iter().map(note).collect()
}

fn mark(screen: Screen) -> char {
    if screen.unicode { '│' } else { '|' }
}

/// A bar filled by a part of a whole, with a mark at another part. What is neither empty nor full
/// shows that.
fn bar(screen: Screen, width: usize, fill: (i64, i64), mark: Option<(i64, i64)>) -> String {
    let (full, empty) = if screen.unicode { ('█', '░') } else { ('#', '.') };
    let filled = cells(fill, width);
    // The mark stands behind the last cell of its part: one at the end of the bar is not shown.
    let marked = mark.map(|part| cells(part, width)).filter(|&cell| 0 < cell && cell < width);
    let cell = |at: usize| match at {
        at if Some(at) == marked => self::mark(screen),
        at if at < filled => full,
        _ => empty,
    };
    (0..width).map(cell).collect()
}

fn cells((part, whole): (i64, i64), width: usize) -> usize {
    let wide = to_i64(width);
    let cells = (part.max(0).saturating_mul(wide) + whole / 2) / whole.max(1);
    let least = i64::from(0 < part).min(wide);
    let most = if part < whole { wide - 1 } else { wide };
    usize::try_from(cells.clamp(least, most.max(least))).unwrap_or(width)
}

/// Whole cpus where it is a whole number.
fn cpu_number(milli: i64) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        _ => format!("{:.1}", milli as f64 / 1000.0),
    }
}

/// An amount of cpu, as text.
pub(super) fn cpu(milli: i64) -> String {
    format!("{} cpu", cpu_number(milli))
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
