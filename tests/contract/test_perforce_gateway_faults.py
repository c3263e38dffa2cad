"""What the Perforce gateway makes of lost replies, dead peers, and strange hosts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from provisioner.gateways.errors import (
    AuthFailed,
    Busy,
    GatewayError,
    Refused,
    Unreachable,
)
from provisioner.gateways.perforce.connection import TicketHolder, connected
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import (
    ClientSpec,
    PerforceAccount,
    SyncProgress,
)
from tests.support.perforce_scene import PerforceScene, ignore_progress, running_lab

pytestmark = pytest.mark.integration

Deed = Callable[[PerforceScene], None]

FILES: dict[str, bytes | Path | None] = {f"file{n}": b"line\n" * n for n in range(20)}


def prepare(scene: PerforceScene) -> int:
    """Make client ws, synced to a change, with one file opened in a pending change."""
    change = scene.submit(FILES)
    spec = scene.make_client()
    scene.gateway.files.sync(spec.name, change=change, on_progress=ignore_progress)
    return change


def save(scene: PerforceScene) -> None:
    scene.gateway.clients.save(scene.client_spec(root="/moved"))


def delete(scene: PerforceScene) -> None:
    scene.gateway.clients.delete(scene.client_name())


def flush(scene: PerforceScene) -> None:
    latest = scene.gateway.changes.latest((scene.everything,))
    scene.gateway.files.flush(scene.client_name(), change=latest)


def sync(scene: PerforceScene) -> None:
    latest = scene.gateway.changes.latest((scene.everything,))
    scene.gateway.files.sync(
        scene.client_name(), change=latest, on_progress=ignore_progress
    )


def revert(scene: PerforceScene) -> None:
    scene.gateway.changes.revert_server_side(scene.client_name())


def delete_change(scene: PerforceScene) -> None:
    changes = scene.gateway.changes.list_pending(scene.client_name())
    scene.gateway.changes.delete_pending(
        changes[0].change if changes else 2_000_000_000, delete_shelf=False
    )


DEEDS = [
    pytest.param(save, "client", id="save_client"),
    pytest.param(delete, "client", id="delete_client"),
    pytest.param(flush, "sync", id="flush"),
    pytest.param(sync, "sync", id="sync"),
    pytest.param(revert, "revert", id="revert_server_side"),
    pytest.param(delete_change, "change", id="delete_pending_change"),
]


def change_something(scene: PerforceScene) -> None:
    """Leave each of the deeds something to do."""
    scene.submit({"file1": b"newer\n", "file2": None})
    if scene.gateway.clients.find(scene.client_name()):
        scene.pending_change(scene.client_name())


def undo_pending(scene: PerforceScene) -> None:
    for each in scene.gateway.changes.list_pending(scene.client_name()):
        scene.gateway.changes.delete_pending(each.change, delete_shelf=False)


@pytest.mark.parametrize(("deed", "command"), DEEDS)
def test_after_a_lost_reply_the_same_call_succeeds(
    lab_perforce: PerforceScene, deed: Deed, command: str
) -> None:
    prepare(lab_perforce)
    change_something(lab_perforce)
    if deed is delete:
        undo_pending(lab_perforce)
    lab_perforce.set_faults({"command": command, "drop": "after", "times": 1})

    with pytest.raises(Unreachable) as caught:
        deed(lab_perforce)
    deed(lab_perforce)
    deed(lab_perforce)

    assert caught.value.system == "perforce"
    assert command in caught.value.operation
    if deed in (flush, sync):
        latest = lab_perforce.gateway.changes.latest((lab_perforce.everything,))
        name = lab_perforce.client_name()
        assert lab_perforce.gateway.files.count_out_of_sync(name, change=latest) == 0


@pytest.mark.parametrize(("deed", "command"), DEEDS)
def test_a_server_at_fault_is_busy_and_the_next_try_works(
    lab_perforce: PerforceScene, deed: Deed, command: str
) -> None:
    prepare(lab_perforce)
    change_something(lab_perforce)
    if deed is delete:
        undo_pending(lab_perforce)
    lab_perforce.set_faults({"command": command, "error": "paused", "times": 1})

    with pytest.raises(Busy):
        deed(lab_perforce)
    deed(lab_perforce)


def test_a_reply_that_takes_too_long_is_not_waited_for(
    lab_perforce: PerforceScene,
) -> None:
    account = replace(lab_perforce.account, timeout_seconds=0.5)
    lab_perforce.set_faults({"command": "info", "latency_seconds": 60, "times": 1})
    began = time.monotonic()

    with pytest.raises(Unreachable):
        PerforceGateway(account).get_info()

    assert time.monotonic() - began < 30
    assert lab_perforce.gateway.get_info().services


def test_a_silent_bulk_command_has_its_own_longer_limit(
    lab_perforce: PerforceScene,
) -> None:
    prepare(lab_perforce)
    account = replace(lab_perforce.account, timeout_seconds=0.5)
    lab_perforce.set_faults({"command": "have", "latency_seconds": 1.5})
    patient = PerforceGateway(account)
    hasty = PerforceGateway(replace(account, bulk_timeout_seconds=0.5))

    assert patient.files.have_list(lab_perforce.client_name()).count == len(FILES)
    with pytest.raises(Unreachable):
        hasty.files.have_list(lab_perforce.client_name())


def test_what_progress_raises_comes_through(lab_perforce: PerforceScene) -> None:
    prepare(lab_perforce)
    spec = lab_perforce.make_client("other")

    def stop(progress: SyncProgress) -> None:
        raise InterruptedError

    change = lab_perforce.gateway.changes.latest((lab_perforce.everything,))
    with pytest.raises(InterruptedError):
        lab_perforce.gateway.files.sync(spec.name, change=change, on_progress=stop)

    report = lab_perforce.gateway.files.sync(
        spec.name, change=change, on_progress=ignore_progress
    )
    assert report.files > 0
    assert len(os.listdir(spec.root)) == len(FILES)


def test_many_threads_share_a_gateway(lab_perforce: PerforceScene) -> None:
    change = prepare(lab_perforce)
    names = [lab_perforce.make_client(f"t{n}").name for n in range(8)]

    def work(name: str) -> int:
        lab_perforce.gateway.files.flush(name, change=change)
        return lab_perforce.gateway.files.have_list(name).count

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, names)) == [len(FILES)] * 8


def test_a_charset_that_is_none_is_refused(lab_perforce: PerforceScene) -> None:
    account = replace(lab_perforce.account, charset="no-such-charset")

    with pytest.raises(Refused) as caught:
        PerforceGateway(account).changes.latest(("//...",))

    assert "charset" in caught.value.sentence


# --- a server that takes tickets alone


def test_a_password_is_traded_for_a_ticket_where_the_server_wants_one() -> None:
    with running_lab("--security", "3") as target:
        gateway = PerforceGateway(target.account)
        gateway.check_login()
        gateway.clients.save(ClientSpec(name="ws", owner="x", root="/ws"))
        assert gateway.changes.latest(("//...",)) == 0
        assert gateway.clients.find("ws") is not None

        fresh = PerforceGateway(target.account)
        assert fresh.files.have_list("ws").count == 0
        fresh.clients.delete("ws")

        wrong = PerforceGateway(replace(target.account, password="wrong"))
        with pytest.raises(AuthFailed):
            wrong.changes.latest(("//...",))


def test_a_ticket_that_is_no_longer_good_is_renewed() -> None:
    holder = TicketHolder(ticket="0123456789ABCDEF" * 2)

    with (
        running_lab("--security", "3") as target,
        connected(target.account, holder=holder) as connection,
    ):
        reply = connection.run("changes", "-m", "1")
        again = connection.run("changes", "-m", "1")

    assert reply.records == again.records == []
    assert holder.ticket != "0123456789ABCDEF" * 2


# --- peers that are no Perforce server


@contextlib.contextmanager
def peer(answer: Callable[[socket.socket], None] | None) -> Iterator[str]:
    """Listen, and treat each connection with `answer`; None accepts none at all."""
    with socket.create_server(("127.0.0.1", 0), backlog=8 if answer else 0) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while answer:
                    connection, _ = server.accept()
                    held.append(connection)
                    with contextlib.suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        if answer is None:
            fill_backlog(server, held)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()
        thread.join(5)


def fill_backlog(server: socket.socket, held: list[socket.socket]) -> None:
    for _ in range(4):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(server.getsockname())
        held.append(connection)
    time.sleep(0.1)


def gateway_to(port: str) -> PerforceGateway:
    return PerforceGateway(
        PerforceAccount(port=port, user="u", password="p", timeout_seconds=0.7)
    )


def say_nothing(connection: socket.socket) -> None:
    """Keep the connection open."""


def hang_up(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.close()


def speak_http(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [say_nothing, hang_up, speak_http, None],
    ids=["silent", "hangs up", "speaks HTTP", "never accepts"],
)
def test_a_peer_that_is_no_perforce_server_is_unreachable_in_time(
    answer: Callable[[socket.socket], None] | None,
) -> None:
    began = time.monotonic()

    with peer(answer) as port, pytest.raises(Unreachable) as caught:
        gateway_to(port).get_info()

    assert time.monotonic() - began < 30
    assert port in caught.value.sentence


def test_a_closed_port_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = f"127.0.0.1:{server.getsockname()[1]}"

    with pytest.raises(Unreachable) as caught:
        gateway_to(port).check_login()

    assert "Connection refused" in caught.value.sentence


# --- TLS, with a proxy in front of the lab


class TlsProxy:
    """Ends TLS and passes on to a plain Perforce port."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        certificate = trustme.CA().issue_cert("localhost")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(self._context)
        # The library waits for ever for what follows a TLS session ticket.
        self._context.num_tickets = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = f"ssl:127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = self._server.accept()
                threading.Thread(target=self._serve, args=[raw], daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        with contextlib.suppress(OSError), raw:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with (
                self._context.wrap_socket(raw, server_side=True) as near,
                socket.create_connection(self._target) as far,
            ):
                back = threading.Thread(target=pass_on, args=[far, near], daemon=True)
                back.start()
                pass_on(near, far)
                back.join(5)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def tls(lab_perforce: PerforceScene) -> Iterator[TlsProxy]:
    proxy = TlsProxy(lab_perforce.account.port)
    yield proxy
    proxy.close()


def offered_by(error: GatewayError) -> str:
    return error.sentence.split("fingerprint ")[1].split(",")[0]


def test_a_server_without_a_pinned_key_is_not_trusted(
    lab_perforce: PerforceScene, tls: TlsProxy
) -> None:
    account = replace(lab_perforce.account, port=tls.port)

    with pytest.raises(AuthFailed) as caught:
        PerforceGateway(account).get_info()

    assert len(offered_by(caught.value)) == 59


def test_a_changed_key_is_refused_with_both_fingerprints(
    lab_perforce: PerforceScene, tls: TlsProxy
) -> None:
    pinned = ":".join(["AB"] * 20)
    account = replace(lab_perforce.account, port=tls.port, fingerprint=pinned)

    with pytest.raises(AuthFailed) as caught:
        PerforceGateway(account).get_info()

    assert pinned in caught.value.sentence
    assert offered_by(caught.value) != pinned


def test_the_pinned_key_lets_us_work(
    lab_perforce: PerforceScene, tls: TlsProxy
) -> None:
    account = replace(lab_perforce.account, port=tls.port)
    with pytest.raises(AuthFailed) as caught:
        PerforceGateway(account).get_info()
    pinned = replace(account, fingerprint=offered_by(caught.value))

    PerforceGateway(pinned).check_login()
    PerforceGateway(pinned).check_login()


def test_a_plain_port_spoken_to_with_tls_is_unreachable(
    lab_perforce: PerforceScene,
) -> None:
    port = f"ssl:{lab_perforce.account.port}"
    account = replace(lab_perforce.account, port=port, timeout_seconds=1)

    with pytest.raises(Unreachable):
        PerforceGateway(account).get_info()


# --- the host around us

CHECK = """
import json, sys
from provisioner.gateways.perforce.connection import TicketHolder, connected
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
gateway = PerforceGateway(PerforceAccount(**json.load(sys.stdin)))
gateway.check_login()
print(gateway.changes.latest(("//...",)))
"""


def test_nothing_the_host_knows_about_perforce_matters(
    lab_perforce: PerforceScene, tmp_path: Path
) -> None:
    settings = "P4CLIENT=leaked\nP4CHARSET=utf8\nP4HOST=elsewhere\nP4USER=leaked\n"
    for name in (".p4config", ".p4enviro", ".p4tickets", ".p4trust"):
        (tmp_path / name).write_text(settings)
    account = lab_perforce.account
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(tmp_path),
        "P4CONFIG": ".p4config",
        "P4PASSWD": "wrong",
        "P4PORT": "nowhere:1",
        "P4CLIENTPATH": "/nowhere",
        "P4LOGINSSO": f"touch {tmp_path}/sso",
    }
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=json.dumps({**vars(account)}),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


