//! JSON into soft fields in place: a cursor over the text of an object, which a struct moves from
//! field to field. The same as serde_json makes of it, in a third less instructions: no value is moved
//! on its way. Exact because scalars go through [`FieldShape`] all the same, and what has no short way here
//! goes to serde_json; `tests/scan.rs` compares both. docs/performance.md (start).

use std::borrow::Cow;

use crate::soft::{FieldShape, LenientField};

/// The text is not JSON, or not as API servers write it: serde_json decides.
#[derive(Clone, Copy, Debug)]
pub struct UnusualJson;

/// Deepest nesting of what is skipped; deeper objects go to serde_json.
const DEEPEST: u32 = 64;
/// Digits of an integer that cannot leave 64 bits.
const DIGITS: usize = 18;

/// An object of its own. `None`: serde_json decides what it is, which is so for every text with space
/// between its parts.
pub fn scanned<T: FieldShape>(text: &str) -> Option<T> {
    // Here once for all strings, in which they would have to be escaped.
    if text.bytes().fold(false, |found, byte| found | (byte < b' ')) {
        return None;
    }
    let (mut scan, mut object) = (JsonScan { text, at: 0 }, LenientField::Absent);
    scan.soft(&mut object).ok().filter(|()| scan.at == text.len())?;
    match object {
        LenientField::Good(object) => Some(object),
        LenientField::Absent | LenientField::Bad(_) => None,
    }
}

