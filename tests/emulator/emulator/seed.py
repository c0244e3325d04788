"""What an account has before anything runs: IAM instance profiles with roles, and a key pair.

These are what CAPA's `clusterawsadm bootstrap iam` creates and what templates name.
"""

import json
import os
from pathlib import Path
from typing import Any

PROFILES = (
    "control-plane.cluster-api-provider-aws.sigs.k8s.io",
    "nodes.cluster-api-provider-aws.sigs.k8s.io",
)
KEY_PAIR = "default"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


def prepare(amis: Path) -> None:
    """Sets moto's environment; must run before moto is imported."""
    os.environ["MOTO_AMIS_PATH"] = str(amis)
    os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "1"


def install() -> None:
    """Makes every account and region that moto creates from now on start with these."""
    from moto.ec2.models import EC2Backend
    from moto.iam.models import IAMBackend

    start_ec2, start_iam = EC2Backend.__init__, IAMBackend.__init__

    def ec2_starts(self: EC2Backend, region_name: str, account_id: str) -> None:
        start_ec2(self, region_name, account_id)
        self.create_key_pair(KEY_PAIR, "ed25519", tags={})

    def iam_starts(self: IAMBackend, *args: Any, **kwargs: Any) -> None:
        start_iam(self, *args, **kwargs)
        for name in PROFILES:
            _profile(self, name)

    EC2Backend.__init__ = ec2_starts
    IAMBackend.__init__ = iam_starts


def _profile(iam: Any, name: str) -> None:
    iam.create_role(
        role_name=name,
        assume_role_policy_document=json.dumps(_TRUST),
        path="/",
        permissions_boundary=None,
        description="",
        tags=[],
        max_session_duration="3600",
    )
    iam.create_instance_profile(name=name, path="/", role_names=[name], tags=[])
