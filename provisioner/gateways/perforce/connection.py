"""One connection to a Perforce server.

The Perforce settings of the host are ignored: P4CONFIG, P4HOST, ticket, trust and
enviro files, and the current client. Every command has a time limit, and every failure
is raised as a GatewayError.
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
from functools import partial
from typing import Any

import structlog

from provisioner.gateways.errors import (
    AuthFailed,
    GatewayError,
    Refused,
    Unreachable,
)
from provisioner.gateways.fence import require_leave
from provisioner.gateways.perforce import meter, trust
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
from provisioner.gateways.perforce.under_way import CommandUnderWay
from provisioner.gateways.reach import is_encrypted, perforce_address
from provisioner.lib import tracing
from provisioner.lib.refusals import StepCutShort

# A command that names a client changes its Access date, so most name this one instead.
# Nobody can guess the name: a client of that name, bound to a host or to another
# server, would stop all our commands.
NEUTRAL_CLIENT = f"cloneyard-{secrets.token_hex(8)}"

log = structlog.get_logger(__name__)

# What servers show of us in their logs and lists of processes.
PROGRAM = "cloneyard"

# Below a file, so nothing can be read or written there.
_NOWHERE = "/dev/null/perforce"

_BULK_TOTAL_SECONDS = 24 * 3600.0

# The library has no setting that overrides these for a single connection.
for _name in ("P4CONFIG", "P4LOGINSSO", "P4LANGUAGE"):
    os.environ.pop(_name, None)

# A server tells its client which files to read and write, and anyone who may enter an
# address here may run a hostile one. So the client gets no path, nor temporary files.
_PLACES_OF_FILES = ("P4CLIENTPATH", "TEMP")
os.environ.update(dict.fromkeys(_PLACES_OF_FILES, _NOWHERE))


def permit_files() -> None:
    """Let servers make this process read and write files, as any client does.

    Only for processes with no more rights than the owner of the client's files.
    """
    for name in _PLACES_OF_FILES:
        os.environ.pop(name, None)


def is_ours(user: str, program: str, *, our_user: str) -> bool:
    """Return whether a command at a server is of Cloneyard: by account and program."""
    return user == our_user and program.startswith(PROGRAM)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The output of a command: tagged records, lines of text, and all messages."""

    records: list[Record]
    texts: list[str]
    messages: list[ServerMessage]


@dataclass(kw_only=True)
class TicketHolder:
    """The ticket of an account, kept in memory between connections."""

    ticket: str = ""


@dataclass(kw_only=True)
class Patience:
    """Ends a command that takes too long, or whose server is silent for too long.

    The library asks before each wait for the network, then every half second. Two calls
    in quick succession therefore mean that data has arrived. A long gap means that the
    client itself was busy, and counts as one second of silence.

    With `leave` it also ends a command once that cuts it short.
    """

    total_seconds: float
    silent_seconds: float
    leave: Callable[[], None] | None = None
    is_over: bool = False
    is_canceled: bool = False
    cut_short: StepCutShort | None = None
    _began: float = field(default_factory=time.monotonic)
    _asked: float = field(default_factory=time.monotonic)
    _silent: float = 0.0

    def __call__(self) -> bool:
        """Return whether to keep waiting."""
        if self.is_canceled or not self._has_leave():
            return False
        now = time.monotonic()
        pause, self._asked = now - self._asked, now
        self._silent = 0.0 if pause < 0.4 else self._silent + min(pause, 1.0)
        self.is_over = (
            now - self._began > self.total_seconds or self._silent > self.silent_seconds
        )
        return not self.is_over

    def _has_leave(self) -> bool:
        """Return whether nobody has ended the caller; a database that is away has not.

        What was raised here would be swallowed by the library.
        """
        try:
            if self.leave is not None:
                self.leave()
        except StepCutShort as error:
            self.cut_short, self.is_canceled = error, True
            return False
        except Exception:
            log.info("leave_unknown", exc_info=True)
        return True


