//! Public documents of an issuer. The names of keys were computed with OpenSSL: SHA-256 of the DER of the
//! public key.

use expect_test::expect;

use super::*;

/// An RSA key of 2048 bits.
const KEY_A: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvWNpGMNJBaNCUVNf1xbU
k8Ne22n1Ufi+JHZyj6K3Yc0Dp493rlLJlyR6dlzkoA4Cjn9EdKQr+vLcM9yvgDAY
Gy3tULeHMWT1R+Uq8MMi7xUMOEzUpuEa3wtkOJjikQBww/DCkcScqrgmI4wdA/++
DSYDPDMWN1uOrHAfwLWl792b5bd5q3CHAnzhcWOu4LUyt/0R8YeTC8UdcbT+Ixrs
lR1tVWVpJlGPUzVS2jiJipso4Oq8aMJOldCtj4nzb9tf0EBCqCoYAUj3GXTpV28c
UFXkYz3ym9U/xIR3Ja61oe+9AVvWxNVIMT5++uZ8eAcmujhukXr2Am34KdyslJ1F
7wIDAQAB
-----END PUBLIC KEY-----
";
/// The same in PKCS #1.
const KEY_A_PKCS1: &str = "-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEAvWNpGMNJBaNCUVNf1xbUk8Ne22n1Ufi+JHZyj6K3Yc0Dp493rlLJ
lyR6dlzkoA4Cjn9EdKQr+vLcM9yvgDAYGy3tULeHMWT1R+Uq8MMi7xUMOEzUpuEa
3wtkOJjikQBww/DCkcScqrgmI4wdA/++DSYDPDMWN1uOrHAfwLWl792b5bd5q3CH
AnzhcWOu4LUyt/0R8YeTC8UdcbT+IxrslR1tVWVpJlGPUzVS2jiJipso4Oq8aMJO
ldCtj4nzb9tf0EBCqCoYAUj3GXTpV28cUFXkYz3ym9U/xIR3Ja61oe+9AVvWxNVI
MT5++uZ8eAcmujhukXr2Am34KdyslJ1F7wIDAQAB
-----END RSA PUBLIC KEY-----
";
/// Another.
const KEY_B: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAjvi1kHBeWUiahZDdrZ09
2SSD4V8gwYOMTIIXD2fyzls0RGIODF1jYAZROxZb+uzHofaSm3J9+hzPFBuaxJH3
oFyg9Y2FpSNh0OkXNQo+ziWvDqtYVm5z95hqQMeDGPaAFDSXzwcHdsXg1nVwBj0f
baI2Rtkn+9W2ldjHzVTkfIHN4ppwaK3kJuW4dWTdQgdzdZKMtMxFAu83fo5rXNZ0
6sY1jTIq6VDTRI+cOFClV7esFiszc/D+wyMpBwOHww8HwK330TlMzYxlMiKzfy0L
Hjoddu09ezV+J4cHnpU3Y8PhK63xuksGh2XvBUtcqCy7m4B+cb/pJ0H+/uCf7Qzg
NwIDAQAB
-----END PUBLIC KEY-----
";
/// Keys on P-256, P-384 and P-521.
const P256: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE88x3CHEpE/o72tEhIh6Y9DNZdje0
T/1TmlvrJ0ErZ9YhMLIWIlp+BBF5sUULZUyEq+xqfBexCdfoUi0u17fPDQ==
-----END PUBLIC KEY-----
";
const P384: &str = "-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEViIjzM9nQebxgggFQZtpQfNbeeLMFMuD
KJK/5uPBdo0eEOSNDkLNDMKKE2MBBYJVbBII8XTDrOm41tkQSBDIj0+fgLKZcdCt
t0VfA9glA0SQUXM1Gp4HXByaiBKMC86u
-----END PUBLIC KEY-----
";
const P521: &str = "-----BEGIN PUBLIC KEY-----
MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBsc/pAAdx6NmQ9mlCsIy0xoI7p4dT
a5p68CIj635TUUVG8ouddEhb4PZAFqu9PmKjoQs1tOcN6w4IJsZqyTZK3l4BVoYE
j25WngX0Xy1S7Ngra5Htlrg/oG5D/jbCYG4Bk3/hb0drkR6IPdMtahdT02wk6tU1
ONB8VXI7hRlJHOUxaxM=
-----END PUBLIC KEY-----
";
/// A key that cannot sign service account tokens.
const ED25519: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAKWNO3DR3tcUWBmJaKOO9VBWLKh5Ch84CEkHUlfaudTE=
-----END PUBLIC KEY-----
";

