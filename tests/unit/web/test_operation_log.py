from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from provisioner.workspaces.logs import PIECE_BYTES
from provisioner.workspaces.models import Operation, Workspace
from tests.unit.web.conftest import end

HTMX = {"HX-Request": "true"}


@pytest.fixture
def log(build: Operation, settings, tmp_path: Path) -> Path:
    """The file a build prints into; there is something in it."""
    settings.LOG_DIR = tmp_path
    path = build.steps.get(name="build").log_path
    path.write_text("one\n\x1b[31mtwo\x1b[0m <b>\n")
    return path


def address_of(build: Operation) -> str:
    return f"/operations/{build.pk}/log/"


def test_everybody_reads_what_was_printed(
    as_carol: Client, build: Operation, log: Path
) -> None:
    page = as_carol.get(address_of(build)).text
    assert "one\ntwo &lt;b&gt;\n" in page
    assert "Running" in page


def test_it_follows_a_build_under_way(
    as_alice: Client, build: Operation, log: Path
) -> None:
    page = as_alice.get(address_of(build)).text
    end_of_it = log.stat().st_size
    assert f'hx-get="{address_of(build)}?offset={end_of_it}"' in page
    assert '<noscript><meta http-equiv="refresh"' in page


def test_htmx_gets_what_came_since(
    as_alice: Client, build: Operation, log: Path
) -> None:
    read = log.stat().st_size
    with log.open("a") as more:
        more.write("three\n")
    answer = as_alice.get(f"{address_of(build)}?offset={read}", headers=HTMX)
    assert '<span class="log-piece">three\n</span>' in answer.text
    assert f"?offset={read + 6}" in answer.text
    assert "one" not in answer.text
    assert "HX-Request" in answer["Vary"]


def test_following_ends_with_the_build_and_says_how(
    as_alice: Client, build: Operation, log: Path
) -> None:
    end(build, Operation.State.SUCCEEDED)
    answer = as_alice.get(f"{address_of(build)}?offset=0", headers=HTMX)
    assert "hx-trigger" not in answer.text
    assert "innerHTML:#log-state" in answer.text
    assert "Succeeded" in answer.text


def test_following_goes_on_until_the_end_is_read(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("line\n" * PIECE_BYTES)
    end(build, Operation.State.SUCCEEDED)
    answer = as_alice.get(f"{address_of(build)}?offset=0", headers=HTMX)
    assert "hx-trigger" in answer.text


def test_a_long_log_is_read_in_pieces_without_scripts(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("".join(f"line {n}\n" for n in range(20_000)))
    last = as_alice.get(address_of(build)).text
    assert "line 19999\n" in last
    assert "line 1\n" not in last
    assert "Earlier lines" in last
    first = as_alice.get(f"{address_of(build)}?offset=0").text
    assert "line 1\n" in first
    assert "Later lines" in first
    assert "hx-trigger" not in first


@pytest.mark.parametrize("offset", ["-1", "x", "999999999999999999999"])
def test_an_offset_that_is_none_shows_the_last_lines(
    as_alice: Client, build: Operation, log: Path, offset: str
) -> None:
    assert "one" in as_alice.get(f"{address_of(build)}?offset={offset}").text


def test_before_anything_is_printed_it_waits(
    as_alice: Client, build: Operation, settings, tmp_path: Path
) -> None:
    settings.LOG_DIR = tmp_path
    assert "?offset=0" in as_alice.get(address_of(build)).text
    end(build, Operation.State.FAILED, code="x", message="x")
    page = as_alice.get(address_of(build)).text
    assert "nothing was printed" in page
    assert "hx-trigger" not in page


def test_all_of_it_can_be_downloaded(
    as_alice: Client, build: Operation, log: Path
) -> None:
    answer = as_alice.get(f"/operations/{build.pk}/log.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    assert b"".join(answer.streaming_content) == log.read_bytes()


def test_nothing_to_download_is_not_found(
    as_alice: Client, build: Operation, settings, tmp_path: Path
) -> None:
    settings.LOG_DIR = tmp_path
    assert as_alice.get(f"/operations/{build.pk}/log.txt").status_code == 404


@pytest.mark.parametrize("page", ["log/", "log.txt"])
def test_only_builds_have_logs(
    as_alice: Client, workspace: Workspace, page: str
) -> None:
    operation = workspace.operations.get()
    assert as_alice.get(f"/operations/{operation.pk}/{page}").status_code == 404
    assert as_alice.get(f"/operations/999999/{page}").status_code == 404


@pytest.mark.parametrize("page", ["log/", "log.txt"])
def test_a_post_and_nobody_are_refused(
    as_alice: Client, as_nobody: Client, build: Operation, page: str
) -> None:
    address = f"/operations/{build.pk}/{page}"
    assert as_alice.post(address).status_code == 405
    assert as_nobody.get(address)["Location"].startswith("/login/")