class _EachRecord(OutputHandler):  # type: ignore[misc]  # the library has no types
    """Passes records on one by one instead of collecting them.

    So it does with messages of these numbers, as records of their variables.
    """

    def __init__(
        self,
        take: Callable[[Record], None],
        *,
        patience: Patience,
        messages: Collection[int],
    ) -> None:
        super().__init__()
        self._take = take
        self._messages = messages
        self._patience = patience
        self.raised: BaseException | None = None

    def outputMessage(self, message: Any) -> int:
        if message.msgid not in self._messages:
            return int(OutputHandler.REPORT)
        return self.outputStat(message.dict)

    def outputStat(self, record: Record) -> int:
        if self.raised is None:
            try:
                self._take(record_of(record))
            except BaseException as error:
                self.raised = error  # otherwise the library swallows it
                self._patience.is_canceled = True
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

    With `tracks` the server reports the locks of each command, as -Ztrack does.

    Raises: Unreachable, Refused (unknown charset, a P4PORT that is not an address).
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
    """Runs commands one after another, in a single thread."""

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
        each_message: Collection[int] = (),
        is_bulk: bool = False,
        is_silent: bool = False,
        accepted: Collection[int] = (),
        also_failures: Collection[int] = (),
    ) -> Reply:
        """Run a command. Log in and run it again if the server asks for a login.

        `text` is the form for `-i`. With `each`, records are passed to it one by one,
        and the reply has none; so are messages of the numbers in `each_message`.
        `is_bulk` gives the command as long as bulk work needs. One that `is_silent` may
        say nothing for all that time, and ends early once its caller may not act.
        Messages numbered in `accepted` are not failures; those in `also_failures` are.

        Raises: any GatewayError, depending on the server's messages; Refused (an
        argument that the server could never accept as a name).
        """
        moves = command[0] == "sync" and not {"-n", "-k"} & set(command)
        take = self._counted(each) if moves and each else each
        attempt = partial(
            self._attempt,
            command,
            text=text,
            each=take,
            each_message=each_message,
            is_bulk=is_bulk,
            is_silent=is_silent,
        )
        with tracing.span(
            f"p4 {command[0]}",
            kind=tracing.Kind.CLIENT,
            facts={"rpc.system": "perforce", "server.address": self.account.port},
        ) as span:
            reply = attempt()
            if self._wants_login(reply):
                self._log_in()
                reply = attempt()
            span.note({}, failed=bool(failures(reply.messages, accepted=accepted)))
        for record in reply.records if moves else ():
            meter.count_synced(self.account.port, record)
        failed = failures(reply.messages, accepted=accepted, also=also_failures)
        if failed:
            raise self._translate(failed, operation=_name_of(command))
        if "-o" in command and any(map(is_blurred, reply.records)):
            return self._reread(reply, command)
        return reply

    def _counted(self, each: Callable[[Record], None]) -> Callable[[Record], None]:
        def take(record: Record) -> None:
            meter.count_synced(self.account.port, record)
            each(record)

        return take

    @property
    def client(self) -> str:
        """The client that commands name, unless they say another one."""
        return str(self._library.client)

    @property
    def tracks(self) -> bool:
        """Whether the server reports the locks of each command."""
        return bool(self._library.track)

    def can_name(self, path: str) -> bool:
        """Return whether this file name can exist on the server."""
        return self._is_bytes or is_utf8(path)

    @property
    def _is_bytes(self) -> bool:
        """Whether the server treats names as bytes, as it is not in Unicode mode."""
        return self.account.charset == "none"

    @property
    def tracked(self) -> list[str]:
        """Lines about the locks of the last command; empty without `tracks`."""
        return [as_text(line) for line in self._library.track_output or []]

    @property
    def is_case_sensitive(self) -> bool:
        """Whether names differ by case; known from the first reply on."""
        return not self._library.server_case_insensitive

    def is_same_name(self, one: str, other: str) -> bool:
        """Return whether two names are the same to the server."""
        if self.is_case_sensitive:
            return one == other
        return folded(one) == folded(other)

    def use_ignore_file(self, path: str) -> None:
        """Make reconcile use this P4IGNORE file and no other."""
        self._library.ignore_file = path

    def _attempt(
        self,
        command: tuple[str, ...],
        *,
        text: str,
        each: Callable[[Record], None] | None,
        is_bulk: bool,
        each_message: Collection[int] = (),
        is_silent: bool = False,
    ) -> Reply:
        account, library = self.account, self._library
        silent = account.bulk_timeout_seconds if is_bulk else account.timeout_seconds
        patience = Patience(
            total_seconds=(_BULK_TOTAL_SECONDS if is_bulk else account.timeout_seconds),
            silent_seconds=_BULK_TOTAL_SECONDS if is_silent else silent,
            leave=require_leave if is_silent else None,
        )
        asked = CommandUnderWay(
            user=account.user,
            client=library.client,
            host=library.host,
            command=command,
            form=text,
        )
        each = asked.noting(each) if each else None
        handler = (
            _EachRecord(each, patience=patience, messages=each_message)
            if each
            else None
        )
        operation = _name_of(command)
        if not library.connected():
            raise self._lost(operation, reason="an earlier command ended it.")
        library.input = settable(text, what="The form", is_secret=True)
        library.handler = handler
        library.setbreak(patience)  # after the handler, which would replace it
        require_leave()
        meter.count(account.port, commands=1)
        try:
            output = library.run(*map(self._said, command))
        except LibraryError as error:
            asked.lost()
            if patience.cut_short is not None:
                raise patience.cut_short from error
            raise self._lost(operation, reason=str(error)) from error
        if handler and handler.raised:
            raise handler.raised
        if patience.cut_short is not None:
            raise patience.cut_short
        if patience.is_over:
            asked.lost()
            raise self._lost(operation, reason="no answer in time.")
        reply = _reply(output or [], messages=library.messages)
        asked.answered(reply.records, texts=reply.texts, messages=reply.messages)
        return reply

    def _said(self, word: str) -> bytes:
        """Return a word of a command in the encoding that the server expects.

        Raises: Refused.
        """
        return as_bytes(word if self._is_bytes else settable(word, what="The name"))

    def _reread(self, reply: Reply, command: tuple[str, ...]) -> Reply:
        """Fetch a form again as text, which the library does not decode."""
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
        """Exchange the password for a ticket; `-p` keeps it out of any file."""
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
    """Refuse a name that a command would read as an option, such as -a.

    Raises: Refused.
    """
    if name.startswith("-"):
        raise Refused(
            f"{name!r} cannot be the name of a Perforce user.",
            system="perforce",
            operation="name",
        )


