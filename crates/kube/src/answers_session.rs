//! What all ways to a scheduler share: the kubeconfig, a client of the API server, and the user's tokens. Specification:
//! answers.md 13 (ANS-89).

use std::fmt;
use std::sync::Arc;

use kube::config::Kubeconfig;
use kube::{Client, Config};
use tokio::sync::{Mutex, OnceCell};

use crate::answers_client::{AnswersAccess, AnswersError};
use crate::answers_token::AnswersToken;
use crate::token_file;

/// What was read and asked for once, and is used by each way. Clones share it. A plugin of the kubeconfig runs when
/// the client is made, and when a token is asked for. The client works in the runtime alone in which it was made.
#[derive(Clone, Default)]
pub struct AnswersSession(Arc<Shared>);

#[derive(Default)]
struct Shared {
    config: OnceCell<Config>,
    client: OnceCell<Client>,
    tokens: Mutex<Vec<Arc<AnswersToken>>>,
}

impl fmt::Debug for AnswersSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It holds tokens.
        out.write_str("AnswersSession")
    }
}

impl AnswersAccess {
    /// Returns the kubeconfig, with the flags in it.
    ///
    /// # Errors
    /// It cannot be used, or a flag names what is not there.
    pub(crate) async fn config(&self) -> Result<Config, AnswersError> {
        self.session.0.config.get_or_try_init(|| read_kubeconfig(self)).await.cloned()
    }

    /// Returns a client of the API server with the credentials of the kubeconfig.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub(crate) async fn api_client(&self) -> Result<Client, AnswersError> {
        let client = self.session.0.client.get_or_try_init(async || {
            let mut config = self.config().await?;
            // Whoever cannot answer says why: repeating the question helps nobody.
            config.default_retry = false;
            Client::try_from(config).map_err(AnswersError::Build)
        });
        client.await.cloned()
    }

    /// Returns the token of the kubeconfig. If it has none, one of the ServiceAccount of this namespace and name.
    ///
    /// # Errors
    /// There is no token, and none is given.
    pub(crate) async fn token(
        &self,
        account: &(String, String),
    ) -> Result<Arc<AnswersToken>, AnswersError> {
        let mut tokens = self.session.0.tokens.lock().await;
        if let Some(token) = tokens.iter().find(|token| token.is_for(account)) {
            return Ok(token.clone());
        }
        let (config, limit) = (self.config().await?, self.flags.request_timeout);
        let token = Arc::new(AnswersToken::new(&config, account, limit).await?);
        tokens.push(token.clone());
        Ok(token)
    }
}

async fn read_kubeconfig(access: &AnswersAccess) -> Result<Config, AnswersError> {
    let kubeconfig = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path)?,
        None => Kubeconfig::read()?,
    };
    let mut config = access.flags.config(kubeconfig, access.context.clone()).await?;
    token_file::trim(&mut config);
    Ok(config)
}
