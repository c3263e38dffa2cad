"""One connection: the handshake, the dispatch of commands, and their end."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.lab.perforce import auth, faults, octets
from provisioner.lab.perforce.commands import (
    COMMANDS,
    KNOWN_ELSEWHERE,
    Command,
    parse_options,
)
from provisioner.lab.perforce.kinds import check_kind, is_forwarded
from provisioner.lab.perforce.locks import TableLocks
from provisioner.lab.perforce.logins import check_login_is_complete
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.processes import ProcessTable, Running
from provisioner.lab.perforce.programs import is_rejected
from provisioner.lab.perforce.replication import pull_forwarded, upstream_of
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.serverlog import CommandLog
from provisioner.lab.perforce.specstore import find_spec
from provisioner.lab.perforce.state import (
    SERVER_LEVEL,
    ServerState,
    ensure_user,
    touch_client,
)
from provisioner.lab.perforce.wire import (
    Connection,
    ConnectionClosed,
    Message,
    WireError,
)

log = logging.getLogger("provisioner.lab.perforce")

# That of 2010.1: older ones prove themselves in another way, or read no messages.
# Source: the list of protocol levels in the published client source (p4tagl.cc).
_OLDEST_CLIENT_LEVEL = 67
_PAUSED_LOOKS_SECONDS = 0.05
_FOR_SERVICE_USERS = frozenset(
    {"info", "login", "logout", "passwd", "password", "user"}
)


class Session:
    """Serves one client until it leaves."""

    def __init__(
        self,
        connection: Connection,
        *,
        state: ServerState,
        server_address: str,
        peer_address: str,
        certificate_expires: str = "",
    ) -> None:
        self._connection = connection
        self._state = state
        self._server_address = server_address
        self._peer_address = peer_address
        self._certificate_expires = certificate_expires
        self._greeted = False
        self._is_tracking = False
        self._tags_all = False
        # What the client says it understands; 0 when it says nothing.
        self._client_level = 0
        # Does the client format forms itself, by the definition it is sent?
        self._wants_definitions = False
        # The user who proved who they are, and the secret they proved it with.
        self._proof: tuple[str, str] = ("", "")
        # Its last command, if `p4 monitor` shows them.
        self._last: Running | None = None

    def serve(self) -> None:
        """Serve commands until the client leaves. The caller closes the socket."""
        try:
            while True:
                message = self._next_message()
                if message.func == "release2":
                    return
                if message.func.startswith("user-"):
                    self._run(message)
                elif message.func == "protocol":
                    self._is_tracking = "track" in message
                    self._tags_all = "tag" in message
                    self._client_level = message.integer("client")
                    self._wants_definitions = "specstring" in message
                else:
                    raise WireError(f"unexpected function {message.func!r}")
        except ConnectionClosed as reason:
            log.debug("connection closed: %s", reason)
        except faults.DropConnection:
            log.info("connection dropped by a fault setting")
        except WireError as reason:
            log.warning("connection refused: %s", reason)

    def _next_message(self) -> Message:
        """Wait for the client; `p4 monitor` shows it as idle, if it is told to."""
        if self._last is None or self._state.configurables.number("monitor") < 2:
            return self._connection.receive(forever=True)
        table, number = ProcessTable(self._state.config.root), self._last.number

        def check() -> None:
            if table.is_terminated(number):
                raise ConnectionClosed("ended by p4 monitor terminate")

        idle: dict[str, Any] = {
            "command": "IDLE",
            "arguments": "none",
            "started": time.time(),
        }
        with table.listing(replace(self._last, is_idle=True, **idle)):
            self._connection.between_writes = check
            try:
                return self._connection.receive(forever=True)
            finally:
                self._connection.between_writes = None

    def _run(self, message: Message) -> None:
        self._greet()
        if 0 < self._client_level < _OLDEST_CLIENT_LEVEL:
            self._refuse_old_client()
            return
        typed = message.func.removeprefix("user-")
        request = Request(
            command=typed,
            args=message.args,
            options={},
            message=message,
            connection=self._connection,
            state=self._state,
            server_address=self._server_address,
            peer_address=self._peer_address,
            certificate_expires=self._certificate_expires,
            wants_definitions=self._wants_definitions,
            tags_all=self._tags_all,
            authenticate=lambda: self._authenticate(request),
            locks=TableLocks(self._state.config.root),
            phase=lambda name: self._phase(request, command_log, name),
        )
        command_log = CommandLog(
            log,
            number=threading.get_native_id(),
            user=request.user,
            client=request.client_name,
            address=self._peer_address,
            program=self._program(message),
            command=f"user-{typed} {' '.join(message.args)[:200]}".strip(),
        )
        rule = faults.matching_rule(self._state, command=typed)
        rule.before()
        try:
            self._answer(request, rule)
        except CommandError as error:
            request.fail(error)
        except NotInLab as error:
            request.say_freely(7194, f"{error} is not part of the lab.")
        except OverflowError:
            request.say_freely(7198, "A number is larger than the lab can keep.")
        except sqlite3.OperationalError as error:
            log.exception("the database refused")
            request.say(7192, command=f"{typed}: {error}")
        if request.barrier_pending:
            self._skip_to_mark()
        elif request.is_unsettled:
            request.settle()
        tracked = command_log.track(request.locks.uses)
        if self._is_tracking:
            request.send("client-OutputText", {"data": tracked})
        # Before the client goes on: who reads the log then finds the command in it.
        self._log_end(command_log, tracked)
        rule.after()
        self._connection.send("release", {})
        self._connection.flush()

    @contextlib.contextmanager
    def _phase(self, request: Request, first: CommandLog, name: str) -> Iterator[None]:
        """Write a part of a command into the log as a command of its own.

        p4d has functions of their own for them, that the client calls. So the command
        is over when the first begins, and each has a completion of its own.

        Source: "dm-SubmitChange" and "dm-CommitSubmit" in logs of submits.
        """
        self._log_end(first, first.track(request.locks.uses))
        part = first.another(name)
        with request.locks.apart() as uses:
            try:
                yield
            finally:
                self._log_end(part, part.track(uses))

    def _log_end(self, command_log: CommandLog, tracked: str) -> None:
        """Write the end of a command and what it used, once."""
        if command_log.is_over:
            return
        command_log.completed()
        if self._state.configurables.number("track"):
            command_log.tracked(tracked)

    def _refuse_old_client(self) -> None:
        # The one way to say it that clients of every age know.
        text = f"A client of level {self._client_level} is not part of the lab.\n"
        self._connection.send("client-OutputError", {"data": text})
        self._connection.send("release", {})
        self._connection.flush()

    def _greet(self) -> None:
        if self._greeted:
            return
        self._greeted = True
        self._connection.send(
            "protocol",
            {
                "server": 3,
                "server2": SERVER_LEVEL,
                "xfiles": 7,
                "security": self._state.security_level,
                **({"nocase": ""} if self._state.config.ignores_case else {}),
                **({"unicode": ""} if self._state.config.is_unicode else {}),
            },
        )

    def _skip_to_mark(self) -> None:
        while self._connection.receive().func != "flush2":
            pass

    def _answer(self, request: Request, rule: faults.Rule) -> None:
        if request.command == "discover":
            return
        self._check_program(request)
        command = COMMANDS.get(request.command)
        if command is None:
            if request.command in KNOWN_ELSEWHERE:
                raise NotInLab(f"p4 {request.command}")
            raise CommandError(7194)
        request.options, request.args = parse_options(command, request.message.args)
        rule.refuse()
        if rule.expire_tickets:
            auth.expire_tickets(self._state.database, user=request.user)
        if self._state.config.is_unicode and "unicode" not in request.message:
            raise CommandError(7190)
        if self._state.config.is_unicode and not all(map(octets.is_utf8, request.args)):
            raise CommandError(7198, usage="names in UTF-8")
        if not command.is_open:
            self._authenticate(request)
            check_login_is_complete(
                self._state.database, user=request.user, command=request.command
            )
            if request.access().highest_anywhere() == "none":
                raise CommandError(6267, user=request.user)
        self._check_user_type(request)
        check_kind(request)
        forwarded = upstream_of(self._state) if is_forwarded(request) else None
        if forwarded is not None:
            request.state = forwarded
        try:
            self._run_checked(command, request)
        finally:
            if forwarded is not None:
                forwarded.database.close()
                pull_forwarded(self._state.config)

    def _run_checked(self, command: Command, request: Request) -> None:
        limit = self._state.limit(request.user, "MaxLockTime")
        if limit is not None:
            request.locks.limit_seconds = limit / 1000
        if command.uses_client:
            touch_client(self._state, name=request.client_name)
        self._run_command(command, request)

    def _run_command(self, command: Command, request: Request) -> None:
        if self._state.configurables.number("monitor"):
            self._run_monitored(command, request)
        else:
            command.run(request)
        if request.login_changed:
            self._proof = ("", "")

    def _run_monitored(self, command: Command, request: Request) -> None:
        table = ProcessTable(self._state.config.root)
        number = threading.get_native_id()

        def check() -> None:
            paused_until = time.monotonic() + self._state.config.peer_timeout_seconds
            while True:
                has_waited = time.monotonic() > paused_until
                if table.is_terminated(number) or has_waited:
                    # Once: what we say about it has to be sent too.
                    self._connection.between_writes = None
                    raise CommandError(7500)
                if not table.is_paused(number):
                    return
                time.sleep(_PAUSED_LOOKS_SECONDS)

        running = Running(
            number=number,
            process=os.getpid(),
            user=request.user,
            client=request.client_name,
            address=self._peer_address,
            program=self._program(request.message),
            command=request.command,
            arguments=" ".join(request.message.args),
            started=time.time(),
        )
        self._last = running
        with table.listing(running):
            self._connection.between_writes = check
            request.locks.while_waiting = check
            try:
                command.run(request)
            finally:
                self._connection.between_writes = None

    # --- who is asking

    def _program(self, message: Message) -> str:
        """Return what a client says that it is: a program and its version.

        Without a version it is told by the level of its protocol. "p4" says its own
        from the second message of a command on.

        Source: logs in the test data of go-libp4dlog, and what p4 2025.1, P4Python
        2026.1 and P4Java 2025.1 send.
        """
        program = message.text("prog")
        version = message.text("version")
        if not version and self._client_level:
            version = f"v{self._client_level}"
        return f"{program}/{version}" if program and version else program

    def _check_program(self, request: Request) -> None:
        program = request.message.text("prog")
        if is_rejected(
            self._state.configurables.text("rejectList"),
            program=program,
            version=request.message.text("version"),
        ):
            raise CommandError(8111, app=program)

    def _check_user_type(self, request: Request) -> None:
        """Refuse most commands to a service user.

        Source: p4 help user; Perforce's manual on service users.

        Raises: CommandError.
        """
        if request.command in _FOR_SERVICE_USERS:
            return
        user = find_spec(self._state.database, kind="user", name=request.user)
        if user is not None and user.text("Type") == "service":
            raise CommandError(6715)

    def _authenticate(self, request: Request) -> str | None:
        """Return the secret that the user knows; None if they need none.

        Raises: CommandError.
        """
        database, user = self._state.database, request.user
        if find_spec(database, kind="user", name=user) is None:
            # Source: p4 help distributed ("disabled on Edge Servers").
            is_edge = self._state.config.services == "edge-server"
            if is_edge or not self._state.creates_users:
                raise CommandError(6267, user=user)
            ensure_user(database, name=user, client=request.client_name)
        password_hash = auth.find_password_hash(database, user=user)
        if password_hash is None:
            if request.command != "passwd" and self._state.security_level:
                raise CommandError(7475)
            return None
        if not self._is_proved(user, password_hash):
            self._proof = (user, self._challenge(request, password_hash))
        return self._proof[1]

    def _is_proved(self, user: str, password_hash: str) -> bool:
        proved_user, secret = self._proof
        if proved_user != user:
            return False
        if secret == password_hash and self._state.security_level < 3:
            return True
        return any(
            ticket.ticket == secret and ticket.seconds_left
            for ticket in auth.tickets_of(self._state.database, user=user)
        )

    def _challenge(self, request: Request, password_hash: str) -> str:
        """Ask the client to prove itself; return the secret that it knows.

        Raises: CommandError.
        """
        token = auth.new_token()
        answer = request.ask(
            "client-Crypto",
            {"token": token, "serverAddress": self._server_address},
        )
        given = [
            value
            for name in ("token", "token2")
            if answer is not None and (value := _own_text(answer, name, token))
        ]
        address = answer.text("daddr") if answer else ""

        def knows(secret: str) -> bool:
            expected = auth.challenge_answer(secret, token=token, address=address)
            return any(auth.same(expected, value) for value in given)

        expired = False
        for ticket in auth.tickets_of(self._state.database, user=request.user):
            if knows(ticket.ticket):
                if ticket.seconds_left:
                    return ticket.ticket
                expired = True
        if knows(password_hash):
            if self._state.security_level >= 3:
                raise CommandError(7490)
            return password_hash
        raise CommandError(7480 if expired else 7189)


def _own_text(answer: Message, name: str, sent: str) -> str:
    """Return a variable unless it is only the echo of what we sent."""
    value = answer.text(name)
    return "" if value == sent else value
