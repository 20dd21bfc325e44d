//! Tables of texts: columns as wide as their widest cell, but for the last one.

use std::fmt::Write;

use vc_text::escape;

/// Rows of `N` cells below a head.
pub(crate) struct Table<const N: usize>(Vec<[String; N]>);

impl<const N: usize> Table<N> {
    /// Returns a table with the words of its head.
    pub(crate) fn new(head: [&str; N]) -> Self {
        Self(vec![head.map(str::to_owned)])
    }

    /// Adds a row. Control characters in names of users are escaped.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.0.push(cells.map(|cell| escape(&cell).into_owned()));
    }

    /// Returns the lines.
    pub(crate) fn text(&self) -> String {
        let widths: [usize; N] = std::array::from_fn(|at| {
            self.0.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)
        });
        let mut out = String::new();
        for row in &self.0 {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _infallible = write!(line, "{cell:<width$}  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}
