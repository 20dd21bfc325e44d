//! kubectl's flags about the connection, which take the place of what a kubeconfig says. Specification: answers.md 13
//! (ANS-86).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use tokio::time::timeout;

use crate::answers_client::AnswersError;
use crate::answers_way::AnswersWay;

/// What a command line says about the connection in place of the kubeconfig.
#[derive(Clone, Default)]
pub struct ConnectionFlags {
    /// Name of a cluster of the kubeconfig. `None`: that of the context.
    pub cluster: Option<String>,
    /// Name of a user of the kubeconfig. `None`: that of the context.
    pub user: Option<String>,
    /// `None`: the credentials of the kubeconfig's user.
    pub credentials: Option<GivenCredentials>,
    /// `None`: the one of the kubeconfig's user, if there is one.
    pub impersonation: Option<Impersonation>,
    /// File with the CA of the server. `None`: that of the kubeconfig, or of the system for the port of a scheduler.
    pub authority: Option<PathBuf>,
    /// Whoever answers is believed.
    pub is_insecure: bool,
    /// Name that the server's certificate has to have. `None`: the one of the kubeconfig, else the host of the URL.
    pub tls_server_name: Option<String>,
    /// How long the whole answer to a request may take. `None`: there is no such limit.
    pub request_timeout: Option<Duration>,
}

impl fmt::Debug for ConnectionFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // They hold a token.
        out.write_str("ConnectionFlags")
    }
}

/// Credentials in place of all those of the kubeconfig's user. Of two credentials the API server and a scheduler
/// could each believe another one.
#[derive(Clone)]
pub enum GivenCredentials {
    /// A bearer token.
    Token(String),
    /// PEM files of a client certificate and of its key.
    Certificate {
        /// The certificate, with those between it and the CA.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// A user as whom the API server shall treat the requests of another one.
#[derive(Clone, Debug)]
pub struct Impersonation {
    /// Name of the user.
    pub user: String,
    /// Unique id of the user. `None`: no id.
    pub uid: Option<String>,
    /// Groups of the user. The API server adds those that all users have.
    pub groups: Vec<String>,
}

/// The answer to a request took longer than `--request-timeout` allows.
#[derive(Debug, thiserror::Error)]
#[error("it took longer than {0:?} (--request-timeout)")]
pub(crate) struct RequestTimedOut(pub(crate) Duration);

/// Waits for the whole answer to one request, for as long as this limit says.
///
/// # Errors
/// The request fails, or takes too long: [`RequestTimedOut`] in a [`kube::Error::Service`].
pub(crate) async fn in_time<T>(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let Some(limit) = limit else { return answer.await };
    let answered = timeout(limit, answer).await;
    answered.unwrap_or_else(|_| Err(kube::Error::Service(Box::new(RequestTimedOut(limit)))))
}

/// What to do instead of impersonating a user: of `--as`, and of `as` in a kubeconfig.
const AS_TOKEN: &str = "give --token with a token of that user in place of --as";
const AS_OTHER_USER: &str = "name another --user, or a kubeconfig whose user has no \"as\", with credentials of that \
    user";

/// Returns the user who is impersonated. Returns `None` if nobody is.
///
/// # Errors
/// A uid, groups or further fields of such a user are given, but no name. client-go refuses that, too.
fn impersonated_user(user: &AuthInfo) -> Result<Option<&str>, AnswersError> {
    let name = user.impersonate.as_deref().filter(|name| !name.is_empty());
    let has_uid = user.impersonate_uid.as_ref().is_some_and(|uid| !uid.is_empty());
    let has_groups = user.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty());
    let has_extra = user.impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty());
    match name.is_none() && (has_uid || has_groups || has_extra) {
        true => Err(AnswersError::NoImpersonatedUser),
        false => Ok(name),
    }
}

impl ConnectionFlags {
    /// Checks that a way leads to answers for the user who is impersonated, if there is one. Only the API server knows
    /// impersonation. By all other ways the scheduler would answer the user of the token, with the rights of that one.
    ///
    /// # Errors
    /// The way leads to answers for another user.
    pub(crate) fn check_impersonation(
        &self,
        config: &Config,
        way: &AnswersWay,
    ) -> Result<(), AnswersError> {
        match (impersonated_user(&config.auth_info)?, way) {
            (None, _) | (Some(_), AnswersWay::ApiServer) => Ok(()),
            (Some(user), way) => {
                // A token of the flags leaves the impersonation of the kubeconfig in force.
                let hint = match &self.impersonation {
                    Some(_) => AS_TOKEN,
                    None => AS_OTHER_USER,
                };
                let (place, user) = (way.to_string(), user.to_owned());
                Err(AnswersError::NotImpersonated { place, user, hint })
            }
        }
    }

