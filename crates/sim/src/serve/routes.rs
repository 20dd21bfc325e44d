//! The verbs of the API over HTTP: each turns a request into one call of the store and its result
//! into JSON, a table or a `metav1.Status`.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    delete::DeleteOptions,
    discovery,
    hosts::Hosts,
    kinds::{BINDINGS, PODS},
    managed_fields::FieldManager,
    object::{Key, Object, is_terminating, name, namespace},
    patch,
    refused::{Refused, success},
    request::{AnswerFormat, Params, Target, media_type, parse_json, read, read_json},
    revise::ObjectPart,
    selector::ObjectFilter,
    store::Store,
    stream::{self, CacheLag},
    table::table,
};

/// What every request may need.
#[derive(Clone)]
pub(super) struct App {
    pub(super) store: Arc<Store>,
    /// Names under which the server may be addressed.
    pub(super) hosts: Hosts,
    /// True, or closed, when the server stops: open watches end then.
    pub(super) stop: watch::Receiver<bool>,
}

/// One request, taken apart.
pub(super) struct Call {
    pub(super) app: App,
    pub(super) target: Target,
    pub(super) params: Params,
    pub(super) format: AnswerFormat,
    /// How far the watch cache is behind. Absent: it is as new as the store.
    pub(super) cache_lag: Option<CacheLag>,
    headers: HeaderMap,
    body: Body,
}

/// Everything that is served.
pub(super) fn router(app: App) -> Router {
    Router::new().fallback(handle).with_state(app)
}

async fn handle(State(app): State<App>, request: Request) -> Response {
    respond(app, request).await.unwrap_or_else(|refused| {
        let code = StatusCode::from_u16(refused.code()).unwrap_or(StatusCode::BAD_REQUEST);
        json_response(code, refused.status().to_string())
    })
}

async fn respond(app: App, request: Request) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    app.hosts.check(&parts.headers)?;
    if let Some(page) = discovery::page(parts.uri.path()) {
        return Ok(page);
    }
    let target = Target::parse(parts.uri.path()).ok_or(Refused::NoSuchResource)?;
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let format = AnswerFormat::negotiate(&parts.headers, &params);
    if !params.get("dryRun").is_empty() {
        return Err(Refused::BadRequest("dryRun is not served".to_owned()));
    }
    let cache_lag = parts.extensions.get::<CacheLag>().copied();
    let call = Call { app, target, params, format, cache_lag, headers: parts.headers, body };
    call.dispatch(&parts.method).await
}

impl Call {
    async fn dispatch(self, method: &Method) -> Result<Response, Refused> {
        let kind = self.target.kind;
        let has_name = self.target.name.is_some();
        if *kind == BINDINGS && (method != Method::POST || has_name) {
            return Err(Refused::MethodNotAllowed);
        }
        let part = match self.target.subresource.clone().as_deref() {
            None => ObjectPart::Main,
            Some("status") if kind.has_status() => ObjectPart::Status,
            Some(name) if *kind == PODS => return self.pod_subresource(method, name).await,
            Some(_) => return Err(Refused::NoSuchResource),
        };
        match (method.as_str(), has_name) {
            ("GET", true) => self.get(),
            ("GET", false) if self.params.is_set("watch") => stream::watch(&self),
            ("GET", false) => stream::list(&self),
            ("PUT", true) => self.put(part).await,
            ("PATCH", true) => self.patch(part).await,
            ("DELETE", true) if part == ObjectPart::Main => self.delete().await,
            ("DELETE", false) => self.delete_collection().await,
            ("POST", false) => self.post().await,
            _ => Err(Refused::MethodNotAllowed),
        }
    }

    /// The selectors of a list, watch or delete of a collection.
    pub(super) fn filter(&self) -> Result<ObjectFilter, Refused> {
        let namespace = self.target.namespace.clone();
        let labels = self.params.get("labelSelector");
        ObjectFilter::parse(self.target.kind, namespace, labels, self.params.get("fieldSelector"))
    }

    fn get(&self) -> Result<Response, Refused> {
        let object = self.find()?;
        Ok(match self.format {
            AnswerFormat::Json => object_response(StatusCode::OK, &object),
            AnswerFormat::Table(row) => {
                let version = object.revision.to_string();
                let table = table(self.target.kind, &[object], row, &version);
                json_response(StatusCode::OK, table.to_string())
            }
        })
    }

    fn find(&self) -> Result<Arc<Object>, Refused> {
        let (kind, key) = (self.target.kind, self.target.key());
        let missing = || Refused::NotFound { kind, name: key.name.clone() };
        self.app.store.get(kind, &key.namespace, &key.name).ok_or_else(missing)
    }

    async fn read_body(&mut self) -> Result<Value, Refused> {
        read_json(&self.headers, std::mem::take(&mut self.body)).await
    }

    /// Returns who sends the request. `None`: the store does not keep that.
    fn manager(&self, part: ObjectPart) -> Option<FieldManager> {
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let mut manager =
            FieldManager::of(self.params.get("fieldManager"), agent.unwrap_or_default());
        if part == ObjectPart::Status {
            manager.subresource = "status".to_owned();
        }
        self.app.store.tracks_managers().then_some(manager)
    }

    /// Notes in an object who sends it.
    fn note_manager(&self, object: &mut Value, part: ObjectPart) {
        if let Some(manager) = self.manager(part) {
            manager.note(object);
        }
    }

