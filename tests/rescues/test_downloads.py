"""What was rescued is read by its owner and administrators, from a host of the site."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import shutil
import signal
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test import Client
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.demo.processes import Child
from provisioner.gateways.hosts.rescue_archive import ArchiveEntry
from provisioner.lib.refusals import NotAllowed
from provisioner.rescues import reading
from provisioner.rescues.actions import rescue_contents, rescue_download
from provisioner.rescues.models import RescuePiece, RescueRead
from provisioner.rescues.reading import WINDOW_BYTES, DownloadBroken, Reader
from provisioner.rescues.refusals import NoHostAnswers, NothingArchived
from provisioner.rescues.sweeps import sweep_rescue_reads
from provisioner.workspaces.actions.sharing import workspace_share
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.browsers import downloaded
from tests.support.factories import UserFactory
from tests.support.queued_steps import worker_that_serves_everything
from tests.support.requests import workspace_create
from tests.support.rescue_archives import UID
from tests.support.rescues import (
    StartHost,
    area,
    host,
    kept_host,
    no_host,
    rescue,
    rescue_of,
    start_host,
    warm_host,
)

__all__ = [
    "area",
    "host",
    "kept_host",
    "no_host",
    "rescue",
    "start_host",
    "warm_host",
]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="Uids are for root to give.")


def page_of(rescue: Rescue) -> str:
    return f"/workspaces/{rescue.workspace_id}/rescues/{rescue.pk}/"


def api_of(rescue: Rescue) -> str:
    return f"/api/v1/workspaces/{rescue.workspace_id}/rescues"


def tar_of(rescue: Rescue) -> Path:
    return Path(rescue.directory) / "work.tar"


def nothing_is_left() -> bool:
    return not RescueRead.objects.exists() and not RescuePiece.objects.exists()


@pytest.fixture
def big(workspace: Workspace, area: Path) -> Rescue:
    """More than is ever under way at a time, and no two pieces of it are the same."""
    with (area / "clone/big").open("wb") as file:
        for number in range(48):
            file.write(bytes([number]) * (1024 * 1024))
    entries = [ArchiveEntry(path="big", kind="untracked")]
    return rescue_of(workspace, entries, area=area)


# --- who may, and what they get


@pytest.mark.parametrize("who", ["alice", "admin"])
def test_the_owner_and_administrators_download_it_from_the_page(
    who: str, request: pytest.FixtureRequest, rescue: Rescue, host: Child
) -> None:
    browser: Client = request.getfixturevalue(f"as_{who}")

    workspace = browser.get(f"/workspaces/{rescue.workspace_id}/").text
    assert f'href="{page_of(rescue)}"' in workspace
    page = browser.get(page_of(rescue)).text
    assert f'href="{page_of(rescue)}download/"' in page
    answer = browser.get(f"{page_of(rescue)}download/")

    assert answer["Content-Type"] == "application/x-tar"
    assert answer["Content-Length"] == str(tar_of(rescue).stat().st_size)
    assert "attachment" in answer["Content-Disposition"]
    assert f"{rescue.workspace.name}-" in answer["Content-Disposition"]
    sent = downloaded(answer)
    answer.close()
    assert sent == tar_of(rescue).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(sent)) as archive:
        assert "src/notes.txt" in archive.getnames()
    event = Event.objects.get(kind="rescue_downloaded")
    assert (event.actor_name, event.workspace) == (who, rescue.workspace)
    assert rescue.directory in event.message
    assert event.data == {"rescue": rescue.pk, "bytes": len(sent)}
    assert nothing_is_left()


def test_nobody_else_learns_of_it(
    rescue: Rescue,
    alice: User,
    carol: User,
    as_nobody: Client,
    api_as_nobody: APIClient,
    host: Child,
) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    bob: User = UserFactory.create(team=alice.team)
    files = f"{api_of(rescue)}/{rescue.pk}/files"
    pages = (page_of(rescue), f"{page_of(rescue)}download/")
    apis = (api_of(rescue), files, f"{api_of(rescue)}/{rescue.pk}/archive")
    assert {as_nobody.get(page).status_code for page in pages} == {302}
    assert {api_as_nobody.get(api).status_code for api in apis} == {401}
    stranger, mate = Client(), Client()
    stranger.force_login(carol)
    mate.force_login(bob)
    for address in (*pages, *apis):
        assert stranger.get(address).status_code == 404
        assert mate.get(address).status_code == 403
    workspace_share(by=alice, workspace=rescue.workspace, person="carol")
    for address in (*pages, *apis):
        assert stranger.get(address).status_code == 403
    seen = stranger.get(f"/workspaces/{rescue.workspace_id}/").text
    assert page_of(rescue) not in seen
    with pytest.raises(NotAllowed):
        rescue_download(by=bob, rescue=rescue)
    with pytest.raises(NotAllowed):
        rescue_contents(by=carol, rescue=rescue)
    assert not Event.objects.filter(kind="rescue_downloaded").exists()


def test_scripts_list_and_download_it(
    rescue: Rescue, api_as_alice: APIClient, host: Child
) -> None:
    [told] = api_as_alice.get(api_of(rescue)).json()["results"]
    assert told["id"] == rescue.pk
    assert (told["has_archive"], told["archived_files"]) == (True, 3)

    files = api_as_alice.get(f"{api_of(rescue)}/{rescue.pk}/files").json()
    archive = api_as_alice.get(f"{api_of(rescue)}/{rescue.pk}/archive")

    by_path = {entry["path"]: entry for entry in files["entries"]}
    assert files["next_start"] is None
    assert by_path["src/notes.txt"]["size_bytes"] == 15
    assert by_path["link"]["link_target"] == "src/notes.txt"
    assert by_path["gone.txt"]["size_bytes"] is None
    assert by_path["gone.txt"]["state"] == "missing"
    assert by_path[r"caf\xe9 <b>.txt"]["size_bytes"] == 70_000
    digest = hashlib.sha256(downloaded(archive)).hexdigest()
    assert digest == told["archive_sha256"]
    assert nothing_is_left()


def test_what_does_not_exist_is_not_found(
    rescue: Rescue, alice: User, as_alice: Client, api_as_alice: APIClient
) -> None:
    assert as_alice.get(f"{page_of(rescue)[:-2]}999999/").status_code == 404
    assert api_as_alice.get(f"{api_of(rescue)}/999999/files").status_code == 404
    other = workspace_create(
        by=alice, template=rescue.workspace.template, name="another"
    )
    elsewhere = f"/workspaces/{other.pk}/rescues/{rescue.pk}/"
    assert as_alice.get(elsewhere).status_code == 404


# --- what is in it


def test_the_page_lists_what_is_in_it_with_sizes(
    rescue: Rescue, as_alice: Client, host: Child
) -> None:
    page = as_alice.get(page_of(rescue)).text

    assert r"caf\xe9 &lt;b&gt;.txt" in page
    assert 'title="70,000 bytes"' in page
    assert "A link to src/notes.txt" in page
    assert "Deleted, so there is no content" in page
    assert rescue.archive_sha256 in page
    assert "More files" not in page
    assert nothing_is_left()


def test_a_long_list_comes_page_by_page(
    workspace: Workspace, area: Path, as_alice: Client, host: Child
) -> None:
    names = [f"file{number:04}" for number in range(450)]
    for name in names:
        (area / "clone" / name).write_text(name)
    entries = [ArchiveEntry(path=name, kind="untracked") for name in names]
    rescue = rescue_of(workspace, entries, area=area)

    seen, address = [], page_of(rescue)
    while address:
        page = as_alice.get(address).text
        seen += [name for name in names if f"<code>{name}</code>" in page]
        _, more, rest = page.partition('rel="next" href="')
        address = page_of(rescue) + rest.partition('"')[0] if more else ""

    assert seen == names


@pytest.mark.parametrize("start", ["-1", "x", "7", "99999999"])
def test_a_place_in_the_list_that_is_none_is_no_bug(
    start: str,
    rescue: Rescue,
    as_alice: Client,
    api_as_alice: APIClient,
    host: Child,
) -> None:
    assert as_alice.get(f"{page_of(rescue)}?start={start}").status_code == 200
    files = f"{api_of(rescue)}/{rescue.pk}/files?start={start}"
    assert api_as_alice.get(files).status_code in (400, 409)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"no json\n",
        b'{"format": 2, "entries": [\n]}\n',
        b'{"format": 1, "entries": [\n7\n]}\n',
        b'{"format": 1, "entries": [\n{"path": 7}\n]}\n',
        b'{"format": 1, "entries": [\n{"path": "a", "size": "b"}\n]}\n',
        b'{"format": 1, "entries": [\n' + b"[" * 200_000 + b"\n]}\n",
        b"x" * 10_000_000,
    ],
)
def test_a_list_that_somebody_changed_is_said_to_be_damaged(
    manifest: bytes, rescue: Rescue, as_alice: Client, host: Child
) -> None:
    (Path(rescue.directory) / "manifest.json").write_bytes(manifest)

    page = as_alice.get(page_of(rescue)).text

    assert "The list of the archive&#x27;s contents is damaged." in page
    assert nothing_is_left()


# --- what is not there


def remove_the_directory(rescue: Rescue) -> None:
    shutil.rmtree(rescue.directory)


def put_a_link_in_its_place(rescue: Rescue) -> None:
    directory = Path(rescue.directory)
    directory.rename(directory.with_name("moved"))
    directory.symlink_to("moved")


def put_a_pipe_in_its_place(rescue: Rescue) -> None:
    for name in ("work.tar", "manifest.json"):
        (Path(rescue.directory) / name).unlink()
        os.mkfifo(Path(rescue.directory) / name)


def put_a_link_to_another_file(rescue: Rescue) -> None:
    for name in ("work.tar", "manifest.json"):
        (Path(rescue.directory) / name).unlink()
        (Path(rescue.directory) / name).symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    "remove",
    [
        remove_the_directory,
        put_a_link_in_its_place,
        put_a_pipe_in_its_place,
        put_a_link_to_another_file,
    ],
)
def test_a_rescue_that_was_removed_says_so(
    remove: object,
    rescue: Rescue,
    as_alice: Client,
    api_as_alice: APIClient,
    host: Child,
) -> None:
    assert callable(remove)
    remove(rescue)

    page = as_alice.get(page_of(rescue))
    answer = as_alice.get(f"{page_of(rescue)}download/", follow=True)
    refused = api_as_alice.get(f"{api_of(rescue)}/{rescue.pk}/archive")

    sentence = f"The archive was removed: {rescue.directory} no longer exists."
    assert page.status_code == 200
    assert sentence in page.text
    assert "Download the archive" not in page.text
    assert answer.redirect_chain == [(page_of(rescue), 302)]
    assert sentence in answer.text
    assert refused.status_code == 409
    assert refused.json() == {
        "detail": sentence,
        "code": "rescue_removed",
        "request_id": refused["X-Request-ID"],
    }
    assert not Event.objects.filter(kind="rescue_downloaded").exists()
    assert nothing_is_left()


@AS_ROOT
def test_what_the_owner_may_not_read_is_not_read_for_them(
    rescue: Rescue, as_alice: Client, area: Path, host: Child
) -> None:
    secret = area / "rescue/secret"
    secret.write_text("root alone may read this")
    secret.chmod(0o600)
    for name in ("work.tar", "manifest.json"):
        (Path(rescue.directory) / name).unlink()
        os.link(secret, Path(rescue.directory) / name)

    answer = as_alice.get(f"{page_of(rescue)}download/", follow=True)

    assert "The archive cannot be read." in answer.text
    assert "Permission denied" in answer.text


@AS_ROOT
def test_it_is_read_where_root_may_not_enter(
    rescue: Rescue, as_alice: Client, host: Child
) -> None:
    """As on a file server that squashes root: its owner alone has a right there."""
    assert Path(rescue.directory).stat().st_uid == UID
    assert Path(rescue.directory).stat().st_mode & 0o077 == 0
    answer = as_alice.get(f"{page_of(rescue)}download/")
    assert downloaded(answer) == tar_of(rescue).read_bytes()


def test_a_host_without_the_rescue_area_says_so(
    rescue: Rescue, as_alice: Client, host: Child
) -> None:
    Rescue.objects.filter(pk=rescue.pk).update(directory="/nonexistent/alice/main-1")
    page = as_alice.get(page_of(rescue)).text
    assert "The rescue area /nonexistent cannot be read on" in page


def test_without_a_host_nobody_waits(
    rescue: Rescue, as_alice: Client, no_host: None
) -> None:
    began = time.monotonic()
    page = as_alice.get(page_of(rescue)).text
    assert "No host worker of the site" in page
    assert time.monotonic() - began < reading.ANSWER_WITHIN_SECONDS
    assert nothing_is_left()


def test_a_rescue_without_an_archive_has_its_shelves(
    rescue: Rescue, alice: User, as_alice: Client, api_as_alice: APIClient
) -> None:
    shelves = [{"change": 77, "was": "default", "files": ["//depot/a"]}]
    Rescue.objects.filter(pk=rescue.pk).update(
        has_archive=False,
        directory="",
        archived_files=0,
        archive_sha256="",
        shelves=shelves,
    )
    rescue.refresh_from_db()
    page = as_alice.get(page_of(rescue)).text
    assert "p4 unshelve -s 77" in page
    assert "Archived" not in page
    [told] = api_as_alice.get(api_of(rescue)).json()["results"]
    assert told["shelves"] == [{"change": 77, "was": "default", "files": 1}]
    with pytest.raises(NothingArchived):
        rescue_download(by=alice, rescue=rescue)


# --- bounds


@pytest.mark.integration
def test_little_of_a_large_archive_is_anywhere_at_a_time(
    big: Rescue, alice: User, host: Child
) -> None:
    download = rescue_download(by=alice, rescue=big)
    digest, most_pieces = hashlib.sha256(), 0
    gc.collect()
    tracemalloc.start()
    for number, piece in enumerate(download):
        digest.update(piece)
        if number % 16 == 0:
            most_pieces = max(most_pieces, RescuePiece.objects.count())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    download.close()

    assert digest.hexdigest() == big.archive_sha256
    assert most_pieces * len(piece) <= 2 * WINDOW_BYTES
    assert peak < 8 * 1024 * 1024
    assert nothing_is_left()


def test_who_reads_nothing_has_nothing_read(
    big: Rescue, alice: User, host: Child
) -> None:
    download = rescue_download(by=alice, rescue=big)
    next(download)
    time.sleep(2)
    pieces = RescuePiece.objects.count()
    assert 0 < pieces <= 2 * WINDOW_BYTES // (512 * 1024)
    download.close()
    download.close()
    assert nothing_is_left()


def test_what_a_killed_web_server_left_goes(
    big: Rescue, alice: User, host: Child
) -> None:
    download = rescue_download(by=alice, rescue=big)
    next(download)
    sweep_rescue_reads(timestamp=0)
    assert RescueRead.objects.exists()
    RescueRead.objects.update(asked_at=timezone.now() - timedelta(hours=2))
    sweep_rescue_reads(timestamp=0)
    assert nothing_is_left()


@pytest.mark.parametrize("forget", [Reader.close, lambda _: sweep_rescue_reads(0)])
def test_a_piece_that_a_host_writes_meanwhile_goes_too(
    forget: Callable[[Reader], None], rescue: Rescue, host: Child
) -> None:
    reader = Reader(rescue, RescueRead.File.LIST)
    reader.size()
    read = RescueRead.objects.get()
    long_ago = timezone.now() - timedelta(hours=2)
    RescueRead.objects.update(asked_at=long_ago)

    def write() -> None:
        with suppress(IntegrityError):
            RescuePiece.objects.create(read=read, offset=10**9, data=b"late")
        connection.close()

    late = Thread(target=write)

    def before_the_read_goes(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith('DELETE FROM "rescues_rescueread"'):
            late.start()
            late.join(timeout=0.5)
        return execute(sql, *rest)

    with connection.execute_wrapper(before_the_read_goes):
        forget(reader)
    late.join()

    assert nothing_is_left()


@pytest.mark.integration
def test_so_many_at_a_time_and_no_more(
    big: Rescue, alice: User, admin: User, as_alice: Client, host: Child
) -> None:
    held = [rescue_download(by=alice, rescue=big) for _ in range(4)]
    address = f"{api_of(big)}/{big.pk}/archive"
    refused = as_alice.get(address)
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_downloads"
    assert as_alice.get(f"{api_of(big)}/{big.pk}/files").status_code == 429
    held.append(rescue_download(by=admin, rescue=big))
    for download in held:
        download.close()
    assert b"".join(rescue_download(by=alice, rescue=big)) == tar_of(big).read_bytes()


def test_rescues_of_one_owner_are_read_one_at_a_time(
    rescue: Rescue, kept_host: list[Child], jobs_emptied: None
) -> None:
    """Whoever stops the helper that reads, as its uid, stops one job."""
    while kept_host:
        kept_host.pop().stop()  # it would run one of them, once it is heard again
    worker_that_serves_everything()
    readers = [Reader(rescue, file) for file in RescueRead.File]
    with connection.cursor() as cursor:
        for _ in range(4):
            cursor.execute(
                "SELECT procrastinate_fetch_job_v2(NULL, id) FROM procrastinate_workers"
            )
    jobs = ProcrastinateJob.objects.filter(task_name=reading.READ)
    states = list(jobs.values_list("status", flat=True))
    for reader in readers:
        reader.close()

    assert sorted(states) == ["doing", "todo"]


# --- what goes wrong half way


def read_half(pieces: Iterator[bytes]) -> bytes:
    return b"".join(next(pieces) for _ in range(40))


@pytest.mark.integration
def test_another_host_goes_on_for_one_that_was_killed(
    big: Rescue, alice: User, start_host: StartHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start_host()
    download = rescue_download(by=alice, rescue=big)
    half = read_half(download)
    os.kill(first.process.pid, signal.SIGKILL)
    start_host()

    assert half + b"".join(download) == tar_of(big).read_bytes()
    download.close()
    assert nothing_is_left()


@pytest.mark.integration
def test_a_download_that_no_host_goes_on_with_is_broken_off(
    big: Rescue, alice: User, start_host: StartHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = start_host()
    download = rescue_download(by=alice, rescue=big)
    read_half(download)
    monkeypatch.setattr(reading, "ANSWER_WITHIN_SECONDS", 2.0)
    os.kill(only.process.pid, signal.SIGKILL)

    with pytest.raises(DownloadBroken, match="ends at byte"):
        b"".join(download)
    download.close()
    assert nothing_is_left()


@pytest.mark.integration
def test_an_archive_that_is_removed_half_way_breaks_the_download_off(
    big: Rescue, alice: User, host: Child
) -> None:
    download = rescue_download(by=alice, rescue=big)
    read_half(download)
    os.truncate(tar_of(big), 30 * 1024 * 1024)

    with pytest.raises(DownloadBroken):
        b"".join(download)
    download.close()


@pytest.mark.integration
def test_a_host_that_does_not_answer_is_not_waited_for_long(
    rescue: Rescue,
    alice: User,
    start_host: StartHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = start_host()
    monkeypatch.setattr(reading, "ANSWER_WITHIN_SECONDS", 1.0)
    os.kill(host.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(NoHostAnswers):
            rescue_download(by=alice, rescue=rescue)
    finally:
        os.kill(host.process.pid, signal.SIGCONT)
    assert not RescueRead.objects.exists()
