//! The type `kubernetes.URL` and its functions: absolute URLs and absolute paths, by the rules of
//! RFC 3986 as Kubernetes reads them. Specification: plugins-nodes.md 6.6.

mod escape;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};

use cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use escape::Part;

static TYPE: Type = Type::new_unspecified_type("kubernetes.URL");

/// Its parts, percent escapes resolved where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    /// Lower case; empty: none.
    scheme: String,
    /// What follows the scheme of a URL without slash, as it is written.
    opaque: String,
    /// As it is written.
    user: String,
    /// With the port.
    host: String,
    /// As it is written.
    path: String,
    /// As it is written.
    query: String,
    fragment: String,
}

/// Whether a path with two slashes in front, without scheme, begins with a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As in a request: an absolute URL or an absolute path.
    Request,
    /// As in a document.
    Reference,
}

impl Url {
    /// # Errors
    /// It is no absolute URL and no absolute path; why.
    pub(crate) fn check(text: &str) -> Result<(), String> {
        let problem = |problem| format!("parse {text:?}: {problem}");
        parse(text, Form::Request).map(drop).map_err(problem)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::check(text)?;
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let problem = |problem| format!("parse {text:?}: {problem}");
        let parsed = parse(rest, Form::Reference).map_err(problem)?;
        let fragment = escape::resolve(fragment, Part::Fragment).map_err(problem)?;
        Ok(Self { fragment, ..parsed })
    }

    /// Host and port, of which either may be empty.
    fn host_and_port(&self) -> (&str, &str) {
        let host = &self.host;
        let port = host.rfind(':').filter(|&at| is_port(&host[at..]));
        let (name, port) = port.map_or((&**host, ""), |at| (&host[..at], &host[at + 1..]));
        let inside = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        (inside.unwrap_or(name), port)
    }

    /// Values by key; a pair that cannot be read is left out.
    fn pairs(&self) -> BTreeMap<String, Vec<String>> {
        let mut pairs = BTreeMap::<_, Vec<String>>::new();
        let parts = self.query.split('&').filter(|part| !part.is_empty() && !part.contains(';'));
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let resolved = |text| escape::resolve(text, Part::Query).ok();
            if let Some((key, value)) = resolved(key).zip(resolved(value)) {
                pairs.entry(key).or_default().push(value);
            }
        }
        pairs
    }
}

/// Whether it is empty, or a colon with digits or nothing behind it.
fn is_port(text: &str) -> bool {
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty() || text.strip_prefix(':').is_some_and(digits)
}

fn parse(text: &str, form: Form) -> Result<Url, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && form == Form::Request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        let segment = rest.split('/').next().unwrap_or_default();
        return match form {
            Form::Request => Err("invalid URI for request".to_owned()),
            Form::Reference if segment.contains(':') => {
                Err("first path segment in URL cannot contain colon".to_owned())
            }
            Form::Reference => with_path(url, rest),
        };
    }
    let has_host = !scheme.is_empty() || form == Form::Reference && !rest.starts_with("///");
    match rest.strip_prefix("//").filter(|_| has_host) {
        None => with_path(url, rest),
        Some(rest) => {
            let path = rest.find('/').unwrap_or(rest.len());
            let (user, host) = authority(&rest[..path])?;
            with_path(Url { user, host, ..url }, &rest[path..])
        }
    }
}

fn with_path(url: Url, path: &str) -> Result<Url, String> {
    escape::resolve(path, Part::Path)?;
    Ok(Url { path: path.to_owned(), ..url })
}

/// What stands before the first colon, if that can be a scheme, and the rest.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let end = text.bytes().position(|byte| !of_scheme(byte));
    match end.filter(|&end| text.as_bytes()[end] == b':') {
        Some(0) => Err("missing protocol scheme".to_owned()),
        Some(end) if text.as_bytes()[0].is_ascii_alphabetic() => {
            Ok((&text[..end], &text[end + 1..]))
        }
        _ => Ok(("", text)),
    }
}

/// User, as it is written, and host with port.
fn authority(text: &str) -> Result<(String, String), String> {
    let Some((user, host)) = text.rsplit_once('@') else { return Ok((String::new(), host(text)?)) };
    let host = self::host(host)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escape::resolve(user, Part::User)?;
    Ok((user.to_owned(), host))
}

fn host(text: &str) -> Result<String, String> {
    if !text.starts_with('[') {
        let port = text.rfind(':').map_or("", |at| &text[at..]);
        return match is_port(port) {
            true => escape::resolve(text, Part::Host),
            false => Err(format!("invalid port {port:?} after host")),
        };
    }
    let end = text.rfind(']').ok_or("missing ']' in host")?;
    let port = &text[end + 1..];
    if !is_port(port) {
        return Err(format!("invalid port {port:?} after host"));
    }
    let zone = text[..end].find("%25").unwrap_or(end);
    let parts = [(&text[..zone], Part::Host), (&text[zone..end], Part::Zone)];
    let parts = parts.into_iter().chain([(&text[end..], Part::Host)]);
    parts.map(|(text, part)| escape::resolve(text, part)).collect()
}

impl Val for Url {
    fn get_type(&self) -> &Type {
        &TYPE
    }
    fn cel_type() -> &'static Type {
        &TYPE
    }
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Url {}

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(TYPE.to_owned())?;
    add_overload!(env, fn url: (CelString) -> Result<Url>)?;
    add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    add_member_overload!(env, fn get_scheme: (Url) -> CelString)?;
    add_member_overload!(env, fn get_host: (Url) -> CelString)?;
    add_member_overload!(env, fn get_hostname: (Url) -> CelString)?;
    add_member_overload!(env, fn get_port: (Url) -> CelString)?;
    add_member_overload!(env, fn get_escaped_path: (Url) -> CelString)?;
    add_member_overload!(env, fn get_query: (Url) -> CelMap)
}

fn url(text: &CelString<'_>) -> Result<Url, ExecutionError> {
    Url::parse(text.inner()).map_err(|problem| {
        let text = format!("URL parse error during conversion from string: {problem}");
        ExecutionError::function_error("url", text)
    })
}

fn is_url(text: &CelString<'_>) -> CelBool {
    Url::check(text.inner()).is_ok().into()
}

fn text(text: &str) -> CelString<'static> {
    CelString::from(text.to_owned())
}

fn get_scheme(of: &Url) -> CelString<'static> {
    text(&of.scheme)
}

fn get_host(of: &Url) -> CelString<'static> {
    text(&of.host)
}

fn get_hostname(of: &Url) -> CelString<'static> {
    text(of.host_and_port().0)
}

fn get_port(of: &Url) -> CelString<'static> {
    text(of.host_and_port().1)
}

fn get_escaped_path(of: &Url) -> CelString<'static> {
    CelString::from(escape::path(&of.path))
}

fn get_query(of: &Url) -> CelMap<'static> {
    let entry = |(key, values): (String, Vec<String>)| {
        let value = |value: String| -> Box<dyn Val> { Box::new(CelString::from(value)) };
        let values: Vec<Box<dyn Val>> = values.into_iter().map(value).collect();
        let values: Box<dyn Val> = Box::new(CelList::from(values));
        (CelMapKey::from(key), values)
    };
    CelMap::from(of.pairs().into_iter().map(entry).collect::<HashMap<_, _>>())
}
