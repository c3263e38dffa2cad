"""The examples in docs/examples, run as they are written.

What a CI system does around their commands is done here: variables, one shell for
each step, what comes always. `make` is the test's: it keeps where it was called, and
fails where the build has to.
"""

from __future__ import annotations

import itertools
import json
import re
import string
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.leases.sweeps.leases import purge_expired
from provisioner.lib.clocks import database_now
from provisioner.people.actions.tokens import api_token_create
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.client_library import LIBRARY
from tests.support.lab import build, define_template

ENDS_WITHIN_SECONDS = 120
POLL_EVERY_SECONDS = 0.2
pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES: Path = settings.BASE_DIR / "docs" / "examples"
MAKE = """#!/bin/sh
printf '%s\\n' "$PWD $* ${P4CLIENT-}" >> "$MADE_IN"
exit "$MAKE_ENDS_WITH"
"""


@dataclass(frozen=True)
class Runner:
    """A machine that builds, what its CI system knows, and how this build ends."""

    home: Path
    server: str
    token: str
    number: int
    build_ends_with: int

    @property
    def of_all_jobs(self) -> dict[str, str]:
        return {"CLONEYARD_SERVER": self.server, "CLONEYARD_TOKEN": self.token}

    @property
    def made_in(self) -> Path:
        """Return the calls of `make`: directory, arguments and client, a line each."""
        return self.home / "made-in"

    def run(self, *shell: str, **variables: str) -> bool:
        """Return whether a shell ended well."""
        ran = subprocess.run(
            shell,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={
                "HOME": str(self.home),
                "PATH": f"{self.home}/bin:{Path(sys.executable).parent}:/usr/bin:/bin",
                "LANG": "C",
                "MADE_IN": str(self.made_in),
                "MAKE_ENDS_WITH": str(self.build_ends_with),
                **variables,
            },
            timeout=ENDS_WITHIN_SECONDS,
        )
        print(ran.stdout, ran.stderr)  # shown where the test fails
        return ran.returncode == 0


# --- what each CI system makes of its file


def run_script(runner: Runner, name: str) -> bool:
    variables = {**runner.of_all_jobs, "BUILD_ID": str(runner.number)}
    return runner.run(str(EXAMPLES / name), **variables)


def run_github(runner: Runner) -> bool:
    """Run the steps of the one job, as `run` without `shell` is documented.

    Source: “jobs.<job_id>.steps[*].shell” and “always” in the workflow syntax.
    """
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    [job] = workflow["jobs"].values()
    known = {
        "${{ vars.CLONEYARD_SERVER }}": runner.server,
        "${{ secrets.CLONEYARD_TOKEN }}": runner.token,
    }
    variables = {name: known[value] for name, value in job["env"].items()}
    variables |= {"RUNNER_TEMP": str(runner.home), "GITHUB_RUN_ATTEMPT": "1"}
    variables |= {"GITHUB_RUN_ID": str(runner.number), "GITHUB_REPOSITORY": "a/game"}
    is_well = True
    for step in job["steps"]:
        assert set(step) <= {"name", "run", "if"}
        if is_well or step.get("if") == "always()":
            is_well &= runner.run("bash", "-e", "-c", step["run"], **variables)
    return is_well


def run_gitlab(runner: Runner) -> bool:
    """Run the one job: `before_script` and `script` in one shell, then the other.

    Source: “script” and “after_script” in the CI/CD YAML syntax reference.
    """
    [job] = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text()).values()
    variables = {"CI_JOB_ID": str(runner.number), "CI_PROJECT_DIR": str(runner.home)}
    for name, value in job["variables"].items():
        variables[name] = string.Template(value).substitute(variables)
    variables |= runner.of_all_jobs
    shell = ("bash", "-eo", "pipefail", "-c")
    lines = [*job["before_script"], *job["script"]]
    is_well = runner.run(*shell, "\n".join(lines), **variables)
    # What this ends with does not count.
    assert runner.run(*shell, "\n".join(job["after_script"]), **variables)
    return is_well


