//! Percent escapes in the parts of a URL. Specification: plugins-nodes.md 6.6.

/// Where a text stands; each part has its own characters that must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    User,
    Host,
    /// The zone of an IPv6 address, with its `%25`.
    Zone,
    Path,
    Query,
    Fragment,
}

const UNRESERVED: &[u8] = b"-_.~";

/// What may stand in a host as it is, besides letters and digits.
const OF_HOST: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";

/// The text without escapes.
///
/// # Errors
/// An escape is broken, or a character may not stand there.
pub(super) fn resolve(text: &str, part: Part) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match first {
            b'%' => {
                bytes.push(escaped(behind, part)?);
                rest = &behind[2..];
            }
            b'+' if part == Part::Query => bytes.push(b' '),
            byte if is_of(part) && byte.is_ascii() && !may_stand_in_host(*byte) => {
                let character = char::from(*byte).to_string();
                return Err(format!("invalid character {character:?} in host name"));
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_of(part: Part) -> bool {
    matches!(part, Part::Host | Part::Zone)
}

fn may_stand_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || OF_HOST.contains(&byte)
}

/// The byte that the two digits behind a percent sign mean.
fn escaped(behind: &[u8], part: Part) -> Result<u8, String> {
    let wrong = |digits: &[u8]| {
        let shown = String::from_utf8_lossy(digits);
        format!("invalid URL escape {:?}", format!("%{shown}"))
    };
    let digits = behind.get(..2).ok_or_else(|| wrong(behind))?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (high, low) = digit(digits[0]).zip(digit(digits[1])).ok_or_else(|| wrong(digits))?;
    let byte = high << 4 | low;
    let allowed = match part {
        // Only what is not ASCII, and the percent sign itself.
        Part::Host => !byte.is_ascii() || byte == b'%',
        Part::Zone => byte == b'%' || byte == b' ' || may_stand_in_host(byte),
        _ => true,
    };
    if allowed { Ok(byte) } else { Err(wrong(digits)) }
}

/// A path that was read without error, escaped: as it is written if that may stand in a URL.
pub(super) fn path(written: &str) -> String {
    let stands = |byte: u8| byte == b'%' || is_of_path(byte) || b"!'()*[]".contains(&byte);
    if written == "*" || written.bytes().all(stands) {
        return written.to_owned();
    }
    let resolved = resolve(written, Part::Path).unwrap_or_default();
    let escape = |byte: u8| match is_of_path(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    resolved.bytes().map(escape).collect()
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) || b"$&+,/:;=@".contains(&byte)
}
