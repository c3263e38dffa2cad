"""Fixtures of the contract suites."""

from __future__ import annotations

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
