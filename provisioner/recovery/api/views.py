"""The API that restores workspaces from copies."""

from __future__ import annotations

from django.http import Http404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import chosen
from provisioner.api.waiting import WaitQuery
from provisioner.copies.queries import copies_visible_to
from provisioner.recovery.actions import workspace_recover
from provisioner.recovery.api import examples
from provisioner.recovery.api.shapes import RecoverySerializer
from provisioner.sites.models import Site
from provisioner.workspaces.api.shapes import WorkspaceSerializer
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.permissions import can_change_workspace


class WorkspaceRecoveryViewSet(OfWorkspace):
    """Restore a workspace at the site of a copy."""

    makes_workspaces = "recover"

    @described(
        "Restore a workspace from a copy at another site",
        "The answer is the new workspace, with the files and opened work of the last "
        "transfer. Offered while the original's site does not answer, and to "
        "administrators who confirm that the original is stopped.",
        body=RecoverySerializer,
        ok=WorkspaceSerializer,
        status=202,
        refused=[403, 404, 409],
        parameters=[WaitQuery],
        examples=examples.RECOVER,
    )
    @action(methods=["post"], detail=True, url_path="restore-copy")
    def recover(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(WaitQuery)["wait"]
        workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        asked = self.read_body(RecoverySerializer)
        site = chosen(Site.objects.all(), word="site", id_or_name=asked["site"])
        copies = copies_visible_to(self.user).filter(workspace=workspace, site=site)
        copy = copies.first()
        if copy is None:
            raise Http404
        made = workspace_recover(
            by=self.user,
            copy=copy,
            name=asked.get("name", ""),
            is_stopped=asked["original_is_stopped"],
        )
        return self.settled(made, seconds=seconds)
