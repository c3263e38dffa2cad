"""Releases of Perforce programs: read from what they say."""

from __future__ import annotations

from provisioner.gateways.perforce.releases import p4d_release_in


def test_a_release_is_read_from_what_a_server_says_of_itself() -> None:
    assert p4d_release_in("P4D/LINUX26X86_64/2024.2/2697822 (2024/12/18)") == "2024.2"
    assert p4d_release_in("Cloneyard") == ""
