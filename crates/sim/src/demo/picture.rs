//! The demo as a picture: the live view at the moment in which most cpu was in use, with the summary
//! below, as an SVG file that needs no font but a monospaced one.

use std::fmt::Write;
use std::iter;
use std::time::Duration;

use super::line::{Style, StyledLine};
use super::state::DemoState;
use super::summary::DemoSummary;
use super::view::{self, Screen};

/// The screen that is drawn; a page shows it without scrolling.
const SCREEN: Screen = Screen { width: 112, height: 38, unicode: true, color: true };
/// Width and height of a character, in pixels.
const CELL: (f64, f64) = (8.0, 18.0);
/// Between the border and the text, in pixels.
const MARGIN: f64 = 16.0;
const FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace";
const BACKGROUND: &str = "#0d1117";

/// Keeps the frame of the busiest moment while the demo runs.
#[derive(Debug, Default)]
pub struct DemoPicture {
    /// Cpu in use in that moment, in thousandths.
    used: i64,
    frame: Vec<StyledLine>,
}

impl DemoPicture {
    /// Looks at the state, and keeps its frame if more cpu is in use than ever before.
    pub fn observe(&mut self, state: &DemoState, now: Duration) {
        let nodes = state.nodes();
        let used = nodes.iter().map(|node| node.used).sum();
        if self.used < used || self.frame.is_empty() {
            let title = format!("vcsim demo: {} nodes, the busiest moment", nodes.len());
            self.used = used;
            self.frame = view::frame(state, &title, now, SCREEN);
        }
    }

    /// The kept frame and the summary, as the text of an SVG file.
    pub fn svg(&self, summary: &DemoSummary) -> String {
        let below = summary.lines();
        let below = below.iter().map(|line| StyledLine::of(Style::Plain, line).cut(SCREEN.width));
        let lines = self.frame.iter().cloned().chain(iter::once(StyledLine::default()));
        svg(&lines.chain(below).collect::<Vec<_>>())
    }
}

/// Lines of a terminal as the text of an SVG file. Bars are rectangles, all else is text of a fixed
/// width, so that columns stay below each other in any font.
pub fn svg(lines: &[StyledLine]) -> String {
    let columns = lines.iter().map(|line| line.text().chars().count()).max().unwrap_or_default();
    let width = 2.0 * MARGIN + pixels(columns, CELL.0);
    let height = 2.0 * MARGIN + pixels(lines.len(), CELL.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FONT}\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let mut column = 0;
        for (style, text) in line.pieces() {
            for run in runs(text) {
                draw(&mut out, (column, row), style, &run);
                column += run.chars().count();
            }
        }
    }
    out + "</svg>\n"
}

/// The text in parts, each of one kind of character: a bar's, a mark's, spaces, or any other.
fn runs(text: &str) -> Vec<String> {
    let kind = |letter: char| match letter {
        '█' | '░' | '│' => letter,
        _ => 'a',
    };
    let mut runs: Vec<String> = Vec::new();
    for letter in text.chars() {
        match runs.last_mut() {
            Some(last) if last.chars().next().map(kind) == Some(kind(letter)) => last.push(letter),
            _ => runs.push(letter.to_string()),
        }
    }
    runs
}

/// Draws a run that begins in this column of this row.
fn draw(out: &mut String, (column, row): (usize, usize), style: Style, run: &str) {
    let (x, y) = (MARGIN + pixels(column, CELL.0), MARGIN + pixels(row, CELL.1));
    let width = pixels(run.chars().count(), CELL.0);
    let rectangle = |x: f64, width: f64, color: &str, opacity: f64| {
        let (y, height) = (y + 3.0, CELL.1 - 6.0);
        format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{color}\" \
             fill-opacity=\"{opacity}\"/>"
        )
    };
    let shape = match run.chars().next() {
        Some('█') => rectangle(x, width, color(style), 1.0),
        Some('░') => rectangle(x, width, color(style), 0.2),
        Some('│') => rectangle(x + 3.0, 2.0, color(Style::Bold), 1.0),
        _ if run.trim().is_empty() => return,
        _ => text(x, y, style, run),
    };
    // Writing into a string cannot fail.
    let _ = writeln!(out, "{shape}");
}

/// Spaces at the ends have no ink and are left out.
fn text(x: f64, y: f64, style: Style, run: &str) -> String {
    let word = run.trim_start();
    let x = x + pixels(run.chars().count() - word.chars().count(), CELL.0);
    let word = word.trim_end();
    let width = pixels(word.chars().count(), CELL.0);
    let (y, color) = (y + CELL.1 - 5.0, color(style));
    let weight = if style == Style::Bold { " font-weight=\"bold\"" } else { "" };
    let word = word.replace('&', "&amp;").replace('<', "&lt;").replace(' ', "\u{a0}");
    format!(
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{width}\" fill=\"{color}\"{weight}>{word}</text>"
    )
}

fn pixels(cells: usize, size: f64) -> f64 {
    cells as f64 * size
}

fn color(style: Style) -> &'static str {
    match style {
        Style::Plain => "#c9d1d9",
        Style::Bold => "#ffffff",
        Style::Dim => "#8b949e",
        Style::Good => "#3fb950",
        Style::Waiting => "#d29922",
        Style::Bad => "#f85149",
    }
}
