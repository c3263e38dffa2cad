"""Clients that lie, cut off, answer in the wrong order or ask for nonsense.

Whatever they send, the lab's server lives on, writes nothing outside its root and has
no thread left that waits for them. The server here wants no password, so that all of
it is in reach.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.lab.perforce.commands import COMMANDS
from provisioner.lab.perforce.wire import (
    Connection,
    ConnectionClosed,
    Message,
    WireError,
    encode,
)
from tests.support.lab_perforce import LabServer, lab_server, workspace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(200, method="thread")]

NASTY = [
    *("", "-", "--", "-x", "--serverid", "-c", "-o", "-i", "-d", "-n", "-f", "-s"),
    *("//...", "//depot/...", "//ws/...", "...", "*", "//*/x", "//", "/", ".", ".."),
    *("../../../etc/passwd", "/etc/passwd", "//depot/../../x", "//depot/a\0b"),
    *("@1", "@-1", "#0", "#99999999999999999999", "@ws", "@now", "@2026/13/45"),
    *("//depot/main/f@=1", "//depot/main/f#1,2", "a@b@c", "%25", "%%1", "%%1%%2%%3"),
    *("...a" * 9, "*a" * 9, "x" * 3000, "\udcff\udcfe", "名", "depot", "ws", "1", "2"),
    *("default", "show", "terminate", "set", "monitor=1", "any#track=1", "main"),
]
FORMS = [
    "",
    "Client: ws\nRoot: /\nView:\n\t//depot/... //ws/...\n",
    "Client:\t../../x\n\nRoot:\t/tmp\n\nView:\n\t//depot/... //../../x/...\n",
    "View:\n" + "\t//depot/... //ws/...\n" * 500,
    "Change:\tnew\n\nDescription:\n\tx\n\nFiles:\n\t//depot/main/f\t# edit\n",
    "Change:\t99999999999999999999\n\nDescription:\n\tx\n",
    "User:\tx\n\nEmail:\tx\n\nFullName:\tx\n",
    "Depot:\t..\n\nType:\tlocal\n\nMap:\t../../...\n",
    "\t\t\n:::\nA: b\n" * 50,
    "Protections:\n\tsuper user * * //...\n",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A server that all lie to, so nobody knows what is in it."""
    yield from open_server(tmp_path_factory.mktemp("perforce"))


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[LabServer]:
    """A server that nobody has lied to."""
    yield from open_server(tmp_path)


def open_server(place: Path) -> Iterator[LabServer]:
    """Run a server that asks for no password, with two files and one opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_P4PASSWD", "")
        with lab_server(place, "--security", "0") as running:
            ws = workspace(running, place, name="ws", depot="//depot/main")
            ws.add({"f": "1\n", "d/g": "2\n"})
            ws.p4.run("edit", "f")
            yield running


def connect(server: LabServer) -> Connection:
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    return Connection(sock, timeout_seconds=5)


def command(name: str, arguments: list[str], **variables: str) -> bytes:
    """Return a command as the client sends it."""
    given = {"tag": "", "user": "cloneyard", "client": "ws", "cwd": "/nowhere"}
    given |= {"host": "lab-host", "os": "UNIX", **variables}
    body = b"".join(
        b"\0" + struct.pack("<I", len(raw)) + raw + b"\0"
        for raw in (a.encode("utf-8", "surrogateescape") for a in arguments)
    )
    return framed(body + encode(f"user-{name}", given)[5:])


def framed(body: bytes) -> bytes:
    size = struct.pack("<I", len(body))
    return bytes([size[0] ^ size[1] ^ size[2] ^ size[3]]) + size + body


def assert_lives(server: LabServer) -> None:
    """A client that behaves is served, and no thread waits for those that did not."""
    assert server.process is not None
    assert server.process.poll() is None
    link = connect(server)
    link.send_raw(command("info", []))
    while link.receive().func != "release":
        pass
    link.close()
    tasks = Path(f"/proc/{server.process.pid}/task")
    deadline = time.monotonic() + 20
    # Two of its own, and the client of the fixture.
    while len(list(tasks.iterdir())) > 4:
        assert time.monotonic() < deadline, "a thread is left"
        time.sleep(0.05)


def outside(server: LabServer) -> list[str]:
    """Return all that lies beside the root and the client's own directory."""
    place = server.root.parent
    return sorted(
        str(path)
        for directory in (place, Path("/tmp"))  # noqa: S108 - it must stay as it is
        for path in directory.iterdir()
        if path.name in ("root", "ws", "x", "log", "tickets", "enviro")
    )


