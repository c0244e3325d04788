"""VPCs, subnets, zones and routes: what they may be, and to what a route may lead."""

import ipaddress
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.ec2.models.availability_zones_and_regions import Zone
from moto.ec2.models.route_tables import Route

from emulator.hooks import Call, Proceed, around, before

# moto's zones lack what every zone of AWS says about itself.
Zone.opt_in_status = "opt-in-not-required"
Zone.group_name = property(lambda self: f"{self.region_name}-zg-1")
Zone.network_border_group = property(lambda self: self.region_name)


@around("ec2", "DescribeAvailabilityZones")
def known_zones(call: Call, proceed: Proceed) -> Any:
    """Unknown names are an error; the filter opt-in-status counts."""
    names = {zone.name for zone in call.ec2.zones.get(call.region, [])}
    unknown = [one for one in call.get("ZoneNames") or [] if one not in names]
    if unknown:
        raise call.refuse("InvalidParameterValue", f"Invalid availability zone: [{', '.join(unknown)}]")
    filters = call.get("Filters") or []
    rest = [one for one in filters if one["Name"] not in ("opt-in-status", "group-name")]
    call.params["Filters"] = rest
    answer = proceed()
    for one in filters:
        if one["Name"] in ("opt-in-status", "group-name"):
            attribute = one["Name"].replace("-", "_")
            zones = answer.result["AvailabilityZones"]
            answer.result["AvailabilityZones"] = [zone for zone in zones if getattr(zone, attribute) in one["Values"]]
    return answer


@before("ec2", "CreateVpc", "CreateSubnet", "AssociateVpcCidrBlock")
def canonical_blocks(call: Call) -> None:
    """Host bits are set to zero, as AWS does; a VPC has at least 16 and at most 65536 addresses."""
    block = call.get("CidrBlock")
    if not block:
        return
    try:
        network = ipaddress.IPv4Network(block, strict=False)
    except ValueError:
        raise call.refuse(
            "InvalidParameterValue", f"Value ({block}) for parameter cidrBlock is invalid. This is not a valid CIDR block."
        ) from None
    if not 16 <= network.prefixlen <= 28:
        code = "InvalidSubnet.Range" if call.action == "CreateSubnet" else "InvalidVpc.Range"
        raise call.refuse(code, f"The CIDR '{block}' is invalid.")
    call.params["CidrBlock"] = str(network)


@before("ec2", "AssociateVpcCidrBlock")
def no_overlap(call: Call) -> None:
    """A further block must not overlap one that the VPC has."""
    if not call.get("CidrBlock"):
        return
    wanted = ipaddress.IPv4Network(call.get("CidrBlock"))
    for held in call.ec2.get_vpc(call.get("VpcId")).get_cidr_block_association_set():
        if held["cidr_block_state"]["state"] == "associated" and wanted.overlaps(
            ipaddress.IPv4Network(held["cidr_block"])
        ):
            raise call.refuse(
                "InvalidVpc.Range", f"The CIDR '{wanted}' conflicts with {held['cidr_block']} of the VPC"
            )


@around("ec2", "CreateSubnet")
def plain_subnet(call: Call, proceed: Proceed) -> Any:
    """In a zone of this region; never by itself the zone's default, nor public."""
    zones = call.ec2.zones.get(call.region, [])
    zone = call.get("AvailabilityZone")
    if zone and zone not in {one.name for one in zones}:
        shown = ", ".join(one.name for one in zones)
        raise call.refuse(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
            f"following availability zones: {shown}.",
        )
    answer = proceed()
    subnet = answer.result["Subnet"]
    subnet.default_for_az = subnet.map_public_ip_on_launch = False
    return answer


def _route_state(self: Route) -> str:
    """A route to something that is gone is a black hole."""
    if self.nat_gateway is not None and self.nat_gateway.state in ("deleted", "failed"):
        return "blackhole"
    gateway = self.gateway
    if gateway is not None and hasattr(gateway, "attachment_state") and gateway.vpc is None:
        return "blackhole"
    return "active"


Route.state = property(_route_state)


@before("ec2", "CreateRoute", "ReplaceRoute")
def reachable_target(call: Call) -> None:
    """The gateway of a route must exist and belong to the VPC of the table."""
    table = call.ec2.get_route_table(call.get("RouteTableId"))
    nat_id = call.get("NatGatewayId")
    if nat_id:
        gateway = call.ec2.nat_gateways.get(nat_id)
        if gateway is None or gateway.state in ("deleting", "deleted", "failed"):
            raise call.refuse("InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat_id}' does not exist")
        if gateway.vpc_id != table.vpc_id:
            raise _other_network(call, table.id, nat_id)
    internet_id = call.get("GatewayId")
    if internet_id and internet_id.startswith("igw-"):
        internet = call.ec2.get_internet_gateway(internet_id)
        if internet.vpc is None or internet.vpc.id != table.vpc_id:
            raise _other_network(call, table.id, internet_id)


def _other_network(call: Call, table_id: str, gateway_id: str) -> Exception:
    return call.refuse(
        "InvalidParameterValue",
        f"route table {table_id} and network gateway {gateway_id} belong to different networks",
    )


@around("ec2", "AssociateRouteTable")
def one_table_each(call: Call, proceed: Proceed) -> Any:
    """A subnet has one route table: the same again is fine, another is refused."""
    subnet_id, table_id = call.get("SubnetId"), call.get("RouteTableId")
    if subnet_id:
        table = call.ec2.get_route_table(table_id)
        if call.ec2.get_subnet(subnet_id).vpc_id != table.vpc_id:
            raise _other_network(call, table_id, subnet_id)
    for table in call.ec2.route_tables.values():
        for association, held in table._associations.items():
            if subnet_id and held == subnet_id:
                if table.id == table_id:
                    return ActionResult(
                        {"AssociationId": association, "AssociationState": {"State": "associated"}}
                    )
                raise call.refuse(
                    "Resource.AlreadyAssociated",
                    f"the specified association for route table {table_id} conflicts with an existing association",
                )
    return proceed()


@before("ec2", "CreateVpcEndpoint")
def gateway_endpoint_by_default(call: Call) -> None:
    """moto can make an endpoint without a type, but not delete it."""
    call.params.setdefault("VpcEndpointType", "Gateway")


def _delete_endpoints(self: EC2Backend, vpce_ids: list[str] | None = None) -> None:
    """Also those that a later call gave route tables; moto looks for routes that it never made."""
    for name in vpce_ids or []:
        endpoint = self.vpc_end_points.pop(name, None)
        if endpoint is None:
            continue
        for interface in endpoint.network_interface_ids or []:
            self.enis.pop(interface, None)
        for table in endpoint.route_table_ids or []:
            if table in self.route_tables:
                routes = self.route_tables[table]._routes
                for key in [one for one, route in routes.items() if route.gateway is endpoint]:
                    del routes[key]


EC2Backend.delete_vpc_endpoints = _delete_endpoints


@around("ec2", "DescribeInstanceTopology")
def no_topology(call: Call, proceed: Proceed) -> Any:
    """Only a few accelerated instance types have a topology; the others are left out of AWS's answer."""
    return ActionResult({"Instances": []})