    /// Returns the configuration of a context, with the flags in it. `None` is the current context.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or has no such cluster or user. A file of the flags cannot be read.
    pub(crate) async fn config(
        &self,
        mut kubeconfig: Kubeconfig,
        context: Option<String>,
    ) -> Result<Config, AnswersError> {
        let clusters = kubeconfig.clusters.iter().map(|it| it.name.as_str());
        check_name("cluster", self.cluster.as_deref(), clusters)?;
        let users = kubeconfig.auth_infos.iter().map(|it| it.name.as_str());
        // kube takes an unknown user for one without credentials.
        check_name("user", self.user.as_deref(), users)?;
        self.check_authority()?;
        for named in &mut kubeconfig.clusters {
            named.cluster.iter_mut().for_each(|cluster| self.change_cluster(cluster));
        }
        let (cluster, user) = (self.cluster.clone(), self.user.clone());
        let options = KubeConfigOptions { context, cluster, user };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        if self.is_insecure {
            // Nothing is verified, so the certificates of the system need not be there.
            config.root_cert.get_or_insert_with(Vec::new);
        }
        self.change_user(&mut config.auth_info)?;
        Ok(config)
    }

    /// Checks the file of the CA. kube reads it again, and does not name the flag in its errors.
    ///
    /// # Errors
    /// It cannot be read, or holds no certificate.
    pub(crate) fn check_authority(&self) -> Result<(), AnswersError> {
        let path = self.authority.as_deref();
        path.map_or(Ok(()), |path| check_pem(path, "--certificate-authority", CERTIFICATE))
    }

    /// Puts the credentials and the impersonation of the flags in place of those of a user.
    ///
    /// # Errors
    /// A file of the credentials cannot be read, or of a user to impersonate all but the name is given.
    pub(crate) fn change_user(&self, user: &mut AuthInfo) -> Result<(), AnswersError> {
        if let Some(given) = &self.credentials {
            let old = std::mem::take(user);
            *user = AuthInfo {
                impersonate: old.impersonate,
                impersonate_uid: old.impersonate_uid,
                impersonate_groups: old.impersonate_groups,
                impersonate_user_extra: old.impersonate_user_extra,
                ..given.auth_info()?
            };
        }
        if let Some(Impersonation { user: name, uid, groups }) = &self.impersonation {
            user.impersonate = Some(name.clone());
            user.impersonate_uid.clone_from(uid);
            user.impersonate_groups = Some(groups.clone());
            user.impersonate_user_extra = None;
        }
        impersonated_user(user).map(drop)
    }

    /// Puts the flags about TLS in place of what a cluster says. As kubectl does it, a CA of the flags verifies also a
    /// cluster that the kubeconfig wants to be believed.
    fn change_cluster(&self, cluster: &mut Cluster) {
        if self.authority.is_some() || self.is_insecure {
            cluster.certificate_authority = self.authority.as_deref().map(text_of);
            cluster.certificate_authority_data = None;
            cluster.insecure_skip_tls_verify = Some(self.is_insecure);
        }
        if self.tls_server_name.is_some() {
            cluster.tls_server_name.clone_from(&self.tls_server_name);
        }
    }
}

impl GivenCredentials {
    /// Returns a user who has these credentials and nothing else.
    fn auth_info(&self) -> Result<AuthInfo, AnswersError> {
        Ok(match self {
            Self::Token(token) => {
                AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() }
            }
            Self::Certificate { certificate, key } => {
                check_pem(certificate, "--client-certificate", CERTIFICATE)?;
                check_pem(key, "--client-key", PRIVATE_KEY)?;
                AuthInfo {
                    client_certificate: Some(text_of(certificate)),
                    client_key: Some(text_of(key)),
                    ..AuthInfo::default()
                }
            }
        })
    }
}

/// What a PEM file has to hold: a mark, and the error of a file without it.
type PemContent = (&'static str, &'static str);

