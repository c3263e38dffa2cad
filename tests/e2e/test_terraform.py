"""The Terraform module, by the real program, from validate to destroy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.people.actions.tokens import api_token_create
from provisioner.workspaces.models import Workspace

ENDS_WITHIN_SECONDS = 120
MODULE: Path = settings.BASE_DIR / "docs/examples/terraform"
PROGRAM = shutil.which("terraform") or shutil.which("tofu")
NOTHING_CHANGES = 0  # of `plan -detailed-exitcode`
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.integration,
    pytest.mark.skipif(
        PROGRAM is None,
        reason="There is no terraform or tofu here, and no registry that has one.",
    ),
]

Ran = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Configuration:
    """A directory with a configuration that uses the module."""

    home: Path
    environment: dict[str, str]

    def run(self, *words: str, code: int = 0, **variables: str) -> Ran:
        assert PROGRAM is not None
        ran = subprocess.run(
            [PROGRAM, *words, "-no-color"],
            cwd=self.home,
            env={
                **self.environment,
                **{f"TF_VAR_{name}": value for name, value in variables.items()},
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_WITHIN_SECONDS,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran

    def apply(self, *, code: int = 0, **variables: str) -> Ran:
        return self.run(
            "apply", "-auto-approve", "-input=false", code=code, **variables
        )

    def outputs(self) -> dict[str, Any]:
        outputs = json.loads(self.run("output", "-json").stdout)
        return {name: output["value"] for name, output in outputs.items()}


@pytest.fixture
def configuration(
    live_server: LiveServer, tmp_path: Path, published_template: Template, alice: User
) -> Configuration:
    """The module, with a token for development in one template."""
    _, token = api_token_create(
        by=alice, templates=[published_template], purposes=["development"]
    )
    home = tmp_path / "terraform"
    shutil.copytree(MODULE, home)
    program = tmp_path / "cloneyard"
    shutil.copyfile(settings.BASE_DIR / "provisioner/cli/cloneyard.py", program)
    program.chmod(0o755)
    made = Configuration(
        home,
        {
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "CLONEYARD_TOKEN": token,
            "CHECKPOINT_DISABLE": "1",
            "TF_VAR_server": live_server.url,
            "TF_VAR_template": published_template.name,
            "TF_VAR_name": "of-terraform",
            "TF_VAR_cloneyard": str(program),
        },
    )
    made.run("init", "-input=false")
    return made


def test_a_workspace_lives_as_long_as_its_resource(
    configuration: Configuration, worker: Child
) -> None:
    configuration.run("validate")
    configuration.run("plan", "-input=false", "-detailed-exitcode", code=2)
    assert not Workspace.objects.exists()

    configuration.apply()
    workspace = Workspace.objects.get()
    outputs = configuration.outputs()
    assert workspace.state == Workspace.State.READY
    assert workspace.name.startswith("of-terraform-")
    assert outputs["path"] == str(workspace.path)
    assert outputs["client"] == workspace.client_name

    # Also where the files of the first run are not.
    shutil.rmtree(configuration.home / ".cloneyard")
    configuration.run("plan", "-detailed-exitcode", code=NOTHING_CHANGES)
    configuration.apply(lease_hours="960")
    assert configuration.outputs() == outputs
    assert Workspace.objects.count() == 1

    mine = Path(workspace.path, "src", "notes.txt")
    mine.write_text("mine\n")
    stopped = configuration.run("destroy", "-auto-approve", code=1)
    assert "1 thing in this workspace is not submitted." in stopped.stderr
    assert mine.exists()
    configuration.apply(lease_hours="960", unsubmitted="rescue")
    configuration.run("destroy", "-auto-approve", lease_hours="960")
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.TRASHED
    assert workspace.rescues.exists()


def test_what_cannot_be_created_leaves_nothing_behind(
    configuration: Configuration,
) -> None:
    """Without a worker it is not ready in time."""
    refused = configuration.run("plan", code=1, purpose="play", lease_hours="0.5")
    assert "A purpose is build, ci, ci-edit or development." in refused.stderr
    assert "Give whole hours, one or more." in refused.stderr
    configuration.apply(code=1, purpose="ci")
    mark = configuration.home / "mark"
    configuration.apply(code=1, template=f'x"; touch "{mark}"; $(touch "{mark}")')
    assert not mark.exists()
    assert not Workspace.objects.exists()

    configuration.apply(code=1, timeout="1s")

    assert Workspace.objects.get().state == Workspace.State.RETIRING


def test_it_is_formatted() -> None:
    assert PROGRAM is not None
    subprocess.run([PROGRAM, "fmt", "-check", "-diff", MODULE], check=True)
