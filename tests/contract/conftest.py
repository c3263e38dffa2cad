"""Fixtures of the contract suites."""

from __future__ import annotations

from tests.contract.perforce_fixtures import (
    lab_perforce,
    perforce,
    perforce_lab,
    perforce_target,
)

__all__ = ["lab_perforce", "perforce", "perforce_lab", "perforce_target"]
