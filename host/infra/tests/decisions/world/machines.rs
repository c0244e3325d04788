//! Instances and targets of the pretend AWS.

use model::*;

use super::{SLOW, World};

impl World {
    pub(super) fn run_instance(
        &mut self,
        it: &Instance,
        tags: Tags,
        ids: &Ids,
        token: Option<&String>,
    ) -> Result<String, &'static str> {
        let launch = it.launch.as_ref().ok_or("MissingParameter")?;
        let wanted = |key: Key| ids.get(&key).cloned().ok_or("MissingParameter");
        let subnet_id = wanted(Subnet::key(&it.subnet))?;
        let mut groups = it
            .groups
            .iter()
            .map(|name| wanted(SecurityGroup::key(name)))
            .collect::<Result<std::collections::BTreeSet<_>, _>>()?;
        groups.extend(it.additional_groups.clone());
        let subnet = self
            .truth
            .subnets
            .iter()
            .find(|it| it.id == subnet_id)
            .ok_or("InvalidSubnetID.NotFound")?
            .clone();
        let unknown = |id: &String| !self.truth.security_groups.iter().any(|it| it.id == *id);
        if groups.iter().any(unknown) {
            return Err("InvalidGroup.NotFound");
        }
        if let Some(secret) = it.secret.as_ref() {
            let prefix = wanted(Secret::key(secret))?;
            assert!(
                self.secrets.contains_key(&format!("{prefix}-0")),
                "an instance was started before its bootstrap data was there"
            );
        }
        assert!(launch.user_data.0.len() <= infra::machine::LARGEST_USER_DATA, "EC2 takes no such user data");
        let id = self.id("i");
        let interface = FoundNetworkInterface {
            id: self.id("eni"),
            vpc_id: subnet.vpc_id.clone(),
            subnet_id: subnet_id.clone(),
            groups: groups.clone(),
            status: "in-use".into(),
            description: String::new(),
            interface_type: "interface".into(),
            requester_managed: false,
            attached_instance: Some(id.clone()),
            tags: Tags::new(),
        };
        self.truth.network_interfaces.push(interface);
        let volume = format!("vol-of-{id}");
        self.parts.insert(volume.clone(), tags.clone());
        let status = InstanceStatus {
            state: "pending".into(),
            zone: subnet.zone.clone(),
            private_ip: Some(format!("10.0.0.{}", self.next % 250)),
            private_dns_name: Some(format!("ip-10-0-0-{}.ec2.internal", self.next % 250)),
            public_ip: None,
            public_dns_name: None,
            reason: None,
            parts: [volume].into(),
        };
        self.truth.instances.push(FoundInstance {
            id: id.clone(),
            vpc_id: Some(subnet.vpc_id),
            subnet_id: Some(subnet_id),
            client_token: token.cloned(),
            instance_type: launch.instance_type.clone(),
            image: launch.image.clone(),
            profile: launch
                .iam_instance_profile
                .as_ref()
                .map(|it| format!("arn:aws:iam::123456789012:instance-profile/{it}")),
            groups,
            status,
            tags,
        });
        self.pending.insert(id.clone(), SLOW);
        Ok(id)
    }

    /// Groups of the instance's first interface.
    pub(super) fn modify_interface(
        &mut self,
        id: &str,
        it: &Instance,
        ids: &Ids,
    ) -> Result<(), &'static str> {
        let core = it
            .groups
            .iter()
            .map(|name| ids.get(&SecurityGroup::key(name)).cloned().ok_or("MissingParameter"));
        let mut groups = core.collect::<Result<std::collections::BTreeSet<_>, _>>()?;
        groups.extend(it.additional_groups.clone());
        if groups.iter().any(|id| !self.truth.security_groups.iter().any(|it| it.id == *id)) {
            return Err("InvalidGroup.NotFound");
        }
        let instance =
            self.truth.instances.iter_mut().find(|it| it.id == id).ok_or("InvalidInstanceID.NotFound")?;
        instance.groups.retain(|id| !it.removed_groups.contains(id));
        instance.groups.extend(groups);
        if instance.groups.is_empty() { Err("InvalidParameterValue") } else { Ok(()) }
    }

    pub(super) fn register(&mut self, target: &Target, ids: &Ids) -> Result<String, &'static str> {
        let instance = ids.get(&Instance::key(&target.instance)).ok_or("MissingParameter")?;
        let running =
            self.truth.instances.iter().any(|it| it.id == *instance && it.status.state == "running");
        if !running {
            return Err("InvalidTarget");
        }
        let balancer = ids.get(&LoadBalancer::key(&target.load_balancer)).ok_or("MissingParameter")?;
        let balancer = self
            .truth
            .load_balancers
            .iter_mut()
            .find(|it| it.id == *balancer)
            .ok_or("LoadBalancerNotFound")?;
        balancer.targets.insert(instance.clone());
        Ok(balancer.id.clone())
    }

    /// Somebody terminates an instance behind the operator's back.
    pub fn terminate(&mut self, id: &str) {
        for it in self.truth.instances.iter_mut().filter(|it| it.id == id) {
            it.status.state = "shutting-down".into();
        }
        self.pending.insert(id.to_owned(), SLOW);
    }
}
