"""Fixtures of the contract suites."""

from __future__ import annotations

from tests.contract.ontap_fixtures import (
    cluster_ontap,
    lab_control,
    lab_ontap,
    least_ontap,
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
