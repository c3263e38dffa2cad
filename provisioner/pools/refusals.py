"""Why something about warm pools is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class PoolExists(ActionRefused):
    """There is a warm pool of “{template}” for {owner} and this purpose. Change that
    one."""

    code = "pool_exists"
