"""Fixtures of the contract suites."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab_perforce import (
    BASE,
    LabServer,
    Workspace,
    lab_server,
    workspace,
)
from tests.support.ontap_scene import (
    cluster_ontap,
    lab_control,
    lab_ontap,
    least_ontap,
    ontap,
    ontap_lab,
    ontap_target,
)
from tests.support.perforce_scene import (
    lab_perforce,
    perforce,
    perforce_lab,
    perforce_target,
)

__all__ = [
    "cluster_ontap",
    "lab_control",
    "lab_ontap",
    "lab_perforce",
    "least_ontap",
    "ontap",
    "ontap_lab",
    "ontap_target",
    "perforce",
    "perforce_lab",
    "perforce_target",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A lab Perforce server of the module's own."""
    with lab_server(tmp_path_factory.mktemp("perforce")) as running:
        yield running


@pytest.fixture
def pair(server: LabServer, tmp_path: Path) -> tuple[Workspace, Workspace]:
    """Two clients of one fresh directory; both have `file`."""
    mark = uuid.uuid4().hex[:8]
    one, two = (
        workspace(server, tmp_path, name=f"{name}-{mark}", depot=f"//depot/{mark}")
        for name in ("one", "two")
    )
    one.add({"file": BASE, "binary": b"\0\1"})
    two.p4.run("sync")
    return one, two
