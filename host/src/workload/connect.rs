//! Makes the client of a workload cluster from its kubeconfig, which has to say everything itself and to name
//! an address where that cluster's API server may be. Nothing of what a kubeconfig holds but that address
//! reaches an error.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder, service_fn};

use super::WorkloadError;
use super::address::{AllowedAddresses, Endpoint};
use crate::read_only::ReadOnlyLayer;

/// How long a connection may take, beside the time of the answer that it is for.
const CONNECT: Duration = Duration::from_secs(5);

/// The client that a kubeconfig describes.
///
/// # Errors
/// It cannot be used, or names an address where the API server of this cluster is not.
pub(super) async fn client(
    kubeconfig: &[u8],
    allowed: AllowedAddresses,
    is_read_only: bool,
) -> Result<Client, WorkloadError> {
    let text = std::str::from_utf8(kubeconfig).map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
    check_self_contained(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
    let server = server(&config).ok_or_else(|| WorkloadError::Kubeconfig("it names no server".into()))?;
    // An address is connected to without being looked up: it is checked now.
    if server.0.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        allowed.resolve(&server).await.map_err(WorkloadError::NotAsked)?;
    }
    connected(config, server, allowed, is_read_only).map_err(|it| WorkloadError::Kubeconfig(it.into()))
}

/// As [`kube::client::ClientBuilder`] does it, with addresses that were checked, without repeating anything
/// by itself, and without asking for compressed answers.
fn connected(
    config: Config,
    server: Endpoint,
    allowed: AllowedAddresses,
    is_read_only: bool,
) -> Result<Client, kube::Error> {
    let target = Arc::new((allowed, server));
    let resolver = service_fn(move |_: Name| {
        let target = target.clone();
        async move { target.0.resolve(&target.1).await.map(Vec::into_iter).map_err(BoxError::from) }
    });
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .option_layer(is_read_only.then_some(ReadOnlyLayer))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(Client::new(service, config.default_namespace))
}

/// Host and port of the server that a kubeconfig names.
fn server(config: &Config) -> Option<Endpoint> {
    let url = &config.cluster_url;
    let usual = if url.scheme_str() == Some("http") { 80 } else { 443 };
    Some((url.host()?.to_owned(), url.port_u16().unwrap_or(usual)))
}

/// Checks that the kubeconfig says everything itself. One that names programs or files would have them run
/// and read here, with this process's rights.
fn check_self_contained(kubeconfig: &Kubeconfig) -> Result<(), WorkloadError> {
    let users = kubeconfig.auth_infos.iter().filter_map(|it| it.auth_info.as_ref());
    let mut asked = users.flat_map(|it| {
        [
            ("exec", it.exec.is_some()),
            ("auth-provider", it.auth_provider.is_some()),
            ("tokenFile", it.token_file.is_some()),
            ("client-certificate", it.client_certificate.is_some()),
            ("client-key", it.client_key.is_some()),
        ]
    });
    let user = asked.find(|(_, is_there)| *is_there).map(|(field, _)| format!("users[].user.{field}"));
    let clusters = kubeconfig.clusters.iter().filter_map(|it| it.cluster.as_ref());
    // Through a proxy, the operator would send its requests wherever whoever writes the Secret likes.
    let mut of_clusters = clusters.flat_map(|it| {
        [("certificate-authority", it.certificate_authority.is_some()), ("proxy-url", it.proxy_url.is_some())]
    });
    let cluster =
        of_clusters.find(|(_, is_there)| *is_there).map(|(field, _)| format!("clusters[].cluster.{field}"));
    match user.or(cluster) {
        Some(field) => Err(WorkloadError::NotAllowed(field)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(user: &str, cluster: &str) -> Kubeconfig {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: a, 
              contexts: [{{name: a, context: {{cluster: a, user: a}}}}],
              clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:6443', {cluster}}}}}],
              users: [{{name: a, user: {{{user}}}}}]}}"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    #[test]
    fn a_kubeconfig_may_hold_data_and_name_no_programs_files_or_proxies() {
        let refused = |user: &str, cluster: &str| {
            check_self_contained(&kubeconfig(user, cluster)).err().map(|it| it.to_string())
        };
        assert_eq!(refused("token: abc", "certificate-authority-data: YQ=="), None);
        for (user, cluster, field) in [
            ("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "", "user.exec,"),
            ("auth-provider: {name: gcp, config: {cmd-path: sh}}", "", "user.auth-provider,"),
            ("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "", "user.tokenFile,"),
            ("client-certificate: /a", "", "user.client-certificate,"),
            ("client-key: /a", "", "user.client-key,"),
            ("token: abc", "certificate-authority: /a", "cluster.certificate-authority,"),
            ("token: abc", "proxy-url: 'http://10.0.0.1:3128'", "cluster.proxy-url,"),
        ] {
            assert!(refused(user, cluster).is_some_and(|it| it.contains(field)), "{field}");
        }
    }
}