def run_jenkins(runner: Runner) -> bool:
    """Run the `sh` steps: of each stage while all is well, then of `post`."""
    stages, post = (EXAMPLES / "Jenkinsfile").read_text().split("post {")
    shell = re.compile(r"sh '''(.*?)'''", re.DOTALL)
    assert "always {" in post
    credential = re.search(r"(\w+) = credentials\('cloneyard-token'\)", stages)
    assert credential is not None
    variables = {
        credential[1]: runner.token,
        "CLONEYARD_SERVER": runner.server,
        "BUILD_TAG": f"jenkins-a-job-in-a-folder-with-a-long-name-{runner.number}",
    }

    def run(step: str) -> bool:
        # Groovy joins lines that end in a backslash; any other would mean something.
        script = step.replace("\\\n", "")
        assert "\\" not in script
        return runner.run("sh", "-xe", "-c", script, **variables)

    is_well = all(run(step) for step in shell.findall(stages))
    [last] = shell.findall(post)
    return run(last) and is_well


def run_teamcity(runner: Runner) -> bool:
    """Run the `script` steps, each as a file of its own for the shell.

    Source: “Command Line” and “Build Step Execution Policies” in TeamCity's help.
    """
    parameters = {
        "env.CLONEYARD_SERVER": runner.server,
        "teamcity.build.id": str(runner.number),
    }
    text = (EXAMPLES / "teamcity.kts").read_text()
    is_well = True
    for step in text.split("script {")[1:]:
        script = step.split('"""')[1]
        assert "$" not in script  # Kotlin would put something in
        script = re.sub("%(.*?)%", lambda found: parameters[found[1]], script)
        if is_well or "executionMode = BuildStep.ExecutionMode.ALWAYS" in step:
            is_well &= runner.run("sh", "-c", script, **runner.of_all_jobs)
    return is_well


def run_buildkite(runner: Runner) -> bool:
    """Run the command of the one step, with what the upload of the file makes of it.

    Source: “Environment variable interpolation” in Buildkite's documentation.
    """
    pipeline = yaml.safe_load((EXAMPLES / "buildkite.yml").read_text())
    [step] = pipeline["steps"]
    command = step["command"].replace("$$", "\0")
    assert "$" not in command  # the upload would put something in
    variables = {**runner.of_all_jobs, "BUILDKITE_JOB_ID": str(runner.number)}
    shell = ("/bin/bash", "-e", "-c")
    return runner.run(*shell, command.replace("\0", "$"), **variables)


def run_client(runner: Runner) -> bool:
    """Run the script, where the client library is installed."""
    variables = {**runner.of_all_jobs, "BUILD_ID": str(runner.number)}
    script = str(EXAMPLES / "client.py")
    return runner.run(sys.executable, script, **variables, PYTHONPATH=str(LIBRARY))


RUNS: dict[str, Callable[[Runner], bool]] = {
    "Jenkinsfile": run_jenkins,
    "github-actions.yml": run_github,
    "gitlab-ci.yml": run_gitlab,
    "teamcity.kts": run_teamcity,
    "buildkite.yml": run_buildkite,
    "curl.sh": lambda runner: run_script(runner, "curl.sh"),
    "client.py": run_client,
    "cloneyard.sh": lambda runner: run_script(runner, "cloneyard.sh"),
}


# --- what programs on a developer's machine make of theirs


def commands_of_vscode(**inputs: str) -> dict[str, str]:
    """Return the tasks' command lines by their labels.

    Source: “Variables reference” and “Custom tasks” in VS Code's documentation.
    """
    tasks = json.loads((EXAMPLES / "vscode-tasks.json").read_text())
    assert {each["id"] for each in tasks["inputs"]} == set(inputs)
    found = {each["label"]: each["command"] for each in tasks["tasks"]}
    for name, value in inputs.items():
        found = {
            label: command.replace(f"${{input:{name}}}", value)
            for label, command in found.items()
        }
    return found


def commands_of_p4v() -> dict[str, str]:
    """Return the tools' command lines by their names."""
    tools = ElementTree.parse(EXAMPLES / "p4v-tools.xml").getroot()
    assert (tools.tag, tools.get("varName")) == (
        "CustomToolDefList",
        "customtooldeflist",
    )
    return {
        tool.findtext("Definition/Name", ""): " ".join(
            tool.findtext(f"Definition/{part}", "") for part in ("Command", "Arguments")
        )
        for tool in tools
    }


WITH_TESTS_OF_THEIR_OWN = {
    "horde": "test_horde.py",
    "jenkins": "test_jenkins_library.py",
    "slack": "test_slack.py",
    "terraform": "test_terraform.py",
}
AT_A_DESK = ("vscode-tasks.json", "p4v-tools.xml")


