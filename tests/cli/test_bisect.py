"""`cloneyard bisect`, called as people call it, at a server that runs."""

from __future__ import annotations

import pytest

from provisioner.bisect.models import Bisection
from provisioner.catalog.models import Snapshot
from provisioner.cli import cloneyard
from tests.support.bisections import end_step, read
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.proxy import LOSE, Between

pytestmark = pytest.mark.django_db(transaction=True)


BEGIN = ("bisect", "main", "--good", "100", "--bad", "150")


def test_a_bisection_is_begun_decided_and_found(
    command_line: CommandLine, snapshot: Snapshot, between: Between
) -> None:
    begun = printed(command_line.run(*BEGIN, "--json", "--no-wait"))
    bisection = Bisection.objects.get(pk=begun["id"])
    number = str(bisection.pk)
    late = command_line.run("bisect", "show", number, "--wait", "--timeout", "0s")
    read(bisection.pk)
    end_step(bisection)

    asked = command_line.run("bisect", "show", number, "--wait")
    ended_with(late, cloneyard.UNDER_WAY, saying="Reading the changes")
    ended_with(asked, cloneyard.UNDER_WAY, saying=f"cloneyard bisect good {number}")
    # The second verdict comes with the number of its change, though an answer was lost.
    between.plan = [LOSE]
    words = ("bisect", "bad", number, "--no-wait")
    first = command_line.run(*words, "--server", between.address)
    assert "Trying again" in first.stderr
    assert "Change 105 is being tested" in first.stdout
    command_line.run("bisect", "good", number, "--no-wait")
    found = command_line.run("bisect", "good", number, "--json")

    shown = printed(found)
    assert shown["first_bad"]["change"] == 111
    text = command_line.run("bisect", "show", number).stdout
    assert "First bad change 111 by bob: Title 111" in text
    assert "111 bad. alice said so." in text
    over = command_line.run("bisect", "skip", number)
    ended_with(over, cloneyard.REFUSED, saying="No change is being tested.")


def test_what_was_stopped_is_a_failure_to_who_waits(
    command_line: CommandLine, snapshot: Snapshot
) -> None:
    words = (*BEGIN, "--run", "make test", "--no-wait")
    begun = printed(command_line.run(*words, "--json"))
    assert begun["command"] == "make test"
    number = str(begun["id"])

    stopped = command_line.run("bisect", "stop", number, "--wait")

    ended_with(stopped, cloneyard.FAILED, saying="alice stopped it.")
    gone = command_line.run("bisect", "show", str(begun["id"] + 1000))
    ended_with(gone, cloneyard.NOT_FOUND, saying="you may not see it")


@pytest.mark.parametrize(
    "words",
    ["main", "main --good 1", "better 7", "good 7 --run true", "main --good x --bad 2"],
)
def test_wrong_arguments_are_explained(command_line: CommandLine, words: str) -> None:
    ran = command_line.run("bisect", *words.split())
    assert (ran.returncode, ran.stdout) == (cloneyard.USAGE, "")