/// A place in a text.
#[derive(Debug)]
pub struct JsonScan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonScan<'a> {
    /// The next value.
    pub(crate) fn soft<T: FieldShape>(
        &mut self,
        into: &mut LenientField<T>,
    ) -> Result<(), UnusualJson> {
        match self.peek()? {
            b'"' => *into = LenientField::of_text(&self.string()?),
            b'{' => T::scan_map(self, into)?,
            b'[' => T::scan_list(self, into)?,
            b'n' => {
                self.word("null")?;
                *into = LenientField::Absent;
            }
            b't' => {
                self.word("true")?;
                *into = LenientField::of_bool(true);
            }
            b'f' => {
                self.word("false")?;
                *into = LenientField::of_bool(false);
            }
            b'0'..=b'9' => match self.integer() {
                Some(value) => *into = LenientField::of_int(value),
                None => self.by_serde(into)?,
            },
            _ => self.by_serde(into)?,
        }
        Ok(())
    }

    /// The next value, as serde_json reads it.
    pub(crate) fn by_serde<T: FieldShape>(
        &mut self,
        into: &mut LenientField<T>,
    ) -> Result<(), UnusualJson> {
        let start = self.at;
        self.skip()?;
        let text = self.text.get(start..self.at).ok_or(UnusualJson)?;
        *into = serde_json::from_str(text).map_err(|_| UnusualJson)?;
        Ok(())
    }

    /// The fields of the object that begins here.
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&str, &mut Self) -> Result<(), UnusualJson>,
    ) -> Result<(), UnusualJson> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            field(&key, self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(UnusualJson),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The elements of the list that begins here.
    pub(crate) fn list(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), UnusualJson>,
    ) -> Result<(), UnusualJson> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            element(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(UnusualJson),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Goes behind the next value, whatever it is.
    pub(crate) fn skip(&mut self) -> Result<(), UnusualJson> {
        // Whether what is open is an object, innermost last.
        let (mut objects, mut depth) = (0_u64, 0_u32);
        loop {
            match self.peek()? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let (is_object, close) = (open == b'{', open + 2);
                    if self.peek()? == close {
                        self.at += 1;
                    } else if depth == DEEPEST {
                        return Err(UnusualJson);
                    } else {
                        objects = objects << 1 | u64::from(is_object);
                        depth += 1;
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.skip_number()?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = objects & 1 == 1;
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        if is_object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    b'}' if is_object => self.at += 1,
                    b']' if !is_object => self.at += 1,
                    _ => return Err(UnusualJson),
                }
                (objects, depth) = (objects >> 1, depth - 1);
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), UnusualJson> {
        self.skip_string()?;
        self.expect(b':')
    }

    /// The first byte of what comes next.
    #[inline]
    fn peek(&self) -> Result<u8, UnusualJson> {
        self.text.as_bytes().get(self.at).copied().ok_or(UnusualJson)
    }

    fn rest(&self) -> Result<&'a [u8], UnusualJson> {
        self.text.as_bytes().get(self.at..).ok_or(UnusualJson)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), UnusualJson> {
        let found = self.peek()?;
        self.at += 1;
        if found == byte { Ok(()) } else { Err(UnusualJson) }
    }

    fn word(&mut self, word: &str) -> Result<(), UnusualJson> {
        let rest = self.rest()?;
        self.at += word.len();
        if rest.starts_with(word.as_bytes()) { Ok(()) } else { Err(UnusualJson) }
    }

    /// The text between the quotes here.
    #[inline]
    fn string(&mut self) -> Result<Cow<'a, str>, UnusualJson> {
        let start = self.at;
        self.expect(b'"')?;
        let rest = self.rest()?;
        let len = plain(rest);
        if rest.get(len) == Some(&b'"') {
            self.at += len + 1;
            return self.text.get(start + 1..start + 1 + len).map(Cow::Borrowed).ok_or(UnusualJson);
        }
        self.at = start;
        self.skip_string()?;
        let quoted = self.text.get(start..self.at).ok_or(UnusualJson)?;
        serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| UnusualJson)
    }

    #[inline]
    fn skip_string(&mut self) -> Result<(), UnusualJson> {
        self.expect(b'"')?;
        loop {
            let rest = self.rest()?;
            let len = plain(rest);
            self.at += len;
            match rest.get(len) {
                Some(b'"') => break,
                _ => self.skip_escape()?,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn skip_escape(&mut self) -> Result<(), UnusualJson> {
        let len = match self.rest()? {
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'\\', b'u', a, b, c, d, ..]
                if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                6
            }
            _ => return Err(UnusualJson),
        };
        self.at += len;
        Ok(())
    }

    /// A short whole number without sign; `None`: it is another one, the place is the same.
    fn integer(&mut self) -> Option<i64> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = digits(rest);
        let is_plain = !matches!(rest.get(len), Some(b'.' | b'e' | b'E'));
        if DIGITS < len || !is_plain || (rest[0] == b'0' && len != 1) {
            return None;
        }
        self.at += len;
        Some(rest[..len].iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    fn skip_number(&mut self) -> Result<(), UnusualJson> {
        let rest = self.rest()?;
        let unsigned = rest.strip_prefix(b"-").unwrap_or(rest);
        let whole = digits(unsigned);
        if whole == 0 || (unsigned[0] == b'0' && whole != 1) {
            return Err(UnusualJson);
        }
        let mut left = &unsigned[whole..];
        if let Some(fraction) = left.strip_prefix(b".") {
            left = some_digits(fraction)?;
        }
        if let [b'e' | b'E', exponent @ ..] = left {
            let unsigned = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-"));
            left = some_digits(unsigned.unwrap_or(exponent))?;
        }
        self.at += rest.len() - left.len();
        Ok(())
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// What follows at least one digit.
fn some_digits(bytes: &[u8]) -> Result<&[u8], UnusualJson> {
    match digits(bytes) {
        0 => Err(UnusualJson),
        n_digits => Ok(&bytes[n_digits..]),
    }
}

/// How many bytes stand for themselves in a string: those before a quote or a backslash.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let mut chunks = bytes.chunks_exact(8);
    let mut len = 0;
    for chunk in &mut chunks {
        let eight = u64::from_le_bytes(chunk.try_into().expect("eight of them"));
        let zero_where = |byte: u8| {
            let other = eight ^ (ONES * u64::from(byte));
            other.wrapping_sub(ONES) & !other
        };
        // A borrow makes bytes look special only behind one that is.
        let special = (zero_where(b'"') | zero_where(b'\\')) & (ONES << 7);
        if special != 0 {
            return len + special.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = chunks.remainder().iter();
    len + rest.take_while(|byte| !matches!(byte, b'"' | b'\\')).count()
}