@pytest.fixture
def main(lab_site: Site, run_jobs: Callable[[], None]) -> Template:
    """A template of the name that the examples give."""
    return build(define_template(lab_site, name="main"), run_jobs)


@pytest.fixture
def runners(
    live_server: LiveServer, tmp_path: Path, main: Template, ci: User
) -> Callable[..., Runner]:
    """Make machines with a token for nothing but builds of “main”."""
    _, token = api_token_create(by=ci, templates=[main], purposes=["build", "ci"])
    numbers = itertools.count(1)

    def runner(*, build_ends_with: int) -> Runner:
        number = next(numbers)
        make = tmp_path / f"runner{number}" / "bin" / "make"
        make.parent.mkdir(parents=True)
        make.write_text(MAKE)
        make.chmod(0o755)
        home = make.parent.parent
        return Runner(home, live_server.url, token, number, build_ends_with)

    return runner


@pytest.mark.integration
@pytest.mark.timeout(600)  # sixteen workspaces come and go, one after the other
def test_the_examples_build_in_a_workspace_and_give_it_back(
    runners: Callable[..., Runner], worker: Child
) -> None:
    for name, build_ends_with in itertools.product(RUNS, (0, 2)):
        runner = runners(build_ends_with=build_ends_with)

        is_well = RUNS[name](runner)

        assert is_well == (build_ends_with == 0), name
        workspace = Workspace.objects.latest("pk")
        assert Workspace.objects.count() == runner.number
        assert workspace.ready_at is not None
        built = runner.made_in.read_text().splitlines()
        assert len(built) == (2 if name == "curl.sh" and is_well else 1)
        for line in built:
            assert str(workspace.path) in line, name
            assert line.endswith(f" {workspace.client_name}"), name

    ends = time.monotonic() + ENDS_WITHIN_SECONDS
    while Workspace.objects.exclude(state=Workspace.State.RETIRED).exists():
        assert time.monotonic() < ends, Workspace.objects.values_list("name", "state")
        purge_expired(now=database_now())
        time.sleep(POLL_EVERY_SECONDS)
    assert not any(workspace.path.exists() for workspace in Workspace.objects.all())


@pytest.mark.integration
def test_the_tasks_of_an_editor_get_workspaces_and_retire_them(
    live_server: LiveServer,
    tmp_path: Path,
    built_template: Template,
    alice: User,
    worker: Child,
) -> None:
    """With a template of another name: the lab has had its “main”."""
    _, token = api_token_create(by=alice)
    runner = Runner(tmp_path, live_server.url, token, number=1, build_ends_with=0)
    program = tmp_path / "bin" / "cloneyard"
    program.parent.mkdir()
    program.write_text((settings.BASE_DIR / "provisioner/cli/cloneyard.py").read_text())
    program.chmod(0o755)
    editor = program.with_name("code")
    editor.write_text('#!/bin/sh\nprintf "%s %s" "$PWD" "$*" > "$MADE_IN"\n')
    editor.chmod(0o755)

    def run(command: str) -> None:
        assert runner.run("sh", "-c", command, **runner.of_all_jobs), command

    tools = commands_of_p4v()
    run(tools["Get a workspace of main"].replace("main", built_template.name))
    run(tools["My workspaces"])
    of_p4v = Workspace.objects.get()
    tasks = commands_of_vscode(template=built_template.name, workspace=of_p4v.name)
    run(tasks.pop("Cloneyard: get a workspace and open it"))
    opened = Workspace.objects.latest("pk")
    assert opened != of_p4v
    assert runner.made_in.read_text() == f"{opened.path} --new-window ."
    for command in tasks.values():
        run(command)

    of_p4v.refresh_from_db()
    assert of_p4v.state in (Workspace.State.TRASHED, Workspace.State.RETIRED)


def test_every_example_is_run_and_named() -> None:
    files = {path.name for path in EXAMPLES.iterdir()}
    page = (EXAMPLES / "README.md").read_text()

    assert files == {"README.md", *RUNS, *AT_A_DESK, *WITH_TESTS_OF_THEIR_OWN}
    assert all(f"]({name})" in page for name in (*RUNS, *AT_A_DESK))
    assert all(f"]({name}/" in page for name in WITH_TESTS_OF_THEIR_OWN)
    assert all(
        Path(__file__).with_name(f).exists() for f in WITH_TESTS_OF_THEIR_OWN.values()
    )
