"""/api/v1/server-logs, /api/v1/server-load and /api/v1/server-commands."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet
from provisioner.server_log import actions
from provisioner.server_log.api import examples
from provisioner.server_log.api.shapes import (
    LogCommandQuery,
    LogCommandSerializer,
    ServerLoadQuery,
    ServerLoadSerializer,
    ServerLogChangeSerializer,
    ServerLogSerializer,
)
from provisioner.server_log.models import LogCommand, LogSum, ServerLog
from provisioner.server_log.queries import commands_matching, logs_visible_to
from provisioner.server_log.tallies import tallies
from provisioner.sites.models import PerforceServer

MOST_NAMES = 1000


class ServerLogViewSet(ShortListViewSet):
    """For administrators: the logs of Perforce servers."""

    queryset = ServerLog.objects.none()
    serializer_class = ServerLogSerializer

    @described(
        "List the logs of Perforce servers",
        "For administrators: which files are read, how far, and what was odd.",
        ok=ServerLogSerializer(many=True),
        refused=[403],
        examples=examples.LOGS,
    )
    def list(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        return self.page_of(logs_visible_to(self.user))

    @described(
        "Change the log of a Perforce server",
        "For administrators, by the id of the server. Another file is read from its "
        "beginning.",
        body=ServerLogChangeSerializer,
        ok=ServerLogSerializer,
        refused=[400, 403, 404],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_administer(self.user))
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = self.read_body(ServerLogChangeSerializer)
        return self.shown(actions.server_log_save(by=self.user, server=server, **asked))


class ServerLoadViewSet(ShortListViewSet):
    """For administrators: what commands of Perforce servers took."""

    queryset = LogSum.objects.none()
    serializer_class = ServerLoadSerializer

    @described(
        "Sum up commands of Perforce servers",
        "For administrators: what the commands of the last days took by command, user, "
        "program, client or host, from the sums of their logs. The first 1,000 names.",
        ok=ServerLoadSerializer(many=True),
        refused=[400, 403],
        parameters=[ServerLoadQuery],
        examples=examples.LOAD,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ServerLoadQuery)
        return self.page_of(tallies(self.user, **query, most=MOST_NAMES))


class LogCommandViewSet(ApiViewSet):
    """For administrators: the commands in the logs of Perforce servers."""

    queryset = LogCommand.objects.none()
    serializer_class = LogCommandSerializer

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
