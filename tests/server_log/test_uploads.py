"""Logs that administrators send."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.server_log import uploads
from provisioner.server_log.models import (
    LogCommand,
    LogUpload,
    ServerLog,
    upload_path,
)
from provisioner.server_log.sweeps import (
    read_log_upload,
    sweep_log_days,
    sweep_server_logs,
)
from provisioner.sites.models import PerforceServer
from tests.server_log.logs import MIXED, whole
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db

# The stubs of a client know text alone.
LOG: Any = os.fsencode(MIXED)


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> PerforceServer:
    settings.SERVER_LOG_DAYS = 20_000
    settings.LOG_DIR = tmp_path
    return PerforceServerFactory.create(name="commit")


@pytest.fixture
def send(server: PerforceServer, api_as_admin: APIClient) -> Callable[..., Any]:
    """Send a log to the API."""

    def sent(content: Any, *, name: str = "log.gz", kind: str = "octet-stream") -> Any:
        return api_as_admin.generic(
            "POST",
            f"/api/v1/server-log-uploads?server=commit&name={name}",
            content,
            content_type=f"application/{kind}",
        )

    return sent


def _files(folder: Path) -> list[Path]:
    return list(folder.glob("*.upload"))


def _read_all() -> list[tuple[str, str]]:
    """Read what waits; return what came of each upload, the first one first."""
    for upload in LogUpload.objects.filter(state="waiting").order_by("pk"):
        read_log_upload(upload.pk)
    return list(LogUpload.objects.order_by("pk").values_list("state", "message"))


def test_a_log_is_sent_and_read_once(
    send: Callable[..., Any], tmp_path: Path, admin: User, api_as_admin: APIClient
) -> None:
    accepted = send(gzip.compress(LOG))
    again = send(LOG, name="log")
    longer = send(LOG + os.fsencode(whole(90, "user-have", second=50)), name="log")
    [job, *_] = ProcrastinateJob.objects.filter(task_name="read_log_upload")
    assert len(_files(tmp_path)) == 3

    came = _read_all()

    assert (accepted.status_code, accepted.json()["state"]) == (202, "waiting")
    assert (again.status_code, longer.status_code) == (202, 202)
    assert (job.queue_name, job.args) == (
        *("perforce", {"upload_id": accepted.json()["id"]}),
    )
    assert came == [
        (
            "read",
            "Read 5 commands (1 not ended yet) and 1 error. 1 text that is not UTF-8.",
        ),
        ("refused", "log was read already: nothing in it is new."),
        ("read", "Read 1 command and 0 errors."),
    ]
    assert LogCommand.objects.count() == 6
    assert _files(tmp_path) == []
    shown = api_as_admin.get(accepted["Location"]).json()
    assert (shown["message"], shown["uploaded_by"]) == (came[0][1], admin.username)
    events = Event.objects.filter(kind__startswith="server_log_").order_by("pk")
    assert [event.actor for event in events] == [admin] * 5
    # A job that comes twice does nothing.
    read_log_upload(accepted.json()["id"])
    assert LogCommand.objects.count() == 6


def test_what_is_odd_about_a_log_is_said(send: Callable[..., Any]) -> None:
    ahead = re.sub(r"\d{4}/\d\d/\d\d", "2999/01/01", whole(90, "user-have"))
    send(LOG + os.fsencode(ahead), name="log")

    [(_, message)] = _read_all()

    assert "1 text that is not UTF-8." in message
    assert "1 command dated in the future, not stored." in message


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"x\n" * 500, "not_a_server_log", "not the log of a Perforce server"),
        (b"", "not_a_server_log", "not the log"),
        (b"\x1f\x8b" + b"x" * 500, "invalid", "log.gz cannot be read"),
        (LOG * 900, "log_too_large", "larger than 1 MiB"),
    ],
)
def test_what_is_no_log_is_refused_and_leaves_nothing(
    content: bytes,
    code: str,
    says: str,
    send: Callable[..., Any],
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.SERVER_LOG_UPLOAD_MB = 1

    answer = send(content)

    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert says in answer.json()["detail"]
    assert _files(tmp_path) == []
    assert not LogUpload.objects.exists()
    assert not ServerLog.objects.exists()


def test_a_log_that_is_too_long_or_torn_stores_nothing_by_halves(
    send: Callable[..., Any], settings: Any, tmp_path: Path
) -> None:
    settings.SERVER_LOG_UPLOAD_MB = 2
    send(gzip.compress(LOG * 2000), name="long")
    noise = "".join(chr(97 + byte % 26) for byte in os.urandom(2**21))
    send(gzip.compress(LOG + noise.encode())[:-1500], name="torn")
    send(LOG, name="elsewhere")
    upload_path(LogUpload.objects.get(name="elsewhere").key).unlink()
    settings.SERVER_LOG_UPLOAD_MB = 4

    came = _read_all()

    assert [state for state, _ in came] == ["refused"] * 3
    long, torn, elsewhere = (message for _, message in came)
    assert long == "long has more than 4 MiB. Split it."
    assert torn.startswith("torn cannot be read:")
    assert "have to share LOG_DIR" in elsewhere
    assert not LogCommand.objects.exists()
    assert _files(tmp_path) == []


def test_other_bodies_and_people_are_refused(
    send: Callable[..., Any], tmp_path: Path, api_as_alice: APIClient
) -> None:
    hers = api_as_alice.generic(
        "POST",
        "/api/v1/server-log-uploads?server=commit&name=log",
        LOG,
        content_type="application/octet-stream",
    )

    assert send(b"{}", kind="json").status_code == 415
    assert send(LOG, name="a%0Ab").status_code == 400
    assert hers.status_code == 403
    assert _files(tmp_path) == []


def test_a_log_is_uploaded_on_its_page(
    server: PerforceServer,
    admin: User,
    signed_in: Callable[[User], Client],
    tmp_path: Path,
    settings: Any,
) -> None:
    browser, path = signed_in(admin), f"/perforce/logs/{server.pk}/upload/"

    sent = browser.post(path, {"file": SimpleUploadedFile("log", LOG)}, follow=True)
    _read_all()
    shown = browser.get(path)
    wrong = browser.post(path, {"file": SimpleUploadedFile("log", b"x\n" * 500)})
    nothing = browser.post(path, {})
    settings.SERVER_LOG_UPLOAD_MB = 1
    large = browser.post(path, {"file": SimpleUploadedFile("log", LOG * 900)})

    assert "Waiting" in sent.text
    assert "Read 5 commands (1 not ended yet) and 1 error." in shown.text
    assert (wrong.status_code, nothing.status_code) == (409, 422)
    assert "not the log of a Perforce server" in wrong.text
    assert large.status_code == 409
    assert "larger than 1 MiB" in large.text
    assert "This field is required" not in large.text
    assert _files(tmp_path) == []


def test_what_fails_for_no_foreseen_reason_is_not_tried_for_ever(
    server: PerforceServer,
    send: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(uploads, "read_once", breaks)
    send(LOG)
    for _ in range(uploads.MOST_ATTEMPTS):
        with pytest.raises(RuntimeError):
            _read_all()
        assert LogUpload.objects.get().state == LogUpload.State.WAITING
    _read_all()

    upload = LogUpload.objects.get()
    assert upload.state == LogUpload.State.REFUSED
    assert "send it again" in upload.message
    assert _files(tmp_path) == []


def test_a_page_of_another_site_sends_no_log(
    server: PerforceServer, admin: User, tmp_path: Path
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin)

    answer = browser.post(
        f"/perforce/logs/{server.pk}/upload/", {"file": SimpleUploadedFile("log", LOG)}
    )

    assert answer.status_code == 403
    assert _files(tmp_path) == []


def test_files_that_nobody_asked_for_are_not_kept(
    server: PerforceServer, admin: User, signed_in: Callable[[User], Client]
) -> None:
    file = SimpleUploadedFile("log", b"x" * 10)
    asked = {"path": "/p4/log", "time_zone": "UTC", "way": "host", "more": file}

    answer = signed_in(admin).post(f"/perforce/logs/{server.pk}/", asked)

    assert answer.status_code == 302
    assert not answer.wsgi_request.FILES


def test_what_a_broken_web_server_left_goes(
    server: PerforceServer, send: Callable[..., Any], tmp_path: Path
) -> None:
    send(LOG)
    [waits] = _files(tmp_path)
    left = tmp_path / "server-log-0.upload"
    left.touch()
    for path in (waits, left):
        os.utime(path, (time.time() - 100_000,) * 2)

    sweep_log_days(0)
    ProcrastinateJob.objects.all().delete()
    sweep_server_logs(0)

    assert _files(tmp_path) == [waits]
    assert ProcrastinateJob.objects.filter(task_name="read_log_upload").exists()
