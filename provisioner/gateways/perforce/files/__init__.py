"""`gateway.files`: have lists, trees on disk, and what the depot holds."""

from __future__ import annotations

from provisioner.gateways.perforce.files.depot import DepotFiles
from provisioner.gateways.perforce.files.have import HaveLists
from provisioner.gateways.perforce.files.populating import Populating
from provisioner.gateways.perforce.files.reconciling import Reconciling
from provisioner.gateways.perforce.files.syncing import Syncing


class Files(HaveLists, Syncing, Populating, Reconciling, DepotFiles):
    """Files of one Perforce server and of its clients."""
