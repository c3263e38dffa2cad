"""Releases of Perforce programs: read from what they say, and compared."""

from __future__ import annotations

from provisioner.gateways.perforce.releases import is_older, p4d_release_in


def test_a_release_is_read_from_what_a_server_says_of_itself() -> None:
    assert p4d_release_in("P4D/LINUX26X86_64/2024.2/2697822 (2024/12/18)") == "2024.2"
    assert p4d_release_in("Cloneyard") == ""


def test_releases_are_compared_by_their_numbers() -> None:
    assert is_older("2023.2", "2024.1")
    assert is_older("2024.2", "2024.10")
    assert not is_older("2024.10", "2024.2")
    assert not is_older("2024.2", "2024.2")
    assert not is_older("", "2024.2")
    assert not is_older("2024.2", "")
