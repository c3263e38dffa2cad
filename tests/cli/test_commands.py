"""The command line as people call it, at a server that runs."""

from __future__ import annotations

import signal
import ssl
import stat
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from django.test import Client
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import ApiToken, User
from provisioner.catalog.models import Snapshot
from provisioner.cli import cloneyard
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state
from provisioner.workspaces.workflows import PROVISION
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import PASSWORD, SnapshotFactory, TemplateFactory
from tests.support.proxy import HOLD, LOSE, PASS, Between
from tests.support.requests import workspace_create
from tests.support.warm_pools import filled, make_pool
from tests.support.workspaces import end, running_of

pytestmark = pytest.mark.django_db(transaction=True)

FOUND = {"untracked": [{"path": "/mnt/hers/notes.txt", "action": "add"}]}


def become(workspace: Workspace, state: Workspace.State, **why: Any) -> None:
    """End what is under way in a workspace, as its last step would."""
    end(running_of(workspace), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, state, **why)


# --- warm or cold


def test_new_says_what_lay_ready_what_that_saved_and_why_another_did_not(
    command_line: CommandLine, alice: User, snapshot: Snapshot
) -> None:
    filled(make_pool(snapshot.template, alice, size=1))

    warm = command_line.run("new", "main", "--purpose", "ci", "--export")
    cold = command_line.run("new", "main", "--purpose", "ci", "--no-wait")

    assert warm.stdout.startswith("export P4CLIENT=")
    assert "Claimed from a warm pool, which saved 12.0 s" in warm.stderr
    [start] = [line for line in cold.stdout.splitlines() if line.startswith("start ")]
    assert "Created on request." in start
    assert "All members" in start


# --- getting it


@pytest.mark.django_db
def test_what_is_served_knows_its_server_and_no_secret(
    client: Client, alice: User
) -> None:
    client.force_login(alice)

    answer = client.get("/cli")

    assert answer["Content-Type"] == "text/x-python; charset=utf-8"
    served = answer.content.decode()
    source = Path(cloneyard.__file__).read_text()
    differing = set(served.splitlines()) - set(source.splitlines())
    assert len(differing) == 2
    assert 'SERVER = "http://testserver"' in differing
    assert Client().get("/cli").content == answer.content


@pytest.mark.django_db
def test_the_tokens_page_says_how_to_get_it(client: Client, alice: User) -> None:
    client.force_login(alice)

    page = client.get("/tokens/").content.decode()

    assert "curl -fsSo cloneyard http://testserver/cli" in page
    assert page.index("chmod +x cloneyard") < page.index("./cloneyard login")


# --- signing in


def test_signing_in_on_a_terminal_keeps_a_token(
    command_line: CommandLine, live_server: LiveServer, ready: Workspace
) -> None:
    command_line.forget_token()
    terminal = command_line.on_a_terminal("login")
    terminal.read_until("User at ")
    terminal.type("alice")
    terminal.read_until("Password: ")
    terminal.type(PASSWORD)

    assert terminal.finish() == cloneyard.DONE, terminal.seen
    assert f"Signed in to {live_server.url} as alice." in terminal.seen
    assert PASSWORD not in terminal.seen
    [kept] = (command_line.home / ".config" / "cloneyard").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert ApiToken.objects.filter(name__startswith="cloneyard on ").count() == 1
    assert command_line.run("show", "hers").returncode == cloneyard.DONE


def test_a_token_comes_on_standard_input_or_from_the_environment(
    command_line: CommandLine,
) -> None:
    secret = command_line.environment["CLONEYARD_TOKEN"]
    command_line.forget_token()
    none = command_line.run("list")
    signed_in = command_line.run("login", "--token", "--json", said=f"{secret}\n")
    listed = command_line.run("list", "--template", "nope")
    wrong = command_line.run("list", CLONEYARD_TOKEN="f" * 64)

    ended_with(none, cloneyard.NOT_SIGNED_IN, saying="cloneyard login")
    assert printed(signed_in)["user"] == "alice"
    assert secret not in signed_in.stdout + signed_in.stderr
    ended_with(listed, cloneyard.DONE, saying="No workspaces.")
    ended_with(wrong, cloneyard.NOT_SIGNED_IN, saying="Invalid token.")


# --- making


def test_new_asks_for_what_was_said(
    command_line: CommandLine, snapshot: Snapshot
) -> None:
    ran = command_line.run(
        *("new", "main", "--name", "mine", "--purpose", "build", "--lease", "8h"),
        *("--snapshot", snapshot.name, "--key", "build 7", "--json", "--no-wait"),
    )
    other = command_line.run("new", "main", "--key", "build 7")

    made = Workspace.objects.get()
    assert printed(ran)["id"] == made.pk
    assert (made.name, made.purpose, made.snapshot) == ("mine", "build", snapshot)
    assert made.expires_at is not None
    seconds = (made.expires_at - made.created_at).total_seconds()
    assert abs(seconds - 8 * 3600) < 60
    assert made.request_key == "build 7"
    assert "cloneyard wait mine" in ran.stderr
    ended_with(
        other, cloneyard.REFUSED, saying="This request key belongs to an earlier"
    )


