//! Where the demo is shown: plain lines anywhere, or a view that redraws itself on the second
//! screen of an ANSI terminal, which is given back as it was.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use super::line::StyledLine;
use super::view::Screen;

/// Second screen, no cursor, no wrapping of lines that are wider than the terminal.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const DEFAULT_SIZE: (usize, usize) = (100, 40);

/// The live view of a terminal. Dropped, it restores the terminal.
pub(super) struct LiveTerminal<'a, W: Write> {
    out: &'a mut W,
    pub(super) screen: Screen,
}

impl<'a, W: Write> LiveTerminal<'a, W> {
    pub(super) fn enter(out: &'a mut W) -> io::Result<LiveTerminal<'a, W>> {
        let live = LiveTerminal { out, screen: measure() };
        live.out.write_all(ENTER.as_bytes())?;
        Ok(live)
    }

    /// The terminal has another size.
    pub(super) fn resized(&mut self) {
        self.screen = measure();
    }

    /// Draws over what was there.
    pub(super) fn draw(&mut self, lines: &[StyledLine]) -> io::Result<()> {
        // Lines go to rows by number: one too many must not scroll the others away.
        let mut text = String::new();
        for (row, line) in lines.iter().take(self.screen.height).enumerate() {
            text += &format!("\x1b[{};1H{}\x1b[K", row + 1, line_text(line, self.screen.color));
        }
        text += "\x1b[J";
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for LiveTerminal<'_, W> {
    fn drop(&mut self) {
        // Where writing is not possible there is no terminal any more.
        let _gone = self.out.write_all(LEAVE.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// The line as text for such a terminal.
pub(super) fn line_text(line: &StyledLine, color: bool) -> String {
    if color { line.ansi() } else { line.text() }
}

fn measure() -> Screen {
    let given = |name: &str| env::var(name).ok()?.parse().ok().filter(|size| 0 < *size);
    let asked = terminal_size();
    let (width, height) = asked.unwrap_or(DEFAULT_SIZE);
    Screen {
        width: given("COLUMNS").unwrap_or(width),
        height: given("LINES").unwrap_or(height),
        unicode: speaks_utf8(),
        color: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Columns and rows, as `stty` knows them.
fn terminal_size() -> Option<(usize, usize)> {
    let terminal = File::open("/dev/tty").ok()?;
    let asked = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output();
    let text = String::from_utf8(asked.ok()?.stdout).ok()?;
    let (rows, columns) = text.trim().split_once(' ')?;
    let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
    (0 < columns && 0 < rows).then_some((columns, rows))
}

/// The locale says so: the first of these that is set.
fn speaks_utf8() -> bool {
    let set = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
