"""Fixtures of the contract suites."""

from __future__ import annotations

from tests.contract.ontap_fixtures import (
    lab_control,
    lab_ontap,
    ontap,
    ontap_lab,
    ontap_target,
)
from tests.contract.perforce_fixtures import (
    lab_perforce,
    perforce,
    perforce_lab,
    perforce_target,
)

__all__ = [
    "lab_control",
    "lab_ontap",
    "lab_perforce",
    "ontap",
    "ontap_lab",
    "ontap_target",
    "perforce",
    "perforce_lab",
    "perforce_target",
]
