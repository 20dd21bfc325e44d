//! Request bodies in protobuf, the form in which `kubectl create namespace`, `create configmap` and
//! the like send built-in kinds since 1.32. They are decoded by tables of field numbers; a field
//! that the tables do not have is an error, never dropped.

use serde_json::{Map, Value, json};

use super::refused::Refused;

/// How a field is read. Repeated and nested ones accumulate.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Integer,
    /// A number or a text, such as `25%`.
    Portion,
    Flag,
    /// A list of texts.
    TextList,
    /// A map of texts.
    Texts,
    /// A map of quantities.
    Amounts,
    One(MessageFields),
    List(MessageFields),
    /// What the server fills in itself.
    Ignored,
}
use FieldType::{Amounts, Flag, Ignored, Integer, List, One, Portion, Text, TextList, Texts};

type MessageFields = &'static [(u64, &'static str, FieldType)];

const METADATA: MessageFields = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Ignored),
    (8, "creationTimestamp", Ignored),
    (11, "labels", Texts),
    (12, "annotations", Texts),
    (14, "finalizers", TextList),
    (17, "managedFields", Ignored),
];
const NAMED: (u64, &str, FieldType) = (1, "metadata", One(METADATA));
const STATUS: (u64, &str, FieldType) = (3, "status", Ignored);

/// The type says which of the two counts; the other one is empty.
const PORTION: MessageFields = &[(1, "type", Ignored), (2, "intVal", Integer), (3, "strVal", Text)];
const RESOURCES: MessageFields = &[(1, "limits", Amounts), (2, "requests", Amounts)];
const ENV: MessageFields = &[(1, "name", Text), (2, "value", Text)];
const PORT: MessageFields = &[
    (1, "name", Text),
    (2, "hostPort", Integer),
    (3, "containerPort", Integer),
    (4, "protocol", Text),
];
const CONTAINER: MessageFields = &[
    (1, "name", Text),
    (2, "image", Text),
    (3, "command", TextList),
    (4, "args", TextList),
    (5, "workingDir", Text),
    (6, "ports", List(PORT)),
    (7, "env", List(ENV)),
    (8, "resources", One(RESOURCES)),
    (13, "terminationMessagePath", Text),
    (14, "imagePullPolicy", Text),
    (20, "terminationMessagePolicy", Text),
];
const POD_SPEC: MessageFields = &[
    (2, "containers", List(CONTAINER)),
    (3, "restartPolicy", Text),
    (4, "terminationGracePeriodSeconds", Integer),
    (6, "dnsPolicy", Text),
    (7, "nodeSelector", Texts),
    (8, "serviceAccountName", Text),
    (10, "nodeName", Text),
    (11, "hostNetwork", Flag),
    (19, "schedulerName", Text),
    (20, "initContainers", List(CONTAINER)),
    (24, "priorityClassName", Text),
];
const TEMPLATE: MessageFields = &[NAMED, (2, "spec", One(POD_SPEC))];
const SELECTOR: MessageFields = &[(1, "matchLabels", Texts)];
const DEPLOYMENT: MessageFields = &[
    (1, "replicas", Integer),
    (2, "selector", One(SELECTOR)),
    (3, "template", One(TEMPLATE)),
    (4, "strategy", One(&[(1, "type", Text)])),
];
const JOB: MessageFields = &[
    (1, "parallelism", Integer),
    (2, "completions", Integer),
    (6, "template", One(TEMPLATE)),
    (7, "backoffLimit", Integer),
];
const BUDGET: MessageFields = &[
    (1, "minAvailable", Portion),
    (2, "selector", One(SELECTOR)),
    (3, "maxUnavailable", Portion),
    (4, "unhealthyPodEvictionPolicy", Text),
];
const PRECONDITIONS: MessageFields = &[(1, "uid", Text), (2, "resourceVersion", Text)];
const DELETE_OPTIONS: MessageFields = &[
    (1, "gracePeriodSeconds", Integer),
    (2, "preconditions", One(PRECONDITIONS)),
    (4, "propagationPolicy", Text),
];

