"""Receive file content from the client, for submit and shelve."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.content import NewContent
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Message


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What the client sent for one file."""

    digest: str
    size: int
    modified: int
    # Of a branch that never was at the client: it shares its source's archive.
    is_lazy: bool = False


def take_content(
    request: Request, client: Client, number: int, files: list[Opened]
) -> dict[str, Sent]:
    """Return what the client sent for each added or edited file.

    Raises: CommandError if it could not send them all.
    """
    expected = [item for item in files if not item.is_delete]
    for index, item in enumerate(expected):
        request.send(
            "client-SendFile",
            {
                "path": client.local_path(item.client_path),
                "type": filetypes.wire_code(item.type, line_end=client.line_end),
                "perms": "rw",
                "handle": "submit",
                "open": replies.OPEN,
                "write": replies.WRITE,
                "confirm": replies.SENT,
                "decline": replies.DECLINED,
                "item": index,
            },
        )
    intake = Intake(request)
    for answer in request.answers():
        intake.take(answer, expected)
    if len(intake.sent) < len(expected):
        request.say(7219)
        raise CommandError(7217, change=number)
    return intake.sent


class Intake:
    """Collects file content from the client's messages, one file at a time."""

    def __init__(self, request: Request) -> None:
        self._content = request.state.content
        self._current: NewContent | None = None
        self.sent: dict[str, Sent] = {}

    def take(self, answer: Message, expected: list[Opened]) -> None:
        """Process one message."""
        if answer.func == replies.OPEN:
            self._drop()
            self._current = self._content.new()
        elif answer.func == replies.WRITE:
            if self._current is not None:
                self._current.write(answer.data("data"))
        elif answer.func == replies.SENT:
            index = answer.integer("item")
            if index < len(expected):
                self._keep(answer, expected[index].path)
        elif answer.func == replies.DECLINED:
            self._drop()

    def _keep(self, answer: Message, path: str) -> None:
        content = self._current or self._content.new()
        self._current = None
        claimed = answer.text("digest")
        if claimed and claimed != content.digest:
            content.discard()
            return
        digest, size = content.keep()
        self.sent[path] = Sent(
            digest=digest, size=size, modified=answer.integer("time")
        )

    def _drop(self) -> None:
        if self._current is not None:
            self._current.discard()
            self._current = None
