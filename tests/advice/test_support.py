"""Which releases are known good, too old, or not known."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.advice.support import (
    Status,
    kernel_support,
    nfs_support,
    ontap_support,
    p4d_support,
    worst,
)
from provisioner.gateways.hosts.kernels import is_of_kernel_org, series_of
from provisioner.gateways.ontap.releases import (
    END_OF_FULL_SUPPORT,
    end_of_limited_support,
)

TODAY = dt.date(2026, 11, 29)


@pytest.mark.parametrize(
    ("version", "status", "says"),
    [
        ("9.16.1P4", Status.GOOD, "until 2028-01-31"),
        ("9.13.1", Status.AGING, "until 2028-06-30"),
        ("9.11.1", Status.AGING, "lacks sandboxes of several volumes"),
        ("9.9.1P2", Status.TOO_OLD, "ended on 2026-06-30"),
        ("9.7", Status.TOO_OLD, "support has ended"),
        ("9.5", Status.TOO_OLD, "no REST API"),
        ("9.12.0", Status.UNKNOWN, "No source"),
        ("9.25.1", Status.UNKNOWN, "No source"),
        ("", Status.UNKNOWN, "not read yet"),
        ("Fluffy", Status.UNKNOWN, "not understood"),
    ],
)
def test_ontap(version: str, status: Status, says: str) -> None:
    found = ontap_support(version, today=TODAY)
    assert (found.status, says in found.says) == (status, True), found


def test_on_its_last_day_a_release_is_supported() -> None:
    for release, end in END_OF_FULL_SUPPORT.items():
        version = ".".join(map(str, release))
        later = end + dt.timedelta(days=1)
        assert ontap_support(version, today=end).status == Status.GOOD
        assert ontap_support(version, today=later).status == Status.AGING


def test_limited_support_ends_with_a_month() -> None:
    assert end_of_limited_support((9, 12, 1)) == dt.date(2028, 2, 29)
    assert end_of_limited_support((9, 18, 1)) == dt.date(2031, 1, 31)
    assert end_of_limited_support((9, 99, 1)) is None


def test_what_is_too_old_says_what_to_upgrade_to() -> None:
    assert ontap_support("9.8", today=TODAY).do == "Upgrade to 9.14.1 or newer."
    far = dt.date(2040, 1, 1)
    assert "NetApp updates" in ontap_support("9.8", today=far).do


@pytest.mark.parametrize(
    ("release", "status", "says"),
    [
        ("2018.2", Status.TOO_OLD, "special steps"),
        ("2021.2", Status.TOO_OLD, "support ended"),
        ("2022.1", Status.TOO_OLD, "2026-05-17"),
        ("2023.1", Status.AGING, "2025-05-18"),
        ("2023.2", Status.AGING, "2025-11-16"),
        ("2024.2", Status.UNKNOWN, "between 2026-01-01 and 2026-12-31"),
        ("2025.1", Status.GOOD, "at least until 2027-01-01"),
    ],
)
def test_p4d(release: str, status: Status, says: str) -> None:
    version = f"P4D/LINUX26X86_64/{release}/2675662 (2024/11/12)"
    found = p4d_support(version, today=TODAY)
    assert (found.status, says in found.says) == (status, True), found


@pytest.mark.parametrize("version", ["", "P4P/LINUX/2024.1/1", "x"])
def test_what_names_no_p4d_is_not_known(version: str) -> None:
    assert p4d_support(version, today=TODAY).status == Status.UNKNOWN


@pytest.mark.parametrize(
    ("release", "status", "says"),
    [
        ("6.12.57", Status.GOOD, "until 2028-12-31"),
        ("6.12.57-1-amd64", Status.GOOD, "whoever built this one"),
        ("5.14.0-427.el9.x86_64", Status.UNKNOWN, "Others built it"),
        ("4.18.0-553.el8.x86_64", Status.UNKNOWN, "Python alone"),
        ("6.13.2", Status.TOO_OLD, "no longer fixes"),
        ("5.4.100", Status.TOO_OLD, "no longer fixes"),
        ("7.2.1", Status.UNKNOWN, "newer than our source"),
        ("", Status.UNKNOWN, "did not report"),
        ("FreeBSD", Status.UNKNOWN, "not Linux"),
    ],
)
def test_kernels(release: str, status: Status, says: str) -> None:
    found = kernel_support(release, today=TODAY)
    assert (found.status, says in found.says) == (status, True), found


def test_a_suffix_says_that_somebody_else_built_a_kernel() -> None:
    assert series_of("6.12.57-1-amd64") == (6, 12)
    assert series_of("BSD") is None
    assert is_of_kernel_org("6.12.57")
    assert not is_of_kernel_org("6.12.57-1-amd64")
    assert not is_of_kernel_org("")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("rw", "vers=3", "hard"), Status.GOOD),
        (("vers=4.1",), Status.GOOD),
        (("nfsvers=4.2",), Status.GOOD),
        (("vers=4.0",), Status.AGING),
        (("vers=2",), Status.TOO_OLD),
        (("vers=5",), Status.UNKNOWN),
        (("rw", "hard"), Status.UNKNOWN),
        ((), Status.UNKNOWN),
        (("vers=3", "local_lock=all"), Status.UNSAFE),
        (("vers=3", "nolock"), Status.UNSAFE),
        (("vers=4.1", "soft"), Status.UNSAFE),
    ],
)
def test_nfs(options: tuple[str, ...], status: Status) -> None:
    found = nfs_support(options)
    assert found.status == status
    assert found.says


def test_of_several_the_worst_counts() -> None:
    good, unsafe = nfs_support(["vers=3"]), nfs_support(["vers=3", "nolock"])
    assert worst([good, unsafe, good]) is unsafe