const KID_A: &str = "SRUcUYYkMhm8cM52a2d8OBXc3-imNcakf--iQzlMlNk";
const KID_B: &str = "XRFoBAVRznm7LI3u_TsjzNMdMEN71-IHZWBZdkjJLWg";

fn set(pem: &str) -> KeySet {
    KeySet::new(&PublicKey::from_pem(pem).unwrap())
}

fn kids(set: &KeySet) -> Vec<&str> {
    set.keys().iter().map(Jwk::kid).collect()
}

fn refused(pem: &str) -> String {
    PublicKey::from_pem(pem).unwrap_err().to_string()
}

#[test]
fn keys_are_named_as_kubernetes_names_them() {
    assert_eq!(kids(&set(KEY_A)), [KID_A]);
    assert_eq!(kids(&set(KEY_B)), [KID_B]);
    assert_eq!(kids(&set(P256)), ["7dxe9s4ALmdIMAvzrA3J3FEcm2xjUWERBtQqsp308ew"]);
    assert_eq!(kids(&set(P384)), ["0I-_Kteq_j5EmqsHNalxhsACPRf8S0mhBLDmrmEg5Ck"]);
}

#[test]
fn the_name_does_not_depend_on_how_the_key_is_written() {
    assert_eq!(set(KEY_A_PKCS1), set(KEY_A));
    assert_eq!(set(&KEY_A.replace('\n', "\r\n")), set(KEY_A));
    assert_eq!(set(&format!("the key of prod\n{KEY_A}that was it\n")), set(KEY_A));
}

