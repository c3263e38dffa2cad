"""One connection to a Perforce server.

What the host knows about Perforce stays out: no P4CONFIG, ticket, trust or enviro
file, no P4HOST, no current client. Every command has a time limit, and every failure
leaves here as one of ours.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.gateways.errors import (
    AuthFailed,
    GatewayError,
    Refused,
    Unreachable,
)
from provisioner.gateways.fence import require_leave
from provisioner.gateways.perforce import trust
from provisioner.gateways.perforce.errors import (
    NEEDS_LOGIN,
    SERVER_KEY_CHANGED,
    SERVER_KEY_UNKNOWN,
    ServerMessage,
    failures,
    translate,
)
from provisioner.gateways.perforce.library import (
    LibraryError,
    OutputHandler,
    Record,
    as_bytes,
    as_text,
    is_blurred,
    is_utf8,
    message_text,
    new_library,
    record_of,
    reread,
    settable,
)
from provisioner.gateways.perforce.paths import folded
from provisioner.gateways.perforce.types import TICKET, PerforceAccount
from provisioner.gateways.reach import is_encrypted, perforce_address

# A command that names a client bumps its Access date; this one nobody has, nor can
# make: one that is bound to a host or another server would stop every command of ours.
NEUTRAL_CLIENT = f"cloneyard-{secrets.token_hex(8)}"

# Below a file, so it can neither be read nor written.
_NOWHERE = "/dev/null/perforce"

_BULK_TOTAL_SECONDS = 24 * 3600.0

# The library offers no way to overrule these for one connection.
for _name in ("P4CONFIG", "P4LOGINSSO", "P4LANGUAGE"):
    os.environ.pop(_name, None)

# A server says which files its client reads and writes, and whoever may enter its
# address here may run it: so there is no such file, nor one among temporary ones.
_PLACES_OF_FILES = ("P4CLIENTPATH", "TEMP")
os.environ.update(dict.fromkeys(_PLACES_OF_FILES, _NOWHERE))


def permit_files() -> None:
    """Let servers have this process read and write files, as clients do.

    For processes that can do no more than the owner of a client's files.
    """
    for name in _PLACES_OF_FILES:
        os.environ.pop(name, None)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a command said: tagged records, lines of text, and all its messages."""

    records: list[Record]
    texts: list[str]
    messages: list[ServerMessage]


@dataclass(kw_only=True)
class TicketHolder:
    """The ticket of an account, kept in memory from one connection to the next."""

    ticket: str = ""


@dataclass(kw_only=True)
class Patience:
    """Ends a command that takes too long, or whose server is silent for too long.

    The library asks before each wait for the network and then every half second. So
    two questions shortly after each other mean that data came; a long time between
    them means that the client itself was at work, and counts as one second of silence.
    """

    total_seconds: float
    silent_seconds: float
    is_over: bool = False
    is_cancelled: bool = False
    _began: float = field(default_factory=time.monotonic)
    _asked: float = field(default_factory=time.monotonic)
    _silent: float = 0.0

    def __call__(self) -> bool:
        """Return whether to go on waiting."""
        if self.is_cancelled:
            return False
        now = time.monotonic()
        pause, self._asked = now - self._asked, now
        self._silent = 0.0 if pause < 0.4 else self._silent + min(pause, 1.0)
        self.is_over = (
            now - self._began > self.total_seconds or self._silent > self.silent_seconds
        )
        return not self.is_over


class _EachRecord(OutputHandler):  # type: ignore[misc]  # the library has no types
    """Hands records on one by one instead of collecting them."""

    def __init__(self, take: Callable[[Record], None], *, patience: Patience) -> None:
        super().__init__()
        self._take = take
        self._patience = patience
        self.raised: BaseException | None = None

    def outputStat(self, record: Record) -> int:
        if self.raised is None:
            try:
                self._take(record_of(record))
            except BaseException as error:
                self.raised = error  # the library would swallow it
                self._patience.is_cancelled = True
        return int(OutputHandler.HANDLED)


@contextmanager
def connected(
    account: PerforceAccount,
    *,
    holder: TicketHolder,
    client: str = NEUTRAL_CLIENT,
    tracks: bool = False,
) -> Iterator[Connection]:
    """Connect for the length of a with block, in the calling thread.

    With `tracks` the server tells what each command used, as -Ztrack does.

    Raises: Unreachable, Refused (unknown charset, a port that is no address).
    """
    _require_address(account)
    library = _library(account, client=client)
    library.track = tracks
    if is_encrypted(account.port):
        trust.pin(account.port, fingerprint=account.fingerprint)
    _connect(library, account=account)
    try:
        yield Connection(library, account=account, holder=holder)
    finally:
        if library.connected():
            library.setbreak(Patience(total_seconds=2, silent_seconds=2))
            library.disconnect()


