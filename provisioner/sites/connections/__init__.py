"""Testing the way to a site and to a Perforce server: what is wrong, what to do.

Each look goes through what Cloneyard really needs, one thing after another, and what
needs something that failed is not looked at. But for a trial, which somebody asks for,
nothing is changed at the far side. The rows are written by rows.py alone.
"""

from __future__ import annotations

from provisioner.sites.connections.hosts import look_at_mount, look_from_host
from provisioner.sites.connections.ontap import look_at_ontap, reach_ontap
from provisioner.sites.connections.perforce import (
    look_at_perforce,
    reach_perforce,
)
from provisioner.sites.connections.rows import (
    LOOK,
    ask,
    ask_for_trial,
    keep,
    keep_of_host,
)
from provisioner.sites.connections.trial import try_out

__all__ = [
    "LOOK",
    "ask",
    "ask_for_trial",
    "keep",
    "keep_of_host",
    "look_at_mount",
    "look_at_ontap",
    "look_at_perforce",
    "look_from_host",
    "reach_ontap",
    "reach_perforce",
    "try_out",
]
