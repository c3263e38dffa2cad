"""An errand that runs as somebody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provisioner.gateways.hosts.run_as import (
    run_module_as,
)

UID = 20001


GID = 20002


def run(
    verb: str,
    *,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
    timeout_seconds: float = 30.0,
    **request: Any,
) -> dict[str, Any]:
    return run_module_as(
        "tests.gateways.hosts.errand",
        request={"verb": verb, **request},
        uid=UID,
        gid=GID,
        timeout_seconds=timeout_seconds,
        on_progress=on_progress,
    )
