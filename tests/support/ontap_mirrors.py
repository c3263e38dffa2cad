"""SnapMirror between the lab's clusters: sources, destinations, transfers."""

from __future__ import annotations

import time
from typing import Any

from tests.support.ontap_rest import SECONDS, Rest

RELATIONSHIPS = "/api/snapmirror/relationships"


def wait_idle(rest: Rest, uuid: str) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        row = rest.get(f"{RELATIONSHIPS}/{uuid}")
        state = row.get("transfer", {}).get("state")
        if state not in ("queued", "transferring"):
            return row
        time.sleep(0.02)
    raise AssertionError("the transfer has no end")


def source(rest: Rest) -> str:
    """Make a volume with a file and a snapshot."""
    uuid = rest.volume("t", nas={"path": "/t"})
    (rest.lab.mount_root / "t" / "file").write_text("first")
    rest.snapshot(uuid, "s1")
    return uuid


def dp(rest: Rest, svm: str, name: str = "t_dst") -> str:
    return rest.volume(name, svm={"name": svm}, type="dp")


def transfer(rest: Rest, uuid: str, body: Any = None) -> dict[str, Any]:
    response = rest("POST", f"{RELATIONSHIPS}/{uuid}/transfers", body or {})
    assert response.status_code == 201, response.text
    return wait_idle(rest, uuid)