fn message(api_version: &str, kind: &str) -> Option<MessageFields> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => &[NAMED, (2, "spec", Ignored), STATUS],
        ("v1", "ConfigMap") => &[NAMED, (2, "data", Texts)],
        ("v1", "ServiceAccount") => &[NAMED],
        ("v1", "ResourceQuota") => &[NAMED, (2, "spec", One(&[(1, "hard", Amounts)])), STATUS],
        ("scheduling.k8s.io/v1", "PriorityClass") => &[
            NAMED,
            (2, "value", Integer),
            (3, "globalDefault", Flag),
            (4, "description", Text),
            (5, "preemptionPolicy", Text),
        ],
        ("apps/v1", "Deployment") => &[NAMED, (2, "spec", One(DEPLOYMENT)), STATUS],
        ("batch/v1", "Job") => &[NAMED, (2, "spec", One(JOB)), STATUS],
        ("policy/v1", "PodDisruptionBudget") => &[NAMED, (2, "spec", One(BUDGET)), STATUS],
        ("policy/v1", "Eviction") => &[NAMED, (2, "deleteOptions", One(DELETE_OPTIONS))],
        (_, "DeleteOptions") => DELETE_OPTIONS,
        _ => return None,
    })
}

/// Decodes an object in the envelope of Kubernetes.
///
/// # Errors
/// `BadRequest` for bytes that are no such object, `UnsupportedMediaType` for one that only a
/// larger table could read.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, Refused> {
    const ENVELOPE: MessageFields =
        &[(1, "type", One(&[(1, "apiVersion", Text), (2, "kind", Text)])), (2, "raw", Ignored)];
    let broken = || Refused::BadRequest("the body is not protobuf of Kubernetes".to_owned());
    let envelope = bytes.strip_prefix(b"k8s\0").ok_or_else(broken)?;
    let mut raw: &[u8] = &[];
    let mut rest = envelope;
    while let Some((number, wire)) = field(&mut rest).ok_or_else(broken)? {
        if let (2, WireValue::Bytes(bytes)) = (number, wire) {
            raw = bytes;
        }
    }
    let head = read(envelope, ENVELOPE).unwrap_or_default();
    let text = |field: &str| head.get("type").and_then(|t| t[field].as_str()).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let unsupported = || {
        Refused::UnsupportedMediaType(format!(
            "this kind is not served as application/vnd.kubernetes.protobuf: {api_version} {kind}\n\
             hint: send application/json, as kubectl create -f FILE does"
        ))
    };
    let message = message(api_version, kind).ok_or_else(unsupported)?;
    let mut object = read(raw, message).ok_or_else(unsupported)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads a message; `None` when it is broken or has a field that says something unknown.
fn read(mut bytes: &[u8], message: MessageFields) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    while let Some((number, wire)) = field(&mut bytes)? {
        match (message.iter().find(|(known, ..)| *known == number), wire) {
            (Some((_, name, kind)), wire) => put(&mut object, name, *kind, wire)?,
            // Absent fields are often written with the zero of their type.
            (None, WireValue::Number(0) | WireValue::Bytes([])) => {}
            (None, _) => return None,
        }
    }
    Some(object)
}

