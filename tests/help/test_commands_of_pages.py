"""Each block of commands in the documentation is run, or says why it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, manage
from provisioner.workspaces.models import Workspace
from tests.support.documents import (
    BY_TESTS_OF_THEIR_OWN,
    ON_A_HOST_OF_ITS_OWN,
    Block,
    Reader,
    blocks_of,
    reading,
)
from tests.support.factories import UserFactory
from tests.support.lab import Lab

ROOT: Path = settings.BASE_DIR
COMMANDS = {"sh", "bash", "shell", "console"}
NOT_RUN = "not-run:"
WITHIN_SECONDS = 120
SERVER = "https://cloneyard.example.com"
RUN_HERE = {
    "README.md",
    "docs/api.md",
    "docs/cli.md",
    "docs/qualification.md",
    "docs/work.md",
}
RUN_ELSEWHERE = {
    page: {
        *ON_A_HOST_OF_ITS_OWN.get(page, ()),
        *BY_TESTS_OF_THEIR_OWN.get(page, ()),
    }
    for page in (*ON_A_HOST_OF_ITS_OWN, *BY_TESTS_OF_THEIR_OWN)
}


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands_in(page: Path) -> list[Block]:
    return [block for block in blocks_of(page) if block.language in COMMANDS]


def to_run(page: Path) -> list[Block]:
    return [block for block in commands_in(page) if NOT_RUN not in block.words]


def test_every_block_says_what_it_is() -> None:
    blocks = [(page, block) for page in pages() for block in blocks_of(page)]
    assert len(blocks) > 30
    silent = [f"{name_of(page)}:{b.line}" for page, b in blocks if not b.language]
    assert silent == []


def test_every_block_of_commands_is_run_or_says_why_not() -> None:
    left = {name_of(page) for page in pages() if to_run(page)}
    assert left == RUN_HERE | set(RUN_ELSEWHERE)
    for page in pages():
        for block in commands_in(page):
            if NOT_RUN in block.words:
                reason = block.words[block.words.index(NOT_RUN) + 1 :]
                assert len(reason) >= 3, f"{name_of(page)}:{block.line}"


@pytest.mark.parametrize("page", RUN_ELSEWHERE)
def test_no_section_with_commands_is_left_out_elsewhere(page: str) -> None:
    found = {block.section for block in to_run(ROOT / page)}
    assert found == RUN_ELSEWHERE[page]


@pytest.fixture
def reader(
    live_server: LiveServer,
    lab: Lab,
    jobs_emptied: None,
    published_template: Template,
    tmp_path: Path,
) -> Iterator[Reader]:
    """Give somebody a shell with a token, at a server whose worker works."""
    alice: User = UserFactory.create(username="alice", uid=20001, gid=20000)
    _, token = token_create(by=alice)
    home = tmp_path / "home"
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    of_the_server = {
        "DATABASE_NAME": str(connection.settings_dict["NAME"]),
        "ONTAP_PASSWORD": lab.ontap["password"],
        "P4PASSWD": lab.perforce["password"],
        "LOG_DIR": str(lab.root / "logs"),
    }
    worker = Child(
        "worker", manage("worker"), log_dir=tmp_path, environment=of_the_server
    )
    environment = {
        "HOME": str(home),
        "PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "CLONEYARD_TOKEN": token,
        "BUILD_TAG": "nightly-1",
        **of_the_server,
    }
    try:
        with reading(home, environment) as reader:
            yield reader
    finally:
        worker.stop()


@pytest.mark.integration
@pytest.mark.django_db(transaction=True)
def test_what_developers_and_jobs_type_works(
    reader: Reader, live_server: LiveServer, published_template: Template
) -> None:
    template = published_template.name
    readme, api, cli, qualification, work = (ROOT / name for name in sorted(RUN_HERE))

    reader.run(
        readme,
        to_run(readme),
        instead={
            SERVER: live_server.url,
            "cloneyard login ": f"export CLONEYARD_SERVER={live_server.url} ",
            "cloneyard new main": f"cloneyard new {template} --name by-hand --lease 4h",
            " NAME": " by-hand",
        },
        seconds=WITHIN_SECONDS,
    )
    [made] = reader.run(
        api,
        to_run(api),
        instead={SERVER: live_server.url, '"main"': f'"{template}"'},
        seconds=WITHIN_SECONDS,
    )
    completed = [block for block in to_run(cli) if "completion" in block.text]
    assert completed == to_run(cli)
    reader.run(cli, completed, instead={"source <(cloneyard completion zsh)": ":"})

    [accepted] = reader.run(
        qualification,
        to_run(qualification),
        instead={
            "python manage.py": " ".join(manage()),
            "--site munich --server production": "--site lab --server lab",
        },
        seconds=WITHIN_SECONDS,
    )
    told = reader.run(
        work,
        to_run(work),
        instead={
            SERVER: live_server.url,
            "cloneyard login": f"export CLONEYARD_SERVER={live_server.url}",
            "cloneyard new main": f"cloneyard new {template}",
        },
        seconds=WITHIN_SECONDS,
    )

    assert "\nTrial\n" in accepted
    assert template in told[0]
    assert "fix-4711" in told[1]
    assert '"path"' in made
    by_hand = Workspace.objects.get(name="by-hand")
    assert by_hand.state in {Workspace.State.TRASHED, Workspace.State.RETIRED}
    assert Workspace.objects.filter(purpose=Workspace.Purpose.CI).count() == 1
    fish = reader.home / ".config/fish/completions/cloneyard.fish"
    assert "complete -c cloneyard" in fish.read_text()
