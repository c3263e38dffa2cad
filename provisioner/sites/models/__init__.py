"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.sites.models.capacity import CapacityDay, SiteCapacity
from provisioner.sites.models.connections import ConnectionTest
from provisioner.sites.models.sites import OpenTo, PerforceServer, ServerAbilities, Site

__all__ = [
    "CapacityDay",
    "ConnectionTest",
    "OpenTo",
    "PerforceServer",
    "ServerAbilities",
    "Site",
    "SiteCapacity",
]
