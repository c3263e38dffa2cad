"""A Perforce server that signs people in, with people in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from P4 import P4
from pytest_django import Settings

from provisioner.sites.models import PerforceServer
from tests.support.broker import ticket_at
from tests.support.lab_perforce import LabServer, lab_server

PASSWORD = "a-password-of-Perforce"
ADMINISTRATORS = "cloneyard-admins"


@dataclass
class PerforcePeople:
    """The server's row, and what a super user of it does."""

    server: LabServer
    row: PerforceServer
    made: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def port(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def admin(self) -> P4:
        p4 = self.server.connect(client="neutral")
        p4.run_login(password=self.server.password)
        return p4

    def person(self, name: str, *, password: str = PASSWORD, **fields: Any) -> None:
        """Make a user; without a password if that is empty."""
        form = {"User": name, "Email": f"{name}@example.com", "FullName": "", **fields}
        form["FullName"] = form["FullName"] or name.title()
        if password:
            form["Password"] = password
        self.admin().save_user(form, "-f")
        self.made.setdefault(("user", name))

    def group(self, name: str, *users: str, subgroups: tuple[str, ...] = ()) -> None:
        form: dict[str, Any] = {"Group": name, "Users": list(users)}
        self.admin().save_group({**form, "Subgroups": list(subgroups)})
        self.made.setdefault(("group", name))

    def remove(self, kind: str, name: str) -> None:
        self.admin().run(kind, "-d", *(["-f"] if kind == "user" else []), name)
        del self.made[kind, name]

    def ticket(self, name: str, *, ended: bool = False) -> str:
        """Return a ticket as its user gets it at a shell, for all hosts."""
        return ticket_at(self.port, name, password=PASSWORD, ended=ended)

    def users(self) -> set[str]:
        return {record["User"] for record in self.admin().run("users")}

    def has_login(self, name: str) -> bool:
        """Return whether the server knows a live ticket of a user."""
        admin = self.admin()
        admin.exception_level = 0
        return bool(admin.run("login", "-s", name)) and not admin.errors


@pytest.fixture(scope="session")
def people_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A server that wants tickets for commands, as most do."""
    with lab_server(tmp_path_factory.mktemp("p4-people"), "--security", "3") as server:
        yield server


@pytest.fixture
def perforce_people(
    people_server: LabServer, settings: Settings, db: None
) -> Iterator[PerforcePeople]:
    yield from people_of(people_server, settings)


def people_of(server: LabServer, settings: Settings) -> Iterator[PerforcePeople]:
    """Yield the people of a server; those made there are gone afterwards."""
    settings.SITE_SECRET = lambda name, *, key: server.password
    settings.SECRET_HOSTS = ["127.0.0.1"]
    row = PerforceServer.objects.create(
        name="people", p4port=f"127.0.0.1:{server.port}", p4user="cloneyard"
    )
    server.faults()
    people = PerforcePeople(server=server, row=row)
    yield people
    server.faults()
    for kind, name in reversed(list(people.made)):
        people.remove(kind, name)
    for p4 in server.clients:
        if p4.connected():
            p4.disconnect()
    server.clients.clear()
