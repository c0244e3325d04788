//! What somebody else does in the account with clients of his own: controllers of clusters, an administrator,
//! other clusters. It holds no expectations but that AWS takes it.

use aws_config::{BehaviorVersion, Region as AwsRegion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_ec2::types::{IpPermission, ResourceType, Tag, TagSpecification, UserIdGroupPair};
use aws_sdk_elasticloadbalancing::types as classic;
use aws_sdk_elasticloadbalancingv2::types as balancing;

use crate::bed::{Bed, REGION};

type Pair<'a> = (&'a str, &'a str);

pub struct Administrator {
    pub config: SdkConfig,
    ec2: aws_sdk_ec2::Client,
    classic: aws_sdk_elasticloadbalancing::Client,
    elb: aws_sdk_elasticloadbalancingv2::Client,
}

impl Bed {
    pub fn administrator(&self) -> Administrator {
        let credentials = Credentials::new("AKIAIOSFODNN7EXAMPLE", "secret", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .region(AwsRegion::new(REGION))
            .endpoint_url(self.address())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let (ec2, classic) =
            (aws_sdk_ec2::Client::new(&config), aws_sdk_elasticloadbalancing::Client::new(&config));
        Administrator { ec2, classic, elb: aws_sdk_elasticloadbalancingv2::Client::new(&config), config }
    }
}

fn tagged(of: ResourceType, tag: Pair<'_>) -> TagSpecification {
    TagSpecification::builder().resource_type(of).tags(Tag::builder().key(tag.0).value(tag.1).build()).build()
}

/// What the cloud provider puts on load balancers besides the cluster's tag, and on what belongs to them.
fn on_balancers(tag: Pair<'_>) -> Vec<Pair<'_>> {
    let of_service =
        tag.0.starts_with("kubernetes.io/cluster/").then_some(("kubernetes.io/service-name", "default/shop"));
    std::iter::once(tag).chain(of_service).collect()
}

fn balancing_tags(tag: Pair<'_>) -> Option<Vec<balancing::Tag>> {
    Some(
        on_balancers(tag)
            .into_iter()
            .map(|(key, value)| balancing::Tag::builder().key(key).value(value).build())
            .collect(),
    )
}

impl Administrator {
    pub async fn vpc(&self, cidr: &str) -> String {
        self.ec2.create_vpc().cidr_block(cidr).send().await.unwrap().vpc.unwrap().vpc_id.unwrap()
    }

    pub async fn subnet(&self, vpc: &str, cidr: &str, zone: &str) -> String {
        let call = self.ec2.create_subnet().vpc_id(vpc).cidr_block(cidr).availability_zone(zone);
        call.send().await.unwrap().subnet.unwrap().subnet_id.unwrap()
    }

    pub async fn tag(&self, id: &str, (key, value): Pair<'_>) {
        let tag = Tag::builder().key(key).value(value).build();
        self.ec2.create_tags().resources(id).tags(tag).send().await.unwrap();
    }

    /// Tags of anything in EC2.
    pub async fn tags(&self, id: &str) -> model::Tags {
        let of = aws_sdk_ec2::types::Filter::builder().name("resource-id").values(id).build();
        let all = self.ec2.describe_tags().filters(of).send().await.unwrap().tags.unwrap_or_default();
        all.into_iter().map(|it| (it.key.unwrap(), it.value.unwrap_or_default())).collect()
    }

    /// Takes a tag from things of EC2, and from load balancers and what belongs to them, which have ARNs.
    pub async fn untag(&self, ids: &[String], key: &str) {
        let (arns, ids): (Vec<String>, Vec<String>) =
            ids.iter().cloned().partition(|it| it.starts_with("arn:"));
        if !ids.is_empty() {
            let tag = Tag::builder().key(key).build();
            self.ec2.delete_tags().set_resources(Some(ids)).tags(tag).send().await.unwrap();
        }
        for arn in arns {
            self.elb.remove_tags().resource_arns(arn).tag_keys(key).send().await.unwrap();
        }
    }

    /// ARNs of all listeners and target groups of a load balancer.
    pub async fn parts(&self, balancer: &str) -> Vec<String> {
        let listeners = self
            .elb
            .describe_listeners()
            .load_balancer_arn(balancer)
            .send()
            .await
            .unwrap()
            .listeners
            .unwrap_or_default();
        let groups = self
            .elb
            .describe_target_groups()
            .load_balancer_arn(balancer)
            .send()
            .await
            .unwrap()
            .target_groups
            .unwrap_or_default();
        let listeners = listeners.into_iter().filter_map(|it| it.listener_arn);
        listeners.chain(groups.into_iter().filter_map(|it| it.target_group_arn)).collect()
    }

    /// Protects an instance from being terminated.
    pub async fn protect(&self, instance: &str) {
        let on = aws_sdk_ec2::types::AttributeBooleanValue::builder().value(true).build();
        self.ec2
            .modify_instance_attribute()
            .instance_id(instance)
            .disable_api_termination(on)
            .send()
            .await
            .unwrap();
    }

    /// Attaches a new volume, as a storage driver does, and returns its id.
    pub async fn attach_volume(&self, instance: &str, zone: &str) -> String {
        let volume =
            self.ec2.create_volume().availability_zone(zone).size(8).send().await.unwrap().volume_id.unwrap();
        for _ in 0..50 {
            let call = self.ec2.attach_volume().volume_id(&volume).instance_id(instance).device("/dev/xvdba");
            if call.send().await.is_ok() {
                return volume;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        panic!("{volume} cannot be attached");
    }

    pub async fn delete_group(&self, id: &str) {
        self.ec2.delete_security_group().group_id(id).send().await.unwrap();
    }

    pub async fn delete_subnet(&self, id: &str) {
        self.ec2.delete_subnet().subnet_id(id).send().await.unwrap();
    }

    pub async fn group(&self, vpc: &str, name: &str, tag: Pair<'_>) -> String {
        let call = self.ec2.create_security_group().vpc_id(vpc).group_name(name).description("test");
        call.tag_specifications(tagged(ResourceType::SecurityGroup, tag))
            .send()
            .await
            .unwrap()
            .group_id
            .unwrap()
    }

    /// Lets all traffic from one group into another.
    pub async fn let_in(&self, to: &str, from: &str) {
        let rule = IpPermission::builder()
            .ip_protocol("-1")
            .user_id_group_pairs(UserIdGroupPair::builder().group_id(from).build());
        self.ec2
            .authorize_security_group_ingress()
            .group_id(to)
            .ip_permissions(rule.build())
            .send()
            .await
            .unwrap();
    }

    pub async fn interface(&self, subnet: &str, group: &str, description: &str, tag: Pair<'_>) {
        let call =
            self.ec2.create_network_interface().subnet_id(subnet).groups(group).description(description);
        call.tag_specifications(tagged(ResourceType::NetworkInterface, tag)).send().await.unwrap();
    }

    pub async fn classic_load_balancer(&self, name: &str, subnet: &str, group: &str, tag: Pair<'_>) {
        let listener = classic::Listener::builder()
            .protocol("TCP")
            .load_balancer_port(80)
            .instance_port(30080)
            .build()
            .unwrap();
        let tags = on_balancers(tag)
            .into_iter()
            .map(|(key, value)| classic::Tag::builder().key(key).value(value).build().unwrap());
        let call = self
            .classic
            .create_load_balancer()
            .load_balancer_name(name)
            .subnets(subnet)
            .security_groups(group);
        call.scheme("internal").listeners(listener).set_tags(Some(tags.collect())).send().await.unwrap();
    }

    /// Its ARN.
    pub async fn load_balancer(
        &self,
        name: &str,
        kind: &str,
        subnets: &[String],
        group: &str,
        tag: Pair<'_>,
    ) -> String {
        let call = self
            .elb
            .create_load_balancer()
            .name(name)
            .r#type(kind.into())
            .set_subnets(Some(subnets.to_vec()));
        let call = call
            .scheme(balancing::LoadBalancerSchemeEnum::Internal)
            .security_groups(group)
            .set_tags(balancing_tags(tag));
        call.send().await.unwrap().load_balancers.unwrap().remove(0).load_balancer_arn.unwrap()
    }

    pub async fn delete_load_balancer(&self, arn: &str) {
        self.elb.delete_load_balancer().load_balancer_arn(arn).send().await.unwrap();
    }

    /// Its ARN.
    pub async fn target_group(&self, name: &str, vpc: &str, tag: Pair<'_>) -> String {
        let call = self
            .elb
            .create_target_group()
            .name(name)
            .vpc_id(vpc)
            .protocol(balancing::ProtocolEnum::Http)
            .port(80);
        call.set_tags(balancing_tags(tag))
            .send()
            .await
            .unwrap()
            .target_groups
            .unwrap()
            .remove(0)
            .target_group_arn
            .unwrap()
    }

    pub async fn listener(&self, balancer: &str, group: &str, tag: Pair<'_>) {
        let forward = balancing::Action::builder()
            .r#type(balancing::ActionTypeEnum::Forward)
            .target_group_arn(group)
            .build();
        let call = self
            .elb
            .create_listener()
            .load_balancer_arn(balancer)
            .protocol(balancing::ProtocolEnum::Http)
            .port(80);
        call.default_actions(forward).set_tags(balancing_tags(tag)).send().await.unwrap();
    }
}
