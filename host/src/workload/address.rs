//! The addresses at which the API server of a cluster may be. Whoever may write a kubeconfig Secret could
//! otherwise send the operator anywhere it can reach. A name is resolved once for each connection, and the
//! addresses that were checked are connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

/// A host and a port, as a kubeconfig or a Cluster names them.
pub type Endpoint = (String, u16);

/// Where the API server of one cluster may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedAddresses {
    /// Control plane endpoints of the Cluster and of its AWSCluster.
    pub endpoints: Vec<Endpoint>,
    /// What the operator's administrator allows beside them.
    pub ranges: Arc<[IpNet]>,
}

impl AllowedAddresses {
    /// Addresses of a server, of those that its name has, that may be asked. `of_endpoints` are the addresses
    /// of the control plane endpoints that have the server's port.
    pub fn allowed(&self, server: &Endpoint, addresses: &[IpAddr], of_endpoints: &[IpAddr]) -> Vec<IpAddr> {
        let is_endpoint = self.is_endpoint(server);
        let is_allowed = |address: &IpAddr| {
            let address = plain(*address);
            let in_range = self.ranges.iter().any(|it| it.contains(&address));
            let of_endpoint = is_endpoint || of_endpoints.iter().any(|it| plain(*it) == address);
            in_range || (of_endpoint && !is_special(address))
        };
        addresses.iter().copied().filter(is_allowed).collect()
    }

    fn is_endpoint(&self, (host, port): &Endpoint) -> bool {
        self.endpoints.iter().any(|(name, of)| of == port && same_host(name, host))
    }

    /// Resolves the host of a server to the addresses that may be asked.
    ///
    /// # Errors
    /// It has no address, or none that may be asked.
    pub async fn resolve(&self, server: &Endpoint) -> Result<Vec<SocketAddr>, String> {
        let (host, port) = server;
        let addresses = addresses(host).await.map_err(|error| format!("{host}: {error}"))?;
        let mut of_endpoints = Vec::new();
        if !self.is_endpoint(server) {
            for (name, _) in self.endpoints.iter().filter(|(_, of)| of == port) {
                of_endpoints.extend(self::addresses(name).await.unwrap_or_default());
            }
        }
        let allowed = self.allowed(server, &addresses, &of_endpoints);
        if allowed.is_empty() {
            return Err(format!(
                "{host}:{port} is not the control plane endpoint of the cluster, or is at an address that is \
                 never asked; if it is right, start the operator with --api-server-cidrs"
            ));
        }
        Ok(allowed.into_iter().map(|it| SocketAddr::new(it, *port)).collect())
    }
}

/// Without a dot at its end, and without the brackets of an IPv6 address.
fn same_host(one: &str, other: &str) -> bool {
    let plain = |it: &str| {
        it.trim_end_matches('.').trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
    };
    match (plain(one).parse::<IpAddr>(), plain(other).parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => plain(one) == plain(other),
    }
}

async fn addresses(host: &str) -> std::io::Result<Vec<IpAddr>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(tokio::net::lookup_host((host, 0)).await?.map(|it| it.ip()).collect())
}

/// An IPv4 address that is written as one of IPv6, or that a NAT64 gateway would turn into one of IPv4.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(it) => match it.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
            }
            _ => address.to_canonical(),
        },
        IpAddr::V4(_) => address,
    }
}

