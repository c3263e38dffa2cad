"""`p4 flex`, driven as a broker drives it, at a server that runs."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.attempts import BY_NAME_AND_ADDRESS
from provisioner.accounts.models import ApiToken
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.broker import SCRIPT, Broker, said_by_broker, ticket_of
from tests.support.documents import blocks_of, reading
from tests.support.factories import (
    SiteFactory,
    SnapshotFactory,
    TemplateFactory,
    UserFactory,
)
from tests.support.lab import Lab
from tests.support.proxy import HOLD, LOSE, PASS, Between, Mishap, standing_before
from tests.support.requests import workspace_create


# "settings" is hypothesis's here.
@pytest.fixture
def django_settings(settings: Settings) -> Settings:
    return settings


ROOT = Path(__file__).parents[2]
TICKET = "0123456789ABCDEF" * 2


@pytest.fixture
def between(live_server: LiveServer) -> Iterator[Between]:
    with standing_before(live_server.url) as between:
        yield between


@pytest.fixture
def broker(tmp_path: Path, between: Between) -> Broker:
    broker = Broker(tmp_path / "opt")
    broker.set_up(SERVER=f"{between.address}/", PERFORCE="lab")
    return broker


Flex = Callable[..., str]


@pytest.fixture
def flex(
    broker: Broker, lab: Lab, lab_site: Site, published_template: Template
) -> Flex:
    """Run a command with a ticket of its user, and return what it answers."""
    lab_site.perforce_server.accepts_tickets = True
    lab_site.perforce_server.save()
    UserFactory.create(username="alice", uid=20001, gid=20000)

    def flex(*args: str, user: str = "alice", action: str = "RESPOND") -> str:
        # The ticket comes last, as p4 -x has it.
        told = broker.run(user, *args, "-t", ticket_of(lab, user))
        assert (told.action, told.complaints) == (action, ""), told
        return told.message

    return flex


@pytest.fixture
def made(flex: Flex, published_template: Template) -> Workspace:
    """What `p4 flex clone` of alice's asked for; nobody works on it."""
    flex("clone", "-V", published_template.name, "-p", "build", "hers")
    return Workspace.objects.get()


# --- a person's way


@pytest.mark.django_db(transaction=True)
def test_a_clone_is_asked_for_listed_and_given_back(
    flex: Flex,
    between: Between,
    published_template: Template,
    run_jobs: Callable[[], None],
) -> None:
    volume = published_template.name
    assert volume in flex("volumes").splitlines()[1]
    [snapshot] = published_template.snapshots.all()
    listed = flex("ls", "-V", volume).splitlines()
    assert listed[1].split() == [volume, snapshot.name, f"@{snapshot.change}", "built"]
    assert flex("clones") == "None."

    asked = flex("clone", "-V", volume, "-S", snapshot.name, "-l", "2", "hers")

    workspace = Workspace.objects.get()
    assert (workspace.name, workspace.owner.username) == ("hers", "alice")
    assert workspace.snapshot == snapshot
    assert f"{between.address}/workspaces/{workspace.pk}/" in asked
    assert f"export P4CLIENT={workspace.client_name}; cd {workspace.path}" in asked
    run_jobs()
    told = flex("lc", "-V", volume).splitlines()
    assert told[1].split()[:4] == ["hers", "alice", "ready", volume]

    gone = flex("clone", "-d", "hers")

    assert f"{between.address}/workspaces/{workspace.pk}/" in gone
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.TRASHED
    assert not ApiToken.objects.filter(expiry=None).exists()


@pytest.mark.django_db(transaction=True)
def test_what_the_page_says_is_typed_works(
    flex: Flex, broker: Broker, lab: Lab, tmp_path: Path
) -> None:
    """The shell, the ticket, the filter and the server are real; p4 is played."""
    (program := tmp_path / "home/bin/p4").parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\nimport sys, django; sys.path.insert(0, {str(ROOT)!r})\n"
        "django.setup(); from tests.support.p4_program import main; main(sys.argv[1:])"
    )
    program.chmod(0o755)
    environment = {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "P4PORT": lab.perforce["port"],
        "P4USER": "alice",
        "FILTER": str(broker.directory / SCRIPT.name),
        "DJANGO_SETTINGS_MODULE": "provisioner.settings",
        "SECRET_KEY": "only-for-tests-" * 4,
        "VAR_DIR": str(tmp_path / "var"),
    }
    page = ROOT / "docs/flex.md"
    with reading(tmp_path / "home", environment) as reader:
        [said] = reader.run(
            page,
            blocks_of(page, "sh"),
            instead={
                "p4 login": "echo lab-password | p4 login",
                "alias ": "shopt -s expand_aliases; alias ",
            },
        )
    assert said.strip() == flex("volumes")
    kept = tmp_path / "home/.p4flex"
    assert kept.stat().st_mode & 0o777 == 0o600
    option, ticket = kept.read_text().splitlines()
    assert (option, len(ticket)) == ("-t", 32)