class Liar:
    """A client that answers what it is asked at random."""

    def __init__(self, link: Connection, chance: random.Random) -> None:
        self._link = link
        self._chance = chance

    def go_on(self) -> None:
        """Answer until the command is over, or leave in the middle of it."""
        for _ in range(200):
            message = self._link.receive()
            if message.func == "release":
                return
            if self._chance.random() < 0.02:
                raise ConnectionClosed("had enough")
            if message.func == "flush1":
                self._link.send("flush2", {"himark": "0"})
            elif "confirm" in message:
                self._answer(message)

    def _answer(self, message: Message) -> None:
        chance = self._chance
        names = [
            message.text(name)
            for name in ("confirm", "decline", "open", "write")
            if name in message
        ]
        for _ in range(chance.choice([0, 1, 1, 1, 2, 5])):
            func = chance.choice([*names, *names, "flush2", "dm-Login", "x", "release"])
            echoed = {
                name: value
                for name, value in message.variables.items()
                if chance.random() < 0.9
            }
            lies = {
                name: chance.choice([*NASTY[:30], "-1", "7", "999999999999", "exists"])
                for name in ("item", "step", "status", "digest", "type", "file0")
                if chance.random() < 0.3
            }
            content = {"data": chance.choice(FORMS)} if chance.random() < 0.7 else {}
            clean = {name: value.replace("\0", "") for name, value in lies.items()}
            self._link.send(func, {**echoed, **clean, **content})


@pytest.mark.parametrize("seed", range(12))
def test_lies_in_answer_to_every_command(server: LabServer, seed: int) -> None:
    chance = random.Random(seed)
    before = outside(server)
    names = sorted(COMMANDS)
    chance.shuffle(names)
    for name in names:
        link = connect(server)
        with contextlib.suppress(ConnectionClosed, WireError):
            for _ in range(2):
                arguments = chance.choices(NASTY, k=chance.randint(0, 4))
                link.send_raw(command(name, arguments))
                Liar(link, chance).go_on()
        link.close()
    assert_lives(server)
    assert outside(server) == before


def test_messages_that_break_off(server: LabServer) -> None:
    whole = encode("protocol", {"client": "100"}) + command("sync", ["-n", "//..."])
    for length in range(0, len(whole), 7):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(whole[:length])
    assert_lives(server)


def test_sizes_that_are_none(server: LabServer) -> None:
    body = encode("user-info", {"tag": ""})[5:]
    for position in range(0, len(body) - 4, 3):
        for size in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
            broken = body[:position] + struct.pack("<I", size) + body[position + 4 :]
            with socket.create_connection(("127.0.0.1", server.port)) as sock:
                sock.sendall(framed(broken))
    assert_lives(server)


def test_many_variables_and_large_ones(server: LabServer) -> None:
    for variables in (
        {f"v{number}": "x" for number in range(50_000)},
        {"n" * 200_000: "x"},
        {"client": "c" * 500_000},
        {"user": "u" * 500_000, "cwd": "/" + "d/" * 100_000},
    ):
        link = connect(server)
        with contextlib.suppress(ConnectionClosed, WireError):
            link.send_raw(command("sync", ["//..."], **variables))
            Liar(link, random.Random(1)).go_on()
        link.close()
    assert_lives(server)


def test_commands_within_commands(server: LabServer) -> None:
    for inner in ("user-info", "user-submit", "protocol", "release2", "flush1"):
        link = connect(server)
        with contextlib.suppress(ConnectionClosed, WireError):
            link.send_raw(command("submit", ["-d", "nested"]))
            link.send_raw(encode(inner, {"user": "cloneyard"}) * 20)
            Liar(link, random.Random(2)).go_on()
        link.close()
    assert_lives(server)


def test_patterns_that_could_take_for_ever(server: LabServer) -> None:
    deep = "//depot/" + "...a" * 9 + "...b"
    for name in ("files", "sync", "opened", "dirs", "reconcile", "clients"):
        link = connect(server)
        arguments = ["-e", deep] if name == "clients" else ["-n", deep][-1:]
        link.send_raw(command(name, arguments))
        with contextlib.suppress(ConnectionClosed, WireError):
            Liar(link, random.Random(3)).go_on()
        link.close()
    assert_lives(server)


# --- clients of another make


def test_forms_come_without_definitions_to_who_does_not_ask(server: LabServer) -> None:
    for protocol, expected in (({}, False), ({"specstring": ""}, True)):
        link = connect(server)
        link.send("protocol", protocol)
        link.send_raw(command("client", ["-o"]))
        found = []
        while (message := link.receive()).func != "release":
            found.append(message)
        [form] = [m for m in found if m.func == "client-FstatInfo"]
        assert form.text("Client") == "ws"
        assert ("specdef" in form) == expected
        link.close()


