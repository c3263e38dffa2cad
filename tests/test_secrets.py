"""Secrets of a running installation: in no list of processes, log, trace, page or row.

Real web and worker processes get marked secrets, sign people in, fail in steps and with
errors of their own. Then everything that they left is searched for the marks.
"""

from __future__ import annotations

import base64
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import requests
from django.db import connection
from oidc_provider_mock import run_server_in_thread
from psycopg import sql
from pytest_django import Settings

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build, template_create
from provisioner.catalog.models import Template
from provisioner.demo.processes import Child, manage
from provisioner.engine.models import Operation
from provisioner.identities.models import Identity
from provisioner.sites.models import PerforceServer, Site
from tests.support.broker import ticket_at
from tests.support.lab import BUILD, DEPOT, Lab, fill, running_lab
from tests.support.otlp_receiver import OtlpReceiver, otlp_receiver
from tests.support.ports import free_ports

pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(400, method="thread"),
]

SETTLED_WITHIN_SECONDS = 180.0
# Each is found by this word, and by its own.
MARK = "Marked"
OF_COLLECTOR = f"{MARK}-of-the-collector"
OURS = {
    "ONTAP_PASSWORD": f"{MARK}-of-ONTAP",
    "P4PASSWD": f"{MARK}-of-Perforce",
    "SECRET_KEY": f"{MARK}-key-{'0123456789' * 5}",
    "OIDC_CLIENT_SECRET": f"{MARK}-of-OIDC",
    "LDAP_BIND_PASSWORD": f"{MARK}-of-LDAP",
    "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{OF_COLLECTOR}",
    "EMAIL_URL": f"smtp://cloneyard:{MARK}-of-mail@127.0.0.1:9",
}
OF_DATABASE = f"{MARK}-of-the-database"
OF_ERIN = f"{MARK}-of-erin"
TYPED = f"{MARK}-and-mistyped"
OF_HOOK = f"{MARK}-of-a-webhook"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Servers with marked passwords, and erin, who has one too."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LAB_ONTAP_PASSWORD", OURS["ONTAP_PASSWORD"])
        environment.setenv("LAB_P4PASSWD", OURS["P4PASSWD"])
        with running_lab() as lab:
            fill(lab)
            p4 = lab.as_admin()
            erin = {"User": "erin", "Email": "erin@example.com", "FullName": "Erin"}
            p4.save_user({**erin, "Password": OF_ERIN}, "-f")
            p4.disconnect()
            yield lab


@dataclass
class CommandLines:
    """What every list of processes showed meanwhile."""

    seen: set[bytes] = field(default_factory=set)

    @contextmanager
    def watched(self) -> Iterator[None]:
        is_over = threading.Event()
        watching = threading.Thread(target=self._watch, args=(is_over,))
        watching.start()
        try:
            yield
        finally:
            is_over.set()
            watching.join()

    def _watch(self, is_over: threading.Event) -> None:
        while not is_over.wait(0.01):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.seen.add(path.read_bytes())


@dataclass
class Installation:
    """Processes that were started with secrets, and what people do with them."""

    url: str
    web: Child
    worker: Child
    logs: Path
    collector: OtlpReceiver
    browser: requests.Session = field(default_factory=requests.Session)
    pages: list[str] = field(default_factory=list)

    def get(self, path: str, **more: Any) -> requests.Response:
        return self._kept(
            self.browser.get(f"{self.url}{path}", timeout=60, allow_redirects=False)
            if not more
            else requests.get(f"{self.url}{path}", timeout=60, **more)
        )

    def post(self, path: str, **more: Any) -> requests.Response:
        return self._kept(requests.post(f"{self.url}{path}", timeout=60, **more))

    def sign_in(self, name: str, password: str) -> requests.Response:
        """Type a name and a password into another browser, which is ours from then."""
        self.browser = requests.Session()
        page = self.browser.get(f"{self.url}/login/", timeout=60)
        assert page.ok, (page.text, self.web.last_lines(count=40))
        token, *_ = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', page.text)
        return self._kept(
            self.browser.post(
                f"{self.url}/login/",
                data={
                    "username": name,
                    "password": password,
                    "csrfmiddlewaretoken": token,
                },
                timeout=60,
                allow_redirects=False,
            )
        )

    def _kept(self, answer: requests.Response) -> requests.Response:
        self.pages.append(f"{answer.headers}\n{answer.text}")
        return answer