def test_a_request_whose_answer_was_lost_makes_one_workspace(
    command_line: CommandLine, between: Between, snapshot: Snapshot
) -> None:
    between.plan = [LOSE]

    words = ("new", "main", "--json", "--no-wait")
    ran = command_line.run(*words, "--server", between.address)

    assert printed(ran)["id"] == Workspace.objects.get().pk
    assert "Trying again in 1 s." in ran.stderr
    asked = [between.asked.get_nowait() for _ in range(2)]
    assert asked == ["POST /api/v1/workspaces"] * 2


def test_waiting_ends_with_what_came_of_it(
    command_line: CommandLine, workspace: Workspace
) -> None:
    late = command_line.run("wait", "hers", "--timeout", "0s")
    waiting = command_line.start(*command_line.command("wait", "hers", "--export"))
    become(workspace, Workspace.State.READY)
    out, err = waiting.communicate(timeout=60)

    ended_with(late, cloneyard.UNDER_WAY, saying="hers is still provisioning.")
    assert (waiting.returncode, err) == (cloneyard.DONE, "")
    assert out == (
        f"export P4CLIENT={workspace.client_name}; export P4PORT=127.0.0.1:9; "
        f"cd {workspace.path}\n"
    )


def test_what_failed_says_why(command_line: CommandLine, failed: Workspace) -> None:
    ran = command_line.run("wait", "hers", "--json")

    told = printed(ran, code=cloneyard.FAILED)
    assert told["detail"] == "hers is failed. The aggregate is full."
    assert told["workspace"]["id"] == failed.pk
    assert told["detail"] in ran.stderr


def test_a_check_that_failed_is_nothing_to_who_waits(
    command_line: CommandLine, ready: Workspace, alice: User
) -> None:
    look = workspace_check(by=alice, workspace=ready)
    engine_states.end_operation(
        look, Operation.State.FAILED, code="unreachable", message="No answer."
    )

    waited = command_line.run("wait", "hers", "--json")

    assert printed(waited)["state"] == "ready"


def test_steps_are_shown_on_a_terminal_and_nowhere_else(
    command_line: CommandLine, workspace: Workspace
) -> None:
    terminal = command_line.on_a_terminal("wait", "hers")
    terminal.read_until(f"hers: {PROVISION[0].title}, 0 of ")
    become(workspace, Workspace.State.READY)

    assert terminal.finish() == cloneyard.DONE, terminal.seen
    assert terminal.seen.rpartition("\x1b[K")[2].startswith("name      hers")
    assert command_line.run("wait", "hers").stderr == ""


def test_an_interrupted_wait_says_that_work_goes_on(
    command_line: CommandLine, between: Between, workspace: Workspace
) -> None:
    address = ("--server", between.address)
    command = command_line.command("wait", str(workspace.pk), *address)
    waiting = command_line.start(*command)
    between.asked.get(timeout=60)  # which workspace that is
    between.plan = [HOLD]
    while "wait=" not in between.asked.get(timeout=60):
        pass
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)

    assert (waiting.returncode, out) == (cloneyard.INTERRUPTED, "")
    assert "The server continues: “cloneyard wait hers”" in err
    become(workspace, Workspace.State.READY)


def test_a_wait_that_the_server_cannot_hold_is_held_here(
    command_line: CommandLine,
    between: Between,
    workspace: Workspace,
    settings: Settings,
) -> None:
    settings.API_WAITS_PER_PROCESS = 0

    address = ("--server", between.address)
    ran = command_line.run("wait", str(workspace.pk), "--timeout", "2s", *address)

    assert ran.returncode == cloneyard.UNDER_WAY
    assert between.asked.qsize() <= 4  # which one it is, and a second for each other


# --- looking


def test_a_list_has_ones_own_that_are_not_gone(
    command_line: CommandLine, retired: Workspace, alice: User, carol: User
) -> None:
    template = retired.template
    mine = workspace_create(by=alice, template=template, name="mine")
    workspace_create(by=carol, template=template, name="carols")

    everything = printed(command_line.run("list", "--all", "--json"))
    table = command_line.run("list").stdout.splitlines()

    assert [w["name"] for w in everything] == ["mine", "hers"]
    assert [line.split()[:4] for line in table] == [
        ["ID", "NAME", "OWNER", "STATE"],
        [str(mine.pk), "mine", "alice", "provisioning"],
    ]


def test_a_name_means_the_one_that_lives(
    command_line: CommandLine, retired: Workspace, alice: User
) -> None:
    gone = printed(command_line.run("show", "hers", "--json"))
    mine = workspace_create(by=alice, template=retired.template, name=retired.name)
    living = printed(command_line.run("show", "hers", "--json"))

    assert (gone["id"], living["id"]) == (retired.pk, mine.pk)
    elsewhere = SnapshotFactory.create(
        template=TemplateFactory.create(name="elsewhere")
    )
    workspace_create(by=alice, template=elsewhere.template, name="hers")
    ended_with(
        command_line.run("show", "hers"),
        cloneyard.REFUSED,
        saying="There is more than one “hers”: give the id",
    )


