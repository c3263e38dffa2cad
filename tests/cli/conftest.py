"""The program, a server to ask, and rows that have been on their way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.support.proxy import Between, standing_before


@pytest.fixture
def between(live_server: LiveServer) -> Iterator[Between]:
    with standing_before(live_server.url) as between:
        yield between
