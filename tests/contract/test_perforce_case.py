"""A server that ignores case: what is one name to it is one to us, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.protections import find_unreadable
from provisioner.gateways.perforce.readable import Reading
from tests.support.perforce_scene import PerforceScene, running_lab, scene_at

TABLE = """Protections:
\tlist user * * //...
\tread user Ann * //DEPOT/{tag}/...
\tread user Ann * -//depot/{tag}/SECRET/...
\tread user Ann * -//depot/{tag}/É/...
\tsuper user {admin} * //...
"""
FILES = ("Main/File.txt", "secret/Key", "é/open", "É/closed")


@pytest.fixture(scope="module")
def folding() -> Iterator[PerforceScene]:
    with running_lab("-C1") as target:
        yield from scene_at(target)


@pytest.fixture(scope="module")
def ann(folding: PerforceScene) -> PerforceGateway:
    """Ann, who may read all of a folder but for what is excluded in capitals."""
    folding.submit(dict.fromkeys(FILES, b"1\n"))
    gateway = folding.person("ann")
    tag = folding.folder.rpartition("/")[2].upper()
    with folding.at_the_shell("none") as shell:
        form = TABLE.format(admin=folding.account.user.upper(), tag=tag)
        shell.run("protect", "-i", text=form)
    return gateway


def test_users_and_clients_are_found_however_they_are_spelled(
    folding: PerforceScene, ann: PerforceGateway
) -> None:
    spec = folding.make_client("Own")
    found = folding.gateway.clients.find(spec.name.upper())

    assert found is not None
    assert (found.name, found.root) == (spec.name, spec.root)
    assert folding.gateway.spelling_of("ANN") == "ann"
    assert folding.gateway.spelling_of("anne") is None
    as_typed = PerforceGateway(
        replace(folding.account, user="ANN", password="password")
    )
    assert as_typed.email_of("Ann") == "ann@x"


@pytest.mark.parametrize("name", FILES)
def test_what_may_be_read_is_what_the_server_lets_read(
    name: str, folding: PerforceScene, ann: PerforceGateway
) -> None:
    path = f"{folding.folder}/{name}"
    change = folding.gateway.changes.latest((folding.everything,))
    protections = folding.gateway.protections_of("Ann")
    typed = "".join(c.swapcase() if c.isascii() else c for c in path)
    view = (f"{typed} //any/x",)
    with folding.at_the_shell_as(
        replace(folding.account, user="ann", password="password"), "none"
    ) as shell:
        readable = bool(shell.run("print", "-q", f"{path}@{change}").texts)

    assert (find_unreadable(view, protections) is None) == readable
    assert (Reading(view, protections).forbidding(path) is None) == readable


def test_a_change_concerns_a_view_in_any_case(folding: PerforceScene) -> None:
    view = ["//DEPOT/Main/... //any/..."]

    assert DepotView(view, is_case_sensitive=False).touches(["//depot/main/a"])
    assert not DepotView(view).touches(["//depot/main/a"])
    assert not DepotView(["//depot/É //any/x"], is_case_sensitive=False).touches(
        ["//depot/é"]
    )
