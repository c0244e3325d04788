//! Who may read: passwords and tokens at Debian's registry, and whom TLS trusts.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use registry::{Digest, Limits, PullError, Repository, Source};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use crate::push::{self, COMPONENT, PATH};
use crate::servers::{Canned, Directory, Registry, open, reply};

/// The user of the tests with the password `secret`, as a file of passwords has it.
const USERS: &str = "user:$2b$04$9aa5qsS97pKQG5bBDDVKyuHpUKOVrMyR7StIZ.7bHS4o4VaIvDCI6\n";

/// An authority, and a server's certificate by it.
struct Authority {
    certificate: String,
    key: KeyPair,
    der: Vec<u8>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate: certificate.pem(), key, der: certificate.der().to_vec() }
    }

    /// The section of a registry's configuration that gives it TLS with a certificate for a name.
    fn tls(&self, name: &str, directory: &Directory) -> String {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = Issuer::from_params(&params, &self.key);
        let key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let certificate = server.signed_by(&key, &issuer).expect("a certificate");
        let certificate = directory.write("server.pem", &certificate.pem());
        let key = directory.write("server.key", &key.serialize_pem());
        format!("  tls: {{certificate: {}, key: {}}}\n", certificate.display(), key.display())
    }
}

/// The section that lets in who knows the password.
fn passwords(directory: &Directory) -> String {
    let path = directory.write("users", USERS);
    format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", path.display())
}

fn docker_config(registry: &str, user: &str, password: &str) -> Vec<u8> {
    let auth = STANDARD.encode(format!("{user}:{password}"));
    json!({ "auths": { registry: { "auth": auth } } }).to_string().into_bytes()
}

/// Storage with a component in it, that another registry can serve.
async fn stored() -> (Directory, Digest) {
    let storage = Directory::new();
    let digest = push::component(&Registry::debian(&storage, "")).await;
    (storage, digest)
}

