"""The lab as a drift check sees it, for tests that use `foreign`."""

from __future__ import annotations

from tests.support.drift_scene import (
    emptied_lab,
    foreign,
    lab_workspace,
    ontap,
    owner,
    p4,
    perforce,
)

__all__ = [
    "emptied_lab",
    "foreign",
    "lab_workspace",
    "ontap",
    "owner",
    "p4",
    "perforce",
]
