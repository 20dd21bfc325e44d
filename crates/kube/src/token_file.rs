//! Token files whose text has spaces or a line end around the token. client-go leaves them out, kube sends
//! them, and a header cannot hold them. Specification: rust-ecosystem.md K-17.

use kube::Config;

/// Takes the token out of such a file. It is read once then; a file that holds the token alone, as those of
/// pods do, is read again by kube.
pub(crate) fn trim(config: &mut Config) {
    let auth = &mut config.auth_info;
    if auth.token.is_some() {
        return;
    }
    // Whoever cannot read it is told by kube.
    let text = auth.token_file.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    if let Some(text) = text.filter(|text| text.trim() != text) {
        auth.token = Some(text.trim().to_owned().into());
        auth.token_file = None;
    }
}
