"""The API of servers' logs: what is read, sums, locks, and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.pagination import Pages
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet
from provisioner.server_log import actions
from provisioner.server_log.api import examples
from provisioner.server_log.api.shapes import (
    LogCommandLocksSerializer,
    LogCommandQuery,
    LogCommandSerializer,
    LogLockWaitQuery,
    LogLockWaitSerializer,
    LogMessageQuery,
    LogMessageSerializer,
    LogTableUseQuery,
    LogTableUseSerializer,
    LogUploadQuery,
    LogUploadSerializer,
    PeriodQuery,
    ServerCheckpointSerializer,
    ServerLoadQuery,
    ServerLoadSerializer,
    ServerLockQuery,
    ServerLockSerializer,
    ServerLogChangeSerializer,
    ServerLogSerializer,
    ServerPollingQuery,
    ServerPollingSerializer,
)
from provisioner.server_log.checkpoints import checkpoints
from provisioner.server_log.lock_waits import lock_waits, locks_of
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogMessage,
    LogSum,
    LogTableUse,
    LogUpload,
    RepeatedCommand,
    SeenCheckpoint,
    ServerLog,
)
from provisioner.server_log.polling import polling
from provisioner.server_log.queries import (
    commands_matching,
    commands_visible_to,
    logs_visible_to,
    messages_matching,
    table_uses_matching,
    uploads_visible_to,
)
from provisioner.server_log.receiving import received
from provisioner.server_log.tallies import lock_tallies, tallies
from provisioner.sites.models import PerforceServer

MOST_NAMES = 1000
_PIECE_BYTES = 1 << 20


class ServerLogViewSet(ShortListViewSet):
    """For administrators: the logs of Perforce servers."""

    queryset = ServerLog.objects.none()
    serializer_class = ServerLogSerializer
    is_for_administrators = True

    @described(
        "List the logs of Perforce servers",
        "For administrators: which files are read, how far, and what was odd.",
        ok=ServerLogSerializer(many=True),
        refused=[403],
        examples=examples.LOGS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(logs_visible_to(self.user))

    @described(
        "Change the log of a Perforce server",
        "For administrators, by the id of the server. Another file is "
        "read from its beginning.",
        body=ServerLogChangeSerializer,
        ok=ServerLogSerializer,
        refused=[400, 403, 404, 409],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = self.read_body(ServerLogChangeSerializer)
        return self.shown(actions.server_log_save(by=self.user, server=server, **asked))


class AnyBytes(BaseParser):
    """Leaves the body to be read piece by piece."""

    media_type = "application/octet-stream"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Iterator[bytes]]:
        return {"pieces": iter(lambda: stream.read(_PIECE_BYTES), b"")}


class LogUploadViewSet(ApiViewSet):
    """For administrators: logs that were sent to Cloneyard."""

    queryset = LogUpload.objects.none()
    serializer_class = LogUploadSerializer
    parser_classes = (AnyBytes,)
    is_for_administrators = True

    @described(
        "List uploaded logs",
        "For administrators, the latest first: what was read of "
        "each, or why nothing was.",
        ok=LogUploadSerializer(many=True),
        refused=[400, 403],
        examples=examples.UPLOADS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(uploads_visible_to(self.user))

    @described(
        "Get an uploaded log",
        "For administrators.",
        ok=LogUploadSerializer,
        refused=[403, 404],
        examples=examples.UPLOADS,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(get_object_or_404(uploads_visible_to(self.user), pk=pk))

    @described(
        "Upload a log of a Perforce server",
        "For administrators: P4LOG or a part of it, plain or compressed by gzip, as "
        "the body. A worker reads it, whole or not at all. Of a file that was read "
        "before, known by its first bytes, only what is new is stored.",
        body=OpenApiTypes.BINARY,
        body_type="application/octet-stream",
        ok=LogUploadSerializer,
        status=202,
        refused=[400, 403, 409, 415],
        parameters=[LogUploadQuery],
        examples=examples.UPLOADS,
    )
    def create(self, request: Request) -> Response:
        query = self.read_query(LogUploadQuery)
        with received(request.data.get("pieces", iter(()))) as reception:
            upload = actions.server_log_upload(
                by=self.user, reception=reception, **query
            )
        return self.shown(upload, status=202, at="server-log-upload-detail")


class ServerLoadViewSet(ShortListViewSet):
    """For administrators: what commands of Perforce servers took."""

    queryset = LogSum.objects.none()
    serializer_class = ServerLoadSerializer

    @described(
        "Sum up commands of Perforce servers",
        "For administrators: what commands took in a period, by command, user, "
        "program, client or host, from the sums of their logs. The first 1,000 names.",
        ok=ServerLoadSerializer(many=True),
        refused=[400, 403],
        parameters=[ServerLoadQuery],
        examples=examples.LOAD,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ServerLoadQuery)
        return self.page_of(tallies(self.user, **query, most=MOST_NAMES))


class ServerLockViewSet(ShortListViewSet):
    """For administrators: who held locks of tables, and who waited for them."""

    queryset = LockSum.objects.none()
    serializer_class = ServerLockSerializer

    @described(
        "Sum up locks of tables at Perforce servers",
        "For administrators: how long locks were waited for and held in a period, by "
        "table, user, or both and the command, of 10 ms and more. The first 1,000.",
        ok=ServerLockSerializer(many=True),
        refused=[400, 403],
        parameters=[ServerLockQuery],
        examples=examples.LOCK_SUMS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ServerLockQuery)
        return self.page_of(lock_tallies(self.user, **query, most=MOST_NAMES))


class PollingViewSet(ShortListViewSet):
    """For administrators: programs that poll."""

    queryset = RepeatedCommand.objects.none()
    serializer_class = ServerPollingSerializer

    @described(
        "List programs that poll Perforce servers",
        "For administrators: what a program of a user repeated in a client at least 30 "
        "times in an hour, and in 11 of its 12 five-minute parts. The first 1,000.",
        ok=ServerPollingSerializer(many=True),
        refused=[400, 403],
        parameters=[ServerPollingQuery],
        examples=examples.POLLING,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ServerPollingQuery)
        return self.page_of(polling(self.user, **query, most=MOST_NAMES))


class CheckpointViewSet(ShortListViewSet):
    """For administrators: checkpoints of Perforce servers."""

    queryset = SeenCheckpoint.objects.none()
    serializer_class = ServerCheckpointSerializer
    is_for_administrators = True

    @described(
        "List checkpoints of Perforce servers",
        "For administrators, oldest first: commands that lock all tables, from the log "
        "or as seen while they ran.",
        ok=ServerCheckpointSerializer(many=True),
        refused=[400, 403],
        parameters=[PeriodQuery],
        examples=examples.CHECKPOINTS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(PeriodQuery)
        return self.page_of(checkpoints(**query))


class TableUseViewSet(ApiViewSet):
    """For administrators: long waits for tables and holds of them, one by one."""

    queryset = LogTableUse.objects.none()
    serializer_class = LogTableUseSerializer

    @described(
        "List long waits for tables and holds of them",
        "For administrators, newest first, as long as they are kept: commands that "
        "waited for a table's locks, or held them, for 100 ms or more.",
        ok=LogTableUseSerializer(many=True),
        refused=[400, 403],
        parameters=[LogTableUseQuery],
        examples=examples.TABLE_USES,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(LogTableUseQuery)
        return self.page_of(table_uses_matching(self.user, **query))


class LockWaitViewSet(ShortListViewSet):
    """For administrators: who waited for whose locks."""

    queryset = LogCommand.objects.none()
    serializer_class = LogLockWaitSerializer
    is_for_administrators = True

    @described(
        "List waits for locks at a Perforce server",
        "For administrators: the 500 longest waits of 100 ms or more among commands "
        "that began in a time of a day at most, and who held the lock meanwhile, as "
        "far as the log says.",
        ok=LogLockWaitSerializer(many=True),
        refused=[400, 403],
        parameters=[LogLockWaitQuery],
        examples=examples.LOCK_WAITS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(LogLockWaitQuery)
        return self.page_of(lock_waits(self.user, **query).blocked)


class NewestBegun(Pages):
    """By when they began: logs are not always read in their order."""

    ordering = "-started_at"

    def get_ordering(self, *_: Any) -> tuple[str, ...]:
        return self.ordering, "-id"


class LogCommandViewSet(ApiViewSet):
    """For administrators: the commands in the logs of Perforce servers."""

    queryset = LogCommand.objects.none()
    serializer_class = LogCommandSerializer
    pagination_class = NewestBegun

    @described(
        "List commands of Perforce servers",
        "For administrators, newest first, as long as they are kept. What may be "
        "secret is left out of arguments.",
        ok=LogCommandSerializer(many=True),
        refused=[400, 403],
        parameters=[LogCommandQuery],
        examples=examples.COMMANDS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(LogCommandQuery)
        return self.page_of(commands_matching(self.user, **query))

    @described(
        "Get a command of a Perforce server",
        "For administrators, with the locks of tables that it waited for or held for "
        "100 ms or more, and for whom it waited, as far as the log says.",
        ok=LogCommandLocksSerializer,
        refused=[403, 404],
        examples=examples.LOCKS,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_administer(self.user))
        command = get_object_or_404(commands_visible_to(self.user), pk=pk)
        found = {"command": command, "locks": locks_of(command)}
        return Response(LogCommandLocksSerializer(found).data)


class LogMessageViewSet(ApiViewSet):
    """For administrators: errors in the logs of Perforce servers, and what else."""

    queryset = LogMessage.objects.none()
    serializer_class = LogMessageSerializer

    @described(
        "List messages of Perforce servers",
        "For administrators, newest first, as long as they are kept: errors of "
        "commands, what a server said of itself, and lines of no known kind.",
        ok=LogMessageSerializer(many=True),
        refused=[400, 403],
        parameters=[LogMessageQuery],
        examples=examples.MESSAGES,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(LogMessageQuery)
        return self.page_of(messages_matching(self.user, **query))
