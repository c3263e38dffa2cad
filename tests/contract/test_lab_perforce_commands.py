"""Every Perforce command that Cloneyard gives, on the lab.

The official client runs in a process of its own, with a limit: a server that breaks the
protocol can make it hang or crash.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways import perforce
from provisioner.lab.perforce.commands import COMMANDS, KNOWN_ELSEWHERE
from tests.support.lab_perforce import lab_server

pytestmark = pytest.mark.timeout(90, method="thread")

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command found, as the program beside this file tells it."""
    place = tmp_path_factory.mktemp("perforce")
    root = place / "ws"
    root.mkdir()
    with lab_server(place) as server:
        # Nothing needs it, so it is only shown.
        (server.root / "faults.json").write_text('{"held_locks": {"db.monitor": 99}}')
        ended = subprocess.run(
            [
                *(sys.executable, str(HERE / "perforce_commands.py")),
                *(f"127.0.0.1:{server.port}", server.password, str(root)),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def given_commands() -> set[str]:
    """Return the commands that the gateway gives: the first words of calls and tuples.

    Words that are no command of Perforce are left out.
    """

    def firsts(tree: ast.AST) -> Iterator[str]:
        for node in ast.walk(tree):
            match node:
                case (
                    ast.Call(
                        func=ast.Attribute(attr="run" | "_run" | "_send"),
                        args=[ast.Constant(str(word)), *_],
                    )
                    | ast.Tuple(elts=[ast.Constant(str(word)), ast.Constant(str()), *_])
                    | ast.Tuple(elts=[ast.Constant(str(word)), ast.Starred(), *_])
                ):
                    yield word

    package = Path(perforce.__path__[0])
    words = {
        word
        for path in package.rglob("*.py")
        for word in firsts(ast.parse(path.read_text()))
    }
    return words & (COMMANDS.keys() | KNOWN_ELSEWHERE)


def test_every_command_that_is_given_is_tried_here(found: dict[str, Any]) -> None:
    given = given_commands()

    assert {"client", "protects", "shelve", "unshelve", "move"} <= given
    assert given <= {command.split()[0] for command in found}


def test_every_command_finds_what_is_there(found: dict[str, Any]) -> None:
    assert {command: what for command, what in found.items() if what == 0} == {}


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("client -i", ["Client ws saved."]),
        ("clients -a -e ws", 1),
        ("files -e //ws/...@1", 3),
        ("sync -n //ws/...@1", 3),
        ("have", 3),
        ("reconcile -n -e -d //ws/...", 1),
        ("reconcile -n -e -d -a -f //ws/...", 2),
        ("opened -a -C ws", 4),
        ("changes -l -c ws -s pending", 1),
        ("revert -k -C ws //...", 4),
        ("client -d -f ws", ["Client ws deleted."]),
    ],
)
def test_what_a_command_finds(
    found: dict[str, Any], command: str, what: int | list[str]
) -> None:
    assert found[command] == what
