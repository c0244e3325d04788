"""The rules: what AWS does and moto does not, one file per subject.

The order of the imports is the order of the rules around one action: the first is outermost. Paging must see
the final list, lag must hide before paging counts, a token must be recognized before anything is refused.
"""

# ruff: noqa: F401, I001
from emulator.rules import answers, errors, speed
from emulator.rules import paging, read_lag, ids, filters, client_tokens, quotas
from emulator.rules import instances, images, interfaces, attachments, volumes, modifications, gateways, groups, networks, deletes
from emulator.rules import balancer_parts, classic_balancers, balancers, application_balancers
from emulator.rules import efs, secrets, tagging
from emulator.rules import iam, web_identity, enforcement, buckets