fn put(
    object: &mut Map<String, Value>,
    name: &str,
    kind: FieldType,
    wire: WireValue<'_>,
) -> Option<()> {
    let text = |bytes: &[u8]| Some(Value::from(std::str::from_utf8(bytes).ok()?));
    let mut set = |value: Value| {
        object.insert(name.to_owned(), value);
    };
    match (kind, wire) {
        (Ignored, _) | (Text, WireValue::Bytes([])) => {}
        (Text, WireValue::Bytes(bytes)) => set(text(bytes)?),
        (Integer, WireValue::Number(number)) => set(json!(number.cast_signed())),
        (Portion, WireValue::Bytes(bytes)) => {
            let mut portion = read(bytes, PORTION)?;
            let field = if portion.contains_key("strVal") { "strVal" } else { "intVal" };
            set(portion.remove(field).unwrap_or(json!(0)));
        }
        (Flag, WireValue::Number(number)) => set(json!(number != 0)),
        (One(inner), WireValue::Bytes(bytes)) => match read(bytes, inner)? {
            fields if fields.is_empty() => {}
            fields => set(Value::Object(fields)),
        },
        (List(inner), WireValue::Bytes(bytes)) => {
            push(object, name, Value::Object(read(bytes, inner)?))?;
        }
        (TextList, WireValue::Bytes(bytes)) => push(object, name, text(bytes)?)?,
        (Texts, WireValue::Bytes(bytes)) => {
            let entry = read(bytes, &[(1, "key", Text), (2, "value", Text)])?;
            let value = entry.get("value").cloned().unwrap_or_else(|| json!(""));
            insert(object, name, &entry, value)?;
        }
        (Amounts, WireValue::Bytes(bytes)) => {
            let entry = read(bytes, &[(1, "key", Text), (2, "value", One(&[(1, "text", Text)]))])?;
            let value = entry.get("value").and_then(|value| value.get("text")).cloned();
            insert(object, name, &entry, value.unwrap_or_else(|| json!("0")))?;
        }
        _ => return None,
    }
    Some(())
}

fn push(object: &mut Map<String, Value>, name: &str, element: Value) -> Option<()> {
    object.entry(name).or_insert_with(|| json!([])).as_array_mut()?.push(element);
    Some(())
}

fn insert(
    object: &mut Map<String, Value>,
    name: &str,
    entry: &Map<String, Value>,
    value: Value,
) -> Option<()> {
    let key = entry.get("key").and_then(Value::as_str).unwrap_or_default();
    let map = object.entry(name).or_insert_with(|| json!({})).as_object_mut()?;
    map.insert(key.to_owned(), value);
    Some(())
}

/// Takes the next field off `bytes`: `Some(None)` at the end, `None` when it is broken.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u64, WireValue<'a>)>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let tag = varint(bytes)?;
    let wire = match tag & 7 {
        0 => WireValue::Number(varint(bytes)?),
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (field, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            WireValue::Bytes(field)
        }
        _ => return None,
    };
    Some(Some((tag >> 3, wire)))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        field.extend_from_slice(content);
        field
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let head = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), bytes(1, &head), bytes(2, raw), bytes(3, b""), bytes(4, b"")].concat()
    }

    #[test]
    fn objects_are_decoded_by_the_tables() {
        let label = [bytes(1, b"a"), bytes(2, b"b")].concat();
        let metadata = [bytes(1, b"team"), bytes(2, b""), bytes(8, b""), bytes(11, &label)];
        let raw = [bytes(1, &metadata.concat()), bytes(2, b""), bytes(3, &bytes(1, b""))].concat();
        let object = decode(&envelope("v1", "Namespace", &raw)).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "team", "labels": { "a": "b" } },
        });
        assert_eq!(object, expected);
        let raw = [vec![2 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat();
        let object = decode(&envelope("scheduling.k8s.io/v1", "PriorityClass", &raw)).unwrap();
        assert_eq!(object["value"], -1);
    }

    #[test]
    fn what_is_unknown_or_broken_is_refused() {
        let unknown_field = envelope("v1", "ConfigMap", &bytes(9, b"x"));
        let unknown_kind = envelope("v1", "Secret", b"");
        for body in [unknown_field, unknown_kind] {
            assert_eq!(decode(&body).unwrap_err().code(), 415);
        }
        let cut = envelope("v1", "Namespace", &bytes(1, b"x"));
        for body in [&cut[..cut.len() - 7], b"{}", b"k8s\0\xff\xff", b"k8s\0\x0b"] {
            assert_eq!(decode(body).unwrap_err().code(), 400, "{body:?}");
        }
    }
}
