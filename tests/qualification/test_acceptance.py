"""`manage.py qualify`: what holds, what does not, and what to do about it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from provisioner.gateways import registry
from provisioner.sites.models import PerforceServer, Site

pytestmark = pytest.mark.django_db(transaction=True)


def qualify(*options: str) -> str:
    said = StringIO()
    call_command("qualify", "--site", "lab", "--server", "lab", *options, stdout=said)
    return said.getvalue()


def test_all_of_it_holds_in_the_lab_and_no_volume_stays(lab_site: Site) -> None:
    before = {each.uuid for each in registry.ontap(lab_site).list_volumes()}

    said = qualify()

    for part in ("ONTAP", "Perforce", "Limits", "Timings", "Trial"):
        assert f"\n{part}\n" in said
    assert "Round trip (p4 info)." in said
    assert {each.uuid for each in registry.ontap(lab_site).list_volumes()} == before


def test_it_offers_the_contract_tests_and_a_trace(
    lab_site: Site, tmp_path: Path
) -> None:
    said = qualify("--without-trial")

    assert "\nTrial\n" not in said
    assert f"PERFORCE_TEST_PORT={lab_site.perforce_server.p4port}" in said
    [offered] = [line for line in said.splitlines() if "record_trace" in line]
    trace = tmp_path / "trace.jsonl"
    _, _, command = offered.partition(" -- ")
    call_command("record_trace", str(trace), *command.split(), stdout=StringIO())
    exchanges = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
    assert {each["system"] for each in exchanges} == {"ontap", "perforce"}


def test_what_does_not_hold_is_named_and_told_by_the_exit_code(
    lab_site: Site,
) -> None:
    server = PerforceServer.objects.filter(pk=lab_site.perforce_server_id)
    server.update(p4port="127.0.0.1:9")
    said = StringIO()

    with pytest.raises(CommandError, match="does not hold") as failed:
        call_command(
            *("qualify", "--site", "lab", "--server", "lab", "--without-trial"),
            stdout=said,
        )

    assert failed.value.returncode == 1
    assert "Failed" in said.getvalue()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--site", "nowhere", "--server", "lab"], "There is no site “nowhere”."),
        (["--site", "lab", "--server", "none"], "There is no Perforce server “none”."),
    ],
)
def test_what_there_is_not_is_said(
    lab_site: Site, options: list[str], sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("qualify", *options)
