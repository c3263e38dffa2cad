"""The Horde example: its graph, run as an agent of Horde runs one.

Neither Horde nor AutomationTool are to be had without Epic's licence. So names are
compared with Epic's documents, and this runs what a graph for one agent has: options,
properties, nodes in their order, spawned programs, and the agent's cleanup script.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.people.actions.tokens import api_token_create
from provisioner.workspaces.models import Workspace

ENDS_WITHIN_SECONDS = 120
FOLDER: Path = settings.BASE_DIR / "docs/examples/horde"
XMLNS = "{http://www.epicgames.com/BuildGraph}"
GOING = (Workspace.State.RETIRING, Workspace.State.TRASHED, Workspace.State.RETIRED)

# Source: Engine/Source/Programs/Horde/Docs/Config/Schema/Streams.md of Unreal Engine
FIELDS = {
    "stream": {
        *("id", "name", "clusterName", "initialAgentType", "workspaceTypes"),
        *("agentTypes", "templates", "tabs", "environment", "jobOptions", "order"),
    },
    "workspaceTypes": {"identifier", "incremental", "view", "stream", "method"},
    "agentTypes": {"base", "pool", "workspace", "tempStorageDir", "environment"},
    "templates": {"id", "name", "description", "arguments", "initialAgentType"},
    "tabs": {"title", "type", "style", "showNames", "jobNames", "templates"},
}
# Source: https://dev.epicgames.com/documentation/en-us/unreal-engine/
# buildgraph-script-elements-reference-for-unreal-engine, and …-tasks-reference-…
ATTRIBUTES = {
    "Option": {"Name", "Restrict", "DefaultValue", "Description", "If"},
    "Property": {"Name", "Value", "If"},
    "Agent": {"Name", "Type", "If"},
    "Node": {"Name", "Requires", "Produces", "After", "If"},
    "Spawn": {"Exe", "Arguments", "WorkingDir"},
}


def read_stream() -> dict[str, Any]:
    stream: dict[str, Any] = json.loads((FOLDER / "cloneyard.stream.json").read_text())
    return stream


@dataclass
class Agent:
    """A machine of the pool: what Horde synced to it, and what it runs with."""

    home: Path
    own: dict[str, str]
    server: str
    ran: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.home / "Sync"

    @property
    def cleanup(self) -> Path:
        return self.root / "CleanupLease.sh"

    def run_template(self, number: int) -> bool:
        """Run a template's target, then the cleanup, as the agent does in any case."""
        stream = read_stream()
        [template] = stream["templates"]
        script, target, *options = template["arguments"]
        agent_type = stream["agentTypes"][stream["initialAgentType"]]
        graph = ElementTree.parse(self.root / script.removeprefix("-Script=")).getroot()
        variables = {
            **self.own,
            **agent_type["environment"],
            "CLONEYARD_SERVER": self.server,
            "UE_HORDE_JOBID": f"65a1b2c3d4e5f60718293a{number:02}",
            "UE_HORDE_BATCHID": "9f3c",
            "UE_HORDE_SHARED_DIR": str(self.home / "Saved"),
            "UE_HORDE_LEASE_CLEANUP": str(self.cleanup),
        }
        set_options = dict(
            option.removeprefix("-set:").split("=", 1) for option in options
        )
        try:
            return self._run(
                graph, target.removeprefix("-Target="), set_options, variables
            )
        finally:
            # Source: ExecuteCleanupScriptAsync in JobExecutor.cs: /bin/sh, with the
            # agent's own variables, for at most 30 seconds.
            if self.cleanup.exists():
                self._spawn("/bin/sh", str(self.cleanup), variables=self.own)
                self.cleanup.unlink()

    def _run(
        self,
        graph: ElementTree.Element,
        target: str,
        options: dict[str, str],
        variables: dict[str, str],
    ) -> bool:
        properties = {"RootDir": str(self.root)}

        def expand(text: str) -> str:
            return re.sub(r"\$\((\w+)\)", lambda found: properties[found[1]], text)

        for each in graph:
            if each.tag == f"{XMLNS}Option":
                name = each.attrib["Name"]
                properties[name] = options.get(name, each.attrib["DefaultValue"])
            elif each.tag == f"{XMLNS}Property":
                properties[each.attrib["Name"]] = expand(each.attrib["Value"])
        nodes = {
            n.attrib["Name"]: n for n in graph.iterfind(f"{XMLNS}Agent/{XMLNS}Node")
        }
        wanted = [*nodes[target].get("Requires", "").split(";"), target]
        for name in filter(None, wanted):
            self.ran.append(name)
            for spawn in nodes[name]:
                arguments = shlex.split(expand(spawn.attrib["Arguments"]))
                if not self._spawn(
                    spawn.attrib["Exe"], *arguments, variables=variables
                ):
                    return False
        return True

    def _spawn(self, *command: str, variables: dict[str, str]) -> bool:
        ran = subprocess.run(
            command,
            cwd=self.root,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_WITHIN_SECONDS,
        )
        print(ran.stdout, ran.stderr)  # shown where the test fails
        return ran.returncode == 0


