"""A person's way on the command line: into a new workspace, and out of it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.catalog.models import Template
from provisioner.cli import cloneyard
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Workspace
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.django_db(transaction=True)

WORK_THERE = """
eval "$(cloneyard new "$1" --name hers --export)" &&
    printf '%s\\n' "$P4CLIENT" "$P4PORT" "$PWD" && echo mine > src/notes.txt
"""


COLD = "cloneyard: Created on request.\n"


def test_a_shell_gets_into_a_workspace_and_gives_it_back(
    command_line: CommandLine,
    published_template: Template,
    worker: Child,
) -> None:
    run = command_line.run_program

    made = run("bash", "-c", WORK_THERE, "bash", published_template.name)

    workspace = Workspace.objects.get()
    assert made.returncode == 0, made.stderr
    p4port = published_template.site.perforce_server.p4port
    told = [workspace.client_name, p4port, str(workspace.path)]
    assert made.stdout.splitlines() == told
    assert made.stderr == COLD

    refused = run("cloneyard", "retire", "hers")
    assert (refused.returncode, refused.stdout) == (cloneyard.REFUSED, "")
    assert "1 thing in this workspace is not submitted." in refused.stderr
    assert f"Untracked (1):\n  {workspace.path}/src/notes.txt (add)" in refused.stderr

    retired = run("cloneyard", "retire", "hers", "--rescue")
    assert retired.returncode == cloneyard.DONE, retired.stderr
    assert "hers is in the trash until " in retired.stdout
    assert not Path(workspace.path).exists()

    restored = run("cloneyard", "restore", "hers")
    assert restored.returncode == cloneyard.DONE, restored.stderr
    assert "state     ready" in restored.stdout
    assert Path(workspace.path, "src", "notes.txt").read_text() == "mine\n"
