//! The common name of a certificate, out of its DER. Specification: answers.md 12 (ANS-80).
//!
//! Only certificates whose chain is verified are read: rustls has parsed them before, and their CA has written them.

/// Tags of DER.
const OBJECT_ID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Returns the common name of the subject. Returns `None` if there is none, or more than one, or if it has an encoding
/// that nobody uses any more.
pub(super) fn common_name(certificate: &[u8]) -> Option<String> {
    let mut attributes = subject(certificate)?;
    let mut found = None;
    while !attributes.is_empty() {
        let mut set;
        (set, attributes) = tagged(SET, attributes)?;
        while !set.is_empty() {
            let attribute;
            (attribute, set) = tagged(SEQUENCE, set)?;
            let (id, value) = tagged(OBJECT_ID, attribute)?;
            if id == COMMON_NAME && found.replace(name(value)?).is_some() {
                return None;
            }
        }
    }
    found
}

/// Returns what the subject of a certificate consists of (RFC 5280, 4.1).
fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = tagged(SEQUENCE, certificate)?;
    let (mut fields, _) = tagged(SEQUENCE, certificate)?;
    if fields.first() == Some(&VERSION) {
        (_, _, fields) = split(fields)?;
    }
    // Number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        (_, _, fields) = split(fields)?;
    }
    tagged(SEQUENCE, fields).map(|(subject, _)| subject)
}

fn name(value: &[u8]) -> Option<String> {
    match split(value)? {
        (UTF8 | PRINTABLE | IA5, text, []) => std::str::from_utf8(text).ok().map(str::to_owned),
        _ => None,
    }
}

/// Splits off a value that has this tag. Returns its contents and what follows it.
fn tagged(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = split(der)?;
    (found == tag).then_some((contents, rest))
}

/// Splits off a value. Returns its tag, its contents and what follows it.
fn split(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn certificate(subject: &[(DnType, DnValue)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn ans_80_the_common_name_of_a_certificate_is_read() {
        let text = |text: &str| DnValue::Utf8String(text.to_owned());
        let printable = DnValue::PrintableString("front-proxy-client".try_into().unwrap());
        let long = "n".repeat(300);
        let (common, group) = (DnType::CommonName, DnType::OrganizationName);
        let same = DnType::CustomDnType(vec![2, 5, 4, 3]);
        let cases = [
            (vec![], None),
            (vec![(group.clone(), text("admins"))], None),
            (vec![(common.clone(), printable)], Some("front-proxy-client")),
            (vec![(common.clone(), text("jö"))], Some("jö")),
            (vec![(group, text("front-proxy-client")), (common.clone(), text("jo"))], Some("jo")),
            (vec![(common.clone(), text(&long))], Some(&*long)),
            (vec![(common, text("jo")), (same, text("front-proxy-client"))], None),
        ];
        for (subject, name) in cases {
            assert_eq!(common_name(&certificate(&subject)).as_deref(), name, "{subject:?}");
        }
    }

    #[test]
    fn ans_80_a_certificate_that_is_cut_off_has_no_common_name() {
        let name = DnValue::Utf8String("front-proxy-client".to_owned());
        let whole = certificate(&[(DnType::CommonName, name)]);
        for length in 0..whole.len() {
            assert_eq!(common_name(&whole[..length]), None, "{length}");
        }
    }
}
