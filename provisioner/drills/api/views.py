"""/api/v1/drills and /api/v1/drill-plans, for administrators."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet, chosen
from provisioner.drills import actions
from provisioner.drills.api import examples
from provisioner.drills.api.shapes import (
    DrillPlanSaveSerializer,
    DrillPlanSerializer,
    DrillSerializer,
    DrillStartSerializer,
)
from provisioner.drills.models import Drill, DrillPlan
from provisioner.drills.queries import drills
from provisioner.sandboxes.api.plans import with_rows
from provisioner.sites.models import PerforceServer


class DrillViewSet(ApiViewSet):
    """For administrators: servers that were brought up from their replicated copies."""

    queryset = Drill.objects.none()
    serializer_class = DrillSerializer

    @described(
        "List disaster drills",
        "For administrators, newest first.",
        ok=DrillSerializer(many=True),
        refused=[400, 403],
        examples=examples.DRILLS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(drills(self.user))

    @described(
        "Get a disaster drill",
        "For administrators.",
        ok=DrillSerializer,
        refused=[403, 404],
        examples=examples.DRILLS,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(get_object_or_404(drills(self.user), pk=pk))

    @described(
        "Begin a disaster drill",
        "For administrators, by the plan of the server.",
        body=DrillStartSerializer,
        ok=DrillSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.START,
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(DrillStartSerializer)
        servers = PerforceServer.objects.all()
        server = chosen(servers, word="server", id_or_name=asked["server"])
        drill = actions.drill_start(by=self.user, server=server)
        return self.shown(drill, status=202)


class DrillPlanViewSet(ShortListViewSet):
    """For administrators: when drills of a server are made, where, from what."""

    queryset = DrillPlan.objects.none()
    serializer_class = DrillPlanSerializer
    is_for_administrators = True

    @described(
        "List plans of disaster drills",
        "For administrators.",
        ok=DrillPlanSerializer(many=True),
        refused=[403],
        examples=examples.PLANS,
    )
    def list(self, request: Request) -> Response:
        rows = DrillPlan.objects.select_related("server", "host", "version")
        return self.page_of(rows.prefetch_related("volumes"))

    @described(
        "Plan the disaster drills of a server",
        "For administrators, by the id of the server. The first time host, version and "
        "replicas are needed.",
        body=DrillPlanSaveSerializer,
        ok=DrillPlanSerializer,
        refused=[400, 403, 404, 409],
        examples=examples.SAVE_PLAN,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = with_rows(self.read_body(DrillPlanSaveSerializer))
        return self.shown(actions.drill_plan_save(by=self.user, server=server, **asked))
