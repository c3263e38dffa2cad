from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.steps.commands import Built
from provisioner.engine import states as engine_states
from provisioner.engine.logs.reading import FOLLOWED_BYTES, PIECE_BYTES
from provisioner.engine.models import Operation, Step
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.browsers import downloaded, is_polling
from tests.support.factories import purge
from tests.support.workspaces import end

HTMX = {"HX-Request": "true"}


def printed(answer: str) -> str:
    """Return what a page or a piece shows of a log, as text."""
    shown = answer.partition('<pre class="log')[2] or answer
    shown = shown.partition("</pre>")[0].partition("<div hx-swap-oob")[0]
    return html.unescape(re.sub(r"<[^>]*>", "", "<" + shown))


@pytest.fixture
def log(build: Operation, settings: Settings, tmp_path: Path) -> Path:
    """The file a build prints into; there is something in it, and it goes on."""
    settings.LOG_DIR = tmp_path
    path = at_work(build).log_path
    path.write_text("one\n\x1b[31mtwo\x1b[0m <b>\n")
    return path


def at_work(operation: Operation, name: str = "build") -> Step:
    """Let a worker be at a step."""
    step = operation.steps.get(name=name)
    if step.state == Step.State.WAITING:
        engine_states.queue_step(step, job_id=1)
    engine_states.start_step(step)
    return step


@pytest.fixture
def purged_log(
    workspace: Workspace, alice: User, settings: Settings, tmp_path: Path
) -> Operation:
    """How a workspace was made that is destroyed by now; a step of it has printed."""
    settings.LOG_DIR = tmp_path
    making = workspace.operations.get()
    at_work(making, "owner").log_path.write_text("re-owned\n")
    end(making, Operation.State.SUCCEEDED)
    workspace.refresh_from_db()
    retirement = workspace_retire(by=alice, workspace=workspace)
    end(retirement, Operation.State.SUCCEEDED)
    workspace.refresh_from_db()
    purge(workspace)
    return making


def address_of(operation: Operation, step: str = "build") -> str:
    return f"/operations/{operation.pk}/{step}/log/"


def finish(build: Operation) -> None:
    engine_states.finish_step(build.steps.get(name="build"), result=Built(1.0))


def test_everybody_reads_what_was_printed(
    as_carol: Client, build: Operation, log: Path
) -> None:
    page = as_carol.get(address_of(build)).text
    assert printed(page).startswith("one\ntwo <b>\n")
    assert "&lt;b&gt;" in page
    assert "Running" in page
    assert "kept for good" in page


def test_it_follows_a_build_under_way(
    as_alice: Client, build: Operation, log: Path
) -> None:
    page = as_alice.get(address_of(build)).text
    end_of_it = log.stat().st_size
    assert f'hx-get="{address_of(build)}?offset={end_of_it}&amp;number=3' in page
    assert "&amp;attempt=1" in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "data-follow" in page


def test_htmx_gets_what_came_since(
    as_alice: Client, build: Operation, log: Path
) -> None:
    read = log.stat().st_size
    with log.open("a") as more:
        more.write("three\nfou")
    answer = as_alice.get(f"{address_of(build)}?offset={read}", headers=HTMX)
    assert printed(answer.text) == "three\nfou"
    assert f"?offset={read + 6}&amp;" in answer.text
    assert "fou" in answer.text.partition('id="log-tail"')[2]
    assert "one" not in answer.text
    assert "HX-Request" in answer["Vary"]


def test_following_ends_with_the_step_and_says_how(
    as_alice: Client, build: Operation, log: Path
) -> None:
    with log.open("a") as more:
        more.write("the end")
    finish(build)
    answer = as_alice.get(f"{address_of(build)}?offset=0", headers=HTMX)
    assert not is_polling(answer.text)
    assert "the end\nEnded after" in printed(answer.text)
    assert "innerHTML:#log-state" in answer.text
    assert "Done" in answer.text
    assert build.state == Operation.State.RUNNING


