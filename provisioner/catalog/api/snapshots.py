"""/api/v1/snapshots."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.catalog.actions.snapshots import (
    snapshot_describe,
    snapshot_hold,
    snapshot_release,
    snapshot_withdraw,
)
from provisioner.catalog.api import examples
from provisioner.catalog.api.shapes import (
    PinningWorkspaceSerializer,
    PinsSerializer,
    ReasonSerializer,
    SnapshotDescribeSerializer,
    SnapshotListQuery,
    SnapshotSerializer,
)
from provisioner.catalog.models import Snapshot
from provisioner.catalog.queries import named_template, snapshots_visible_to
from provisioner.catalog.retention import pins_of_snapshot


class SnapshotViewSet(ApiViewSet):
    """Published snapshots of templates."""

    queryset = Snapshot.objects.none()
    serializer_class = SnapshotSerializer

    def get_queryset(self) -> QuerySet[Snapshot]:
        return snapshots_visible_to(self.user)

    @described(
        "List snapshots",
        ok=SnapshotSerializer,
        refused=[400],
        parameters=[SnapshotListQuery],
        examples=examples.SNAPSHOTS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(SnapshotListQuery)
        snapshots = self.get_queryset()
        if "template" in query:
            snapshots = snapshots.filter(named_template(query["template"]))
        return self.page_of(snapshots)

    @described(
        "Get a snapshot",
        ok=SnapshotSerializer,
        refused=[404],
        examples=examples.SNAPSHOT,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "List what uses a snapshot",
        ok=PinsSerializer,
        refused=[404],
    )
    @action(methods=["get"], detail=True)
    def pins(self, request: Request, pk: int) -> Response:
        pins = pins_of_snapshot(self.get_object())
        if pins is None:
            raise Http404
        shown = pins.workspaces if self.user.is_administrator else None
        return Response(
            {
                "is_needed": pins.is_needed,
                "reasons": pins.reasons,
                "workspaces_count": pins.workspaces_number,
                "workspaces": shown
                and PinningWorkspaceSerializer(shown, many=True).data,
            }
        )

    @described(
        "Change label and notes of a snapshot",
        "For its template's owner and administrators. What is left out stays.",
        body=SnapshotDescribeSerializer,
        ok=SnapshotSerializer,
        refused=[403, 404],
        examples=examples.DESCRIBE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        snapshot = self.get_object()
        asked = self.read_body(SnapshotDescribeSerializer)
        return self.shown(snapshot_describe(by=self.user, snapshot=snapshot, **asked))

    @described(
        "Use this snapshot",
        "For its template's owner and administrators. New workspaces and warm pools "
        "get it until it is released, whatever is built meanwhile.",
        body=ReasonSerializer,
        ok=SnapshotSerializer,
        refused=[403, 404, 409],
        examples=examples.HOLD,
    )
    @action(methods=["post"], detail=True)
    def hold(self, request: Request, pk: int) -> Response:
        snapshot = self.get_object()
        asked = self.read_body(ReasonSerializer)
        return self.shown(snapshot_hold(by=self.user, snapshot=snapshot, **asked))

    @described(
        "Release a snapshot",
        "For its template's owner and administrators. New workspaces get the newest "
        "good one again. Does nothing if it is not held.",
        ok=SnapshotSerializer,
        refused=[403, 404],
    )
    @action(methods=["post"], detail=True)
    def release(self, request: Request, pk: int) -> Response:
        return self.shown(snapshot_release(by=self.user, snapshot=self.get_object()))

    @described(
        "Withdraw a snapshot",
        "For its template's owner and administrators. It gives no new workspaces, "
        "and warm pools replace their members. Existing workspaces stay; their "
        "owners get a mail with the reason. This cannot be undone.",
        body=ReasonSerializer,
        ok=SnapshotSerializer,
        refused=[403, 404, 409],
        examples=examples.WITHDRAW,
    )
    @action(methods=["post"], detail=True)
    def withdraw(self, request: Request, pk: int) -> Response:
        snapshot = self.get_object()
        asked = self.read_body(ReasonSerializer)
        return self.shown(snapshot_withdraw(by=self.user, snapshot=snapshot, **asked))
