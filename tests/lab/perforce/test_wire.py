"""The wire format, and a server that meets what is no Perforce client."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.lab.perforce.server import PerforceConfig, PerforceLab
from provisioner.lab.perforce.wire import WireError, decode, encode
from tests.lab.perforce.properties import patient

_values = st.one_of(st.binary(max_size=5000), st.text(max_size=50), st.integers(0))
_variables = st.dictionaries(
    st.text("abcXYZ0123456789,-", min_size=1, max_size=12).filter(
        lambda n: n != "func"
    ),
    _values,
    max_size=8,
)


def _bytes(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@patient
@given(variables=_variables)
def test_a_message_survives_the_wire(variables: dict[str, bytes | str | int]) -> None:
    data = encode("client-Message", variables)
    (length,) = struct.unpack("<I", data[1:5])
    assert length == len(data) - 5
    assert data[0] == data[1] ^ data[2] ^ data[3] ^ data[4]
    message = decode(data[5:])
    assert message.func == "client-Message"
    assert message.variables == {n: _bytes(v) for n, v in variables.items()}


def test_the_first_of_two_variables_wins_and_unnamed_ones_are_arguments() -> None:
    def variable(name: bytes, value: bytes) -> bytes:
        return name + b"\0" + struct.pack("<I", len(value)) + value + b"\0"

    body = b"".join(
        variable(*pair)
        for pair in [
            (b"", b"-n"),
            (b"a", b"1"),
            (b"", b"file"),
            (b"a", b"2"),
            (b"func", b"user-x"),
        ]
    )
    message = decode(body)
    assert message.args == ["-n", "file"]
    assert message.text("a") == "1"


@patient
@given(body=st.binary(max_size=200))
def test_any_body_is_decoded_or_refused(body: bytes) -> None:
    with contextlib.suppress(WireError):
        assert decode(body).func


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerforceLab]:
    root = tmp_path_factory.mktemp("perforce") / "root"
    with PerforceLab(PerforceConfig(root=root)) as running:
        yield running


def _talk(lab: PerforceLab, data: bytes) -> bytes:
    """Send bytes, close our side and return all the server says."""
    with socket.create_connection(("127.0.0.1", lab.port), timeout=10) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        said = b""
        try:
            while chunk := sock.recv(65536):
                said += chunk
        except ConnectionResetError:
            pass
    return said


def test_a_command_without_a_login_is_answered(lab: PerforceLab) -> None:
    said = _talk(lab, encode("protocol", {}) + encode("user-info", {"tag": ""}))
    assert b"serverVersion" in said
    assert b"release" in said


@settings(patient, max_examples=60)
@given(
    messages=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                encode,
                st.sampled_from(
                    ["protocol", "user-sync", "user-info", "flush2", "done", "x"]
                ),
                _variables,
            ),
        ),
        max_size=5,
    )
)
def test_noise_neither_kills_nor_hangs_the_server(
    lab: PerforceLab, messages: list[bytes]
) -> None:
    _talk(lab, b"".join(messages))
    assert b"serverVersion" in _talk(lab, encode("user-info", {"tag": ""}))


def test_a_huge_length_is_refused_at_once(lab: PerforceLab) -> None:
    size = struct.pack("<I", 0x1FFFFFFE)
    check = bytes((size[0] ^ size[1] ^ size[2] ^ size[3],))
    assert _talk(lab, check + size + b"x" * 100) == b""


def test_nothing_is_written_outside_the_root(lab: PerforceLab, tmp_path: Path) -> None:
    before = sorted(Path(lab.config.root).parent.iterdir())
    for func in ("user-add", "user-submit", "user-print"):
        _talk(lab, encode(func, {"cwd": "/../..", "client": "../../x", "user": ".."}))
    assert sorted(Path(lab.config.root).parent.iterdir()) == before
