"""Traces: what they hold, what they never hold, and replays of them at the lab."""

from __future__ import annotations

import functools
import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.types import ExportRule
from provisioner.gateways.tracing.exchanges import (
    Exchange,
    OntapExchange,
    PerforceExchange,
)
from provisioner.gateways.tracing.masking import masked
from provisioner.gateways.tracing.pseudonyms import Pseudonyms
from provisioner.gateways.tracing.recording import heard_by, is_on, recording
from provisioner.gateways.tracing.vocabulary import WORDS
from tests.support.ontap_scene import LabControl, OntapScene
from tests.support.perforce_scene import PerforceScene
from tests.support.replaying.ontap import replay_ontap
from tests.support.replaying.perforce import replay_perforce
from tests.support.replaying.traces import Replay, Trace, TraceRefused, read_trace

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))
SECRET = "Hunter2ProjectX"


def converse(ontap: OntapScene, perforce: PerforceScene) -> None:
    """Ask both for what provisioning a workspace and its end ask for."""
    gateway = ontap.gateway
    gateway.list_volumes(comment_prefix=ontap.comment())
    policy = ontap.make_policy("policy", ExportRule(clients=("10.1.2.0/24",)))
    template = ontap.make_volume()
    ontap.make_snapshot(template)
    clone = ontap.make_clone()
    gateway.set_volume_policies(clone.uuid, export_policy=policy.name)
    gateway.find_volume(ontap.name("nothing"))
    gateway.delete_volume(clone.uuid, force=True)
    server = perforce.gateway
    server.get_info()
    server.access_level()
    perforce.make_client()
    server.clients.find(perforce.client_name())
    server.clients.find(perforce.client_name("nothing"))
    pending = perforce.pending_change(perforce.client_name())
    server.changes.list_pending(perforce.client_name())
    server.changes.delete_pending(pending, delete_shelf=False)
    server.clients.delete(perforce.client_name())


@pytest.fixture
def replayed(
    lab_ontap: OntapScene, lab_perforce: PerforceScene
) -> Callable[[Trace], Replay]:
    """Replay a trace at the lab."""

    def replay(trace: Trace) -> Replay:
        outcome = Replay()
        replay_ontap(
            trace,
            account=lab_ontap.target.account,
            aggregate=lab_ontap.target.aggregate,
            into=outcome,
        )
        replay_perforce(
            trace,
            account=lab_perforce.account,
            depot=lab_perforce.target.depot,
            into=outcome,
        )
        return outcome

    return replay


def test_a_trace_of_the_lab_holds_neither_names_nor_secrets_and_replays(
    lab_ontap: OntapScene,
    lab_perforce: PerforceScene,
    tmp_path: Path,
    replayed: Callable[[Trace], Replay],
) -> None:
    path = tmp_path / "trace.jsonl"
    with recording(path):
        converse(lab_ontap, lab_perforce)
    assert not is_on()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = path.read_text()
    account = lab_ontap.target.account
    for private in (
        *(account.password, account.svm, account.user, lab_ontap.target.aggregate),
        *(lab_ontap.tag, "10.1.2"),
        *(lab_perforce.tag, lab_perforce.account.password, lab_perforce.holder.ticket),
        *(str(lab_perforce.place), lab_perforce.account.port),
    ):
        assert private == "" or not re.search(
            rf"(?<!\w){re.escape(private)}(?!\w)", said
        ), private
    outcome = replayed(read_trace(path))
    assert [str(each) for each in outcome.differences] == []
    assert outcome.not_comparable == []
    assert outcome.replayed > 20


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_lab_answers_as_in_a_committed_trace(
    path: Path, replayed: Callable[[Trace], Replay]
) -> None:
    outcome = replayed(read_trace(path))
    assert [str(each) for each in outcome.differences] == []
    assert outcome.not_comparable == []
    assert outcome.replayed > 20


