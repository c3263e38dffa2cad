"""Refusals about warm pools."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class PoolExists(ActionRefused):
    """A warm pool of “{template}” at {site} for {owner} and this purpose already
    exists. Change that one.
    """

    code = "pool_exists"
