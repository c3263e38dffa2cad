"""What was asked and answered, once: a line of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FORMAT = 1
RECORDS_KEPT = 20
"""A command may answer with a million records, of which these show the shape."""


@dataclass(frozen=True, kw_only=True)
class OntapExchange:
    """`status` is 0 where no answer came; `body` is None for what was not JSON."""

    method: str
    path: str
    query: Mapping[str, Any]
    sent: Mapping[str, Any] | None
    status: int = 0
    content_type: str = ""
    body: Mapping[str, Any] | None = None
    milliseconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "system": "ontap",
            "ms": round(self.milliseconds, 1),
            "request": {
                "method": self.method,
                "path": self.path,
                "query": dict(self.query),
                "body": self.sent,
            },
            "response": {
                "status": self.status,
                "content_type": self.content_type,
                "body": self.body,
            },
        }


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message of a Perforce server: what it is, without its text."""

    id: int
    severity: int
    generic: int


@dataclass(frozen=True, kw_only=True)
class PerforceExchange:
    """`count` is of all records and lines; `records` and `texts` are the first ones.

    `is_lost` says that the connection ended, or that the answer took too long.
    """

    user: str
    client: str
    host: str
    command: tuple[str, ...]
    form: str
    count: int = 0
    records: Sequence[Mapping[str, Any]] = ()
    texts: Sequence[str] = ()
    messages: Sequence[Message] = field(default=())
    is_lost: bool = False
    milliseconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "system": "perforce",
            "ms": round(self.milliseconds, 1),
            "request": {
                "user": self.user,
                "client": self.client,
                "host": self.host,
                "command": list(self.command),
                "form": self.form,
            },
            "response": {
                "count": self.count,
                "records": [dict(record) for record in self.records],
                "texts": list(self.texts),
                "messages": [
                    {"id": each.id, "severity": each.severity, "generic": each.generic}
                    for each in self.messages
                ],
                "is_lost": self.is_lost,
            },
        }


Exchange = OntapExchange | PerforceExchange