/// The machine itself, its link with what AWS answers there (credentials among it), and what is no single
/// machine.
fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            // 0.0.0.0/8 is "this network", 240.0.0.0/4 is reserved.
            let first = it.octets()[0];
            it.is_loopback() || it.is_link_local() || it.is_multicast() || first == 0 || first >= 240
        }
        IpAddr::V6(it) => {
            // AWS answers at fd00:ec2::254 and its neighbours what it answers at 169.254.169.254.
            let of_aws = it.segments()[..2] == [0xfd00, 0x0ec2];
            // ::/96 holds the unspecified address, loopback, and addresses of IPv4 in a form that nobody uses
            // any more.
            let is_old = it.to_bits() >> 32 == 0;
            of_aws || is_old || it == Ipv6Addr::LOCALHOST || it.is_unicast_link_local() || it.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(ranges: &[&str]) -> AllowedAddresses {
        let endpoints = vec![("prod.elb.amazonaws.com".to_owned(), 6443), ("203.0.113.7".to_owned(), 443)];
        AllowedAddresses { endpoints, ranges: ranges.iter().map(|it| it.parse().expect("a range")).collect() }
    }

    fn allowed(
        places: &AllowedAddresses,
        host: &str,
        port: u16,
        address: &str,
        of_endpoints: &[&str],
    ) -> bool {
        let parse = |it: &str| it.parse::<IpAddr>().expect("an address");
        let of_endpoints: Vec<IpAddr> = of_endpoints.iter().map(|it| parse(it)).collect();
        !places.allowed(&(host.to_owned(), port), &[parse(address)], &of_endpoints).is_empty()
    }

    #[test]
    fn the_control_plane_endpoint_is_asked_and_nothing_else() {
        let places = places(&[]);
        let load_balancer = ["198.51.100.1", "10.0.0.9"];
        for (host, port, address, expected) in [
            ("prod.elb.amazonaws.com", 6443, "198.51.100.1", true),
            ("PROD.elb.amazonaws.com.", 6443, "10.0.0.9", true),
            ("203.0.113.7", 443, "203.0.113.7", true),
            ("198.51.100.1", 6443, "198.51.100.1", true),
            ("prod.elb.amazonaws.com", 443, "192.0.2.1", false),
            ("203.0.113.7", 6443, "203.0.113.7", false),
            ("evil.example.com", 6443, "192.0.2.1", false),
            ("10.0.0.10", 6443, "10.0.0.10", false),
        ] {
            let of_endpoints: &[&str] = if port == 6443 { &load_balancer } else { &[] };
            assert_eq!(
                allowed(&places, host, port, address, of_endpoints),
                expected,
                "{host}:{port} at {address}"
            );
        }
    }

    #[test]
    fn what_the_endpoint_resolves_to_is_judged_too() {
        let special = [
            "169.254.169.254",
            "169.254.170.2",
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "::127.0.0.1",
        ];
        for address in special {
            assert!(!allowed(&places(&[]), "prod.elb.amazonaws.com", 6443, address, &[address]), "{address}");
            assert!(
                !allowed(&places(&["10.0.0.0/8", "fd12::/16"]), "prod.elb.amazonaws.com", 6443, address, &[]),
                "{address}"
            );
        }
        assert!(
            allowed(&places(&["169.254.169.0/24"]), "x", 1, "169.254.169.254", &[]),
            "the administrator may allow it"
        );
        assert!(allowed(&places(&["127.0.0.0/8"]), "x", 1, "::ffff:127.0.0.1", &[]));
        assert!(
            allowed(&places(&[]), "prod.elb.amazonaws.com", 6443, "fd12::1", &[]),
            "a private address of the endpoint"
        );
    }

    #[test]
    fn ranges_are_those_of_their_family() {
        let allowed =
            |range: &str, address: &str| allowed(&places(&[range]), "private.example.com", 443, address, &[]);
        assert!(allowed("10.0.0.0/8", "10.255.1.2") && !allowed("10.0.0.0/8", "11.0.0.1"));
        assert!(allowed("0.0.0.0/0", "192.0.2.1") && !allowed("0.0.0.0/0", "2001:db8::1"));
        assert!(allowed("fd00::/8", "fd12::1") && !allowed("fd00::/8", "fe80::1"));
        assert!(allowed("192.0.2.1/32", "192.0.2.1") && !allowed("192.0.2.1/32", "192.0.2.2"));
    }

    #[tokio::test]
    async fn what_a_name_resolves_to_is_what_is_connected_to() {
        let localhost = ("localhost".to_owned(), 6443);
        let own = AllowedAddresses { endpoints: vec![localhost.clone()], ranges: Arc::new([]) };
        let error = own.resolve(&localhost).await.expect_err("it is this machine");
        assert!(error.starts_with(
            "localhost:6443 is not the control plane endpoint of the cluster, or is at an \
                               address that is never asked"
        ));
        let allowed = AllowedAddresses { ranges: Arc::new(["127.0.0.0/8".parse().expect("a range")]), ..own };
        assert_eq!(
            allowed.resolve(&localhost).await,
            Ok(vec!["127.0.0.1:6443".parse().expect("an address")])
        );
    }
}
