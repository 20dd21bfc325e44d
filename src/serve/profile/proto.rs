//! A profile as `perftools.profiles.Profile` of github.com/google/pprof (profile.proto), by hand: a
//! dozen fields do not need a code generator. It is not compressed; `go tool pprof` takes both.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A message under construction.
#[derive(Default)]
struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    fn varint(&mut self, mut value: u64) {
        while 0x80 <= value {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn signed(&mut self, field: u64, value: i64) {
        self.number(field, value.cast_unsigned());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut list = Self::default();
        values.into_iter().for_each(|value| list.varint(value));
        self.bytes(field, &list.0);
    }
}

/// A line of a function in a source file.
pub(super) struct SourceLine {
    /// Demangled, without the hash of the compiler.
    pub(super) function: String,
    pub(super) file: String,
    /// 0: not known.
    pub(super) line: u32,
}

/// The samples, and the tables that they point into.
#[derive(Default)]
pub(super) struct Profile {
    out: ProtoMessage,
    strings: HashMap<String, u64>,
    /// In the order of their numbers.
    texts: Vec<String>,
    functions: HashMap<(u64, u64), u64>,
    locations: HashMap<(u64, u64), u64>,
}

impl Profile {
    /// Kind and unit of each value of a sample.
    pub(super) fn new(values: &[(&str, &str)]) -> Self {
        let mut profile = Self::default();
        // The first string must be empty.
        profile.string("");
        for (kind, unit) in values {
            let kind = profile.value_type(kind, unit);
            profile.out.bytes(1, &kind.0);
        }
        profile
    }

    /// When it began, and how long it took.
    pub(super) fn time(&mut self, start: SystemTime, nanos: u128) {
        let start = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.out.signed(9, i64::try_from(start.as_nanos()).unwrap_or(0));
        self.out.signed(10, i64::try_from(nanos).unwrap_or(0));
    }

    /// What lies between two samples.
    pub(super) fn period(&mut self, kind: &str, unit: &str, amount: i64) {
        let kind = self.value_type(kind, unit);
        self.out.bytes(11, &kind.0);
        self.out.signed(12, amount);
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ProtoMessage {
        let mut message = ProtoMessage::default();
        message.number(1, self.string(kind));
        message.number(2, self.string(unit));
        message
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// The innermost location first.
    pub(super) fn sample(&mut self, locations: Vec<u64>, values: &[i64]) {
        let mut sample = ProtoMessage::default();
        sample.packed(1, locations);
        sample.packed(2, values.iter().map(|value| value.cast_unsigned()));
        self.out.bytes(2, &sample.0);
    }

    /// A line of a function; numbers begin at 1.
    pub(super) fn location(&mut self, source: &SourceLine) -> u64 {
        let function = self.function(source);
        let line = u64::from(source.line);
        let next = self.locations.len() as u64 + 1;
        let number = *self.locations.entry((function, line)).or_insert(next);
        if number == next {
            let mut place = ProtoMessage::default();
            place.number(1, function);
            place.number(2, line);
            let mut location = ProtoMessage::default();
            location.number(1, number);
            location.bytes(4, &place.0);
            self.out.bytes(4, &location.0);
        }
        number
    }

    fn function(&mut self, source: &SourceLine) -> u64 {
        let name = self.string(&readable(&source.function));
        let file = self.string(&source.file);
        let next = self.functions.len() as u64 + 1;
        let number = *self.functions.entry((name, file)).or_insert(next);
        if number == next {
            let mut function = ProtoMessage::default();
            function.number(1, number);
            function.number(2, name);
            function.number(3, name);
            function.number(4, file);
            self.out.bytes(5, &function.0);
        }
        number
    }

    /// The message.
    pub(super) fn finish(mut self) -> Vec<u8> {
        for text in &self.texts {
            self.out.bytes(6, text.as_bytes());
        }
        self.out.0
    }
}

/// `a::B::c` for `<a::B as d::E>::c`: readers leave out what is between angle brackets.
fn readable(name: &str) -> String {
    let Some(inner) = name.strip_prefix('<') else { return name.to_owned() };
    let mut depth = 1;
    let end = inner.char_indices().find(|&(at, character)| {
        depth += i32::from(character == '<');
        // The arrow of a function type closes nothing.
        depth -= i32::from(character == '>' && !inner[..at].ends_with('-'));
        depth == 0
    });
    let Some((end, _)) = end else { return name.to_owned() };
    let (of, rest) = (&inner[..end], &inner[end + 1..]);
    format!("{}{rest}", of.split_once(" as ").map_or(of, |(of, _)| of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_protobuf() {
        let mut message = ProtoMessage::default();
        message.number(1, 300);
        message.bytes(2, b"ab");
        message.packed(3, [1, 128]);
        let wanted = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1a, 3, 1, 0x80, 0x01];
        assert_eq!(message.0, wanted);
    }

    #[test]
    fn names_keep_the_type_that_a_method_is_of() {
        let cases = [
            ("a::b", "a::b"),
            ("<a::B as c::D>::e", "a::B::e"),
            ("<a::B<T> as c::D<U>>::e::{{closure}}", "a::B<T>::e::{{closure}}"),
            ("<a::B>::c", "a::B::c"),
            ("<fn(a) -> b as c::D>::e", "fn(a) -> b::e"),
            ("<broken", "<broken"),
        ];
        for (name, wanted) in cases {
            assert_eq!(readable(name), wanted);
        }
    }

    #[test]
    fn equal_lines_are_one_location() {
        let source = |name: &str, line| SourceLine {
            function: name.to_owned(),
            file: "a.rs".to_owned(),
            line,
        };
        let mut profile = Profile::new(&[("samples", "count"), ("cpu", "nanoseconds")]);
        let lines = [("f", 1), ("f", 2), ("g", 1), ("f", 1)];
        let numbers = lines.map(|(name, line)| profile.location(&source(name, line)));
        assert_eq!(numbers, [1, 2, 3, 1]);
        assert_eq!(profile.functions.len(), 2);
        assert_eq!(profile.texts[0], "");
        let texts = ["samples", "count", "cpu", "nanoseconds", "f", "a.rs", "g"];
        assert_eq!(profile.texts[1..], texts);
        // The table of strings ends the message.
        assert!(profile.finish().ends_with(&[0x32, 1, b'g']));
    }
}
