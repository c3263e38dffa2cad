"""Testing the way to a site and to a Perforce server: what is wrong, what to do.

Each look goes through what Cloneyard really needs, one thing after another, and what
needs something that failed is not looked at. But for a trial, which somebody asks for,
nothing is changed at the far side. The rows are written by rows.py alone.
"""

from __future__ import annotations

from provisioner.sites.connections.hosts import check_from_host, check_mount
from provisioner.sites.connections.ontap import check_ontap, reach_ontap
from provisioner.sites.connections.perforce import (
    check_perforce,
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
    "check_from_host",
    "check_mount",
    "check_ontap",
    "check_perforce",
    "keep",
    "keep_of_host",
    "reach_ontap",
    "reach_perforce",
    "try_out",
]