@pytest.fixture
def agent(
    live_server: LiveServer, tmp_path: Path, published_template: Template, ci: User
) -> Agent:
    """An agent whose account has signed in with a token for builds of one template."""
    _, token = api_token_create(
        by=ci, templates=[published_template], purposes=["build"]
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    cloneyard = programs / "cloneyard"
    shutil.copyfile(settings.BASE_DIR / "provisioner/cli/cloneyard.py", cloneyard)
    make = programs / "make"
    make.write_text(
        f'#!/bin/sh\necho "$PWD" >> {tmp_path}/made\n[ ! -e {tmp_path}/broken ]\n'
    )
    for program in (cloneyard, make):
        program.chmod(0o755)
    own = {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    subprocess.run(
        ["cloneyard", "login", "--token", "--server", live_server.url],
        env={**own, "CLONEYARD_TOKEN": token},
        check=True,
        stdin=subprocess.DEVNULL,
    )
    made = Agent(tmp_path, own, live_server.url)
    build = made.root / "Game" / "Build"
    build.mkdir(parents=True)
    for name in ("BuildInWorkspace.xml", "workspace.sh"):
        text = (FOLDER / name).read_text()
        (build / name).write_text(text)
    return made


@pytest.mark.integration
@pytest.mark.django_db(transaction=True)
def test_a_batch_builds_in_a_workspace_and_the_agent_retires_it(
    agent: Agent,
    worker: Child,
    published_template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = read_stream()
    [template] = stream["templates"]
    template["arguments"][-1] = f"-set:Template={published_template.name}"
    monkeypatch.setattr(sys.modules[__name__], "read_stream", lambda: stream)

    assert agent.run_template(1)
    (agent.home / "broken").touch()
    assert not agent.run_template(2)

    assert agent.ran == ["Get a workspace", "Build"] * 2
    built = (agent.home / "made").read_text().splitlines()
    first, second = Workspace.objects.order_by("pk")
    assert built == [str(first.path), str(second.path)]
    assert {first.state, second.state} <= set(GOING)
    assert list((agent.home / "Saved").iterdir()) == []


@pytest.mark.integration
@pytest.mark.django_db(transaction=True)
def test_what_a_token_does_not_allow_is_not_built(agent: Agent) -> None:
    assert not agent.run_template(3)  # of “main”, which is another template

    assert not (agent.home / "made").exists()
    assert not Workspace.objects.exists()


def test_names_are_those_of_epics_documents() -> None:
    stream = read_stream()
    graph = ElementTree.parse(FOLDER / "BuildInWorkspace.xml").getroot()

    assert set(stream) <= FIELDS["stream"]
    for kind in ("workspaceTypes", "agentTypes", "templates", "tabs"):
        named = stream[kind]
        for each in named.values() if isinstance(named, dict) else named:
            assert set(each) <= FIELDS[kind]
    for element in graph.iter():
        if element is not graph:
            assert set(element.attrib) <= ATTRIBUTES[element.tag.removeprefix(XMLNS)]
    types = {agent.attrib["Type"] for agent in graph.iterfind(f"{XMLNS}Agent")}
    assert types <= set(stream["agentTypes"])
    spaces = {agent["workspace"] for agent in stream["agentTypes"].values()}
    assert spaces <= set(stream["workspaceTypes"])
