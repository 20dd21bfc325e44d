//! The type `kubernetes.NamedFormat`: what texts look like in Kubernetes, and what is wrong with
//! those that do not. Specification: plugins-nodes.md 6.6.

mod rules;

use std::any::Any;

use cel::common::types::{CelList, CelOptional, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, add_member_overload, add_overload};

use crate::lists::{Answer, Arg, the};
use crate::url::Url;

static TYPE: Type = Type::new_unspecified_type("kubernetes.NamedFormat");

/// A format.
#[derive(Clone, Copy, Debug)]
struct Format {
    name: &'static str,
    /// What is wrong with a text; empty: nothing.
    problems: fn(&str) -> Vec<String>,
}

const FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", problems: rules::dns1123_label },
    Format { name: "dns1123Subdomain", problems: rules::dns1123_subdomain },
    Format { name: "dns1035Label", problems: rules::dns1035_label },
    Format { name: "qualifiedName", problems: rules::qualified_name },
    Format {
        name: "dns1123LabelPrefix",
        problems: |text| rules::dns1123_label(&rules::completed(text)),
    },
    Format {
        name: "dns1123SubdomainPrefix",
        problems: |text| rules::dns1123_subdomain(&rules::completed(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        problems: |text| rules::dns1035_label(&rules::completed(text)),
    },
    Format { name: "labelValue", problems: rules::label_value },
    Format { name: "uri", problems: |text| Url::check(text).err().into_iter().collect() },
    Format { name: "uuid", problems: |text| unless(rules::is_uuid(text), UUID) },
    Format { name: "byte", problems: |text| unless(rules::is_base64(text), BASE64) },
    Format { name: "date", problems: |text| unless(rules::is_date(text), DATE) },
    Format { name: "datetime", problems: |text| unless(rules::is_date_time(text), DATE_TIME) },
];

const UUID: &str = "does not match the UUID format";
const BASE64: &str = "invalid base64";
const DATE: &str = "invalid date";
const DATE_TIME: &str = "invalid datetime";

fn unless(holds: bool, problem: &str) -> Vec<String> {
    if holds { Vec::new() } else { vec![problem.to_owned()] }
}

impl Val for Format {
    fn get_type(&self) -> &Type {
        &TYPE
    }
    fn cel_type() -> &'static Type {
        &TYPE
    }
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.name == other.name)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Format {}

macro_rules! constants {
    ($env:ident, $($place:literal)*) => {$(
        let name = format!("format.{}", FORMATS[$place].name);
        $env.add_overload(&name, &format!("{name}()"), vec![], constant::<$place>)?;
    )*};
}

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(TYPE.to_owned())?;
    constants!(env, 0 1 2 3 4 5 6 7 8 9 10 11 12);
    add_overload!(env, fn of_name: (CelString) -> CelOptional, name = "format.named")?;
    add_member_overload!(env, fn validate: (Format, CelString) -> CelOptional)
}

fn constant<'b, 'v, const PLACE: usize>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [] = the(args)?;
    Ok(CowVal::owned(FORMATS[PLACE]))
}

fn of_name(name: &CelString<'_>) -> CelOptional<'static> {
    let found = FORMATS.iter().find(|format| format.name == name.inner());
    found.map_or_else(CelOptional::none, |format| CelOptional::of(Box::new(*format)))
}

/// The problems of the text, if there are any.
fn validate(format: &Format, text: &CelString<'_>) -> CelOptional<'static> {
    let problems = (format.problems)(text.inner());
    if problems.is_empty() {
        return CelOptional::none();
    }
    let problems =
        problems.into_iter().map(|problem| -> Box<dyn Val> { Box::new(CelString::from(problem)) });
    CelOptional::of(Box::new(CelList::from(problems.collect::<Vec<_>>())))
}