const CERTIFICATE: PemContent = ("-----BEGIN CERTIFICATE-----", "it has no certificate");
/// Keys of several formats end like this.
const PRIVATE_KEY: PemContent = ("PRIVATE KEY-----", "it has no private key");

/// Checks that a PEM file of a flag can be read, and holds what it should.
fn check_pem(path: &Path, flag: &'static str, content: PemContent) -> Result<(), AnswersError> {
    let (mark, absent) = content;
    let failed = |error| AnswersError::File { path: path.to_owned(), error, flag };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    match text.contains(mark) {
        true => Ok(()),
        false => Err(failed(std::io::Error::other(absent))),
    }
}

/// Returns a path as a kubeconfig holds it.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Checks that the kubeconfig has the entry that a flag names.
fn check_name<'a>(
    kind: &'static str,
    wanted: Option<&str>,
    mut known: impl Iterator<Item = &'a str>,
) -> Result<(), AnswersError> {
    match wanted {
        Some(name) if !known.any(|it| it == name) => {
            Err(AnswersError::NoEntry { kind, name: name.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn kubeconfig() -> Kubeconfig {
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{name: k, cluster: {server: 'https://10.1.2.3:6443', tls-server-name: old, \
               certificate-authority: /absent}}, {name: l, cluster: {server: 'http://10.1.2.4'}}]\n\
             contexts: [{name: c, context: {cluster: k, user: u, namespace: ml}}]\n\
             users: [{name: u, user: {token: t, client-key: /absent, as: jo, as-groups: [dev]}}, \
               {name: v, user: {}}]\n";
        Kubeconfig::from_yaml(text).unwrap()
    }

    async fn config(flags: &ConnectionFlags) -> Result<Config, AnswersError> {
        flags.config(kubeconfig(), None).await
    }

    fn insecure() -> ConnectionFlags {
        ConnectionFlags { is_insecure: true, ..ConnectionFlags::default() }
    }

    #[tokio::test]
    async fn ans_86_flags_take_the_place_of_what_the_kubeconfig_says() {
        // Its CA cannot be read. With the flag nobody needs it.
        assert!(config(&ConnectionFlags::default()).await.is_err());
        let of_file = config(&insecure()).await.unwrap();
        assert_eq!(of_file.cluster_url, "https://10.1.2.3:6443/");
        assert_eq!(of_file.tls_server_name.as_deref(), Some("old"));
        assert!(of_file.accept_invalid_certs && of_file.root_cert == Some(Vec::new()));
        let user = &of_file.auth_info;
        assert!(user.token.is_some() && user.client_key.is_some());
        let impersonation = Impersonation { user: "di".to_owned(), uid: None, groups: Vec::new() };
        let flags = ConnectionFlags {
            cluster: Some("l".to_owned()),
            tls_server_name: Some("new".to_owned()),
            credentials: Some(GivenCredentials::Token("given".to_owned())),
            ..ConnectionFlags::default()
        };
        let given = config(&flags).await.unwrap();
        assert_eq!((given.cluster_url.host(), &*given.default_namespace), (Some("10.1.2.4"), "ml"));
        assert_eq!(given.tls_server_name.as_deref(), Some("new"));
        let user = &given.auth_info;
        assert!(user.token.is_some() && user.client_key.is_none());
        assert_eq!(user.impersonate.as_deref(), Some("jo"));
        let flags = ConnectionFlags { impersonation: Some(impersonation), ..insecure() };
        let user = config(&flags).await.unwrap().auth_info;
        assert_eq!(user.impersonate.as_deref(), Some("di"));
        assert_eq!(user.impersonate_groups, Some(Vec::new()));
        let flags = ConnectionFlags { user: Some("v".to_owned()), ..insecure() };
        let user = config(&flags).await.unwrap().auth_info;
        assert!(user.token.is_none() && user.impersonate.is_none());
    }

    #[tokio::test]
    async fn ans_86_names_and_files_that_are_not_there_are_told() {
        let absent = PathBuf::from("/absent");
        let credentials =
            GivenCredentials::Certificate { certificate: absent.clone(), key: absent.clone() };
        let cases = [
            (
                ConnectionFlags { cluster: Some("x".to_owned()), ..insecure() },
                "kubeconfig: it has no cluster \"x\"\nhint: kubectl config get-clusters lists them",
            ),
            (
                ConnectionFlags { user: Some("x".to_owned()), ..insecure() },
                "kubeconfig: it has no user \"x\"\nhint: kubectl config get-users lists them",
            ),
            (
                ConnectionFlags { credentials: Some(credentials), ..insecure() },
                "cannot read /absent: No such file or directory (os error 2)\n\
                 hint: check --client-certificate",
            ),
            (
                ConnectionFlags { authority: Some(absent), ..ConnectionFlags::default() },
                "cannot read /absent: No such file or directory (os error 2)\n\
                 hint: check --certificate-authority",
            ),
        ];
        for (flags, expected) in cases {
            assert_eq!(config(&flags).await.unwrap_err().to_string(), expected);
        }
    }

    #[tokio::test]
    async fn ans_86_only_the_api_server_answers_as_somebody_else() {
        let (namespace, name) = ("sched".to_owned(), "ask".to_owned());
        let service = AnswersWay::Service { namespace, name };
        let di = Impersonation { user: "di".to_owned(), uid: None, groups: Vec::new() };
        let of_flag = ConnectionFlags { impersonation: Some(di), ..insecure() };
        // Each has the remedy that helps: a token does not end what the kubeconfig says.
        for (flags, user, remedy) in [(insecure(), "jo", AS_OTHER_USER), (of_flag, "di", AS_TOKEN)]
        {
            let mut config = config(&flags).await.unwrap();
            assert!(flags.check_impersonation(&config, &AnswersWay::ApiServer).is_ok());
            let error = flags.check_impersonation(&config, &service).unwrap_err();
            assert!(error.is_not_there(), "{error}");
            let text = error.to_string();
            let expected = format!(
                "Service sched/ask is not asked: it would answer the user of the token, not {user}, "
            );
            assert!(text.starts_with(&expected), "{text}");
            assert!(text.ends_with(&format!("; or {remedy}")), "{text}");
            for name in [None, Some(String::new())] {
                config.auth_info = AuthInfo { impersonate: name, ..AuthInfo::default() };
                assert!(flags.check_impersonation(&config, &service).is_ok());
            }
        }
    }

    /// The API server would answer the user of the credentials.
    #[tokio::test]
    async fn ans_86_groups_of_nobody_are_refused() {
        let with_user = |fields: &str| {
            let text = format!(
                "current-context: c\nclusters: [{{name: k, cluster: {{server: 'http://10.1.2.4'}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
                 users: [{{name: u, user: {{token: t, {fields}}}}}]\n"
            );
            Kubeconfig::from_yaml(&text).unwrap()
        };
        let di = Impersonation { user: "di".to_owned(), uid: None, groups: Vec::new() };
        let as_di = ConnectionFlags { impersonation: Some(di), ..ConnectionFlags::default() };
        for field in ["as-groups: [dev]", "as-uid: '42'", "as-user-extra: {team: [a]}"] {
            for fields in [field.to_owned(), format!("as: '', {field}")] {
                let error = ConnectionFlags::default().config(with_user(&fields), None).await;
                let error = error.unwrap_err();
                assert!(matches!(error, AnswersError::NoImpersonatedUser), "{fields}: {error}");
                assert!(!error.is_not_there(), "no other way is tried");
                let user = as_di.config(with_user(&fields), None).await.unwrap().auth_info;
                assert_eq!(user.impersonate.as_deref(), Some("di"), "{fields}");
                assert!(user.impersonate_uid.is_none() && user.impersonate_user_extra.is_none());
            }
            let named = with_user(&format!("as: jo, {field}"));
            assert!(ConnectionFlags::default().config(named, None).await.is_ok(), "{field}");
        }
        let nobody = with_user("as-groups: [], as-user-extra: {}");
        assert!(ConnectionFlags::default().config(nobody, None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn ans_86_a_request_takes_no_longer_than_the_flag_allows() {
        let limit = Duration::from_secs(90);
        let error = in_time(Some(limit), pending::<Result<(), kube::Error>>()).await.unwrap_err();
        let kube::Error::Service(error) = error else { panic!("{error}") };
        assert!(error.is::<RequestTimedOut>());
        assert_eq!(error.to_string(), "it took longer than 90s (--request-timeout)");
        assert!(in_time(Some(limit), async { Ok(()) }).await.is_ok());
        assert!(in_time(None, async { Ok(()) }).await.is_ok());
    }
}
