//! Lines of a body that comes in pieces. A line is copied only where a piece ends inside it: the
//! first list of a large cluster is some hundred megabytes. docs/performance.md (start), rust-ecosystem.md 4.

use bytes::Bytes;
use memchr::{memchr, memrchr};

/// What of the last piece belongs to a line that goes on.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    rest: Vec<u8>,
}

/// Lines that are whole.
#[derive(Debug, Default)]
pub(crate) struct LineChunk {
    /// One that began in an earlier piece; empty if there is none.
    first: Vec<u8>,
    /// Each with its end.
    others: Bytes,
}

impl LineBuffer {
    /// Every line that ends in this piece.
    pub(crate) fn split(&mut self, mut piece: Bytes) -> LineChunk {
        let mut first = Vec::new();
        if !self.rest.is_empty()
            && let Some(end) = memchr(b'\n', &piece)
        {
            first = std::mem::take(&mut self.rest);
            first.extend_from_slice(&piece[..=end]);
            piece = piece.slice(end + 1..);
        }
        let whole = match self.rest.is_empty() {
            true => memrchr(b'\n', &piece).map_or(0, |end| end + 1),
            false => 0,
        };
        self.rest.extend_from_slice(&piece[whole..]);
        LineChunk { first, others: piece.slice(..whole) }
    }
}

impl LineChunk {
    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.others.len()
    }

    /// The lines without their ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut parts = [&self.first[..], &self.others[..]];
        std::iter::from_fn(move || {
            let part = parts.iter_mut().find(|part| !part.is_empty())?;
            let end = memchr(b'\n', part)?;
            let line = &part[..end];
            *part = &part[end + 1..];
            Some(line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_the_pieces_end() {
        let text = "first\n\nthird line\n\u{e9}\nrest without end";
        for size in 1..=text.len() {
            let (mut lines, mut seen, mut n_bytes) = (LineBuffer::default(), Vec::new(), 0);
            for piece in text.as_bytes().chunks(size) {
                let chunk = lines.split(Bytes::copy_from_slice(piece));
                n_bytes += chunk.len();
                seen.extend(chunk.lines().map(|line| String::from_utf8(line.to_vec()).unwrap()));
            }
            assert_eq!(seen, ["first", "", "third line", "\u{e9}"], "pieces of {size}");
            assert_eq!(n_bytes, "first\n\nthird line\n\u{e9}\n".len());
        }
    }
}
