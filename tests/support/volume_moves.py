"""Moves of the lab's volumes to another aggregate."""

from __future__ import annotations

import time
from typing import Any

from tests.support.ontap_rest import Rest
from tests.support.ontap_volumes import VOLUMES

TO = {"movement": {"destination_aggregate": {"name": "aggr2"}}}


def movement(rest: Rest, uuid: str) -> dict[str, Any]:
    found = rest.get(f"{VOLUMES}/{uuid}", fields="movement").get("movement", {})
    assert isinstance(found, dict)
    return found


def until(rest: Rest, uuid: str, state: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while (seen := movement(rest, uuid))["state"] != state:
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)
    return seen
