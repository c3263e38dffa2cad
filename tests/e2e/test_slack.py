"""Slack's slash command: requests signed as Slack does, to the program as it runs.

Source: https://docs.slack.dev/authentication/verifying-requests-from-slack and
https://docs.slack.dev/interactivity/implementing-slash-commands
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child
from provisioner.people.actions.tokens import api_token_create
from provisioner.workspaces.models import Workspace
from tests.support.client_library import LIBRARY

ENDS_WITHIN_SECONDS = 120
# Slack gives up then; the machine of a test may be slower than that by itself.
ACKNOWLEDGED_WITHIN_SECONDS = 30
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.integration]


@dataclass
class Slack:
    """What Slack does: it sends commands, and takes answers at an address it gave."""

    app: str
    answers_at: str
    answers: queue.Queue[dict[str, str]] = field(default_factory=queue.Queue)

    def send(
        self, text: str, *, user: str = "U2147483697", trigger: str = "1.1"
    ) -> str:
        """Send a command; return the text of what acknowledges it."""
        body = urlencode(
            {
                "team_id": "T0001",
                "channel_id": "C2147483705",
                "user_id": user,
                "command": "/workspace",
                "text": text,
                "api_app_id": "A123456",
                "response_url": self.answers_at,
                "trigger_id": trigger,
            }
        )
        answer = self.post(body, at=int(time.time()))
        assert answer.status_code == 200, answer.text
        is_json = answer.headers["Content-Type"].startswith("application/json")
        return str(answer.json()["text"]) if is_json else answer.text

    def post(self, body: str, *, at: int, secret: str = SECRET) -> httpx.Response:
        said = f"v0:{at}:{body}".encode()
        signature = hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()
        return httpx.post(
            f"{self.app}/slack/events",
            content=body,
            headers={
                "Content-Type": "application/x-www-form-urlencoded",
                "X-Slack-Request-Timestamp": str(at),
                "X-Slack-Signature": f"v0={signature}",
            },
            timeout=ACKNOWLEDGED_WITHIN_SECONDS,
        )

    def said(self) -> str:
        """Return what the program answered later."""
        return self.answers.get(timeout=ENDS_WITHIN_SECONDS)["text"]


@pytest.fixture
def slack(live_server: LiveServer, tmp_path: Path) -> Iterator[Slack]:
    """The program, started as its first lines say, and Slack before it."""
    heard: queue.Queue[dict[str, str]] = queue.Queue()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            heard.put(json.loads(self.rfile.read(length)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = free_port()
        app = f"http://127.0.0.1:{port}"
        program = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--threads", "8"),
                *("--bind", f"127.0.0.1:{port}", "app:application"),
            ],
            cwd=settings.BASE_DIR / "docs/examples/slack",
            env={
                "PYTHONPATH": str(LIBRARY),
                "PYTHONDONTWRITEBYTECODE": "1",
                "CLONEYARD_SERVER": live_server.url,
                "SLACK_SIGNING_SECRET": SECRET,
                "PUBLIC_URL": app,
                "TOKENS_DIR": str(tokens(tmp_path)),
                "HOME": str(tmp_path),
            },
        )
        try:
            wait_for(port)
            yield Slack(app, f"http://127.0.0.1:{server.server_port}/commands", heard)
        finally:
            program.terminate()
            program.wait(timeout=ENDS_WITHIN_SECONDS)
            server.shutdown()


def tokens(home: Path) -> Path:
    directory = home / "tokens"
    directory.mkdir(exist_ok=True)
    return directory


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def wait_for(port: int) -> None:
    ends = time.monotonic() + ENDS_WITHIN_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < ends
            time.sleep(0.1)


def test_a_person_gets_lists_and_extends_workspaces_from_slack(
    slack: Slack,
    tmp_path: Path,
    published_template: Template,
    alice: User,
    worker: Child,
) -> None:
    name = published_template.name
    _, token = api_token_create(
        by=alice, templates=[published_template], purposes=["development"]
    )
    assert slack.send(f"new {name}") == ""
    assert slack.said() == "You are not connected. Type `/workspace connect`."

    connect(slack, token)
    [kept] = tokens(tmp_path).iterdir()
    assert (kept.name, kept.stat().st_mode & 0o777) == ("T0001.U2147483697", 0o600)

    asked = f"new {name} from-slack"
    assert slack.send(asked) == f"Requesting a workspace of {name} …"
    ready = slack.said()
    workspace = Workspace.objects.get()
    assert (workspace.owner, workspace.state) == (alice, Workspace.State.READY)
    assert f"`{workspace.path}` `{workspace.client_name}`" in ready
    slack.send(asked)  # a request that comes again
    assert f"`{workspace.path}` `{workspace.client_name}`" in slack.said()

    slack.send("list")
    assert f"`{workspace.path}` `{workspace.client_name}`" in slack.said()
    slack.send("extend from-slack 960")
    assert "|from-slack>" in slack.said()
    workspace.refresh_from_db()
    assert workspace.expires_at is not None
    assert workspace.expires_at > timezone.now() + dt.timedelta(days=39)

    slack.send("extend from-slack soon")
    assert slack.said() == "Give the hours as a number from 1 to 8760."
    slack.send("extend another")
    assert slack.said() == "You have no workspace “another”, or several."
    slack.send("new a&lt;b")
    assert "&amp;lt;" in slack.said()
    assert slack.send("dance").startswith("`/workspace new TEMPLATE [NAME]`")
    slack.send("list", user="U2")
    assert slack.said() == "You are not connected. Type `/workspace connect`."
    assert Workspace.objects.count() == 1


def connect(slack: Slack, token: str) -> None:
    """Enter a token on the page whose address Slack shows to the person alone."""
    [link] = re.findall(r"<(\S+)\|", slack.send("connect"))
    page = httpx.get(link)
    assert (page.status_code, 'name="token"' in page.text) == (200, True)
    forged = httpx.post(link.replace("U2147483697", "U2"), data={"token": token})
    assert "This link has expired." in forged.text
    wrong = httpx.post(link, data={"token": "0" * 64})
    assert (wrong.status_code, wrong.headers["Cache-Control"]) == (403, "no-store")
    entered = httpx.post(link, data={"token": token})
    assert (entered.status_code, "Connected." in entered.text) == (200, True)


def test_only_slack_is_answered(slack: Slack) -> None:
    now = int(time.time())
    body = "team_id=T1&user_id=U1&command=%2Fworkspace&text=help&response_url=x"

    assert slack.post(body, at=now, secret="another").status_code == 401
    assert slack.post(body, at=now - 3600).status_code == 401
    assert httpx.post(f"{slack.app}/slack/events", content=body).status_code == 401
    assert httpx.get(f"{slack.app}/connect").status_code == 403
    assert httpx.get(f"{slack.app}/").status_code == 404
