"""A child of the nursery, and which process the nursery is."""

from __future__ import annotations

from typing import Any

from provisioner.gateways.hosts import nursery
from provisioner.gateways.hosts.run_as import run_module_as


def run(verb: str, **arguments: Any) -> dict[str, Any]:
    return run_module_as(
        "tests.gateways.hosts.errand",
        request={"verb": verb},
        uid=20001,
        gid=20002,
        timeout_seconds=30.0,
        **arguments,
    )


def pid_of(own: nursery._Own) -> int:
    assert own.nursery is not None
    return own.nursery._process.pid
