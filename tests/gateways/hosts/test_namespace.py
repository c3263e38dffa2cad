"""Below a mount root that is no namespace of an SVM nothing is touched."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.mounts import Mount
from provisioner.gateways.hosts.namespace import require_namespace, why_no_namespace

# What the kernel lists where the root of a namespace is mounted.
NAMESPACE = Mount(
    mount_point=Path("/clones"),
    root="/",
    fs_type="nfs4",
    source="127.0.0.1:/",
    options=("rw", "nosuid", "nodev"),
)
OURS = ("10.0.0.7", "127.0.0.1")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    volume = tmp_path / "w-hers"
    volume.mkdir()
    return volume


def require(volume: Path, *, is_lab: bool) -> None:
    require_namespace(volume.parent, volume, addresses=lambda: OURS, is_lab=is_lab)


def test_a_directory_of_the_host_is_no_namespace(volume: Path) -> None:
    with pytest.raises(Refused, match="is a directory of this host's own"):
        require(volume, is_lab=False)


def test_a_mount_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not on this host"):
        require(tmp_path / "nowhere" / "w-hers", is_lab=False)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_the_labs_namespace_is_closed_to_others(volume: Path, mode: int) -> None:
    """Whoever could make an entry there would have root give it away."""
    require(volume, is_lab=True)
    volume.parent.chmod(mode)
    with pytest.raises(Refused, match="can be written to by others"):
        require(volume, is_lab=True)


def test_the_root_of_the_namespace_is_one() -> None:
    assert why_no_namespace(NAMESPACE, addresses=OURS) == ""
    assert why_no_namespace(NAMESPACE, addresses=()) == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": "127.0.0.1:/home"}, "not the root of a namespace"),
        ({"root": "/below"}, "not the root of a namespace"),
        ({"source": "127.0.0.9:/"}, "not an address of the SVM"),
        ({"fs_type": "ext4", "source": "/dev/vda1"}, "this host's own"),
    ],
)
def test_other_mounts_are_none(changes: dict[str, str], why: str) -> None:
    mount = dataclasses.replace(NAMESPACE, **changes)  # type: ignore[arg-type]  # all text

    assert why in why_no_namespace(mount, addresses=OURS)