def ignore_check(ignore_file: str) -> Callable[[str], bool]:
    """Return a function that tells whether a P4IGNORE file excludes a local path.

    It contacts no server, and neither path has to exist.
    """
    library = new_library()
    library.p4enviro_file = _NOWHERE
    library.cwd = "/"
    library.ignore_file = ignore_file
    return lambda path: bool(library.is_ignored(path))


def _library(account: PerforceAccount, *, client: str) -> Any:
    """Return the library's object, with every setting that it would take from the host.

    Raises: Refused (unknown charset, names that cannot be encoded).
    """
    library = new_library()
    library.p4enviro_file = _NOWHERE
    library.cwd = "/"
    library.ticket_file = _NOWHERE
    library.ignore_file = _NOWHERE
    library.host = settable(account.host or socket.gethostname(), what="The host")
    library.prog = PROGRAM
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
    """Refuse a P4PORT that is not an address: the library runs `rsh:` as a command.

    Raises: Refused.
    """
    try:
        perforce_address(account.port)
    except ValueError as error:
        raise Refused(
            f"The P4PORT {account.port!r} is not an address. Nothing was connected. "
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
    """Connect within the time limit.

    The library neither limits the time to connect nor consults Patience while it does.
    So it connects in a thread, which is abandoned when the limit has passed.
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
    library.exception_level = 0  # from here on we read its messages ourselves


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