def test_what_the_lab_answers_otherwise_is_reported_with_its_request(
    lab_control: LabControl, replayed: Callable[[Trace], Replay]
) -> None:
    trace = read_trace(TRACES[0])
    told = dict(trace.exchanges)
    found = next(
        line
        for line, each in told.items()
        if isinstance(each, OntapExchange) and each.body and each.body.get("records")
    )
    listed = told[found]
    assert isinstance(listed, OntapExchange)
    assert listed.body
    record = {**listed.body["records"][0], "of_a_newer_release": True, "name": 7}
    told[found] = replace(listed, body={**listed.body, "records": [record]})
    asked = next(
        line
        for line, each in told.items()
        if isinstance(each, PerforceExchange) and each.command == ("info",)
    )
    info = told[asked]
    assert isinstance(info, PerforceExchange)
    newer = {**info.records[0], "fieldOfANewerRelease": "n"}
    told[asked] = replace(info, records=[newer])
    lab_control.set_faults(
        {
            "method": "DELETE",
            "path": "/api/storage/volumes/*",
            "status": 503,
            "code": "1179817",
        }
    )
    said = [str(each) for each in replayed(replace(trace, exchanges=told)).differences]
    assert f"line {found}: GET {listed.path}: records[].name is a text, and was a " in (
        " ".join(said)
    )
    assert "the field records[].of_a_newer_release is missing" in " ".join(said)
    assert "p4 info: the field fieldOfANewerRelease is missing" in " ".join(said)
    assert any("DELETE" in line and "status is 503" in line for line in said)


def _of_ontap(secret: str) -> OntapExchange:
    return OntapExchange(
        method="POST",
        path=f"/storage/volumes/{secret}?name={secret}",
        query={"name": secret, "comment": f"cloneyard:{secret}*", "fields": "name"},
        sent={"name": secret, "comment": f"of {secret}", "nas": {"path": f"/{secret}"}},
        status=400,
        content_type=secret,
        body={
            "records": [{"name": secret, "owner": {"name": f"DOMAIN\\{secret}"}}],
            "error": {"code": "4", "message": f'entry "{secret}" exists', "at": secret},
            "_links": {"next": {"href": f"/api/storage/volumes?start={secret}"}},
        },
    )


def _of_perforce(secret: str, *command: str) -> PerforceExchange:
    return PerforceExchange(
        user=secret,
        client=secret,
        host=secret,
        command=command,
        form=f"Change:\tnew\nPassword:\t{secret}\nDescription:\n\tof {secret}\n",
        records=[
            {"depotFile": f"//{secret}/a/{secret}.c", "desc": secret, "change": secret},
            {f"attr-{secret}": secret, "View0": f"//{secret}/... //{secret}/..."},
        ],
        texts=[f"Change {secret} for {secret}", secret],
    )


def _said_of(secret: str) -> str:
    """Return what traces say of exchanges that have a secret everywhere."""
    exchanges: list[Exchange] = [
        _of_ontap(secret),
        *(
            _of_perforce(secret, *command)
            for command in (
                ("files", f"//{secret}/...#3", "-u", f"{secret}x"),
                *(("client", "-i"), ("login", "-p", f"{secret}x")),
                ("print", f"//{secret}/x"),
            )
        ),
    ]
    named = replace(_of_perforce(secret, "job", "-o"), records=[{f"{secret}x": secret}])
    names = Pseudonyms()
    return json.dumps(
        [masked(each, names).as_json() for each in [*exchanges, named]],
        ensure_ascii=False,
    )


@functools.cache
def _said_of_any() -> str:
    return _said_of(SECRET)


@settings(max_examples=60)
@given(
    secret=st.one_of(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_@./:#-]{7,30}", fullmatch=True),
        st.text(st.characters(categories=["L"]), min_size=8, max_size=30),
        st.from_regex(r"[A-Za-z]{3,9}[0-9]{6}", fullmatch=True),
    )
)
@example(secret="messages")
@example(secret="Hunter2-messages")
def test_a_planted_secret_is_nowhere_in_a_trace(secret: str) -> None:
    # Hypothesis also tries words of our code, and some of them are keys of a trace.
    assume(secret not in _said_of_any())

    said = _said_of(secret)

    assert secret not in said
    for word in re.findall(r"\w{6,}", secret):
        assert word in WORDS or word in _said_of_any() or word not in said


