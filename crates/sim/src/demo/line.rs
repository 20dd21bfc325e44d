//! A line of the terminal: text in pieces, each with a style, cut to the width of the screen.

/// How a piece of a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As the terminal shows text.
    #[default]
    Plain,
    /// Names.
    Bold,
    /// Headings and what is over.
    Dim,
    /// Green.
    Good,
    /// Yellow.
    Waiting,
    /// Red.
    Bad,
}

impl Style {
    /// The number that ANSI terminals know it by.
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "0",
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Waiting => "33",
            Style::Bad => "31",
        }
    }
}

/// One line without its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine(Vec<(Style, String)>);

impl StyledLine {
    /// A line of one piece.
    pub fn of(style: Style, text: impl Into<String>) -> StyledLine {
        StyledLine::default().then(style, text)
    }

    /// The line with another piece at its end.
    #[must_use]
    pub fn then(mut self, style: Style, text: impl Into<String>) -> StyledLine {
        let text = text.into().replace(char::is_control, " ");
        self.0.push((style, text));
        self
    }

    /// The pieces in order, each with its style.
    pub fn pieces(&self) -> impl Iterator<Item = (Style, &str)> {
        self.0.iter().map(|(style, text)| (*style, text.as_str()))
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The first `width` characters.
    #[must_use]
    pub fn cut(&self, width: usize) -> StyledLine {
        let mut left = width;
        let mut pieces = Vec::new();
        for (style, text) in &self.0 {
            let piece: String = text.chars().take(left).collect();
            left -= piece.chars().count();
            pieces.push((*style, piece));
        }
        StyledLine(pieces)
    }

    /// The text with escape codes.
    pub fn ansi(&self) -> String {
        let piece = |(style, text): &(Style, String)| match style {
            Style::Plain => text.clone(),
            style => format!("\x1b[{}m{text}\x1b[0m", style.code()),
        };
        self.0.iter().map(piece).collect()
    }
}

/// `text` in `width` columns, cut or filled up.
pub(super) fn column(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}
