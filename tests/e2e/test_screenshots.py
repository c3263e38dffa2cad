"""Pictures of pages: taken as whom they are for, as wide as they are asked for."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.demo.chromium import find_chromium
from provisioner.demo.screenshots import Picture, take
from provisioner.demo.seed import PASSWORD
from tests.support.factories import UserFactory

PNG = b"\x89PNG\r\n\x1a\n"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        find_chromium() is None,
        reason="There is no Chromium on this machine.",
    ),
]


def test_a_picture_is_taken_of_a_page(live_server: LiveServer, tmp_path: Path) -> None:
    alice: User = UserFactory.create(username="alice")
    alice.set_password(PASSWORD)
    alice.save()
    said: list[str] = []

    take(
        [Picture(name="home", who="alice", path="/", width=360, scheme="dark")],
        url=live_server.url,
        directory=tmp_path / "img",
        say=said.append,
    )

    written = (tmp_path / "img" / "home.png").read_bytes()
    assert written.startswith(PNG)
    width, height = struct.unpack(">II", written[16:24])
    assert (width, height) == (360, 860)
    assert said == [f"{tmp_path}/img/home.png: / as alice"]
