"""Mount options: what is safe for workspaces, and what is an option at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)


@pytest.mark.parametrize(
    "options",
    [
        "",
        "rw,hard,vers=4.1,nconnect=8",
        "vers=3, proto=tcp, rsize=65536,wsize=65536,noatime",
        "sec=krb5p:sys,actimeo=30,nosuid,nodev",
        "local_lock=none",
    ],
)
def test_known_options_pass(options: str) -> None:
    assert ",".join(check_mount_options(options)) == options.replace(" ", "")


@pytest.mark.parametrize("unsafe", ["nocto", "local_lock=all", "nolock"])
def test_options_that_corrupt_workspaces_are_refused_with_the_reason(
    unsafe: str,
) -> None:
    with pytest.raises(MountOptionRefused, match="two hosts may use") as refused:
        check_mount_options(f"rw,{unsafe},hard")

    assert refused.value.code == "mount_option_unsafe"


@pytest.mark.parametrize("unsafe", ["soft", "softerr", "soft,timeo=600"])
def test_options_that_lose_writes_are_refused_with_the_reason(unsafe: str) -> None:
    with pytest.raises(MountOptionRefused, match="writes are lost") as refused:
        check_mount_options(f"rw,{unsafe}")

    assert refused.value.code == "mount_option_unsafe"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("suid,nosuid", "mount_options_contradict"),
        ("ro,rw", "mount_options_contradict"),
        ("timeo=1,timeo=2", "mount_option_twice"),
        ("nconnect=17", "mount_option_value"),
        ("vers=5", "mount_option_value"),
        ("timeo=", "mount_option_value"),
        ("hard=1", "mount_option_unknown"),
        ("timeo", "mount_option_unknown"),
        ("fast", "mount_option_unknown"),
        ("NOCTO", "mount_option_unknown"),
        ("rw;reboot", "mount_option_unknown"),
    ],
)
def test_what_is_no_option_is_refused(options: str, code: str) -> None:
    with pytest.raises(MountOptionRefused) as refused:
        check_mount_options(options)

    assert refused.value.code == code


@given(st.text())
def test_any_text_passes_or_is_refused(text: str) -> None:
    try:
        checked = check_mount_options(text)
    except MountOptionRefused as refused:
        assert refused.sentence.endswith(".")  # noqa: PT017 - either end is fine
    else:
        assert "nocto" not in checked