@pytest.fixture
def installation(
    lab: Lab, lab_site: Site, jobs_emptied: None, settings: Settings, tmp_path: Path
) -> Iterator[Installation]:
    """The processes, as systemd or compose start them: secrets by the environment."""
    settings.SITE_SECRET = lambda name, *, key: OURS[name]
    port, health_port = free_ports(2)
    logs = tmp_path / "logs"
    with run_server_in_thread() as provider, otlp_receiver() as collector:
        environment = {
            **OURS,
            "DATABASE_URL": _database_url(),
            "OIDC_ISSUER": f"http://localhost:{provider.server_port}",
            "OIDC_CLIENT_ID": "cloneyard",
            "LDAP_URLS": "ldaps://127.0.0.1:9",
            "LDAP_BIND_DN": "cn=cloneyard,dc=example,dc=com",
            "LDAP_USER_BASE": "dc=example,dc=com",
            "P4_SIGN_IN_SERVER": lab_site.perforce_server.name,
            "SECRET_HOSTS": "127.0.0.1,localhost",
            "WEB_BIND": f"127.0.0.1:{port}",
            "HEALTH_BIND": f"127.0.0.1:{health_port}",
            "LOG_DIR": str(logs),
            "VAR_DIR": str(tmp_path / "var"),
            "WEB_CONCURRENCY": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            # What is meant for readers says most.
            "LOG_FORMAT": "console",
            "LOG_LEVEL": "DEBUG",
            "STEP_GIVE_UP_SECONDS": "5",
        }
        web = Child("web", manage("web"), log_dir=tmp_path, environment=environment)
        worker = Child(
            "worker", manage("worker"), log_dir=tmp_path, environment=environment
        )
        try:
            made = Installation(
                f"http://127.0.0.1:{port}", web, worker, logs, collector
            )
            _wait_for(lambda: _answers(f"http://127.0.0.1:{health_port}/healthz"), web)
            yield made
        finally:
            web.stop()
            worker.stop()


def test_no_secret_is_in_a_list_of_processes_a_log_a_trace_a_page_or_a_row(
    installation: Installation, lab: Lab, lab_site: Site, admin: User
) -> None:
    lines = CommandLines()
    with lines.watched():
        subprocess.run(["sleep", "0.2", "0", "0.123456"], check=True)
        given = _sign_in_in_every_way(installation, lab, lab_site)
        _fail_in_steps(lab, lab_site, admin, worker=installation.worker)
        _break_the_web_server(installation, given)
        installation.web.stop()
        installation.worker.stop()

    secrets = _spellings({*OURS.values(), OF_DATABASE, OF_ERIN, TYPED, *given.values()})
    secrets.add(OF_COLLECTOR)
    # It looked where it should, or the rest would prove nothing.
    assert any(b"0.123456" in line for line in lines.seen)
    said = installation.web.log_path.read_text(errors="replace")
    assert "Traceback" in said
    assert "UndefinedTable" in said
    steps = "".join(path.read_text() for path in installation.logs.rglob("*.log"))
    assert "PATH=" in steps
    _is_all_traced(installation.collector)
    places = {
        "the list of processes": "\n".join(map(repr, sorted(lines.seen))),
        "what the web server printed": said,
        "what the worker printed": installation.worker.log_path.read_text(
            errors="replace"
        ),
        "the logs of steps": steps,
        "traces": b"".join(installation.collector.raw).decode(errors="replace"),
        "pages and answers": "\n".join(installation.pages),
        "the database": _everything_in_the_database(),
    }
    found = {
        (where, secret)
        for where, text in places.items()
        for secret in secrets
        if secret in text
    }
    assert found == set()
    # The address of a webhook is its owner's to see, and is nowhere else.
    for where in set(places) - {"pages and answers", "the database"}:
        assert OF_HOOK not in places[where], where


def _is_all_traced(collector: OtlpReceiver) -> None:
    """Ensure that traces have what was asked with secrets, and what failed."""
    failed = {span.name for span in collector.spans if span.has_failed}
    assert {
        *("POST /login/", "POST /api/v1/tokens", "POST /api/v1/tokens/perforce"),
        *("POST /storage/volumes", "GET /webhooks/"),
    } <= failed, failed
    names = {span.name for span in collector.spans}
    assert any(name.startswith("step ") for name in failed)
    assert {"p4 login", "GET /single-sign-on/callback/", "deliver webhook"} <= names