def test_contents_and_passwords_leave_nothing_but_their_command() -> None:
    names = Pseudonyms()
    for command in ("login", "passwd", "print", "diff", "grep"):
        line = masked(_of_perforce(SECRET, command), names).as_json()
        assert line["request"]["form"] == ""
        assert line["response"]["records"] == line["response"]["texts"] == []


def test_one_name_has_one_pseudonym_in_a_trace_and_another_in_the_next() -> None:
    names = Pseudonyms()
    one = names.text(f"//depot/{SECRET}/...")
    assert one.split("/")[3] == names.text(SECRET)
    assert one.endswith("/...")
    assert names.text(SECRET) != Pseudonyms().text(SECRET)
    assert names.text("10.1.2.3") != "10.1.2.3"
    assert "47114711" not in names.text("pin 47114711")
    assert names.text("0.0.0.0/0") == "0.0.0.0/0"
    assert names.text("2024-02-03T04:05:06Z") == "2024-02-03T04:05:06Z"
    assert names.text("P4D/LINUX26X86_64/2024.2/2697822 (2024/11/20)") == (
        "P4D/LINUX26X86_64/2024.2/2697822"
    )
    assert names.text(f"NetApp Release 9.16.1P2: {SECRET}") == "NetApp Release 9.16.1"


def test_no_part_of_a_name_that_people_make_up_is_kept() -> None:
    for field, command in (
        ("attr-e47114711", "fstat"),
        ("openattr-e47114711", "fstat"),
        ("Ticket47114711", "jobs"),
    ):
        exchange = replace(_of_perforce("x", command), records=[{field: "1"}])
        [record] = masked(exchange, Pseudonyms()).as_json()["response"]["records"]
        assert "47114711" not in json.dumps(record)


def test_an_unknown_field_of_perforce_keeps_its_name_unless_people_make_it_up() -> None:
    names = Pseudonyms()
    row = {"headNovelty": "1"}
    known = replace(_of_perforce("x", "fstat", "//..."), records=[row])
    custom = replace(_of_perforce("x", "job", "-o"), records=[row])
    assert masked(known, names).as_json()["response"]["records"][0].keys() == row.keys()
    assert "headNovelty" not in json.dumps(masked(custom, names).as_json())


def test_a_request_without_an_answer_is_in_the_trace(lab_ontap: OntapScene) -> None:
    heard: list[Exchange] = []
    lab = LabControl(account=lab_ontap.target.account)
    lab.set_faults({"method": "POST", "drop": True, "when": "before", "times": 1})
    with heard_by(heard.append), pytest.raises(GatewayError):
        lab_ontap.make_volume()
    lab.set_faults()
    assert [each.status for each in heard if isinstance(each, OntapExchange)][-1] == 0


def test_a_command_is_recorded_into_a_new_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    call_command("record_trace", str(path), "--", "diffsettings")
    assert read_trace(path).exchanges == {}
    for arguments, sentence in (
        ([str(path), "--", "diffsettings"], "exists"),
        ([str(tmp_path / "no" / "file"), "--", "diffsettings"], "cannot be written"),
        ([str(tmp_path / "other")], "Name the command"),
        ([str(tmp_path / "other"), "--", "no_such"], "no_such"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("record_trace", *arguments)
    assert [each.name for each in tmp_path.iterdir()] == ["trace.jsonl"]


def _line(**changes: Any) -> str:
    return json.dumps({"trace": 1, "versions": {}, **changes}) + "\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not a trace"),
        (_line(trace=2), "not a trace"),
        ("[]", "Line 1 is not a JSON object"),
        (_line() + "{", "Line 2 is not JSON"),
        (_line() + '{"system": "ontap"}', "Line 2 is not an exchange"),
    ],
)
def test_what_is_no_trace_is_refused_by_its_line(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(TraceRefused, match=sentence):
        read_trace(path)
