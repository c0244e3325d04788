//! Networks that a user brought, and clusters whose infrastructure somebody else looks after. Plain Machines
//! are put into them, chosen by ids and by filters, and taken out again; what the user brought is afterwards
//! as it was. Nothing of these clusters boots.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use end_to_end::fleet::PROFILE;
use end_to_end::{Cluster, MOMENT, condition, condition_text, fleet};
use sandbox::Bed;
use serde_json::{Value, json};

use super::passed;

/// What a user made before any cluster: a VPC with a public and a private subnet, a way out for the public
/// one, and a security group.
struct Network {
    vpc: String,
    gateway: String,
    public: String,
    private: String,
    route_table: String,
    group: String,
}

/// The chain of them: both clusters live in the same network, one after the other.
pub async fn a_network_that_a_user_brought_stays_as_it_is(bed: &Bed) -> Result<()> {
    let network = Network::make(bed).await?;
    let before = network.state(bed).await?;
    a_cluster_uses_it(bed, &network).await?;
    ensure!(
        network.state(bed).await? == before,
        "the network is not as it was: {before} before, {} now",
        network.state(bed).await?
    );
    passed(
        "a cluster in a network that a user brought uses it, by ids and by filters, and leaves it as it was",
    );
    machines_of_an_externally_managed_cluster(bed, &network).await?;
    ensure!(
        network.state(bed).await? == before,
        "the network is not as it was: {before} before, {} now",
        network.state(bed).await?
    );
    passed(
        "machines of a cluster that somebody else looks after come and go, and nothing is written to its AWSCluster",
    );
    network.remove(bed).await
}

async fn a_cluster_uses_it(bed: &Bed, network: &Network) -> Result<()> {
    let cluster = Cluster::new("default", "brought", 1, 1);
    let spec = json!({"region": "us-east-1",
        "network": {"vpc": {"id": network.vpc}, "subnets": [{"id": network.public}, {"id": network.private}]}});
    let worker = json!({"instanceType": "t3.large", "iamInstanceProfile": PROFILE,
        "subnet": {"filters": [{"name": "tag:Name", "values": ["corporate-priv*"]}]},
        "additionalSecurityGroups": [{"filters": [{"name": "group-name", "values": ["corporate"]}]}]});
    let control_plane = json!({"instanceType": "t3.large", "iamInstanceProfile": PROFILE});
    bed.apply(&fleet::documents(
        &cluster,
        spec,
        json!({}),
        &[("control-plane", true, control_plane), ("worker", false, worker)],
    ))
    .await?;
    machines_are_ready(bed, &cluster, 2).await?;
    let object = cluster.object(bed, "awscluster", &cluster.name).await?;
    ensure!(condition(&object, "Ready") == "True", "Ready is {}", condition_text(&object, "Ready"));
    let world = bed.emulator().world().await?;
    for instance in world.instances.iter().filter(|it| cluster_tag(&cluster, &it.tags)) {
        let described = bed.aws(&["ec2", "describe-instances", "--instance-ids", &instance.id]).await?;
        let described = &described["Reservations"][0]["Instances"][0];
        let groups = described["SecurityGroups"].to_string();
        let is_worker = instance.tags.get("Name").is_some_and(|it| it.contains("worker"));
        ensure!(
            described["SubnetId"] == network.private.as_str(),
            "{} is in {}",
            instance.id,
            described["SubnetId"]
        );
        ensure!(groups.contains(&network.group) == is_worker, "{} has {groups}", instance.id);
    }
    let balancers = bed.aws(&["elb", "describe-load-balancers"]).await?;
    let balancers = balancers["LoadBalancerDescriptions"].as_array().cloned().unwrap_or_default();
    let ours = balancers
        .iter()
        .find(|it| it["VPCId"] == network.vpc.as_str())
        .context("there is no load balancer")?;
    ensure!(ours["Subnets"] == json!([network.public]), "the load balancer is in {}", ours["Subnets"]);
    cluster.delete(bed).await
}

