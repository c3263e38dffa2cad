"""One command being served: who sent it, its arguments, and how to answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property

from provisioner.lab.perforce import clients, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.hotmessages import Numbers
from provisioner.lab.perforce.locks import TableLocks
from provisioner.lab.perforce.messages import (
    MESSAGES,
    CommandError,
    free_message_variables,
    message_variables,
)
from provisioner.lab.perforce.protections import Access
from provisioner.lab.perforce.specs import Fields, SpecDefinition, format_form, tagged
from provisioner.lab.perforce.specstore import find_spec, known_name
from provisioner.lab.perforce.state import ServerState
from provisioner.lab.perforce.wire import Connection, Message, Value, decode


@dataclass(kw_only=True)
class Request:
    """One command. Commands take it as their only argument."""

    command: str
    args: list[str]
    options: dict[str, str]
    message: Message
    connection: Connection
    state: ServerState
    server_address: str
    peer_address: str
    # Until when the certificate of an `ssl:` port holds; "" for other ports.
    certificate_expires: str
    # The client makes forms of fields by the definition that comes with them.
    wants_definitions: bool
    # Makes the user prove who they are; returns the secret, None if none is set.
    authenticate: Callable[[], str | None]
    locks: TableLocks
    # Writes a part of the command into the log as a command of its own.
    phase: Callable[[str], AbstractContextManager[None]]
    # The client wants records of every command of its connection.
    tags_all: bool = False
    # The client owes answers that nobody has read yet, or the echo of a mark.
    is_unsettled: bool = False
    barrier_pending: bool = False
    # What the command proved or ended about the connection's user; see Session.
    login_changed: bool = False
    _client: Client | None = field(default=None)

    @cached_property
    def user(self) -> str:
        return known_name(self.state.database, "user", self.message.text("user"))

    @cached_property
    def client_name(self) -> str:
        return known_name(self.state.database, "client", self.message.text("client"))

    @property
    def host(self) -> str:
        return self.message.text("host")

    @property
    def cwd(self) -> str:
        return self.message.text("cwd")

    @property
    def is_tagged(self) -> bool:
        """Return whether the client wants records: for this command, or always."""
        return self.tags_all or "tag" in self.message

    def has(self, option: str) -> bool:
        """Return whether an option was given."""
        return option in self.options

    def number(self, option: str, *, default: int) -> int:
        """Return an option that must be a number.

        Raises: CommandError.
        """
        value = self.options.get(option)
        if value is None:
            return default
        if not value.isdecimal():
            raise CommandError(7198, usage=f"{self.command} -{option} number")
        return int(value)

    def access(self) -> Access:
        """Return what the user may do from their address."""
        return self.state.access(self.user, host=self.peer_address)

    @property
    def is_limited(self) -> bool:
        """Return whether the user's groups limit what a command may scan or return."""
        limits = ("MaxScanRows", "MaxResults")
        return any(self.state.limit(self.user, tag) is not None for tag in limits)

    def check_limits(self, *, scanned: int, results: int) -> None:
        """Refuse what exceeds the limits of the user's groups.

        Raises: CommandError.
        """
        most = self.state.limit(self.user, "MaxScanRows")
        if most is not None and scanned > most:
            raise CommandError(4157, maxScanRows=most)
        most = self.state.limit(self.user, "MaxResults")
        if most is not None and results > most:
            raise CommandError(4128, maxResults=most)

    # --- the client of the request

    def find_client(self) -> Client | None:
        """Return the current client; None if it does not exist."""
        return clients.find_client(self.state.database, name=self.client_name)

    def get_client(self) -> Client:
        """Return the current client, if this user may use it on this host.

        Raises: CommandError.
        """
        if self._client is None:
            client = self.find_client()
            if client is None:
                name = self.client_name
                if find_spec(self.state.database, kind="unloaded", name=name):
                    raise CommandError(6846, domainType="Client", domain=name)
                raise CommandError(
                    6179,
                    type="Client",
                    name=self.client_name,
                    command="client",
                )
            self.check_usable(client)
            self._client = client
        return self._client

    def check_usable(self, client: Client) -> None:
        """Refuse a client that this user may not use on this host and server.

        Raises: CommandError.
        """
        clients.check_usable(
            client,
            user=self.user,
            host=self.host,
            server_id=self.state.config.server_id,
            is_edge=self.state.config.services == "edge-server",
        )

    # --- answers

    def send(self, func: str, variables: Mapping[str, Value]) -> None:
        if "confirm" in variables:
            self.is_unsettled = True
        self.connection.send(func, variables)

    def say(self, message_id: int, **variables: Value) -> None:
        """Send one message of the table."""
        self.send("client-Message", message_variables(message_id, variables))

    def fail(self, error: CommandError) -> None:
        """Send the message that ends a command."""
        variables = message_variables(
            error.message_id, error.variables, because=error.because
        )
        self.send("client-Message", variables)

    def say_freely(self, message_id: int, text: str) -> None:
        """Send a text of ours with the class of a message of the table."""
        self.send("client-Message", free_message_variables(message_id, text))

    def info(self, text: str) -> None:
        """Send one line of plain text."""
        self.send("client-OutputInfo", {"data": text, "level": 0})

    def record(self, variables: Mapping[str, Value]) -> None:
        """Send one tagged record."""
        self.send("client-FstatInfo", variables)

    def report(
        self, record: Mapping[str, Value], message_id: int, **variables: Value
    ) -> None:
        """Send a record to a tagged client, a message of the table to others."""
        if self.is_tagged:
            self.send("client-FstatInfo", record)
        else:
            self.say(message_id, **variables)

    def show_form(
        self, fields: Fields, *, definition: SpecDefinition, **extra: str
    ) -> None:
        """Send a form, as fields to a tagged client and as text to others."""
        if not self.is_tagged:
            self.info(format_form(fields, definition=definition))
            return
        record: dict[str, Value] = {**tagged(fields), **extra}
        if self.wants_definitions:
            record |= {"specdef": definition.text, "specFormatted": ""}
        self.record(record)

    # --- questions

    def answers(self) -> Iterator[Message]:
        """Yield the client's answers to everything sent so far.

        The client works strictly in order: once it has echoed the mark, every earlier
        answer is here, even if it had none to give.
        """
        self.mark()
        while not self._is_mark(message := self.connection.receive()):
            yield message

    def mark(self) -> None:
        """Ask the client to echo a mark once everything before it is answered."""
        self.send("flush1", {"himark": 0, "fseq": 1})
        self.barrier_pending = True

    def _is_mark(self, message: Message) -> bool:
        """Return whether a message is the echo of the mark: no answer is outstanding
        then.
        """
        if message.func != "flush2":
            return False
        self.barrier_pending = self.is_unsettled = False
        return True

    def confirmed(self, name: str) -> list[int]:
        """Return the numbers called `name` in what the client reports as done."""
        if self.connection.is_logged:
            done = (a for a in self.answers() if a.func == replies.DONE)
            return [answer.integer(name) for answer in done]
        self.mark()
        return self._numbers_to_mark(name)

    def confirmed_at_mark(self, name: str) -> list[int]:
        """Return the numbers called `name` that are reported up to the next mark.

        Marks may be sent ahead; the client echoes them in order.
        """
        numbers = self._numbers_to_mark(name)
        # Others may be on their way; whoever sent them settles them.
        self.is_unsettled = True
        return numbers

    def _numbers_to_mark(self, name: str) -> list[int]:
        numbers: list[int] = []
        pattern = Numbers(name)
        while True:
            body = self.connection.receive_body()
            number = pattern.read(body)
            if number is None:
                answer = decode(body)
                if self._is_mark(answer):
                    return numbers
                if answer.func != replies.DONE:
                    continue
                pattern.learn(body)
                number = answer.integer(name)
            numbers.append(number)

    def settle(self, *, forever: bool = False) -> None:
        """Wait until the client has processed everything sent so far.

        With `forever`, it may be silent for longer than clients usually are.
        """
        self.mark()
        while not self._is_mark(self.connection.receive(forever=forever)):
            pass

    def ask(
        self,
        func: str,
        variables: Mapping[str, Value],
        *,
        confirm: str = replies.ANSWER,
    ) -> Message | None:
        """Send one question and return its answer, or None."""
        self.send(func, {**variables, "confirm": confirm})
        found = None
        for message in self.answers():
            found = message if message.func == confirm else found
        return found

    def ask_for_form(self, definition: SpecDefinition) -> str:
        """Return the text of the form that the client sends."""
        answer = self.ask("client-InputData", {"specdef": definition.text})
        if answer is None:
            raise CommandError(7197)
        return answer.text("data")


def severity(message_id: int) -> int:
    """Return the severity of a message of the table."""
    return MESSAGES[message_id][0] >> 28