@pytest.mark.django_db(transaction=True)
def test_nobody_gets_at_what_is_somebody_else_s(flex: Flex, made: Workspace) -> None:
    UserFactory.create(username="bob", uid=20002, gid=20000)

    assert flex("clones", user="bob") == "None."
    for words in (["-d", "hers"], ["-d", "hers", "-u", "alice", "-f"]):
        refused = flex("clone", *words, user="bob", action="REJECT")
        assert refused == "There is no clone hers for you."

    made.refresh_from_db()
    assert made.state == Workspace.State.PROVISIONING


@pytest.mark.django_db(transaction=True)
def test_of_two_clones_of_one_name_the_site_says_which(
    flex: Flex, made: Workspace
) -> None:
    elsewhere = SiteFactory.create(perforce_server=made.site.perforce_server)
    template = TemplateFactory.create(site=elsewhere)
    snapshot = SnapshotFactory.create(template=template)
    workspace_create(
        by=made.owner, template=template, snapshot=snapshot, name=made.name
    )

    refused = flex("clone", "-d", "hers", action="REJECT")
    gone = flex("clone", "-d", "hers", "-i", made.site.name)

    assert f"{elsewhere.name}" in refused
    assert refused.endswith(": say which with -i.")
    assert f"/workspaces/{made.pk}/" in gone
    none = flex("clone", "-d", "hers", "-i", "no-such", action="REJECT")
    assert none == "There is no clone hers for you."


@pytest.mark.django_db(transaction=True)
def test_who_shows_a_ticket_of_somebody_else_is_nobody(
    flex: Flex, broker: Broker, lab: Lab
) -> None:
    told = broker.run("alice", "clones", "-t", ticket_of(lab, "bob"))

    assert told.action == "REJECT"
    assert "does not accept this as a ticket of alice here" in told.message
    assert not ApiToken.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_trusted", [True, False])
def test_tickets_that_fail_count_where_the_brokers_caller_is(
    flex: Flex, broker: Broker, django_settings: Settings, is_trusted: bool
) -> None:
    django_settings.TRUSTED_BROKERS = ["127.0.0.1"] if is_trusted else []
    said = said_by_broker("alice", "clones", "-t", TICKET, client_ip="10.0.0.5")

    for _ in range(BY_NAME_AND_ADDRESS):
        assert "does not accept this" in broker.run_with(said).message
    assert "Too many failed attempts" in broker.run_with(said).message

    elsewhere = said_by_broker("alice", "clones", "-t", TICKET, client_ip="10.0.0.6")
    told = broker.run_with(elsewhere).message
    assert ("does not accept this" in told) == is_trusted


@pytest.mark.django_db(transaction=True)
def test_administrators_define_and_build_volumes_and_others_do_not(
    flex: Flex, published_template: Template
) -> None:
    UserFactory.create(username="admin", is_staff=True)
    define = ["volume", "-s", "2G", "-v", "//depot/tree/... //any/...", "-b", "make"]

    refused = flex(*define, "nightly", action="REJECT")
    assert refused.startswith("You may not do this")
    assert "nightly is defined: http" in flex(*define, "nightly", user="admin")

    nightly = Template.objects.get(name="nightly")
    assert nightly.volume_size_bytes == 2 * 2**30
    assert nightly.view_lines == ("//depot/tree/... //any/...",)
    assert (nightly.site, nightly.build_command) == (published_template.site, "make")

    building = flex("snapshot", "-V", "nightly", "snapA", user="admin")
    operation = Operation.objects.get(subject=nightly.subject)
    assert f"/operations/{operation.pk}/\n" in building
    assert "gets its name from Cloneyard" in building


