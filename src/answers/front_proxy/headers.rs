//! The headers by which the front proxy names a user: name, uid, groups, and what else authorisers read. They are read
//! as Kubernetes reads them. Specification: answers.md 12 (ANS-80).

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use vc_page::User;

/// Names of headers. A name or uid is the first value that is not empty, groups are all values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UserHeaders {
    pub(super) names: Vec<HeaderName>,
    pub(super) uids: Vec<HeaderName>,
    pub(super) groups: Vec<HeaderName>,
    /// Beginnings of names, in lower case. The rest of a name is the key.
    pub(super) extra_prefixes: Vec<String>,
}

impl UserHeaders {
    /// Returns the user whom a request names. Returns `None` if it names none, or has something that is no UTF-8: half
    /// of a user may be another one.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let name = first(headers, &self.names)?.filter(|name| !name.is_empty())?;
        let uid = first(headers, &self.uids)?;
        let mut groups = Vec::new();
        for header in &self.groups {
            for value in headers.get_all(header) {
                groups.push(text(value)?);
            }
        }
        groups.retain(|group| !group.is_empty());
        Some(User { name, uid, groups, extra: self.extra(headers)? })
    }

    fn extra(&self, headers: &HeaderMap) -> Option<BTreeMap<String, Vec<String>>> {
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    extra.entry(unescape(key)?).or_default().push(text(value)?);
                }
            }
        }
        Some(extra)
    }
}

/// Returns the first value of these headers that is not empty. `None`: it is no UTF-8. `Some(None)`: there is none.
fn first(headers: &HeaderMap, names: &[HeaderName]) -> Option<Option<String>> {
    let mut values = names.iter().filter_map(|name| headers.get(name));
    match values.find(|value| !value.is_empty()) {
        None => Some(None),
        Some(value) => text(value).map(Some),
    }
}

fn text(value: &HeaderValue) -> Option<String> {
    std::str::from_utf8(value.as_bytes()).ok().map(str::to_owned)
}

/// Returns a key with the characters that `%2f` and the like stand for. A key with a `%` that begins nothing stays as it
/// is. Returns `None` if the result is no UTF-8.
fn unescape(key: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => match escaped(after) {
                Some(escaped) => escaped,
                None => return Some(key.to_owned()),
            },
            first => (first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Splits two hexadecimal digits off.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.split_at_checked(2)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((digit(digits[0])? << 4 | digit(digits[1])?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> UserHeaders {
        let name = |name| vec![HeaderName::from_static(name)];
        UserHeaders {
            names: [name("x-remote-user"), name("x-other-user")].concat(),
            uids: name("x-remote-uid"),
            groups: name("x-remote-group"),
            extra_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }

    fn headers(rows: &[(&str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn ans_80_headers_name_a_user_with_groups_and_extra() {
        let rows: &[(&str, &[u8])] = &[
            ("X-Remote-User", b"jo"),
            ("X-Remote-Uid", b"7"),
            ("X-Remote-Group", b"ml"),
            ("X-Remote-Group", b""),
            ("X-Remote-Group", b"system:authenticated"),
            ("X-Remote-Extra-Scopes", b"a"),
            ("X-Remote-Extra-scopes", b"b"),
            ("X-Remote-Extra-acme.org%2fTeam", b"t"),
            ("X-Remote-Extra-100%", b"p"),
            ("X-Remote-Extra-a+b", "ä".as_bytes()),
            ("X-Remote-Extras", b"another header"),
        ];
        let user = usual().user(&headers(rows)).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_deref()), ("jo", Some("7")));
        assert_eq!(user.groups, ["ml", "system:authenticated"]);
        let row = |key: &str, values: &[&str]| {
            (key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        let expected = [
            row("100%", &["p"]),
            row("a+b", &["ä"]),
            row("acme.org/team", &["t"]),
            row("scopes", &["a", "b"]),
        ];
        assert_eq!(user.extra.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ans_80_the_first_name_that_is_not_empty_counts() {
        const UMLAUT: &[u8] = "jö".as_bytes();
        type Rows = &'static [(&'static str, &'static [u8])];
        let cases: &[(Rows, Option<&str>)] = &[
            (&[], None),
            (&[("x-remote-user", b"")], None),
            (&[("x-remote-group", b"system:masters")], None),
            (&[("x-other-user", b"jo")], Some("jo")),
            (&[("x-remote-user", b""), ("x-other-user", b"jo")], Some("jo")),
            (&[("x-other-user", b"al"), ("x-remote-user", b"jo")], Some("jo")),
            (&[("x-remote-user", b"jo"), ("x-remote-user", b"al")], Some("jo")),
            (&[("x-remote-user", UMLAUT)], Some("jö")),
            // Half of a user may be another one.
            (&[("x-remote-user", b"j\xf6")], None),
            (&[("x-remote-user", b"jo"), ("x-remote-uid", b"\xf6")], None),
            (&[("x-remote-user", b"jo"), ("x-remote-group", b"\xf6")], None),
            (&[("x-remote-user", b"jo"), ("x-remote-extra-a", b"\xf6")], None),
            (&[("x-remote-user", b"jo"), ("x-remote-extra-%f6", b"a")], None),
        ];
        for (rows, name) in cases {
            let user = usual().user(&headers(rows));
            assert_eq!(user.map(|user| user.name).as_deref(), *name, "{rows:?}");
        }
        assert_eq!(UserHeaders::default().user(&headers(&[("x-remote-user", b"jo")])), None);
    }
}