WRITE = """
import json, sys
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
order = json.load(sys.stdin)
gateway = PerforceGateway(PerforceAccount(**order["account"]))
gateway.get_info()
try:
    gateway.files.sync(order["client"], change=order["change"], on_progress=print)
except GatewayError as error:
    print(error.sentence)
"""


@pytest.mark.parametrize("below", ["/var/tmp", "/tmp", "/tmp/../var/tmp"])  # noqa: S108 - where anybody may write
def test_a_server_has_no_file_written_by_who_is_not_its_owner(
    below: str, lab_perforce: PerforceScene
) -> None:
    """The root of a client is what the server says: here it stands for any path."""
    change = lab_perforce.submit({"a.txt": b"mine\n"})
    spec = lab_perforce.make_client("anywhere")
    root = f"{below}/cloneyard-{uuid.uuid4().hex}"
    view = (f"{lab_perforce.everything} //{spec.name}/...",)
    lab_perforce.gateway.clients.save(replace(spec, root=root, view=view))
    os.makedirs(root)
    order = {
        "account": vars(lab_perforce.account),
        "client": spec.name,
        "change": change,
    }

    done = subprocess.run(
        [sys.executable, "-c", WRITE],
        input=json.dumps(order),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    left = os.listdir(root)
    shutil.rmtree(root)
    assert done.returncode == 0, done.stderr
    assert left == []
    assert "not inside permitted filesystem path" in done.stdout
