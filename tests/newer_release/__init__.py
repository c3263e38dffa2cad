"""What a later release brings, as an app: a table, columns, a task and a step.

tests/shipping/availability/test_rolling_upgrade.py runs it beside the release before.
"""

from __future__ import annotations

from provisioner import __version__

STEP, SWEEP = "newer", "sweep_newer"
RELEASE = f"{__version__}+newer"