#[test]
fn the_key_set_has_what_tokens_are_checked_with() {
    expect![[r#"
        {
          "keys": [
            {
              "use": "sig",
              "kty": "RSA",
              "kid": "SRUcUYYkMhm8cM52a2d8OBXc3-imNcakf--iQzlMlNk",
              "alg": "RS256",
              "n": "vWNpGMNJBaNCUVNf1xbUk8Ne22n1Ufi-JHZyj6K3Yc0Dp493rlLJlyR6dlzkoA4Cjn9EdKQr-vLcM9yvgDAYGy3tULeHMWT1R-Uq8MMi7xUMOEzUpuEa3wtkOJjikQBww_DCkcScqrgmI4wdA_--DSYDPDMWN1uOrHAfwLWl792b5bd5q3CHAnzhcWOu4LUyt_0R8YeTC8UdcbT-IxrslR1tVWVpJlGPUzVS2jiJipso4Oq8aMJOldCtj4nzb9tf0EBCqCoYAUj3GXTpV28cUFXkYz3ym9U_xIR3Ja61oe-9AVvWxNVIMT5--uZ8eAcmujhukXr2Am34KdyslJ1F7w",
              "e": "AQAB"
            },
            {
              "use": "sig",
              "kty": "EC",
              "kid": "7dxe9s4ALmdIMAvzrA3J3FEcm2xjUWERBtQqsp308ew",
              "alg": "ES256",
              "crv": "P-256",
              "x": "88x3CHEpE_o72tEhIh6Y9DNZdje0T_1TmlvrJ0ErZ9Y",
              "y": "ITCyFiJafgQRebFFC2VMhKvsanwXsQnX6FItLte3zw0"
            }
          ]
        }"#]].assert_eq(&set(&format!("{KEY_A}{P256}")).to_json());
}

#[test]
fn several_keys_stay_in_order_and_each_is_there_once() {
    assert_eq!(kids(&set(&format!("{KEY_B}{KEY_A}{KEY_A_PKCS1}"))), [KID_B, KID_A]);
}

#[test]
fn rotation_keeps_the_old_key_until_it_is_told_not_to() {
    let published = KeySet::read(&set(KEY_A).to_json()).unwrap();
    let rotated = set(KEY_B).keeping(&published);
    assert_eq!(kids(&rotated), [KID_B, KID_A]);
    assert!(rotated.contains(KID_A));
    // Once more changes nothing.
    assert_eq!(set(KEY_B).keeping(&rotated), rotated);
    assert_eq!(kids(&rotated.only(&[KID_B])), [KID_B]);
}

#[test]
fn a_set_that_holds_more_than_public_keys_is_refused() {
    let text = set(KEY_A).to_json();
    assert_eq!(KeySet::read(&text).unwrap(), set(KEY_A));
    assert!(KeySet::read(&text.replacen("\"use\"", "\"d\": \"AAAA\", \"use\"", 1)).is_err());
    assert!(KeySet::read("<html>").is_err());
}

#[test]
fn private_keys_are_refused_and_not_repeated() {
    // Not keys: what stands between the lines is never looked at.
    for label in
        ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY"]
    {
        let block = format!("-----BEGIN {label}-----\nc2VjcmV0\n-----END {label}-----\n");
        for text in [block.clone(), format!("{KEY_A}{block}"), format!("{block}{KEY_A}")] {
            assert_eq!(PublicKey::from_pem(&text), Err(KeyError::Private), "{label}");
        }
    }
    assert!(
        !refused("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n").contains("c2VjcmV0")
    );
}

#[test]
fn what_is_no_public_key_is_refused_with_its_block() {
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let all = [
        refused(""),
        refused("no key"),
        refused(&format!("{KEY_A}{certificate}")),
        refused(&KEY_A[..200]),
        refused("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
        refused("-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----\n"),
        refused(P521),
        refused(ED25519),
    ];
    expect![[r#"
        it holds no PEM block; a public key begins with -----BEGIN PUBLIC KEY-----
        it holds no PEM block; a public key begins with -----BEGIN PUBLIC KEY-----
        its PEM block 2 is a CERTIFICATE; a public key begins with -----BEGIN PUBLIC KEY-----
        its PEM block 1 is broken: PEM error in pre-encapsulation boundary
        its PEM block 1 is no public key: unknown/unsupported ASN.1 DER tag: 0x00 at DER byte 1
        its PEM block 1 is broken: PEM Base64 error: invalid Base64 encoding
        its PEM block 1 is a public key of algorithm EC of another curve or form; service account tokens are signed by RSA, P-256 or P-384
        its PEM block 1 is a public key of algorithm 1.3.101.112; service account tokens are signed by RSA, P-256 or P-384"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn a_bucket_gives_issuer_objects_and_urls() {
    let at = |bucket: &str, prefix: &str, region: &str| {
        format!("{:#?}", Publication::in_bucket("f", bucket, prefix, region).unwrap())
    };
    expect![[r#"
        Publication {
            issuer: "https://acme-oidc.s3.eu-west-1.amazonaws.com",
            discovery_key: ".well-known/openid-configuration",
            jwks_key: "openid/v1/jwks",
            discovery_url: "https://acme-oidc.s3.eu-west-1.amazonaws.com/.well-known/openid-configuration",
            jwks_url: "https://acme-oidc.s3.eu-west-1.amazonaws.com/openid/v1/jwks",
        }"#]]
    .assert_eq(&at("acme-oidc", "", "eu-west-1"));
    expect![[r#"
        Publication {
            issuer: "https://acme-oidc.s3.cn-north-1.amazonaws.com.cn/default/prod",
            discovery_key: "default/prod/.well-known/openid-configuration",
            jwks_key: "default/prod/openid/v1/jwks",
            discovery_url: "https://acme-oidc.s3.cn-north-1.amazonaws.com.cn/default/prod/.well-known/openid-configuration",
            jwks_url: "https://acme-oidc.s3.cn-north-1.amazonaws.com.cn/default/prod/openid/v1/jwks",
        }"#]]
    .assert_eq(&at("acme-oidc", "default/prod", "cn-north-1"));
}

#[test]
fn documents_name_the_issuer_of_the_tokens() {
    let publication = Publication::in_bucket("f", "acme-oidc", "prod", "eu-west-1").unwrap();
    assert_eq!(discovery_url(&publication.issuer), publication.discovery_url);
    let [jwks, discovery] = publication.documents(&set(&format!("{KEY_A}{P256}{KEY_B}")));
    assert_eq!([&jwks.key, &discovery.key], [&publication.jwks_key, &publication.discovery_key]);
    assert_eq!(kids(&KeySet::read(&jwks.body).unwrap())[0], KID_A);
    expect![[r#"
        {
          "issuer": "https://acme-oidc.s3.eu-west-1.amazonaws.com/prod",
          "jwks_uri": "https://acme-oidc.s3.eu-west-1.amazonaws.com/prod/openid/v1/jwks",
          "response_types_supported": [
            "id_token"
          ],
          "subject_types_supported": [
            "public"
          ],
          "id_token_signing_alg_values_supported": [
            "ES256",
            "RS256"
          ]
        }"#]]
    .assert_eq(&discovery.body);
}

#[test]
fn buckets_and_prefixes_that_cannot_be_are_refused() {
    let refused = |bucket: &str, prefix: &str| {
        Publication::in_bucket("spec.serviceAccountIssuer.bucket", bucket, prefix, "eu-west-1")
            .unwrap_err()
            .to_string()
    };
    for bucket in ["ab", "Acme", "a.b.c", "-acme", "acme-", "acme_x", &"x".repeat(64)] {
        assert!(refused(bucket, "").contains("cannot be the bucket"), "{bucket}");
    }
    for prefix in ["/prod", "prod/", "a//b", "../x", "a b", "a%20b", "a?b"] {
        assert!(refused("acme", prefix).contains("cannot be a prefix"), "{prefix}");
    }
    expect![[r#"
        spec.serviceAccountIssuer.bucket: "a.b.c" cannot be the bucket of an issuer; its name has 3 to 63 lower-case letters, digits and hyphens, begins and ends with a letter or digit, and has no dot, because the certificate of S3 does not cover names with dots
        spec.serviceAccountIssuer.bucket: "/prod" cannot be a prefix; write segments of letters, digits and characters of ._- with single slashes between them
        spec.serviceAccountIssuer.bucket: issuer "https://acme.s3.eu-west-1.amazonaws.com/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is longer than the 255 characters that IAM takes"#]].assert_eq(&[refused("a.b.c", ""), refused("acme", "/prod"), refused("acme", &"x".repeat(240))].join("\n"));
}

#[test]
fn issuers_that_iam_does_not_take_are_refused() {
    let refused = |issuer: &str| check_url("spec.serviceAccountIssuer.url", issuer).unwrap_err().to_string();
    let all = [
        refused("http://oidc.example.com"),
        refused("oidc.example.com"),
        refused("https://oidc.example.com/"),
        refused("https://oidc.example.com:6443"),
        refused("https://me@oidc.example.com"),
        refused("https://oidc.example.com/?a=b"),
        refused("https://kubernetes"),
        refused("https://OIDC.example.com"),
        refused("https://oidc.example.com/a//b"),
        refused(&format!("https://oidc.example.com/{}", "x".repeat(240))),
    ];
    expect![[r#"
        spec.serviceAccountIssuer.url: issuer "http://oidc.example.com" does not begin with https://
        spec.serviceAccountIssuer.url: issuer "oidc.example.com" does not begin with https://
        spec.serviceAccountIssuer.url: issuer "https://oidc.example.com/" ends with a slash; leave it out, there and in service-account-issuer
        spec.serviceAccountIssuer.url: issuer "https://oidc.example.com:6443" has a port, which IAM does not take; serve it at 443
        spec.serviceAccountIssuer.url: issuer "https://me@oidc.example.com" has a user; leave it out
        spec.serviceAccountIssuer.url: issuer "https://oidc.example.com/?a=b" has a query or fragment; leave it out
        spec.serviceAccountIssuer.url: issuer "https://kubernetes" has no full host name in lower case
        spec.serviceAccountIssuer.url: issuer "https://OIDC.example.com" has no full host name in lower case
        spec.serviceAccountIssuer.url: issuer "https://oidc.example.com/a//b" has a path that is not plain; write segments of letters, digits and characters of ._-
        spec.serviceAccountIssuer.url: issuer "https://oidc.example.com/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is longer than the 255 characters that IAM takes"#]].assert_eq(&all.join("\n"));
    for issuer in [
        "https://oidc.example.com",
        "https://s3.eu-west-1.amazonaws.com/acme/prod",
        "https://kubernetes.default.svc.cluster.local",
    ] {
        assert_eq!(check_url("f", issuer), Ok(()));
    }
}

#[test]
fn the_argument_of_the_api_server_is_the_issuer_exactly_and_first() {
    let issuer = "https://oidc.example.com/prod";
    let said = |values: &[&str]| {
        check_argument(issuer, values)
            .map_or_else(|error| error.to_string(), |()| "as it should be".to_owned())
    };
    assert_eq!(said(&[issuer]), "as it should be");
    assert_eq!(said(&[issuer, "https://kubernetes.default.svc.cluster.local"]), "as it should be");
    let all = [
        said(&[]),
        said(&["https://oidc.example.com/prod/"]),
        said(&["https://kubernetes.default.svc.cluster.local", issuer]),
        said(&["https://kubernetes.default.svc.cluster.local"]),
    ];
    expect![[r#"
        KubeadmControlPlane has no service-account-issuer, so tokens are not of issuer https://oidc.example.com/prod; add to spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs: {name: service-account-issuer, value: "https://oidc.example.com/prod"}
        KubeadmControlPlane has service-account-issuer "https://oidc.example.com/prod/", which differs from "https://oidc.example.com/prod" only by a slash or case; write it exactly so in spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs
        KubeadmControlPlane has service-account-issuer "https://kubernetes.default.svc.cluster.local" first, and tokens are of the first; in spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs put "https://oidc.example.com/prod" before it
        KubeadmControlPlane has service-account-issuer "https://kubernetes.default.svc.cluster.local"; set it in spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs to "https://oidc.example.com/prod" (in a live cluster, keep the old value as a second one until its tokens have ended)"#]].assert_eq(&all.join("\n"));
}
