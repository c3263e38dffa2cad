"""`gateway.shelves`: opened files kept on the server, and opened again from there."""

from __future__ import annotations

from provisioner.gateways.perforce.shelves.copies import Copies
from provisioner.gateways.perforce.shelves.reopening import Reopening
from provisioner.gateways.perforce.shelves.shelving import Shelving


class Shelves(Shelving, Reopening, Copies):
    """Shelved changes of one Perforce server."""
