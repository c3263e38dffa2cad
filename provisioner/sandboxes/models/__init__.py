"""Sandboxes: private copies of a Perforce server's volumes with a server on them."""

from __future__ import annotations

from provisioner.sandboxes.models.hosts import (
    HIGHEST_PORT,
    LONGEST_HOURS,
    LOWEST_PORT,
    P4dVersion,
    SandboxHost,
    SandboxPolicy,
)
from provisioner.sandboxes.models.plans import SandboxPlan
from provisioner.sandboxes.models.sandboxes import (
    HOST_NOT_ASKED,
    MOVING_SANDBOXES,
    RESTING_SANDBOXES,
    Sandbox,
    SandboxOperation,
)
from provisioner.sandboxes.models.servers import (
    NEEDED_ROLES,
    Role,
    ServerVolume,
    ServerVolumes,
)
from provisioner.sandboxes.models.volumes import SandboxPlace, SandboxVolume

__all__ = [
    "HIGHEST_PORT",
    "HOST_NOT_ASKED",
    "LONGEST_HOURS",
    "LOWEST_PORT",
    "MOVING_SANDBOXES",
    "NEEDED_ROLES",
    "RESTING_SANDBOXES",
    "P4dVersion",
    "Role",
    "Sandbox",
    "SandboxHost",
    "SandboxOperation",
    "SandboxPlace",
    "SandboxPlan",
    "SandboxPolicy",
    "SandboxVolume",
    "ServerVolume",
    "ServerVolumes",
]