def test_refusals_are_the_servers_sentences(
    command_line: CommandLine, workspace: Workspace
) -> None:
    for words, code, sentence in (
        (("new", "nope"), cloneyard.REFUSED, "There is no template “nope”."),
        (("new", "main", "--name", "hers"), cloneyard.REFUSED, "“hers” is taken"),
        (("show", "nope"), cloneyard.NOT_FOUND, "There is no workspace “nope”"),
        (("show", "hers", "--export"), cloneyard.REFUSED, "not ready"),
    ):
        ended_with(command_line.run(*words), code, saying=sentence)


# --- its end


def test_a_lease_is_extended(command_line: CommandLine, ready: Workspace) -> None:
    extended = printed(command_line.run("extend", "hers", "31d", "--json"))

    ready.refresh_from_db()
    assert ready.expires_at is not None
    assert extended["lease"]["ends_at"][:16] == ready.expires_at.isoformat()[:16]
    again = command_line.run("extend", "hers", "1h")
    ended_with(again, cloneyard.REFUSED, saying="would not extend the lease")


def test_a_retirement_that_was_refused_shows_what_was_found(
    command_line: CommandLine, ready: Workspace
) -> None:
    asked = command_line.run("retire", "hers", "--no-wait")
    engine_states.end_operation(
        ready.operations.get(state="running"),
        Operation.State.REFUSED,
        code="unsubmitted_work",
        message="1 thing in this workspace is not submitted.",
        findings=FOUND,
    )
    set_workspace_state(ready, Workspace.State.READY)
    waited = command_line.run("wait", "hers", "--json")

    assert asked.stdout == "hers is being retired: “cloneyard wait hers”.\n"
    told = printed(waited, code=cloneyard.REFUSED)
    assert (told["code"], told["findings"]) == ("unsubmitted_work", FOUND)
    assert "Untracked (1):\n  /mnt/hers/notes.txt (add)\n" in waited.stderr
    assert "“cloneyard retire hers --rescue” keeps it" in waited.stderr


def test_a_retirement_whose_answer_was_lost_is_done_once(
    command_line: CommandLine, between: Between, ready: Workspace
) -> None:
    words = command_line.command("retire", "hers", "--server", between.address)
    between.plan = [PASS, LOSE]
    retiring = command_line.start(*words)
    while "DELETE" not in between.asked.get(timeout=60):
        pass
    become_trashed_once_asked(ready)
    out, err = retiring.communicate(timeout=60)

    assert retiring.returncode == cloneyard.DONE, err
    assert "hers is in the trash until " in out
    assert ready.operations.filter(kind=WorkspaceOperation.RETIRE).count() == 1


def become_trashed_once_asked(workspace: Workspace) -> None:
    """End the retirement that a request under way asks for."""
    while not workspace.operations.filter(kind="retire", state="running").exists():
        time.sleep(0.02)
    workspace.refresh_from_db()
    become(workspace, Workspace.State.TRASHED)


# --- a server that is away, busy, or another


def test_a_busy_server_is_asked_again_when_it_said(
    command_line: CommandLine, between: Between, ready: Workspace
) -> None:
    words = ("show", str(ready.pk), "--server", between.address)
    between.plan = [(429, {"Retry-After": "0"}), (503, {"Retry-After": "0"})]
    patient = command_line.run(*words)
    between.plan = [(429, {"Retry-After": "300"})]
    hasty = command_line.run(*words)

    assert patient.returncode == cloneyard.DONE
    assert "This is a 429. Trying again in 0 s." in patient.stderr
    assert "This is a 503. Trying again in 0 s." in patient.stderr
    ended_with(hasty, cloneyard.NOT_REACHED, saying="This is a 429.")


def test_a_token_goes_to_the_server_that_was_named_alone(
    command_line: CommandLine, between: Between, live_server: LiveServer
) -> None:
    between.plan = [(302, {"Location": "https://elsewhere.example/"})]
    moved = command_line.run("list", "--server", between.address)
    other = command_line.run("list", "--server", f"{live_server.url}/healthz")
    away = command_line.run("list", "--server", "http://127.0.0.1:9", "--patience=0s")

    ended_with(moved, cloneyard.NOT_REACHED, saying="refers to https://elsewhere.ex")
    assert between.asked.qsize() == 1
    ended_with(other, cloneyard.NOT_REACHED, saying="404, but not as Cloneyard does")
    ended_with(away, cloneyard.NOT_REACHED, saying="does not answer")


def test_certificates_are_verified(
    command_line: CommandLine, between: Between, ready: Workspace, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    between.speak_tls(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    words = ("show", "hers", "--server", between.address)

    trusting_nobody = command_line.run(*words)
    trusting_it = command_line.run(*words, CLONEYARD_CA_FILE=str(tmp_path / "ca.pem"))

    ended_with(trusting_nobody, cloneyard.NOT_REACHED, saying="cannot be verified")
    assert trusting_it.returncode == cloneyard.DONE, trusting_it.stderr
