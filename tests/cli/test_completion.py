"""`cloneyard completion` in bash, zsh and fish themselves."""

from __future__ import annotations

import pytest

from provisioner.workspaces.models import Workspace
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.django_db(transaction=True)

IN_BASH = """
source <(cloneyard completion bash)
COMP_WORDS=(cloneyard "$@"); COMP_CWORD=$#
_cloneyard; printf '%s\\n' "${COMPREPLY[@]}"
"""
IN_FISH = """
cloneyard completion fish | source
complete -C "$argv"
"""
IN_ZSH = """\
autoload -Uz compinit; compinit -u -D; unsetopt list_ambiguous; \
source <(cloneyard completion zsh)"""
STARTED, TAB = "it has begun", "\t"

# What was typed, and what is offered first.
TYPED = [
    ("re", ["rescue", "restore", "restore-snapshot", "retire"]),
    ("new m", ["main"]),
    ("new main --purpose c", ["ci", "ci-edit"]),
    ("retire ", ["hers"]),
    ("retire hers --res", ["--rescue"]),
    ("retire --rescue h", ["hers"]),
    ("template show m", ["main"]),
    ("bisect ma", ["main"]),
    ("completion z", ["zsh"]),
    ("nonsense ", ["bisect", "checkpoint", "checkpoint-plans"]),
]


@pytest.mark.parametrize(("typed", "offered"), [*TYPED, ("bisect main --good 1", [""])])
def test_bash_completes_commands_options_and_names(
    typed: str, offered: list[str], workspace: Workspace, command_line: CommandLine
) -> None:
    words = typed.split(" ")
    ran = command_line.run_program("bash", "-c", IN_BASH, "bash", *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[: len(offered)] == offered


@pytest.mark.integration
@pytest.mark.parametrize(("typed", "offered"), [*TYPED, ("bisect main --good 1", [])])
def test_fish_completes_the_same(
    typed: str, offered: list[str], workspace: Workspace, command_line: CommandLine
) -> None:
    ran = command_line.run_program("fish", "-N", "-c", IN_FISH, f"cloneyard {typed}")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {*offered} <= {*ran.stdout.splitlines()}, "in an order of its own"
    assert bool(ran.stdout) == bool(offered)


@pytest.mark.integration
def test_zsh_completes_the_same(
    workspace: Workspace, command_line: CommandLine
) -> None:
    """What is the only one is typed; of several, all are listed."""
    command_line.environment["PS1"] = "> "
    zsh = command_line.program_on_a_terminal(
        *("/usr/bin/env", "TERM=dumb", "/usr/bin/zsh", "-f", "-i")
    )
    zsh.type(f"{IN_ZSH}; echo it\\ has\\ begun")
    zsh.read_until(STARTED)
    for typed, offered in TYPED:
        zsh.seen = ""
        line = f"cloneyard {typed}"
        zsh.type(line, key=TAB)
        if len(offered) > 1:
            zsh.read_until(offered[-1])
            assert all(each in zsh.seen for each in offered)
        else:
            zsh.read_until(f"{line.rpartition(' ')[0]} {offered[0]} ")
        zsh.type("", key="\x15")  # Ctrl-U takes the line back
    zsh.type("exit")
    assert zsh.finish() == 0


def test_without_a_server_nothing_is_offered(command_line: CommandLine) -> None:
    unsaid = command_line.run("complete", "--", "new", "", CLONEYARD_TOKEN="f" * 64)
    assert (unsaid.returncode, unsaid.stdout, unsaid.stderr) == (0, "", "")
