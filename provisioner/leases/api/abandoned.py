"""The API of abandoned workspaces."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.leases import abandoned
from provisioner.leases.actions.abandoned import abandoned_notify, abandoned_retire
from provisioner.leases.api import shapes
from provisioner.workspaces.models import Workspace


class AbandonedViewSet(ShortListViewSet):
    """For administrators: workspaces that nobody seems to need."""

    queryset = Workspace.objects.none()
    serializer_class = shapes.AbandonedSerializer

    @described(
        "List what looks abandoned",
        "Each with its signs of abandonment, their times, and the space that retiring "
        "it would free. Longest idle first.",
        ok=shapes.AbandonedListSerializer,
        refused=[403],
        operation_id="abandoned_list",
    )
    def list(self, request: Request) -> Response:
        found = abandoned.abandoned_workspaces(self.user)
        return Response(shapes.AbandonedListSerializer(found).data)

    @described(
        "Ask owners whether they need these",
        "By mail, at most one a day and workspace.",
        body=shapes.ChosenSerializer,
        ok=shapes.OutcomesSerializer,
        refused=[403],
    )
    @action(methods=["post"], detail=False)
    def notify(self, request: Request) -> Response:
        asked = self.read_body(shapes.ChosenSerializer)
        results = abandoned_notify(by=self.user, pks=asked["workspaces"])
        return Response(shapes.OutcomesSerializer({"results": results}).data)

    @described(
        "Retire these",
        "Unsubmitted work is rescued. Each workspace has its own result: one that was "
        "used meanwhile is refused. With `preview` nothing is done.",
        body=shapes.AbandonedRetireSerializer,
        ok=shapes.OutcomesSerializer,
        refused=[403],
    )
    @action(methods=["post"], detail=False)
    def retire(self, request: Request) -> Response:
        asked = self.read_body(shapes.AbandonedRetireSerializer)
        results = abandoned_retire(
            by=self.user, pks=asked["workspaces"], preview=asked["preview"]
        )
        return Response(shapes.OutcomesSerializer({"results": results}).data)
