"""A lab per module, and a small client that speaks plain HTTPS to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from provisioner.lab.ontap.server import OntapLab
from tests.support.ontap_rest import Rest, empty, rest_to, start_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapLab]:
    with start_lab(tmp_path_factory.mktemp("ontap")) as running:
        yield running


@pytest.fixture
def rest(lab: OntapLab) -> Iterator[Rest]:
    """An empty lab with its settings as they were; what the test made is removed."""
    client = rest_to(lab)
    before = client.get("/lab/settings")
    yield client
    client("DELETE", "/lab/faults")
    client("PATCH", "/lab/settings", before)
    empty(client)
    client.session.close()
