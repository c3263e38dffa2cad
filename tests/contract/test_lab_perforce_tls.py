"""The lab's `ssl:` ports, by the official client, which keeps what it trusts itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from P4 import P4, P4Exception

from tests.support.lab_perforce import LabServer, lab_server, workspace

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabServer]:
    monkeypatch.setenv("P4TRUST", str(tmp_path / "trust"))
    with lab_server(tmp_path, prefix="ssl:") as running:
        yield running


def trust(server: LabServer, tmp_path: Path) -> None:
    """Write what `p4 trust -i FINGERPRINT` does."""
    line = f"127.0.0.1:{server.port}=**++**:{server.fingerprint}\n"
    (tmp_path / "trust").write_text(line)


def test_a_server_nobody_trusts_is_left_alone(server: LabServer) -> None:
    p4 = server.connect(client="ws")
    with pytest.raises(P4Exception, match="authenticity") as caught:
        p4.run("info")

    assert server.fingerprint in str(caught.value)


def test_a_trusted_server_works_as_any(server: LabServer, tmp_path: Path) -> None:
    trust(server, tmp_path)
    ws = workspace(server, tmp_path, name="ws", depot="//depot/main")
    contents: dict[str, bytes | str] = {f"d/{n}": f"{n}\n" * 50 for n in range(300)}
    contents["large"] = bytes(range(256)) * 20_000

    ws.add(contents)
    ws.p4.run("sync", "#0")
    ws.p4.run("sync")

    assert len(ws.tree()) == 301
    assert ws.tree()["large"] == contents["large"]
    assert ws.p4.run("info")[0]["serverEncryption"] == "encrypted"
    login = server.connect(client="ws")
    assert login.run_login(password=server.password)


def test_a_changed_key_is_noticed(server: LabServer, tmp_path: Path) -> None:
    trust(server, tmp_path)
    assert server.connect(client="ws").run("info")
    settings = server.root / "faults.json"
    settings.write_text(json.dumps({"changed_fingerprint": True}))

    p4 = server.connect(client="ws")
    with pytest.raises(P4Exception, match="IDENTIFICATION HAS CHANGED"):
        p4.run("info")

    settings.unlink()
    assert server.connect(client="ws").run("info")


def test_the_key_stays_over_a_restart(server: LabServer, tmp_path: Path) -> None:
    trust(server, tmp_path)
    server.kill()
    server.start()

    assert server.connect(client="ws").run("info")


def test_a_plain_client_does_not_hold_the_server_up(
    server: LabServer, tmp_path: Path
) -> None:
    trust(server, tmp_path)
    plain = P4()
    plain.port = f"127.0.0.1:{server.port}"
    plain.charset = "none"
    plain.connect()
    with pytest.raises(P4Exception):
        plain.run("info")

    assert server.connect(client="ws").run("info")
