"""/api/v1/workspaces/{id}/rescues: rescues, their contents, and downloads."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.rescues.actions import rescue_contents, rescue_download
from provisioner.rescues.contents import Contents, Entry
from provisioner.rescues.queries import rescues_of
from provisioner.rescues.views import download_answer
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import workspaces_visible_to

WHICH = OpenApiParameter(
    "rescue", OpenApiTypes.INT, OpenApiParameter.PATH, description="Its id."
)


class ShelfSerializer(serializers.Serializer[Any]):
    """A shelved change with rescued files; `was` is the change they were pending in."""

    change = serializers.IntegerField()
    was = serializers.CharField()
    files = serializers.SerializerMethodField(help_text="How many.")

    def get_files(self, shelf: dict[str, Any]) -> int:
        return len(shelf["files"])


class RescueSerializer(serializers.ModelSerializer[Rescue]):
    shelves = ShelfSerializer(many=True)

    class Meta:
        model = Rescue
        fields = (
            "id",
            "created_at",
            "shelves",
            "has_archive",
            "directory",
            "archived_files",
            "archived_bytes",
            "archive_sha256",
        )
        read_only_fields = fields


class EntrySerializer(serializers.Serializer[Entry]):
    """A rescued file. Bytes of a path that are not UTF-8 appear as \xe9."""

    path = serializers.CharField()
    kind = serializers.CharField(help_text="opened, changed, missing or untracked.")
    state = serializers.CharField(
        help_text="stored, or why the archive lacks its content, such as missing for "
        "a file that had been deleted."
    )
    size_bytes = serializers.IntegerField(
        allow_null=True, help_text="null if the archive lacks its content."
    )
    link_target = serializers.CharField(
        help_text="The target of a symbolic link, else empty."
    )


class ContentsSerializer(serializers.Serializer[Contents]):
    entries = EntrySerializer(many=True)
    next_start = serializers.IntegerField(
        allow_null=True, help_text="The `start` of the next page; null: there is none."
    )


class ContentsQuery(serializers.Serializer[Any]):
    start = serializers.IntegerField(
        min_value=0,
        max_value=2**53,
        default=0,
        help_text="`next_start` of the previous answer.",
    )


class WorkspaceRescueViewSet(ShortListViewSet):
    """Rescues of a workspace, for its owner and administrators."""

    queryset = Workspace.objects.none()
    serializer_class = RescueSerializer

    def get_queryset(self) -> QuerySet[Workspace]:
        return workspaces_visible_to(self.user)

    @described(
        "List the rescues of a workspace",
        "The newest rescue comes first.",
        ok=RescueSerializer(many=True),
        refused=[403, 404],
    )
    @action(detail=True, url_path="rescues", url_name="list")
    def rescues(self, request: Request, pk: int) -> Response:
        return self.page_of(rescues_of(self._workspace()))

    @described(
        "List what is in the archive of a rescue",
        "A host of the site reads it. 200 entries come at a time, in order of their "
        "paths.",
        ok=ContentsSerializer,
        parameters=[WHICH, ContentsQuery],
        refused=[400, 403, 404, 409],
        operation_id="workspaces_rescue_files",
    )
    @action(detail=True, url_path="rescues/<int:rescue>/files", url_name="files")
    def files(self, request: Request, pk: int, rescue: int) -> Response:
        asked = self.read_query(ContentsQuery)
        contents = rescue_contents(
            by=self.user, rescue=self._rescue(rescue), start=asked["start"]
        )
        return Response(ContentsSerializer(contents).data)

    @described(
        "Download the archive of a rescue",
        "A tar file, streamed from a host of the site; `archive_sha256` is its "
        "SHA-256. The audit log records it. An answer shorter than its "
        "Content-Length was aborted.",
        ok=OpenApiTypes.BINARY,
        media_type="application/x-tar",
        parameters=[WHICH],
        refused=[403, 404, 409],
        operation_id="workspaces_rescue_archive",
    )
    @action(detail=True, url_path="rescues/<int:rescue>/archive", url_name="archive")
    def archive(self, request: Request, pk: int, rescue: int) -> HttpResponseBase:
        return download_answer(
            rescue_download(by=self.user, rescue=self._rescue(rescue))
        )

    def _workspace(self) -> Workspace:
        workspace: Workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        return workspace

    def _rescue(self, pk: int) -> Rescue:
        rescue = rescues_of(self._workspace()).filter(pk=pk).first()
        if rescue is None:
            raise Http404
        return rescue
