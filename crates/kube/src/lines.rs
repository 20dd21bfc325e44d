//! Lines of a body that comes in pieces. A line is copied only where a piece ends inside it: the
//! first list of a large cluster is some hundred megabytes. DESIGN.md 4 (start), rust-ecosystem.md 4.

use memchr::memchr;

/// What of the last piece belongs to a line that goes on.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Hands on every line that ends in this piece, without its end.
    pub(crate) fn feed(&mut self, mut piece: &[u8], mut take: impl FnMut(&[u8])) {
        if !self.rest.is_empty()
            && let Some(end) = memchr(b'\n', piece)
        {
            self.rest.extend_from_slice(&piece[..end]);
            take(&self.rest);
            self.rest.clear();
            piece = &piece[end + 1..];
        }
        if self.rest.is_empty() {
            while let Some(end) = memchr(b'\n', piece) {
                take(&piece[..end]);
                piece = &piece[end + 1..];
            }
        }
        self.rest.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_the_pieces_end() {
        let text = "first\n\nthird line\n\u{e9}\nrest without end";
        for size in 1..=text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                lines.feed(piece, |line| seen.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            assert_eq!(seen, ["first", "", "third line", "\u{e9}"], "pieces of {size}");
        }
    }
}
