"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.sites.models.capacity import (
    AggregateDay,
    AggregateSpace,
    CapacityDay,
    MeasuredVolume,
    SiteCapacity,
)
from provisioner.sites.models.ceilings import Ceiling, policy_name, qos_policy_for
from provisioner.sites.models.connections import ConnectionCheck, ConnectionTest
from provisioner.sites.models.perforce_servers import (
    PerforceServer,
    ReplicaPosition,
    ServerAbilities,
    ServerKind,
    WhenBehind,
)
from provisioner.sites.models.sites import HomeSite, OpenTo, Site

__all__ = [
    "AggregateDay",
    "AggregateSpace",
    "CapacityDay",
    "Ceiling",
    "ConnectionCheck",
    "ConnectionTest",
    "HomeSite",
    "MeasuredVolume",
    "OpenTo",
    "PerforceServer",
    "ReplicaPosition",
    "ServerAbilities",
    "ServerKind",
    "Site",
    "SiteCapacity",
    "WhenBehind",
    "policy_name",
    "qos_policy_for",
]