def _sign_in_in_every_way(
    installation: Installation, lab: Lab, site: Site
) -> dict[str, str]:
    """Sign in well and badly; return what people were given or typed besides."""
    PerforceServer.objects.filter(pk=site.perforce_server_id).update(
        accepts_tickets=True
    )
    erin = User.objects.create(username="erin", email="erin@example.com")
    Identity.objects.create(
        account=erin, issuer=f"perforce:{site.perforce_server.name}", subject="erin"
    )
    assert "does not answer" in installation.sign_in("nobody", TYPED).text
    assert installation.sign_in("erin", TYPED).status_code == 200
    assert installation.sign_in("erin", OF_ERIN).status_code == 302
    ticket = ticket_at(lab.perforce["port"], "erin", password=OF_ERIN)
    by_ticket = {"p4_user": "erin", "ticket": ticket}
    assert installation.post("/api/v1/tokens/perforce", json=by_ticket).ok
    installation.pages.pop()  # the one answer that is meant to have it
    made = installation.post("/api/v1/tokens", auth=("erin", OF_ERIN))
    installation.pages.pop()
    token = made.json()["token"]
    _come_back_with_a_wrong_code(installation)
    bearer = {"Authorization": f"Bearer {token}"}
    hook = {
        "url": f"https://hooks.invalid/services/{OF_HOOK}",
        "events": ["template.built"],
    }
    answer = installation.post("/api/v1/webhooks", json=hook, headers=bearer)
    assert answer.status_code == 201, answer.text
    installation.pages.pop()
    tested = f"/api/v1/webhooks/{answer.json()['id']}/test"
    assert installation.post(tested, headers=bearer).ok
    return {"ticket": ticket, "token": token, "signs": answer.json()["secret"]}


def _come_back_with_a_wrong_code(installation: Installation) -> None:
    """The web server sends its secret to the provider, which refuses the code."""
    away = installation.browser.get(
        f"{installation.url}/single-sign-on/", timeout=60, allow_redirects=False
    )
    [state] = parse_qs(urlsplit(away.headers["Location"]).query)["state"]
    back = installation.get(f"/single-sign-on/callback/?code=wrong&state={state}")
    assert back.status_code == 302


def _fail_in_steps(lab: Lab, site: Site, admin: User, *, worker: Child) -> None:
    """Let a command fail that prints its environment, and ONTAP refuse us."""
    commands = {
        "prints": "env; cat /proc/$PPID/environ || true; exit 3",
        "early": BUILD,
    }
    for name, command in commands.items():
        template = template_create(
            by=admin,
            site=site,
            name=name,
            view=f"//depot/{DEPOT}/... //any/...",
            build_command=command,
            build_timeout_seconds=60,
            volume_size_bytes=100 * 2**20,
        )
        if name == "early":
            refused = {"method": "POST", "path": "/api/storage/volumes", "status": 403}
            lab.break_ontap(refused)
        template_build(by=admin, template=template)
        _wait_for(partial(_has_failed, template), worker)
    lab.break_ontap()
    assert Operation.objects.filter(state=Operation.State.FAILED).count() >= 2


def _break_the_web_server(installation: Installation, given: dict[str, str]) -> None:
    """Take tables away: requests with secrets in them end in errors of our own."""
    bearer = {"Authorization": f"Bearer {given['token']}"}
    with _away("notify_webhook"):
        assert installation.get("/webhooks/").status_code == 500
        assert installation.get("/api/v1/webhooks", headers=bearer).status_code == 500
    with _away("accounts_signinattempts"):
        assert installation.sign_in("erin", OF_ERIN).status_code == 500
        asked = {"p4_user": "erin", "ticket": given["ticket"]}
        refused = installation.post("/api/v1/tokens/perforce", json=asked)
        assert refused.status_code == 500
        refused = installation.post("/api/v1/tokens", auth=("erin", OF_ERIN))
        assert refused.status_code == 500


@contextmanager
def _away(table: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")


def _database_url() -> str:
    """Return the address of the test's database, with a password that it ignores."""
    named = connection.settings_dict
    host = quote(str(named["HOST"]), safe="")
    return f"postgres://{named['USER']}:{OF_DATABASE}@/{named['NAME']}?host={host}"


def _everything_in_the_database() -> str:
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            copied = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT")
            with cursor.copy(copied.format(sql.Identifier(table))) as rows:
                texts += [bytes(piece).decode(errors="replace") for piece in rows]
    return "".join(texts)


def _spellings(secrets: set[str]) -> set[str]:
    """Return secrets as they are, and as headers and addresses have them."""
    in_headers = {
        base64.b64encode(f"{name}:{secret}".encode()).decode()
        for secret in secrets
        for name in ("erin", "cloneyard")
    }
    return secrets | in_headers | {quote(secret, safe="") for secret in secrets}


def _has_failed(template: Template) -> bool:
    template.refresh_from_db()
    return template.state == Template.State.FAILED


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).ok
    except requests.RequestException:
        return False


def _wait_for(is_so: Callable[[], bool], process: Child) -> None:
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not is_so():
        assert process.is_running, process.last_lines(count=30)
        assert time.monotonic() < ends, process.last_lines(count=30)
        time.sleep(0.1)
