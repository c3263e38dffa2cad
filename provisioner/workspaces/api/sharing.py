"""The API of shares: people and teams that may view a workspace."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.fields import Text
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.sites.models import OpenTo
from provisioner.workspaces import queries as workspace_queries
from provisioner.workspaces.actions.sharing import (
    workspace_open,
    workspace_share,
    workspace_unshare,
)
from provisioner.workspaces.api import examples
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.permissions import can_change_workspace


class ShareSerializer(serializers.ModelSerializer[Share]):
    person = serializers.CharField(
        source="person.username",
        allow_null=True,
        default=None,
        help_text="A username; null if it is a team.",
    )
    team = serializers.CharField(
        source="team.name",
        allow_null=True,
        default=None,
        help_text="A team's name; null if it is a person.",
    )
    created_by = serializers.CharField(source="created_by.username")

    class Meta:
        model = Share
        fields = (
            "id",
            "person",
            "team",
            "may_clone",
            "ends_at",
            "created_at",
            "created_by",
        )
        read_only_fields = fields


class ShareCreateSerializer(serializers.Serializer[Any]):
    """Either a person or a team."""

    person = Text(max_length=150, default="", allow_blank=True, help_text="A username.")
    team = Text(
        max_length=100, default="", allow_blank=True, help_text="A team's name."
    )
    may_clone = serializers.BooleanField(
        default=False,
        help_text="Whether they may clone it, and so read every file in it.",
    )
    ends_at = serializers.DateTimeField(
        default=None,
        allow_null=True,
        help_text="When it ends. Null: not until it is revoked.",
    )


class OpenSerializer(serializers.Serializer[Any]):
    to = serializers.ChoiceField(choices=OpenTo.choices)


class WorkspaceOpenViewSet(OfWorkspace):
    """Who may enter a workspace's directory."""

    @described(
        "Set who may enter a workspace's directory",
        "Only its owner, or its owner's group, even people whom Perforce denies "
        "these files. The mode of its root directory follows within seconds; files "
        "below keep their modes.",
        body=OpenSerializer,
        ok=WorkspaceSerializer,
        refused=[403, 404, 409],
        examples=examples.OPEN,
    )
    @action(methods=["post"], detail=True)
    def open(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        to = OpenTo(self.read_body(OpenSerializer)["to"])
        workspace_open(by=self.user, workspace=workspace, to=to)
        return self.shown(self.get_object())


class WorkspaceShareViewSet(ApiViewSet):
    """For the owner: who else may view a workspace."""

    queryset = Share.objects.none()
    serializer_class = ShareSerializer

    def get_queryset(self) -> QuerySet[Share]:
        shares = Share.objects.current().filter(workspace=self._workspace())
        return shares.select_related("person", "team", "created_by")

    def _workspace(self) -> Workspace:
        workspace = get_object_or_404(
            workspace_queries.workspaces_visible_to(self.user),
            pk=self.kwargs["workspace_pk"],
        )
        permissions.require(can_change_workspace(self.user, workspace))
        return workspace

    @described(
        "List the shares of a workspace",
        ok=ShareSerializer,
        refused=[400, 403, 404],
    )
    def list(self, request: Request, workspace_pk: int) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Share a workspace",
        "A person, or a whole team, may then see it here as team mates of its owner "
        "do: where it is, what it contains, what happened. No file's owner or mode "
        "changes: its modes and the hosts that mount it decide who can read or write "
        "it. With `may_clone` they may clone it for themselves, as it is now. Sharing "
        "again returns the same share, with `may_clone` and `ends_at` as said.",
        body=ShareCreateSerializer,
        ok=ShareSerializer,
        status=201,
        refused=[403, 404, 409],
        examples=examples.SHARE,
    )
    def create(self, request: Request, workspace_pk: int) -> Response:
        workspace = self._workspace()
        asked = self.read_body(ShareCreateSerializer)
        share = workspace_share(by=self.user, workspace=workspace, **asked)
        return self.shown(share, status=201)

    @described(
        "Revoke a share",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, workspace_pk: int, pk: int) -> Response:
        workspace_unshare(by=self.user, share=self.get_object())
        return Response(status=204)