def test_following_goes_on_until_the_end_is_read(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("line\n" * PIECE_BYTES)
    finish(build)
    answer = as_alice.get(f"{address_of(build)}?offset=0", headers=HTMX)
    assert 'hx-trigger="load delay:' in answer.text


def test_following_leaves_out_what_nobody_could_read(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("line\n" * FOLLOWED_BYTES)
    answer = as_alice.get(f"{address_of(build)}?offset=0", headers=HTMX)
    assert "were left out here" in answer.text
    assert f"?offset={log.stat().st_size}&amp;" in answer.text


def test_following_sees_a_new_attempt(
    as_alice: Client, build: Operation, log: Path
) -> None:
    engine_states.retry_step_later(
        build.steps.get(name="build"),
        code="x",
        message="Gone.",
        retry_at=build.created_at,
    )
    at_work(build)
    log.write_text("again, and longer than before\n" * 9)
    answer = as_alice.get(f"{address_of(build)}?offset=9&attempt=1", headers=HTMX)
    assert "restarted" in answer.text
    assert "again, and longer" in answer.text
    assert "&amp;attempt=2" in answer.text


def test_a_long_log_is_read_in_pieces_without_scripts(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("".join(f"line {n}\n" for n in range(20_000)))
    last = as_alice.get(address_of(build)).text
    assert "line 19999\n" in printed(last)
    assert "line 1\n" not in printed(last)
    assert re.search(r'id="L20000">.*line 19999', last)
    earlier = re.search(r'href="(\?before=\d+)">Earlier lines', last)
    assert earlier is not None
    page = as_alice.get(address_of(build) + earlier[1]).text
    assert "line 19999\n" not in printed(page)
    assert "Later lines" in page
    first = as_alice.get(f"{address_of(build)}?offset=0").text
    assert "line 1\n" in printed(first)
    assert "Later lines" in first
    for elsewhere in (page, first):
        assert not is_polling(elsewhere)
        assert "data-follow" not in elsewhere
        assert "http-equiv" not in elsewhere


def test_lines_with_a_text_are_found_and_seen_among_others(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("fine\n" * 50 + "a <b> ERROR\n" + "fine\n" * 50)
    page = as_alice.get(f"{address_of(build)}?q=error").text
    assert "1 line with “error”" in page
    assert "a &lt;b&gt; <mark>ERROR</mark>" in page
    assert 'href="?line=51#L51"' in page
    there = as_alice.get(f"{address_of(build)}?line=51").text
    assert "fine\na <b> ERROR\nfine\n" in printed(there)
    assert re.search(r'id="L51">.*a &lt;b&gt; ERROR', there)
    assert 'id="L50"' in there


def test_a_search_without_a_result_says_so_and_one_too_long_is_refused(
    as_alice: Client, build: Operation, log: Path, settings: Settings, tmp_path: Path
) -> None:
    assert "0 lines with" in as_alice.get(f"{address_of(build)}?q=nowhere").text
    page = as_alice.get(f"{address_of(build)}?q={'x' * 201}").text
    assert "at most 200 characters" in page
    assert "one\ntwo" in printed(page)
    log.unlink()
    assert "No output" in as_alice.get(f"{address_of(build)}?q=one").text


@pytest.mark.parametrize(
    "name", ["offset", "before", "line", "start", "attempt", "number", "wrap"]
)
@pytest.mark.parametrize("value", ["-1", "x", "999999999999999999999", ""])
def test_an_offset_that_is_none_shows_the_last_lines(
    as_alice: Client, build: Operation, log: Path, name: str, value: str
) -> None:
    assert "one" in as_alice.get(f"{address_of(build)}?{name}={value}").text


def test_a_line_that_is_not_there_is_said_to_be_missing(
    as_alice: Client, build: Operation, log: Path
) -> None:
    page = as_alice.get(f"{address_of(build)}?line=4711").text
    assert "The log does not have line 4711." in page
    assert "one\ntwo" in printed(page)


def test_colors_of_a_terminal_are_shown(
    as_alice: Client, build: Operation, log: Path
) -> None:
    page = as_alice.get(address_of(build)).text
    assert '<span class="ansi-red">two</span> &lt;b&gt;' in page


def test_following_says_how_long_and_how_much_by_now(
    as_alice: Client, build: Operation, log: Path
) -> None:
    log.write_text("x" * 5_000_000 + "\n")
    answer = as_alice.get(f"{address_of(build)}?offset=5000001", headers=HTMX).text
    assert 'hx-swap-oob="innerHTML:#log-facts"' in answer
    assert "Running for" in answer
    assert ">4.8 MiB</data> so far" in answer
    log.write_text("x" * 9_000_000 + "\n")
    states = engine_states
    step = build.steps.get(name="build")
    states.note_exit_code(step, 2)
    states.fail_step(step, code="build_failed", message="It failed.")
    answer = as_alice.get(f"{address_of(build)}?offset=9000001", headers=HTMX).text
    assert ">8.6 MiB</data>, kept for good" in answer
    assert answer.count("Ended with exit code 2 after") == 2
    assert "so far" not in answer
    assert not is_polling(answer)


def test_following_numbers_lines_as_the_whole_log_does(
    as_alice: Client, build: Operation, log: Path
) -> None:
    read = log.stat().st_size
    with log.open("a") as more:
        more.write("three\n")
    for number in ("&number=3", "", "&number=0"):
        address = f"{address_of(build)}?offset={read}&attempt=1{number}"
        answer = as_alice.get(address, headers=HTMX).text
        assert re.search(r'id="L3">.*three', answer)
        assert "&amp;number=4&amp;" in answer


def test_the_first_error_is_one_click_away(
    as_alice: Client, build: Operation, log: Path
) -> None:
    to_error = f"/operations/{build.pk}/build/log/error/"
    assert f'href="{to_error}"' in as_alice.get(address_of(build)).text
    answer = as_alice.get(to_error, follow=True)
    assert answer.redirect_chain[0][0] == address_of(build)
    assert "No error line so far." in answer.text
    log.write_text("fine\n" * 9 + "a.c:1:2: error: here\n" + "fine\n")
    assert as_alice.get(to_error)["Location"] == f"{address_of(build)}?line=10#L10"
    template = build.subject.template
    template.error_patterns = "^no such word\n\n^FINE$"
    template.save()
    assert as_alice.get(to_error)["Location"] == f"{address_of(build)}?line=1#L1"
    step = build.steps.get(name="build")
    engine_states.fail_step(step, code="x", message="It failed.")
    assert f'href="{to_error}"' in as_alice.get(f"/operations/{build.pk}/").text


def test_long_lines_are_wrapped_until_somebody_says_otherwise(
    as_alice: Client, build: Operation, log: Path
) -> None:
    assert 'class="log"' in as_alice.get(address_of(build)).text
    answer = as_alice.get(f"{address_of(build)}?line=2&wrap=off")
    assert answer["Location"] == f"{address_of(build)}?line=2"
    page = as_alice.get(address_of(build)).text
    assert 'class="log log-unwrapped"' in page
    assert 'href="?wrap=on"' in page
    as_alice.get(f"{address_of(build)}?wrap=on")
    assert 'class="log"' in as_alice.get(address_of(build)).text


def test_before_anything_is_printed_it_waits(
    as_alice: Client, build: Operation, settings: Settings, tmp_path: Path
) -> None:
    settings.LOG_DIR = tmp_path
    assert "?offset=0" in as_alice.get(address_of(build)).text
    first = as_alice.get(f"{address_of(build)}?offset=0&attempt=0", headers=HTMX).text
    assert "restarted" not in first
    end(build, Operation.State.FAILED, code="x", message="x")
    page = as_alice.get(address_of(build)).text
    assert "No output: the step did not start" in page
    assert not is_polling(page)


def test_any_step_that_printed_something_has_a_page(
    as_alice: Client, build: Operation, log: Path
) -> None:
    verify = at_work(build, "verify")
    verify.log_path.write_text("7 tests passed\n")
    assert "7 tests passed" in as_alice.get(address_of(build, "verify")).text
    page = as_alice.get(address_of(build)).text
    assert f'href="{address_of(build, "verify")}"' in page
    steps = as_alice.get(f"/operations/{build.pk}/").text
    assert f'href="{address_of(build, "verify")}"' in steps
    assert f'href="{address_of(build, "mount")}"' not in steps


def test_the_log_of_an_operation_is_that_of_the_step_in_question(
    as_alice: Client, build: Operation, log: Path
) -> None:
    def sent_to() -> str:
        return as_alice.get(f"/operations/{build.pk}/log/")["Location"]

    finish(build)
    verify = at_work(build, "verify")
    assert sent_to() == address_of(build)
    verify.log_path.write_text("x")
    assert sent_to() == address_of(build, "verify")
    engine_states.fail_step(verify, code="x", message="x")
    assert sent_to() == address_of(build, "verify")
    build.steps.filter(name="build").update(has_rejected=True)
    assert sent_to() == address_of(build)
    log.unlink()
    verify.log_path.unlink()
    assert sent_to() == address_of(build)


def test_all_of_it_can_be_downloaded(
    as_alice: Client, build: Operation, log: Path
) -> None:
    answer = as_alice.get(f"/operations/{build.pk}/build/log.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert f"-build-{build.pk}.log.txt" in answer["Content-Disposition"]
    assert "attachment" in answer["Content-Disposition"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert downloaded(answer) == log.read_bytes()


def test_every_account_reads_the_log_of_a_build(
    as_carol: Client, build: Operation, log: Path
) -> None:
    address = f"/operations/{build.pk}/build/log.txt"
    assert downloaded(as_carol.get(address)) == log.read_bytes()


def test_a_download_of_a_log_has_a_place_until_it_is_sent(
    as_alice: Client, build: Operation, log: Path, settings: Settings
) -> None:
    settings.API_WAITS_PER_PERSON = 1
    address = f"/operations/{build.pk}/build/log.txt"
    first = as_alice.get(address)
    refused = as_alice.get(address)
    downloaded(first)

    assert refused.status_code == 429
    assert "Too many downloads are running." in refused.text
    assert downloaded(as_alice.get(address)) == log.read_bytes()


def test_nothing_to_download_is_not_found(
    as_alice: Client, build: Operation, settings: Settings, tmp_path: Path
) -> None:
    settings.LOG_DIR = tmp_path
    assert as_alice.get(f"/operations/{build.pk}/build/log.txt").status_code == 404


@pytest.mark.parametrize("page", ["log/", "log.txt"])
def test_a_log_is_for_those_who_may_see_the_operation(
    as_alice: Client,
    as_carol: Client,
    workspace: Workspace,
    settings: Settings,
    tmp_path: Path,
    page: str,
) -> None:
    settings.LOG_DIR = tmp_path
    operation = workspace.operations.get()
    at_work(operation, "owner").log_path.write_text("hers\n")
    address = f"/operations/{operation.pk}/owner/{page}"
    answer = as_alice.get(address)
    assert answer.status_code == 200
    assert b"hers" in b"".join(answer)
    assert as_carol.get(address).status_code == 404
    error = f"/operations/{operation.pk}/owner/log/error/"
    assert as_carol.get(error).status_code == 404
    assert as_carol.get(f"/operations/{operation.pk}/log/").status_code == 404
    assert as_carol.get(f"/operations/{operation.pk}/").status_code == 404


@pytest.mark.parametrize("page", ["log/", "log.txt", "log/error/"])
def test_what_is_no_step_is_not_found(
    as_alice: Client, build: Operation, page: str
) -> None:
    for step in ("nothing", "..", "build.pid", "%2e%2e"):
        address = f"/operations/{build.pk}/{step}/{page}"
        assert as_alice.get(address).status_code == 404
    assert as_alice.get(f"/operations/999999/build/{page}").status_code == 404


@pytest.mark.parametrize(
    "page", ["log/", "build/log/", "build/log.txt", "build/log/error/", ""]
)
def test_a_post_and_nobody_are_refused(
    as_alice: Client, as_nobody: Client, build: Operation, page: str
) -> None:
    address = f"/operations/{build.pk}/{page}"
    assert as_alice.post(address).status_code == 405
    assert as_nobody.get(address)["Location"].startswith("/login/")


# --- the page of an operation


def test_an_operation_shows_its_steps_while_they_move(
    as_alice: Client, build: Operation, log: Path
) -> None:
    engine_states.record_progress(
        build.steps.get(name="build"), {"text": "12 MiB of 300 MiB, about 3 min left"}
    )
    page = as_alice.get(f"/operations/{build.pk}/").text
    assert "about 3 min left" in page
    assert f'hx-get="/operations/{build.pk}/?said=' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    moving = as_alice.get(f"/operations/{build.pk}/", headers=HTMX).text
    assert moving.lstrip().startswith('<article id="operation"')
    assert "hx-swap-oob" in moving


def test_an_operation_that_ended_says_how(as_alice: Client, build: Operation) -> None:
    end(build, Operation.State.FAILED, code="x", message="The volume is full.")
    page = as_alice.get(f"/operations/{build.pk}/").text
    assert "The volume is full." in page
    assert not is_polling(page)


def test_an_operation_on_a_workspace_leads_to_it(
    as_alice: Client, workspace: Workspace
) -> None:
    page = as_alice.get(f"/operations/{workspace.operations.get().pk}/").text
    assert f'href="/workspaces/{workspace.pk}/"' in page


def test_its_owner_reads_what_a_workspace_printed_after_it_is_destroyed(
    as_alice: Client, as_carol: Client, purged_log: Operation
) -> None:
    ready = purged_log.subject.workspace
    ready.refresh_from_db()
    assert ready.state == Workspace.State.RETIRED
    addresses = (address_of(purged_log, "owner"), f"/operations/{purged_log.pk}/")

    said = [as_alice.get(address) for address in addresses]

    assert "re-owned\n" in said[0].text
    assert "Make it yours" in said[1].text
    assert [as_carol.get(address).status_code for address in addresses] == [404, 404]
    assert "Retired" in as_alice.get(f"/workspaces/{ready.pk}/").text