class Connection:
    """Runs commands, one after the other, in one thread."""

    def __init__(
        self, library: Any, *, account: PerforceAccount, holder: TicketHolder
    ) -> None:
        self._library = library
        self.account = account
        self.holder = holder
        if holder.ticket:
            library.password = holder.ticket

    def run(
        self,
        *command: str,
        text: str = "",
        each: Callable[[Record], None] | None = None,
        is_bulk: bool = False,
        accepted: Collection[int] = (),
        also_failures: Collection[int] = (),
    ) -> Reply:
        """Run a command; log in first where the server wants that.

        `text` is the form for `-i`. With `each`, records go there one by one and the
        reply has none. Messages numbered in `accepted` are not failures.

        Raises: any GatewayError, by the server's messages; Refused for what cannot be
        the name of anything there.
        """
        reply = self._attempt(command, text=text, each=each, is_bulk=is_bulk)
        if self._wants_login(reply):
            self._log_in()
            reply = self._attempt(command, text=text, each=each, is_bulk=is_bulk)
        failed = failures(reply.messages, accepted=accepted, also=also_failures)
        if failed:
            raise self._translate(failed, operation=_name_of(command))
        if "-o" in command and any(map(is_blurred, reply.records)):
            return self._reread(reply, command)
        return reply

    def can_name(self, path: str) -> bool:
        """Return whether the server can have a file of this name."""
        return self._is_bytes or is_utf8(path)

    @property
    def _is_bytes(self) -> bool:
        """Whether names are bytes to the server: it is not in Unicode mode."""
        return self.account.charset == "none"

    @property
    def tracked(self) -> list[str]:
        """The lines that tell what the last command used; empty unless it tracks."""
        return [as_text(line) for line in self._library.track_output or []]

    @property
    def is_case_sensitive(self) -> bool:
        """Say how the server compares names; it has told with its first answer."""
        return not self._library.server_case_insensitive

    def is_same_name(self, one: str, other: str) -> bool:
        """Return whether the server takes two names for one."""
        if self.is_case_sensitive:
            return one == other
        return folded(one) == folded(other)

    def use_ignore_file(self, path: str) -> None:
        """Let reconcile obey this P4IGNORE file and no other."""
        self._library.ignore_file = path

    def _attempt(
        self,
        command: tuple[str, ...],
        *,
        text: str,
        each: Callable[[Record], None] | None,
        is_bulk: bool,
    ) -> Reply:
        account, library = self.account, self._library
        patience = Patience(
            total_seconds=(_BULK_TOTAL_SECONDS if is_bulk else account.timeout_seconds),
            silent_seconds=(
                account.bulk_timeout_seconds if is_bulk else account.timeout_seconds
            ),
        )
        handler = _EachRecord(each, patience=patience) if each else None
        operation = _name_of(command)
        if not library.connected():
            raise self._lost(operation, reason="an earlier command broke it off.")
        library.input = settable(text, what="The form", is_secret=True)
        library.handler = handler
        library.setbreak(patience)  # after the handler, which would take its place
        require_leave()
        try:
            output = library.run(*map(self._said, command))
        except LibraryError as error:
            raise self._lost(operation, reason=str(error)) from error
        if handler and handler.raised:
            raise handler.raised
        if patience.is_over:
            raise self._lost(operation, reason="no answer in time.")
        return _reply(output or [], messages=library.messages)

    def _said(self, word: str) -> bytes:
        """Return a word of a command as the server reads it.

        Raises: Refused.
        """
        return as_bytes(word if self._is_bytes else settable(word, what="The name"))

    def _reread(self, reply: Reply, command: tuple[str, ...]) -> Reply:
        """Ask for a form once more, as text: that the library leaves alone."""
        self._library.tagged = False
        try:
            form = self._attempt(command, text="", each=None, is_bulk=False)
        finally:
            self._library.tagged = True
        [record] = reply.records
        return replace(reply, records=[reread(record, "".join(form.texts))])

    def _lost(self, operation: str, *, reason: str) -> Unreachable:
        return Unreachable(
            f"The connection to the Perforce server {self.account.port} was lost: "
            f"{reason}",
            system="perforce",
            operation=operation,
        )

    def _wants_login(self, reply: Reply) -> bool:
        failed = {message.id for message in failures(reply.messages)}
        password = self.account.password
        is_ticket = self.account.has_ticket
        return bool(failed & NEEDS_LOGIN) and bool(password) and not is_ticket

    def _log_in(self) -> None:
        """Trade the password for a ticket. `-p` keeps it out of any file."""
        self._library.password = self.account.password
        reply = self._attempt(
            ("login", "-p"), text=self.account.password, each=None, is_bulk=False
        )
        failed = failures(reply.messages)
        if failed:
            raise self._translate(failed, operation="login")
        tickets = [text.strip() for text in reply.texts if TICKET.fullmatch(text)]
        if tickets:
            self.holder.ticket = self._library.password = tickets[-1]

    def _translate(
        self, failed: list[ServerMessage], *, operation: str
    ) -> GatewayError:
        keys = {SERVER_KEY_UNKNOWN, SERVER_KEY_CHANGED}
        for message in self._library.messages:
            if message.msgid in keys:
                key = record_of(message.dict).get("key", "")
                return _wrong_key(key, account=self.account)
        error = translate(failed, operation=operation, user=self.account.user)
        if isinstance(error, Unreachable):
            return self._lost(operation, reason=error.sentence)
        return error


