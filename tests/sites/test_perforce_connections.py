"""What a test of a connection says of settings and kinds of Perforce servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from P4 import P4Exception

from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.errors import ClientOfOtherServer
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.sites.connections.checklist import Check, Remark
from provisioner.sites.connections.perforce import check_perforce
from provisioner.sites.connections.server_kinds import KINDS, kind_sentence
from provisioner.sites.models import PerforceServer, Site
from tests.support.factories import PerforceServerFactory
from tests.support.lab import Lab
from tests.support.lab_perforce import lab_server


@pytest.fixture
def server(lab_site: Site) -> PerforceServer:
    return lab_site.perforce_server


@contextmanager
def configured(lab: Lab, name: str, value: str) -> Iterator[None]:
    p4 = lab.as_admin()
    try:
        p4.run("configure", "set", f"{name}={value}")
        yield
    finally:
        p4.run("configure", "unset", name)
        p4.disconnect()


def found(server: PerforceServer, name: str) -> Check:
    return next(check for check in check_perforce(server) if check.name == name)


@pytest.mark.parametrize("rejected", ["cloneyard", "p4,cloneyard,version=P4PY20"])
def test_a_server_that_rejects_us_is_named_with_what_to_do(
    rejected: str, server: PerforceServer, lab: Lab
) -> None:
    with configured(lab, "rejectList", rejected):
        check = found(server, "perforce_server")
        with pytest.raises(Refused, match="rejectList"):
            registry.perforce(server).check_login()

    assert check.outcome == "failed"
    assert "'cloneyard [PY3" in check.sentence
    assert "p4 configure show rejectList" in check.advice
    assert "P4CHARSET" not in check.advice


@pytest.mark.parametrize("rejected", ["p4", "cloneyard,version=2001.1", "cloney"])
def test_a_server_that_rejects_others_lets_us_in(
    rejected: str, server: PerforceServer, lab: Lab
) -> None:
    with configured(lab, "rejectList", rejected):
        check = found(server, "perforce_settings")

    assert check.outcome == "passed"
    assert f"rejectList is {rejected}; Cloneyard is let in." in check.sentence


def test_a_charset_that_does_not_fit_is_still_named(server: PerforceServer) -> None:
    server.p4charset = "utf8"
    assert "P4CHARSET" in found(server, "perforce_names").advice


def test_the_level_of_monitoring_is_said(server: PerforceServer, lab: Lab) -> None:
    assert "Commands are not monitored" in found(server, "perforce_settings").sentence

    with configured(lab, "monitor", "2"):
        check = found(server, "perforce_settings")

    assert check.outcome == "passed"
    assert "Commands are monitored (monitor=2)." in check.sentence


def test_who_may_not_ask_for_settings_is_told_what_they_would_say(
    server: PerforceServer, lab: Lab, settings: Any
) -> None:
    p4 = lab.as_admin()
    table = p4.run("protect", "-o")[0]["Protections"]
    try:
        p4.input = {"Protections": [*table, "admin user carol * //..."]}
        p4.run("protect", "-i")
        server.p4user = "carol"
        settings.SITE_SECRET = lambda name, *, key: "lab-password"
        check = found(server, "perforce_settings")
    finally:
        p4.input = {"Protections": table}
        p4.run("protect", "-i")
        p4.disconnect()

    assert check.outcome == "remarked"
    assert "zerosyncPrefix" in check.advice


# --- kinds of servers


def said_of(kind: str) -> tuple[str, str, str]:
    try:
        return "passed", kind_sentence(kind, server_id="s1"), ""
    except Remark as remark:
        return "remarked", str(remark), remark.advice


# The types of "p4 help server" that are a p4d.
DOCUMENTED = {
    *("standard", "replica", "commit-server", "edge-server", "forwarding-replica"),
    *("build-server", "P4AUTH", "P4CHANGE", "standby", "forwarding-standby"),
    *("local", "distribution-server"),
}


def test_each_kind_of_server_is_told_apart_and_has_advice() -> None:
    assert KINDS == DOCUMENTED
    said = {kind: said_of(kind) for kind in KINDS | {"new-kind"}}

    assert len({sentence for _, sentence, _ in said.values()}) == len(said)
    assert {k for k, (outcome, *_) in said.items() if outcome == "passed"} == {
        "standard",
        "commit-server",
    }
    assert all(advice for outcome, _, advice in said.values() if outcome != "passed")
    assert not any(re.search(r"[{}]", sentence) for _, sentence, _ in said.values())


@pytest.mark.parametrize("kind", ["build-server", "replica"])
def test_what_is_said_of_a_kind_is_what_it_does(
    kind: str, server: PerforceServer, tmp_path: Path, settings: Any
) -> None:
    elsewhere = PerforceServerFactory.create()
    with lab_server(tmp_path, "--server-id", "there", "--services", kind) as running:
        server.p4port = f"127.0.0.1:{running.port}"
        settings.SITE_SECRET = lambda name, *, key: running.password
        assert found(server, "perforce_kind").outcome == "failed"
        server.kind, server.upstream, server.server_id = kind, elsewhere, "there"
        kept = found(server, "perforce_kind")
        assert (kept.outcome, kept.advice) == ("passed", "")
        check = found(server, "perforce_services")
        gateway = registry.perforce(server)
        spec = ClientSpec(
            name="cy-there",
            owner=server.p4user,
            root=str(tmp_path),
            view=("//depot/... //cy-there/...",),
        )
        if kind == "replica":
            assert "no client can be created" in check.sentence
            with pytest.raises(Refused, match="commit or edge server"):
                gateway.clients.save(spec)
            running.connect(client="cy-there").run("counters")
            return
        assert check.outcome == "remarked"
        assert "build server there" in check.sentence
        gateway.clients.save(spec)
        made = gateway.clients.find("cy-there")
        assert made is not None
        assert made.server_id == "there"
        p4 = running.connect(client="cy-there")
        p4.run("sync", "-k")
        with pytest.raises(P4Exception, match="Replica does not support"):
            p4.run("add", str(tmp_path / "new"))
        running.kill()

    with lab_server(tmp_path, "--server-id", "other", "--services", kind) as running:
        server.p4port = f"127.0.0.1:{running.port}"
        with pytest.raises(ClientOfOtherServer):
            registry.perforce(server).clients.save(spec)