    async fn post(mut self) -> Result<Response, Refused> {
        let kind = self.target.kind;
        let mut body = self.read_body().await?;
        match (&self.target.namespace, namespace(&body)) {
            (None, _) if kind.is_namespaced() => return Err(Refused::MethodNotAllowed),
            (Some(asked), given) if !given.is_empty() && given != asked => {
                let why = "the namespace of the object is not that of the URL".to_owned();
                return Err(Refused::BadRequest(why));
            }
            (Some(asked), _) if body["metadata"].is_object() => {
                body["metadata"]["namespace"] = asked.as_str().into();
            }
            _ => {}
        }
        if *kind == BINDINGS {
            self.note_manager(&mut body, ObjectPart::Main);
            return bind(&self.app.store, &Key::of(&body), &body);
        }
        self.note_manager(&mut body, ObjectPart::Main);
        let object = self.app.store.create(kind, &body)?;
        Ok(object_response(StatusCode::CREATED, &object))
    }

    async fn put(mut self, part: ObjectPart) -> Result<Response, Refused> {
        let mut body = self.read_body().await?;
        self.note_manager(&mut body, part);
        let key = self.target.key();
        let object = self.app.store.replace(self.target.kind, &key, part, body)?;
        Ok(object_response(StatusCode::OK, &object))
    }

    async fn patch(mut self, part: ObjectPart) -> Result<Response, Refused> {
        let form = PatchForm::of(&self.headers)?;
        let kind = self.target.kind;
        if form == PatchForm::Strategic && kind.is_custom() {
            return Err(Refused::UnsupportedMediaType(
                "strategic merge patch is not served for custom resources\n\
                 hint: send application/merge-patch+json"
                    .to_owned(),
            ));
        }
        let patch = parse_json(&read(std::mem::take(&mut self.body)).await?)?;
        let manager = self.manager(part);
        let apply = |value: &mut Value| {
            match form {
                PatchForm::Strategic => patch::strategic(value, &patch)?,
                PatchForm::Merge => patch::merge(value, &patch),
            }
            if let Some(manager) = &manager {
                manager.note(value);
            }
            Ok(())
        };
        let object = self.app.store.patch(kind, &self.target.key(), part, apply)?;
        Ok(object_response(StatusCode::OK, &object))
    }

    async fn delete(self) -> Result<Response, Refused> {
        let options = delete_options(&self.params, read_json(&self.headers, self.body).await?)?;
        let kind = self.target.kind;
        let last = self.app.store.delete(kind, &self.target.key(), &options)?;
        if *kind == PODS || is_terminating(&last.value) {
            return Ok(object_response(StatusCode::OK, &last));
        }
        let mut status = success(200);
        status["details"] = json!({
            "name": last.name(), "group": kind.group, "kind": kind.plural, "uid": last.uid(),
        });
        Ok(json_response(StatusCode::OK, status.to_string()))
    }

    async fn delete_collection(self) -> Result<Response, Refused> {
        let filter = self.filter()?;
        let options = delete_options(&self.params, read_json(&self.headers, self.body).await?)?;
        let kind = self.target.kind;
        if kind.is_namespaced() && self.target.namespace.is_none() {
            return Err(Refused::MethodNotAllowed);
        }
        let deleted = self.app.store.delete_matching(kind, &filter, &options);
        Ok(stream::list_response(kind, deleted, json!({})))
    }

    async fn pod_subresource(mut self, method: &Method, name: &str) -> Result<Response, Refused> {
        let key = self.target.key();
        match (method.as_str(), name) {
            ("GET", "log") => {
                self.find()?;
                Ok(Response::new(Body::empty()))
            }
            ("POST", "binding") => {
                let mut body = self.read_body().await?;
                self.note_manager(&mut body, ObjectPart::Main);
                bind(&self.app.store, &key, &body)
            }
            ("POST", "eviction") => {
                let body = read_json(&self.headers, self.body).await?;
                let options = DeleteOptions::of(&body["deleteOptions"]);
                self.app.store.delete(&PODS, &key, &options)?;
                Ok(json_response(StatusCode::CREATED, success(201).to_string()))
            }
            (_, "log" | "binding" | "eviction") => Err(Refused::MethodNotAllowed),
            _ => Err(Refused::NoSuchResource),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum PatchForm {
    Merge,
    Strategic,
}

impl PatchForm {
    fn of(headers: &HeaderMap) -> Result<PatchForm, Refused> {
        match media_type(headers) {
            "application/merge-patch+json" => Ok(PatchForm::Merge),
            "application/strategic-merge-patch+json" => Ok(PatchForm::Strategic),
            other => Err(Refused::UnsupportedMediaType(format!(
                "this form of patch is not served: {other:?}\n\
                 hint: send application/merge-patch+json or \
                 application/strategic-merge-patch+json; kubectl apply without --server-side does"
            ))),
        }
    }
}

fn delete_options(params: &Params, body: Value) -> Result<DeleteOptions, Refused> {
    let mut options = DeleteOptions::of(&body);
    if let Some(seconds) = params.number("gracePeriodSeconds")? {
        options.grace_seconds = Some(i64::try_from(seconds).unwrap_or(i64::MAX));
    }
    options.orphan |= params.get("propagationPolicy") == "Orphan";
    Ok(options)
}

fn bind(store: &Store, key: &Key, binding: &Value) -> Result<Response, Refused> {
    let named = name(binding);
    if !named.is_empty() && named != key.name {
        return Err(Refused::BadRequest("metadata.name is not that of the URL".to_owned()));
    }
    store.bind(key, binding)?;
    Ok(json_response(StatusCode::CREATED, success(201).to_string()))
}

fn object_response(code: StatusCode, object: &Object) -> Response {
    json_response(code, object.json())
}

/// An answer of JSON text.
pub(super) fn json_response(code: StatusCode, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = code;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
