"""`cloneyard logs`, `open`, `sites` and `completion`, called as people call them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.cli import cloneyard
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.models import Workspace
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.workspaces import end

pytestmark = pytest.mark.django_db(transaction=True)


def begin(operation: Operation, name: str, *, printing: str) -> Step:
    """Let a worker be at a step that has printed something."""
    step = operation.steps.get(name=name)
    engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    step.log_path.write_text(printing)
    return step


@pytest.fixture
def operation(workspace: Workspace, settings: Settings, tmp_path: Path) -> Operation:
    settings.LOG_DIR = tmp_path / "logs"
    settings.LOG_DIR.mkdir()
    return workspace.operations.get()


# --- logs


def test_logs_prints_what_was_printed_so_far(
    operation: Operation, command_line: CommandLine
) -> None:
    nothing = command_line.run("logs", "hers")
    begin(operation, "owner", printing="1 of 2\n2 of 2")
    ran = command_line.run("logs", "hers")

    ended_with(nothing, cloneyard.DONE, saying="Nothing printed yet.")
    assert (ran.returncode, ran.stdout) == (cloneyard.DONE, "1 of 2\n")


def test_a_long_log_is_cut_unless_all_of_it_is_asked_for(
    operation: Operation, command_line: CommandLine
) -> None:
    whole = "".join(f"line {number}\n" for number in range(200_000))
    begin(operation, "owner", printing=whole)

    cut = command_line.run("logs", "hers", "--step", "owner")
    full = command_line.run("logs", "hers", "--all")

    assert "bytes come before: --all prints them." in cut.stderr
    assert whole.endswith(cut.stdout)
    assert len(cut.stdout) < 100_000
    assert full.stdout == whole


def test_who_follows_reads_every_step_to_the_end_and_learns_how_it_ended(
    operation: Operation, command_line: CommandLine
) -> None:
    step = begin(operation, "clone", printing="cloned\n")
    following = command_line.start(*command_line.command("logs", "hers", "-f"))
    assert following.stdout is not None
    assert following.stdout.readline() == "cloned\n"

    engine_states.finish_step(step, result=None)
    later = begin(operation, "owner", printing="all of \n")
    assert following.stdout.readline() == "all of \n"
    with later.log_path.open("a") as log:
        log.write("it")
    engine_states.fail_step(later, code="no_space", message="The volume is full.")
    end(operation, Operation.State.FAILED)
    out, err = following.communicate(timeout=60)

    assert (following.returncode, out) == (cloneyard.FAILED, "it")
    assert "Clone the snapshot:" in err
    assert "Ended after" in err


def test_a_terminal_gets_colors_and_no_other_control(
    operation: Operation, command_line: CommandLine
) -> None:
    begin(
        operation,
        "owner",
        printing="\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jgone\x9b\n",
    )
    terminal = command_line.on_a_terminal("logs", "hers")
    assert terminal.finish() == cloneyard.DONE
    assert terminal.seen == "\x1b[31mred\x1b[0m ]0;titlegone\r\n"


@pytest.mark.parametrize(
    ("words", "code", "saying"),
    [
        (["logs"], cloneyard.USAGE, "Name a workspace"),
        (["logs", "nope"], cloneyard.NOT_FOUND, "There is no workspace"),
        (["logs", "--operation", "4711"], cloneyard.NOT_FOUND, "Nothing is here"),
        (["logs", "hers", "--step", "nope"], cloneyard.NOT_FOUND, "Nothing is here"),
        (["logs", "--template", "main"], cloneyard.NOT_FOUND, "has no operations yet"),
    ],
)
def test_what_has_no_log_is_said(
    words: list[str],
    code: int,
    saying: str,
    operation: Operation,
    command_line: CommandLine,
) -> None:
    ended_with(command_line.run(*words), code, saying=saying)


# --- pages and sites


def test_open_prints_the_page_of_a_workspace(
    workspace: Workspace, command_line: CommandLine
) -> None:
    page = command_line.run("open", "hers").stdout.strip()
    template = printed(command_line.run("open", "--template", "main", "--json"))
    assert page.endswith(f"/workspaces/{workspace.pk}/")
    assert template["url"].endswith(f"/templates/{workspace.template_id}/")


def test_sites_are_listed_to_developers_and_administrators(
    template: Template, command_line: CommandLine
) -> None:
    of_developers = printed(command_line.run("sites", "--json"))
    assert command_line.run("sites").stdout == f"NAME\n{template.site.name}\n"
    User.objects.update(is_staff=True)
    of_administrators = command_line.run("sites").stdout

    assert of_developers == [{"name": template.site.name}]
    assert template.site.name in of_administrators
    assert template.site.perforce_server.name in of_administrators