async fn machines_of_an_externally_managed_cluster(bed: &Bed, network: &Network) -> Result<()> {
    let cluster = Cluster::new("default", "external", 0, 1);
    let spec = json!({"region": "us-east-1", "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
        "network": {"vpc": {"id": network.vpc}, "subnets": [{"id": network.public, "isPublic": true}, {"id": network.private}]}});
    let worker = json!({"instanceType": "t3.large", "iamInstanceProfile": PROFILE, "additionalSecurityGroups": [{"id": network.group}]});
    let annotations = json!({"cluster.x-k8s.io/managed-by": "terraform"});
    bed.apply(&fleet::documents(&cluster, spec, annotations, &[("worker", false, worker)])).await?;
    let provisioned = r#"{"status":{"ready":true,"initialization":{"provisioned":true}}}"#;
    let arguments = [
        "patch",
        "awscluster",
        "external",
        "--subresource",
        "status",
        "--type",
        "merge",
        "--patch",
        provisioned,
    ];
    bed.kubectl(&arguments).await?;
    machines_are_ready(bed, &cluster, 1).await?;
    let object = bed.kubectl_json(&["get", "awscluster", "external", "--show-managed-fields"]).await?;
    let writers = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let writers: BTreeSet<&str> = writers.iter().filter_map(|it| it["manager"].as_str()).collect();
    ensure!(
        !writers.is_empty() && !writers.contains("cluster-operator"),
        "the AWSCluster was written to by {writers:?}"
    );
    ensure!(object["metadata"]["finalizers"].is_null(), "finalizers {}", object["metadata"]["finalizers"]);
    let world = bed.emulator().world().await?;
    let instance =
        world.instances.iter().find(|it| cluster_tag(&cluster, &it.tags)).context("there is no instance")?;
    let described = bed.aws(&["ec2", "describe-instances", "--instance-ids", &instance.id]).await?;
    let described = &described["Reservations"][0]["Instances"][0];
    ensure!(described["SubnetId"] == network.private.as_str(), "it is in {}", described["SubnetId"]);
    let groups: Vec<&str> = described["SecurityGroups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["GroupId"].as_str())
        .collect();
    ensure!(groups == [network.group.as_str()], "it has {groups:?}");
    cluster.delete(bed).await
}

impl Network {
    async fn make(bed: &Bed) -> Result<Self> {
        let vpc = create(bed, "vpc", &["--cidr-block", "10.50.0.0/16"], "/Vpc/VpcId").await?;
        bed.aws(&["ec2", "modify-vpc-attribute", "--vpc-id", &vpc, "--enable-dns-hostnames", "Value=true"])
            .await?;
        let gateway = create(bed, "internet-gateway", &[], "/InternetGateway/InternetGatewayId").await?;
        bed.aws(&["ec2", "attach-internet-gateway", "--internet-gateway-id", &gateway, "--vpc-id", &vpc])
            .await?;
        let subnet = async |name: &str, cidr: &str| {
            let id = create(
                bed,
                "subnet",
                &["--vpc-id", &vpc, "--cidr-block", cidr, "--availability-zone", "us-east-1a"],
                "/Subnet/SubnetId",
            )
            .await?;
            bed.aws(&["ec2", "create-tags", "--resources", &id, "--tags", &format!("Key=Name,Value={name}")])
                .await?;
            anyhow::Ok(id)
        };
        let (public, private) = (
            subnet("corporate-public", "10.50.0.0/24").await?,
            subnet("corporate-private", "10.50.1.0/24").await?,
        );
        let route_table = create(bed, "route-table", &["--vpc-id", &vpc], "/RouteTable/RouteTableId").await?;
        let to_gateway = [
            "--route-table-id",
            &route_table,
            "--destination-cidr-block",
            "0.0.0.0/0",
            "--gateway-id",
            &gateway,
        ];
        bed.aws(&[&["ec2", "create-route"][..], &to_gateway].concat()).await?;
        bed.aws(&["ec2", "associate-route-table", "--route-table-id", &route_table, "--subnet-id", &public])
            .await?;
        let group = ["--vpc-id", &vpc, "--group-name", "corporate", "--description", "brought"];
        let group = create(bed, "security-group", &group, "/GroupId").await?;
        Ok(Self { vpc, gateway, public, private, route_table, group })
    }

    /// Everything in it, as AWS describes it.
    async fn state(&self, bed: &Bed) -> Result<Value> {
        let of_vpc = format!("Name=vpc-id,Values={}", self.vpc);
        let mut res = json!({});
        for what in ["vpcs", "subnets", "route-tables", "security-groups", "nat-gateways"] {
            let filter = if what == "nat-gateways" { "--filter" } else { "--filters" };
            res[what] = bed.aws(&["ec2", &format!("describe-{what}"), filter, &of_vpc]).await?;
        }
        res["gateway"] =
            bed.aws(&["ec2", "describe-internet-gateways", "--internet-gateway-ids", &self.gateway]).await?;
        // How many addresses are free says nothing of whose they are, and follows what is gone with a delay.
        for subnet in res["subnets"]["Subnets"].as_array_mut().into_iter().flatten() {
            subnet["AvailableIpAddressCount"].take();
        }
        Ok(res)
    }

    async fn remove(&self, bed: &Bed) -> Result<()> {
        bed.aws(&["ec2", "delete-security-group", "--group-id", &self.group]).await?;
        bed.aws(&[
            "ec2",
            "detach-internet-gateway",
            "--internet-gateway-id",
            &self.gateway,
            "--vpc-id",
            &self.vpc,
        ])
        .await?;
        bed.aws(&["ec2", "delete-internet-gateway", "--internet-gateway-id", &self.gateway]).await?;
        for subnet in [&self.public, &self.private] {
            bed.aws(&["ec2", "delete-subnet", "--subnet-id", subnet]).await?;
        }
        bed.aws(&["ec2", "delete-route-table", "--route-table-id", &self.route_table]).await?;
        bed.aws(&["ec2", "delete-vpc", "--vpc-id", &self.vpc]).await.map(drop)
    }
}

/// Makes something of EC2 and returns its id.
async fn create(bed: &Bed, what: &str, arguments: &[&str], id: &str) -> Result<String> {
    let answer = bed.aws(&[&["ec2", &format!("create-{what}")][..], arguments].concat()).await?;
    answer
        .pointer(id)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .with_context(|| format!("no {id} in {answer}"))
}

fn cluster_tag(cluster: &Cluster, tags: &std::collections::BTreeMap<String, String>) -> bool {
    tags.contains_key(&format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{}", cluster.name))
}

async fn machines_are_ready(bed: &Bed, cluster: &Cluster, count: usize) -> Result<()> {
    bed.wait_for(&format!("{count} AWSMachines of {} to be ready", cluster.name), MOMENT, async || {
        let machines = cluster.objects(bed, "awsmachines").await?;
        let ready = machines.iter().filter(|it| condition(it, "Ready") == "True").count();
        let texts: Vec<String> = machines.iter().map(|it| condition_text(it, "Ready")).collect();
        ensure!(
            ready == count && machines.len() == count,
            "{ready} of {} are ready: {texts:?}",
            machines.len()
        );
        Ok(())
    })
    .await
}
