"""Which process the nursery is."""

from __future__ import annotations

from provisioner.gateways.hosts import nursery


def pid_of(own: nursery._Own) -> int:
    assert own.nursery is not None
    return own.nursery._process.pid
