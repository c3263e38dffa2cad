"""Paths below a site's mount root: where they are, when they come and go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from provisioner.gateways.errors import PermanentGatewayError, Unreachable

FIRST_LOOK_SECONDS = 0.005
LONGEST_LOOK_SECONDS = 0.5


def path_below(mount_root: Path, *, junction_path: str) -> Path:
    """Return where a junction path is on this host.

    Raises: PermanentGatewayError for a path that leads anywhere else: relative, with
    `..`, or through a symlink (the junction itself may be one, on hosts without mount
    rights).
    """
    parts = junction_path.split("/")
    if parts[0] or not all(parts[1:]) or {".", ".."} & set(parts):
        raise _unsafe(f"Not a junction path: {junction_path!r}.")
    path = mount_root.joinpath(*parts[1:])
    parent = path.parent
    if parent.resolve() != mount_root.resolve().joinpath(*parts[1:-1]):
        raise _unsafe(f"{path} leads out of {mount_root} through a symlink.")
    return path


def wait_until_visible(path: Path, *, timeout_seconds: float) -> None:
    """Wait until this host sees a directory there.

    A new junction can stay hidden for the NFS client's attribute cache time.

    Raises: Unreachable where it does not come in time.
    """
    is_there = path.is_dir
    if not _wait(is_there, timeout_seconds=timeout_seconds):
        raise Unreachable(
            f"{path} did not appear on this host within {timeout_seconds:.0f} s. Is the "
            "namespace mounted here, and does the export policy let this host in?",
            system="host",
            operation="wait for mount",
        )


def wait_until_gone(path: Path, *, timeout_seconds: float) -> None:
    """Wait until this host sees nothing there.

    Raises: Unreachable where it stays.
    """
    if not _wait(lambda: not os.path.lexists(path), timeout_seconds=timeout_seconds):
        raise Unreachable(
            f"{path} is still there after {timeout_seconds:.0f} s. Somebody may be "
            "using it: look with fuser -m.",
            system="host",
            operation="wait for unmount",
        )


def _wait(is_so: Callable[[], bool], *, timeout_seconds: float) -> bool:
    ends = time.monotonic() + timeout_seconds
    pause = FIRST_LOOK_SECONDS
    while not is_so():
        if time.monotonic() + pause > ends:
            return False
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_LOOK_SECONDS)
    return True


def _unsafe(sentence: str) -> PermanentGatewayError:
    return PermanentGatewayError(sentence, system="host", operation="find path")
