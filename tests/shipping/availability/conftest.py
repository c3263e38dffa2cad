"""A lab of these tests alone, since all that is in it is judged, and people in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.demo.seed import PASSWORD
from tests.chaos.people import Person
from tests.support.lab import Lab, fill, running_lab
from tests.support.replication import dump_of_tests

PEOPLE = 4


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running_lab() as lab:
        fill(lab)
        yield lab


@pytest.fixture
def people(lab: Lab, transactional_db: None) -> list[Person]:
    p4 = lab.as_admin(client="chaos-admin")
    try:
        people = [Person(f"dev{n:02}", number=n) for n in range(PEOPLE)]
        for person in people:
            person.sign_up()
            depot.create_p4_user(p4, user=person.username, password=PASSWORD)
    finally:
        p4.disconnect()
    return people


@pytest.fixture
def dump(built_template: Template, people: list[Person], tmp_path: Path) -> Path:
    """The database of this test, with a template and people."""
    path = tmp_path / "rows.dump"
    dump_of_tests(path)
    return path


@pytest.fixture
def environment(lab: Lab) -> dict[str, str]:
    """What all processes of an installation are told."""
    return {
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
        "LOG_DIR": str(lab.root / "logs"),
        "SECRET_KEY": "the same for all processes of a test",
        "WORKER_HEARTBEAT_SECONDS": "0.5",
        "WORKER_STALLED_SECONDS": "3",
        "LOG_FORMAT": "json",
    }
