"""The rows of this feature, each with the rules that the database keeps."""

from __future__ import annotations

from provisioner.sites.models.capacity import CapacityDay, SiteCapacity
from provisioner.sites.models.connections import ConnectionTest
from provisioner.sites.models.sites import (
    COMMANDS_PREFIX,
    HOST_PREFIX,
    OpenTo,
    PerforceServer,
    ServerAbilities,
    Site,
)

__all__ = [
    "COMMANDS_PREFIX",
    "HOST_PREFIX",
    "CapacityDay",
    "ConnectionTest",
    "OpenTo",
    "PerforceServer",
    "ServerAbilities",
    "Site",
    "SiteCapacity",
]
