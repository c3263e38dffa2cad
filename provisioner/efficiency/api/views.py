"""/api/v1/deduplication and /api/v1/storage/reduction."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet
from provisioner.efficiency import actions
from provisioner.efficiency.api import examples
from provisioner.efficiency.api.shapes import (
    DedupePlanChangeSerializer,
    DedupePlanSerializer,
    DedupeRunQuery,
    DedupeRunSerializer,
    ReductionDayQuery,
    ReductionDaySerializer,
)
from provisioner.efficiency.models import DedupePlan, DedupeRun, ReductionDay
from provisioner.efficiency.overviews import plan_overviews
from provisioner.efficiency.queries import days_matching, runs_matching
from provisioner.lib import clocks
from provisioner.sites.models import Site


class DedupePlanViewSet(ShortListViewSet):
    """For administrators: which volumes of each site are deduplicated, and when."""

    queryset = DedupePlan.objects.none()
    serializer_class = DedupePlanSerializer
    is_for_administrators = True

    @described(
        "List deduplication plans",
        "For administrators. One for each site; a site without one has the default "
        "plan, switched off.",
        ok=DedupePlanSerializer(many=True),
        refused=[403],
        operation_id="deduplication_plans_list",
        examples=examples.PLANS,
    )
    def list(self, request: Request) -> Response:
        plans = plan_overviews(now=clocks.database_now())
        return self.page_of([overview.plan for overview in plans])

    @described(
        "Change a deduplication plan",
        "For administrators, by the id of its site. A window that "
        "never comes is refused.",
        body=DedupePlanChangeSerializer,
        ok=DedupePlanSerializer,
        refused=[400, 403, 404],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        site = get_object_or_404(Site, pk=pk)
        asked = self.read_body(DedupePlanChangeSerializer)
        plan = actions.dedupe_plan_save(by=self.user, site=site, **asked)
        return self.shown(plan)


class DedupeRunViewSet(ApiViewSet):
    """For administrators: runs of deduplication."""

    queryset = DedupeRun.objects.none()
    serializer_class = DedupeRunSerializer

    @described(
        "List runs of deduplication",
        "For administrators, newest first.",
        ok=DedupeRunSerializer(many=True),
        refused=[400, 403],
        parameters=[DedupeRunQuery],
        operation_id="deduplication_runs_list",
        examples=examples.RUNS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(DedupeRunQuery)
        return self.page_of(runs_matching(self.user, **query))


class DataReductionViewSet(ApiViewSet):
    """For administrators: data reduction by day."""

    queryset = ReductionDay.objects.none()
    serializer_class = ReductionDaySerializer

    @described(
        "List data reduction by day",
        "For administrators, newest day first: what sites, templates and volumes held "
        "and took, and what each part saved.",
        ok=ReductionDaySerializer(many=True),
        refused=[400, 403],
        parameters=[ReductionDayQuery],
        operation_id="storage_reduction_list",
        examples=examples.DAYS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ReductionDayQuery)
        return self.page_of(days_matching(self.user, **query))