# --- in time, whatever happens


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mishap", [LOSE, (503, {})])
def test_where_the_work_goes_on_the_answer_has_a_link(
    flex: Flex, between: Between, published_template: Template, mishap: Mishap
) -> None:
    between.plan = [PASS, PASS, mishap]  # of what waits to see whether it is ready

    asked = flex("clone", "-V", published_template.name, "hers")

    workspace = Workspace.objects.get()
    link = f"{between.address}/workspaces/{workspace.pk}/"
    assert asked.startswith(f"hers is being made: {link}\n")


@pytest.mark.django_db(transaction=True)
def test_after_a_lost_answer_it_says_where_to_look(
    flex: Flex, between: Between, published_template: Template
) -> None:
    between.plan = [PASS, LOSE]

    told = flex("clone", "-V", published_template.name, "hers", action="REJECT")

    assert f"It may have been done: {between.address}/" in told
    assert Workspace.objects.get().name == "hers"


@pytest.mark.django_db
def test_a_server_that_says_nothing_keeps_nobody_waiting(
    broker: Broker, between: Between
) -> None:
    broker.set_up(SERVER=between.address, is_patient=False)
    between.plan = [HOLD]

    told = broker.run("alice", "clones", "-t", TICKET)

    between.released.set()
    assert told.action == "REJECT"
    assert told.message == f"{between.address} does not answer now: nothing was begun."


def test_it_gives_itself_less_than_two_seconds(p4flex: ModuleType) -> None:
    assert p4flex.ANSWER_WITHIN_SECONDS < 2


# --- what needs no server


@pytest.fixture
def unreachable(tmp_path: Path) -> Broker:
    broker = Broker(tmp_path / "opt")
    broker.set_up(SERVER="https://127.0.0.1:9")
    return broker


@pytest.mark.parametrize("args", [[], ["help"]])
def test_help_is_for_everybody(unreachable: Broker, args: list[str]) -> None:
    told = unreachable.run("anybody", *args)

    assert (told.action, told.complaints) == ("RESPOND", "")
    assert "p4 flex clone -V volume" in told.message


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["clones"], "Who are you?"),
        (["clones", "-t", "lab-password"], "no ticket"),
        (["clones", "-t", TICKET], "127.0.0.1:9 does not answer"),
        (["clones", "-t", TICKET, "-t", TICKET], "-t is there twice."),
        (["dance"], "There is no p4 flex dance."),
        (["clones", "-z"], "option -z not recognized."),
        (["clones", "now's", '"quoted"', "-t"], "option -t requires argument."),
    ],
)
def test_what_cannot_be_done_is_refused(
    unreachable: Broker, args: list[str], sentence: str
) -> None:
    told = unreachable.run("alice", *args)

    assert (told.action, told.complaints) == ("REJECT", "")
    assert sentence in told.message


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"no field",
        said_by_broker("", "help"),
        said_by_broker("alice", "clones\nuser: bob"),
        said_by_broker("alice", "clones\nmore"),
        said_by_broker("alice", "clones", "\udcff"),
        said_by_broker("alice", "clones").replace(b"argCount: 1", b"argCount: 2"),
        said_by_broker("alice", "clones").replace(b"Arg0", b"Arg1"),
    ],
)
def test_what_no_broker_writes_is_refused(unreachable: Broker, said: bytes) -> None:
    told = unreachable.run_with(said)

    assert (told.action, told.complaints) == ("REJECT", "")


@pytest.mark.parametrize(
    "address", ["http://cloneyard.example.com", "ftp://127.0.0.1", ""]
)
def test_a_ticket_goes_nowhere_in_the_open(tmp_path: Path, address: str) -> None:
    broker = Broker(tmp_path / "opt")
    broker.set_up(SERVER=address)

    told = broker.run("alice", "clones", "-t", TICKET)

    assert told.message == "SERVER in the broker's p4flex.conf has to be https://HOST."


def test_it_needs_nothing_but_python_and_starts_no_program() -> None:
    tree = ast.parse(SCRIPT.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert imported <= set(sys.stdlib_module_names)
    assert not imported & {"subprocess", "shlex", "pty", "multiprocessing"}
    of_os = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os"
    }
    assert of_os == {"_exit"}


# --- hostile arguments


