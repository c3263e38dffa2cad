"""`gateway.changes`: submitted changes, pending changes, and opened files."""

from __future__ import annotations

from provisioner.gateways.perforce.changes.merging import Merging
from provisioner.gateways.perforce.changes.pending import PendingChanges
from provisioner.gateways.perforce.changes.submitted import SubmittedChanges


class Changes(SubmittedChanges, PendingChanges, Merging):
    """Changes of one Perforce server."""