#[tokio::test]
async fn a_password_is_given_when_the_registry_asks_for_it() {
    let (storage, digest) = stored().await;
    let registry = Registry::debian(&storage, &passwords(&storage));
    let with = |user: &str, password: &str| Source {
        docker_config: Some(docker_config(&registry.address, user, password)),
        ..registry.source(PATH)
    };
    let pulled = open(&with("user", "secret")).pull(&digest).await.expect("the password is right");
    assert_eq!(pulled.component, COMPONENT);
    for (source, with_credentials, remedy) in [
        (registry.source(PATH), false, "name a pull secret"),
        (with("user", "hunter2"), true, "check that its password is right"),
        (with("other", "secret"), true, "check that its password is right"),
    ] {
        let error = open(&source).pull(&digest).await.expect_err(remedy);
        assert!(error.to_string().contains(remedy) && !error.to_string().contains("hunter2"), "{error}");
        let PullError::Unauthorized { with_credentials: found, .. } = error else { panic!("{error:?}") };
        assert_eq!(found, with_credentials);
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_in_the_bundle() {
    let (storage, digest) = stored().await;
    let authority = Authority::new();
    let tls = format!("{}{}", authority.tls("localhost", &storage), passwords(&storage));
    let registry = Registry::debian(&storage, &tls);
    let port = registry.address.rsplit_once(':').expect("a port").1;
    let at = |host: &str, bundle: &[&Authority]| {
        let registry = format!("{host}:{port}");
        Source {
            repository: format!("{registry}/{PATH}"),
            docker_config: Some(docker_config(&registry, "user", "secret")),
            ca_bundle: Some(bundle.iter().map(|it| it.certificate.as_str()).collect()),
            plain_http: false,
        }
    };
    let other = Authority::new();
    let pulled = open(&at("localhost", &[&other, &authority])).pull(&digest).await.expect("it is trusted");
    assert_eq!(pulled.component, COMPONENT);
    let unnamed = Source { ca_bundle: None, ..at("localhost", &[]) };
    for source in [at("localhost", &[&other]), unnamed, at("127.0.0.1", &[&authority])] {
        let error = open(&source).pull(&digest).await.expect_err("it is not trusted");
        assert!(matches!(error, PullError::Certificate { .. }), "{error:?}");
        assert!(!error.is_transient());
    }
    // The other way round: HTTP where TLS is, and TLS where only HTTP is.
    let plain = Source { plain_http: true, ..at("localhost", &[&authority]) };
    let error = open(&plain).pull(&digest).await.expect_err("it speaks TLS");
    assert!(matches!(error, PullError::Answer { .. }) && error.to_string().contains("400"), "{error:?}");
    let without = Registry::debian(&storage, "");
    let tls = Source { plain_http: false, ..without.source(PATH) };
    let error = open(&tls).pull(&digest).await.expect_err("it does not speak TLS");
    assert!(matches!(error, PullError::NotTls { .. }), "{error:?}");
}

/// A token service that knows the user of the tests, and tells everybody else to go, or gives whatever `token` says.
fn token_service(authority: &Authority, everybody: bool) -> Canned {
    let pkcs8 = authority.key.serialize_der();
    let certificate = STANDARD.encode(&authority.der);
    Canned::start(move |path, authorization| {
        let user = format!("Basic {}", STANDARD.encode("user:secret"));
        let allowed = everybody || authorization == Some(user.as_str());
        if !allowed || !path.contains("scope=repository%3Aplugins%2Ftiny%3Apull") {
            return reply("401 Unauthorized", "", "hunter2");
        }
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
        let access = [json!({ "type": "repository", "name": PATH, "actions": ["pull"] })];
        let claims = json!({
            "iss": "test", "sub": "user", "aud": "registry", "exp": now + 60, "nbf": now - 60, "iat": now,
            "jti": "1", "access": access,
        });
        let head = json!({ "typ": "JWT", "alg": "ES256", "x5c": [certificate] });
        let text = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &random).expect("a key");
        let signature = key.sign(&random, text.as_bytes()).expect("a signature");
        let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
        reply("200 OK", "Content-Type: application/json\r\n", &json!({ "token": token }).to_string())
    })
}

/// Debian's registry, which takes the tokens of a service.
fn with_tokens(storage: &Directory, authority: &Authority, realm: &str) -> Registry {
    let roots = storage.write("roots.pem", &authority.certificate);
    let auth = format!(
        "auth: {{token: {{realm: \"{realm}\", service: registry, issuer: test, rootcertbundle: {}}}}}\n",
        roots.display()
    );
    Registry::debian(storage, &auth)
}

#[tokio::test]
async fn a_token_is_got_once_with_the_password_or_without_one() {
    let (storage, digest) = stored().await;
    let authority = Authority::new();
    for everybody in [false, true] {
        let service = token_service(&authority, everybody);
        let registry =
            with_tokens(&storage, &authority, &format!("http://{}/token?tenant=1", service.address));
        let docker_config = docker_config(&registry.address, "user", "secret");
        let source =
            Source { docker_config: Some(docker_config).filter(|_| !everybody), ..registry.source(PATH) };
        let pulled = open(&source).pull(&digest).await.expect("the token is taken");
        assert_eq!(pulled.component, COMPONENT);
        let paths = service.paths();
        assert_eq!(
            paths,
            ["/token?tenant=1&service=registry&scope=repository%3Aplugins%2Ftiny%3Apull"],
            "for a manifest and a blob"
        );
    }
    let service = token_service(&authority, false);
    let registry = with_tokens(&storage, &authority, &format!("http://{}/token", service.address));
    let error = registry.repository(PATH).pull(&digest).await.expect_err("no user");
    assert!(matches!(error, PullError::Unauthorized { with_credentials: false, .. }), "{error:?}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_password_goes_to_no_token_service_without_tls() {
    let (storage, digest) = stored().await;
    let authority = Authority::new();
    let service = token_service(&authority, false);
    let tls = authority.tls("localhost", &storage);
    let roots = storage.write("roots.pem", &authority.certificate);
    let auth = format!(
        "{tls}auth: {{token: {{realm: \"http://{}/token\", service: registry, issuer: test, rootcertbundle: {}}}}}\n",
        service.address,
        roots.display()
    );
    let registry = Registry::debian(&storage, &auth);
    let host = registry.address.replace("127.0.0.1", "localhost");
    let source = Source {
        repository: format!("{host}/{PATH}"),
        docker_config: Some(docker_config(&host, "user", "secret")),
        ca_bundle: Some(authority.certificate.clone()),
        plain_http: false,
    };
    let repository = Repository::open(&source, Limits::default()).expect("a source");
    let error = repository.pull(&digest).await.expect_err("it is refused");
    assert!(matches!(error, PullError::Redirect { .. }), "{error:?}");
    assert_eq!(service.paths(), [""; 0], "it was asked");
}