def require_no_option(name: str) -> None:
    """Refuse a name that a command would take for an option, such as -a.

    Raises: Refused.
    """
    if name.startswith("-"):
        raise Refused(
            f"{name!r} cannot be the name of a Perforce user.",
            system="perforce",
            operation="name",
        )


def ignore_check(ignore_file: str) -> Callable[[str], bool]:
    """Return a function that says whether a P4IGNORE file leaves out a local path.

    It asks no server, and neither path has to exist.
    """
    library = new_library()
    library.p4enviro_file = _NOWHERE
    library.cwd = "/"
    library.ignore_file = ignore_file
    return lambda path: bool(library.is_ignored(path))


def _library(account: PerforceAccount, *, client: str) -> Any:
    """Return the library's object, told everything so that it asks the host nothing.

    Raises: Refused for an unknown charset and for names that cannot be said.
    """
    library = new_library()
    library.p4enviro_file = _NOWHERE
    library.cwd = "/"
    library.ticket_file = _NOWHERE
    library.ignore_file = _NOWHERE
    library.host = settable(account.host or socket.gethostname(), what="The host")
    library.prog = "cloneyard"
    library.port = account.port
    library.user = settable(account.user, what="The user")
    library.client = settable(client, what="The client")
    library.password = settable(account.password, what="The password", is_secret=True)
    try:
        library.charset = settable(account.charset, what="The charset")
    except LibraryError as error:
        raise Refused(
            f"{account.charset!r} is not a charset that Perforce knows.",
            system="perforce",
            operation="connect",
        ) from error
    return library


def _require_address(account: PerforceAccount) -> None:
    """Keep from the library what is no address: it would run `rsh:` as a command.

    Raises: Refused.
    """
    try:
        perforce_address(account.port)
    except ValueError as error:
        raise Refused(
            f"The P4PORT {account.port!r} is no address, so nothing was connected. "
            "Write it as ssl:perforce:1666.",
            system="perforce",
            operation="connect",
        ) from error


def _wrong_key(offered: str, *, account: PerforceAccount) -> AuthFailed:
    pinned = account.fingerprint or "none"
    return AuthFailed(
        f"The Perforce server {account.port} showed the fingerprint {offered}, but "
        f"{pinned} is expected. If its key was changed on purpose, set the new one.",
        system="perforce",
        operation="connect",
    )


def _connect(library: Any, *, account: PerforceAccount) -> None:
    """Connect, and give up in time.

    Connecting has no limit of its own in the library and does not ask Patience, so it
    runs in a thread that is left to itself when it is late.
    """
    outcome: Future[None] = Future()

    def attempt() -> None:
        try:
            library.connect()
        except LibraryError as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=attempt, name="p4-connect", daemon=True).start()
    try:
        outcome.result(timeout=account.timeout_seconds)
    except (TimeoutError, LibraryError) as error:
        reason = _why_not_connected(error)
        raise Unreachable(
            f"The Perforce server {account.port} cannot be reached: {reason}",
            system="perforce",
            operation="connect",
        ) from error
    library.exception_level = 0  # from here on, its messages tell us what went wrong


def _why_not_connected(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time."
    lines = [line.strip() for line in str(getattr(error, "value", error)).splitlines()]
    return [line for line in lines if line][-1]


def _reply(output: list[Any], *, messages: list[Any]) -> Reply:
    return Reply(
        records=[record_of(item) for item in output if isinstance(item, dict)],
        texts=[as_text(item) for item in output if isinstance(item, bytes)],
        messages=[
            ServerMessage(
                id=message.msgid,
                severity=message.severity,
                generic=message.generic,
                text=message_text(message),
                file=_file_of(message),
            )
            for message in messages
        ],
    )


def _file_of(message: Any) -> str:
    return str(record_of(message.dict).get("file", ""))


def _name_of(command: tuple[str, ...]) -> str:
    """Return the command with its flags, without its arguments."""
    flags = [word for word in command[1:] if word.startswith("-")]
    return " ".join([command[0], *flags])
