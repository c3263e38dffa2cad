"""The step of the Jenkins shared library, by the Groovy that Jenkins runs.

Jenkins transforms a pipeline so that it outlives a restart, which is not done here: the
step keeps nothing but texts, lists and maps.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.people.actions.tokens import api_token_create
from provisioner.workspaces.models import Workspace

ENDS_WITHIN_SECONDS = 120
VARS: Path = settings.BASE_DIR / "docs/examples/jenkins/vars"
PIPELINE = Path(__file__).parent / "jenkins" / "pipeline.groovy"
# Debian's package is of 2.4.21, as is Jenkins' own.
GROOVY = Path("/usr/share/java/groovy-all.jar")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.integration,
    pytest.mark.skipif(
        not GROOVY.exists() or shutil.which("java") is None,
        reason="There is no Groovy here: see .ci/system-packages.",
    ),
]

GOING = (Workspace.State.RETIRING, Workspace.State.TRASHED, Workspace.State.RETIRED)
Build = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def build(
    live_server: LiveServer, tmp_path: Path, published_template: Template, ci: User
) -> Build:
    """Run pipelines, with a token for builds of one template."""
    _, token = api_token_create(
        by=ci, templates=[published_template], purposes=["build"]
    )

    def build(script: str) -> subprocess.CompletedProcess[str]:
        jenkinsfile = tmp_path / "Jenkinsfile"
        jenkinsfile.write_text(script.replace("MAIN", published_template.name))
        return subprocess.run(
            [
                *("java", f"-Dsecret.cloneyard-token={token}", "-cp", GROOVY),
                *("groovy.ui.GroovyMain", PIPELINE, VARS, jenkinsfile),
                tmp_path / "job@tmp",
            ],
            env={
                "HOME": str(tmp_path),
                "PATH": "/usr/bin:/bin",
                "CLONEYARD_SERVER": live_server.url,
                "BUILD_TAG": "jenkins-a-job-in-a-folder-with-a-long-name-7",
                "MARK": str(tmp_path / "mark"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_WITHIN_SECONDS,
        )

    return build


WORKS = """
withCloneyardWorkspace(template: 'MAIN') { workspace ->
    sh '''
        ls "$CLONEYARD_PATH/src"
        told="${CLONEYARD_TOKEN-none} ${P4CLIENT:-none} $P4PORT $CLONEYARD_PATH"
        echo "$told" > "$MARK"
    '''
    echo("in ${workspace.name}")
}
"""
FAILS = """
withCloneyardWorkspace(template: 'MAIN', key: 'second', lease: '2h') { sh 'exit 3' }
"""
FAILS_AND_KEEPS = FAILS.replace("lease: '2h'", "keepOnFailure: true")


def test_a_block_has_a_workspace_and_gives_it_back(
    build: Build, worker: Child, tmp_path: Path
) -> None:
    works = build(WORKS)
    assert works.returncode == 0, works.stdout + works.stderr
    workspace = Workspace.objects.get()
    assert f"in {workspace.name}" in works.stdout
    told = (tmp_path / "mark").read_text().split()
    p4port = workspace.site.perforce_server.p4port
    assert told == ["none", "none", p4port, str(workspace.path)]
    assert workspace.state in GOING

    keeps = build(FAILS_AND_KEEPS)
    assert keeps.returncode == 1
    assert "ERROR: script returned exit code 3" in keeps.stdout
    assert "is kept until its lease ends." in keeps.stdout
    kept = Workspace.objects.latest("pk")
    assert (kept.pk != workspace.pk, kept.state) == (True, Workspace.State.READY)

    # The same build once more: its key gives the same workspace, which goes now.
    fails = build(FAILS.replace("lease: '2h'", "keepOnFailure: false"))
    assert fails.returncode == 1
    assert "ERROR: script returned exit code 3" in fails.stdout
    kept.refresh_from_db()
    assert kept.state in GOING
    assert Workspace.objects.count() == 2


def test_what_cannot_be_done_is_said_and_leaves_nothing(build: Build) -> None:
    unknown = build("withCloneyardWorkspace(template: 'MAIN', leese: '1h') { }")
    assert "ERROR: withCloneyardWorkspace does not know leese." in unknown.stdout
    empty = build("withCloneyardWorkspace(lease: '1h') { }")
    assert "ERROR: withCloneyardWorkspace needs a template." in empty.stdout
    no_secret = build("withCloneyardWorkspace(template: 'MAIN', credentialsId: 'x') {}")
    assert "Could not find credentials entry with ID 'x'" in no_secret.stdout
    out_of_scope = build(
        "withCloneyardWorkspace(template: 'MAIN', purpose: 'ci') { sh 'touch $MARK' }"
    )
    assert "outside the scope of this token: the purpose “ci”" in out_of_scope.stderr
    assert "ERROR: script returned exit code 3" in out_of_scope.stdout
    assert not Workspace.objects.exists()


def test_what_a_jenkinsfile_says_is_no_command_of_a_shell(
    build: Build, tmp_path: Path
) -> None:
    says = 'x"; touch "$MARK"; $(touch "$MARK") `touch "$MARK"`'

    ran = build(f"withCloneyardWorkspace(template: '{says}', lease: '{says}') {{ }}")

    assert ran.returncode == 1
    assert "is not a span of time" in ran.stderr
    assert not (tmp_path / "mark").exists()