class Recorder(ThreadingHTTPServer):
    """A Cloneyard that has nothing, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), RecordingHandler)
        self.asked: list[tuple[str, str, Any]] = []


class RecordingHandler(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(
            (self.command, self.path, json.loads(body) if body else None)
        )
        is_exchange = self.path == "/api/v1/tokens/perforce"
        told: dict[str, object] = {"results": []}
        if is_exchange:
            told = {"token": "t" * 64, "owner": "alice"}
        is_refused = self.command == "POST" and not is_exchange
        answer = json.dumps({"detail": "No."} if is_refused else told).encode()
        self.send_response(409 if is_refused else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = handle_any

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def p4flex(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The script as a module, with a configuration beside it."""
    path = tmp_path_factory.mktemp("p4flex") / SCRIPT.name
    path.write_bytes(SCRIPT.read_bytes())
    spec = importlib.util.spec_from_file_location("p4flex", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recorder(p4flex: ModuleType) -> Iterator[Recorder]:
    with Recorder() as server:
        conf = f"SERVER=http://127.0.0.1:{server.server_port}\n"
        Path(str(p4flex.__file__)).with_name("p4flex.conf").write_text(conf)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def outcome(p4flex: ModuleType, said: bytes) -> str:
    """Return what a run tells, as it stands in the broker's message."""
    try:
        text = p4flex.run(said, ends=float("inf"), tell=lambda *_: None)
    except p4flex.Refusal as refusal:
        text = str(refusal)
    return str(p4flex.as_message(text))


HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            *("$(id)", "`id`", "; rm -rf /", "| cat", "&& id", "../../etc/passwd"),
            *("-t", "-d", "--", "-", "@file", "%s%n", "{0.__class__}", "\\", '"'),
            *(
                "a\nuser: bob",
                "a\r\nArg0: volume",
                "\x00",
                "\x1b[2J",
                "\u202e",
                "\udc80",
            ),
            *("1", "?x=1&owner=bob", "#", "//depot/...", "https://evil.example"),
        ]
    ),
)


def test_until_the_server_answers_it_has_something_to_tell(
    p4flex: ModuleType, recorder: Recorder
) -> None:
    told: list[tuple[str, ...]] = []
    said = said_by_broker("alice", "clone", "-V", "main", "-t", TICKET)

    with pytest.raises(p4flex.Refusal, match=r"No\."):
        p4flex.run(said, ends=float("inf"), tell=lambda *words: told.append(words))

    address = f"http://127.0.0.1:{recorder.server_port}"
    assert told == [
        ("REJECT", f"{address} does not answer now: nothing was begun."),
        ("REJECT", f"No answer yet. If it is being made, it is here: {address}/"),
    ]


@settings(max_examples=40)
@given(words=st.lists(HOSTILE, max_size=5), verb=st.sampled_from(["clone", "lc", "ls"]))
def test_whatever_the_arguments_are_the_answer_is_one(
    p4flex: ModuleType, recorder: Recorder, verb: str, words: list[str]
) -> None:
    recorder.asked.clear()
    said = said_by_broker("alice", verb, "-t", TICKET, *words)

    told = outcome(p4flex, said)

    assert all(c.isprintable() or c == "\n" for c in told)
    assert not set(told) & {'"', "\\"}
    proofs = [body for _, path, body in recorder.asked if path.endswith("/perforce")]
    assert proofs in (
        [],
        [{"p4_user": "alice", "ticket": TICKET, "server": ""}],
    )
    for _, path, _ in recorder.asked:
        where = urlsplit(path).path.removeprefix("/api/v1/")
        assert where in {"tokens/perforce", "workspaces", "snapshots", "templates"}


NAMES = st.text(min_size=1, max_size=20).filter(
    lambda text: text.isprintable() and not text.startswith("-")
)


@settings(max_examples=15)
@given(name=NAMES)
def test_a_name_reaches_the_server_as_it_was_given(
    p4flex: ModuleType, recorder: Recorder, name: str
) -> None:
    recorder.asked.clear()
    outcome(p4flex, said_by_broker("alice", "clone", "-d", name, "-t", TICKET))
    outcome(p4flex, said_by_broker("alice", "clone", "-V", "main", name, "-t", TICKET))

    _, path, _ = recorder.asked[1]
    wanted = {"name": [name], "owner": ["alice"], "retired": ["false"]}
    assert parse_qs(urlsplit(path).query) == wanted
    assert recorder.asked[3][2] == {"template": "main", "name": name}
