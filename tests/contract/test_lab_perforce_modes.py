"""What a lab server announces about case and character sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from P4 import P4Exception

from tests.support.lab_perforce import lab_server

pytestmark = pytest.mark.timeout(90, method="thread")


def test_a_server_that_ignores_case_says_so(tmp_path: Path) -> None:
    with lab_server(tmp_path, "-C1") as server:
        p4 = server.connect(client="ws")

        assert p4.run("info")[0]["caseHandling"] == "insensitive"
        assert p4.server_case_insensitive


def test_a_unicode_server_wants_unicode_clients(tmp_path: Path) -> None:
    with lab_server(tmp_path, "--unicode") as server:
        p4 = server.connect(client="ws")
        with pytest.raises(P4Exception, match="only unicode enabled clients"):
            p4.run("info")

        p4.disconnect()
        p4.charset = "utf8"
        p4.connect()

        assert p4.run("info")[0]["unicode"] == "enabled"
        assert p4.server_unicode


def test_other_servers_say_nothing_of_it(tmp_path: Path) -> None:
    with lab_server(tmp_path) as server:
        p4 = server.connect(client="ws")

        assert "unicode" not in p4.run("info")[0]
        assert not p4.server_unicode
        assert not p4.server_case_insensitive
