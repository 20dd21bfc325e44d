//! The section `metrics` of the configuration as a source of node loads. Specification: core.md 2.5.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use vc_conf::{Config, Warning};
use vc_kube::{Clients, EngineMessage, LoadServer, LoadSource, LoadSourceKind, follow_loads};

use crate::meter::{Meter, State};

/// Shortest time between two rounds: a source must not be asked without a pause.
const SHORTEST: Duration = Duration::from_secs(1);

/// Returns the source of the configuration. `None`: it names none, or one that nobody knows, or one
/// without an address; of the latter two the loader has warned.
///
/// # Errors
/// The address is of no use.
pub(crate) fn source(config: &Config) -> Result<Option<LoadSource>, Warning> {
    let text = |key: &str| config.metrics.get(key).map_or("", String::as_str);
    let or = |key: &str, default: &str| match text(key) {
        "" => default.to_owned(),
        text => text.to_owned(),
    };
    let server = || {
        let skip_verify = text("tls.insecureSkipVerify") == "true";
        let server = LoadServer::new(text("address"), skip_verify);
        server.map_err(|problem| {
            let (message, remedy) = problem.split_once("; ").unwrap_or((&problem, ""));
            Warning::new(None, "metrics.address", message, remedy)
        })
    };
    let has_address = !text("address").is_empty();
    let kind = match text("type") {
        "prometheus" if has_address => LoadSourceKind::Prometheus(server()?),
        "prometheus_adaptor" => LoadSourceKind::PrometheusAdaptor,
        "elasticsearch" if has_address => LoadSourceKind::Elasticsearch {
            server: server()?
                .as_user(text("elasticsearch.username"), text("elasticsearch.password")),
            index: or("elasticsearch.index", "metricbeat-*"),
            host_field: or("elasticsearch.hostnameFieldName", "host.hostname"),
        },
        _ => return Ok(None),
    };
    let micros = u64::try_from(vc_engine::load_interval_micros(config)).unwrap_or(0);
    Ok(Some(LoadSource { kind, interval: Duration::from_micros(micros).max(SHORTEST) }))
}

/// The source for a configuration that is put in force. `None`: nothing is read.
pub(crate) fn source_in_force(config: &Config) -> Option<LoadSource> {
    source(config).unwrap_or(None)
}

/// The plugins that read the loads of nodes.
const READERS: [&str; 2] = ["rescheduling", "usage"];

/// Returns what is wrong with the source: its address is of no use, or a plugin needs one and there is
/// none. The loader has warned of the rest.
pub fn warning(config: &Config) -> Option<Warning> {
    let source = match source(config) {
        Ok(source) => source,
        Err(warning) => return Some(warning),
    };
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let reader = plugins.find(|plugin| READERS.contains(&plugin.name.as_str()));
    let is_named = config.metrics.get("type").is_some_and(|kind| !kind.is_empty());
    reader.filter(|_| source.is_none() && !is_named).map(|reader| {
        let name = &reader.name;
        let message = format!("plugin {name} has no source of node loads, it decides nothing");
        let remedy = "name one, as in metrics: {type: prometheus, address: http://prometheus:9090}";
        Warning::new(None, "metrics.type", message, remedy)
    })
}

/// Reads the source in force once all objects are known, until nobody listens any more.
pub(crate) async fn follow(
    sources: watch::Receiver<Option<LoadSource>>,
    clients: Clients,
    inbox: mpsc::Sender<EngineMessage>,
    meter: Arc<Meter>,
) {
    let mut states = meter.state.subscribe();
    let is_synced = |state: &State| *state == State::Leading { synced: true };
    if states.wait_for(is_synced).await.is_ok() {
        follow_loads(sources, clients, inbox, meter.clone()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_without_a_source_is_told() {
        let told = |text: &str| {
            let loaded = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).unwrap();
            warning(&loaded.config).map(|warning| warning.to_string())
        };
        let usage = "actions: allocate\ntiers:\n- plugins: [{name: usage}]\n";
        let expected = "metrics.type: plugin usage has no source of node loads, it decides nothing\n\
            hint: name one, as in metrics: {type: prometheus, address: http://prometheus:9090}";
        assert_eq!(told(usage).as_deref(), Some(expected));
        assert_eq!(told(&format!("{usage}metrics: {{type: prometheus_adaptor}}\n")), None);
        assert_eq!(told(&usage.replace("usage", "gang")), None);
    }

    fn of(section: &[(&str, &str)]) -> Result<Option<LoadSource>, Warning> {
        let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let metrics = section.iter().map(text).collect();
        source(&Config { metrics, ..Config::default() })
    }

    #[test]
    fn nodes_111_the_section_becomes_a_source() {
        let address = "https://es:9200";
        let server = LoadServer::new(address, false).unwrap();
        let with = |more: &[(&str, &str)]| {
            of(&[&[("type", "elasticsearch"), ("address", address)], more].concat())
                .unwrap()
                .unwrap()
        };
        let kind = |server: LoadServer, index: &str, field: &str| LoadSourceKind::Elasticsearch {
            server,
            index: index.to_owned(),
            host_field: field.to_owned(),
        };
        let usual = with(&[]);
        assert_eq!(usual.kind, kind(server.clone(), "metricbeat-*", "host.hostname"));
        assert_eq!(usual.interval, Duration::from_secs(30));
        let other = with(&[
            ("elasticsearch.index", "nodes"),
            ("elasticsearch.hostnameFieldName", "host.name"),
            ("elasticsearch.username", "me"),
            ("elasticsearch.password", "secret"),
            ("interval", "1m"),
        ]);
        assert_eq!(other.kind, kind(server.as_user("me", "secret"), "nodes", "host.name"));
        assert_eq!(other.interval, Duration::from_secs(60));
        let insecure = with(&[("tls.insecureSkipVerify", "true")]);
        let server = LoadServer::new(address, true).unwrap();
        assert_eq!(insecure.kind, kind(server, "metricbeat-*", "host.hostname"));
    }

    #[test]
    fn what_names_no_source_reads_nothing() {
        for section in [
            &[][..],
            &[("type", "")],
            &[("type", "prometheus")],
            &[("type", "elasticsearch")],
            &[("type", "influx"), ("address", "http://x")],
        ] {
            assert_eq!(of(section).unwrap(), None, "{section:?}");
        }
        let adaptor = of(&[("type", "prometheus_adaptor"), ("interval", "1ms")]).unwrap().unwrap();
        assert_eq!(adaptor.kind, LoadSourceKind::PrometheusAdaptor);
        assert_eq!(adaptor.interval, SHORTEST);
        let warning = of(&[("type", "prometheus"), ("address", "prometheus:9090")]).unwrap_err();
        let expected = "metrics.address: not a URL of HTTP or HTTPS\nhint: write it like http://";
        assert!(warning.to_string().starts_with(expected), "{warning}");
    }
}