def test_a_removal_is_asked_about_in_a_message_of_its_own(
    untouched: LabServer,
) -> None:
    link = connect(untouched)
    link.send_raw(command("sync", ["-f", "//ws/d/g#0"]))
    functions = []
    while (message := link.receive()).func != "release":
        functions.append(message.func)
        if message.func == "client-DeleteFile":
            assert "confirm" not in message
        elif message.func == "client-Ack":
            echoed = {k: v for k, v in message.variables.items() if k != "func"}
            link.send(message.text("confirm"), echoed)
        elif message.func == "flush1":
            link.send("flush2", {"himark": "0"})
    link.close()
    assert functions.index("client-Ack") == functions.index("client-DeleteFile") + 1


def test_every_file_comes_with_its_permissions(
    untouched: LabServer,
) -> None:
    link = connect(untouched)
    link.send_raw(command("sync", ["-f", "//ws/d/g"]))
    opened = []
    while (message := link.receive()).func != "release":
        if message.func == "client-OpenFile":
            opened.append(message.text("perms"))
        elif message.func == "client-Ack":
            echoed = {k: v for k, v in message.variables.items() if k != "func"}
            link.send(message.text("confirm"), echoed)
        elif message.func == "flush1":
            link.send("flush2", {"himark": "0"})
    link.close()
    assert opened == ["ro"]


def told(link: Connection) -> list[Message]:
    """Return what a command is answered, without the greeting."""
    found = []
    while (message := link.receive()).func != "release":
        found.append(message)
    return [message for message in found if message.func != "protocol"]


# What clients announce: P4Java (ProtocolCommand in perforce/p4java), which has its tags
# there, too, and says no to streams; the first client that knows the address of its
# server; one that announces nothing of itself; one from the future.
ANNOUNCED = {
    "p4java": {
        **{"cmpfile": "", "client": "96", "api": "99999", "sndbuf": "40960"},
        **{"rcvbuf": "10240", "tag": "", "enableStreams": "no", "enableGraph": "no"},
        **{"port": "localhost:1666", "ipaddr": "127.0.0.1", "app": "p4-plugin"},
    },
    "2010.1": {"cmpfile": "", "client": "67", "api": "99999"},
    "nothing": {"noise": "1"},
    "future": {"client": "250", "api": "250", "compress": "", "blake3": "", "new": "x"},
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_a_client_is_served_whatever_it_announces(
    untouched: LabServer, name: str
) -> None:
    link = connect(untouched)
    link.send("protocol", ANNOUNCED[name])
    # Variables that not every client has are left out, and some that few have are in.
    link.send_raw(command("files", ["//depot/main/..."], version="1", language="de"))
    assert [m.text("depotFile") for m in told(link)] == [
        *("//depot/main/d/g", "//depot/main/f"),
    ]
    # P4Java announces itself again where it wants no tags any more.
    link.send("protocol", {k: v for k, v in ANNOUNCED[name].items() if k != "tag"})
    raw = encode("user-files", {"user": "cloneyard", "client": "ws", "prog": "x"})[5:]
    link.send_raw(framed(b"\0\x05\0\0\0//...\0" + raw))
    lines = told(link)
    assert [m.func for m in lines] == ["client-Message"] * 2
    assert lines[0].text("depotFile") == "//depot/main/d/g"
    link.close()


def test_tags_may_be_asked_for_once(untouched: LabServer) -> None:
    # As `p4 -G` does.
    link = connect(untouched)
    link.send("protocol", {"client": "98", "api": "99999", "tag": ""})
    raw = encode("user-users", {"user": "cloneyard", "client": "ws"})[5:]
    for _ in range(2):
        link.send_raw(framed(raw))
        (record,) = told(link)
        assert (record.func, record.text("User")) == ("client-FstatInfo", "cloneyard")
    link.close()


def test_a_client_may_begin_with_its_command(untouched: LabServer) -> None:
    link = connect(untouched)
    link.send_raw(command("have", ["//..."]))
    assert len(told(link)) == 2
    link.close()


@pytest.mark.parametrize("level", ["50", "53", "66"])
def test_a_client_that_is_too_old_is_told_so(untouched: LabServer, level: str) -> None:
    link = connect(untouched)
    link.send("protocol", {"client": level})
    for name in ("info", "submit"):
        link.send_raw(command(name, []))
        (refusal,) = told(link)
        assert refusal.func == "client-OutputError"
        assert f"level {level} is not part of the lab" in refusal.text("data")
    link.close()


def test_a_unicode_server_refuses_who_does_not_say_unicode(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_P4PASSWD", "")
        with lab_server(tmp_path, "--security", "0", "--unicode") as server:
            for announced in ({}, {"unicode": ""}):
                link = connect(server)
                link.send_raw(command("info", [], **announced))
                answer = told(link)[0]
                assert (answer.integer("code0") & 0xFFFF == 7190) != bool(announced)
                assert ("userName" in answer) == bool(announced)
                link.close()
