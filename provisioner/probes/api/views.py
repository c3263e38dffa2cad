"""/api/v1/probes, /api/v1/moments and /api/v1/comparison."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts.models import User
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet, chosen
from provisioner.lib import clocks
from provisioner.probes import actions
from provisioner.probes.api import examples
from provisioner.probes.api.shapes import (
    ComparisonQuery,
    ComparisonSerializer,
    MomentCreateSerializer,
    MomentSerializer,
    ProbePlanChangeSerializer,
    ProbePlanSerializer,
    ProbeRoundQuery,
    ProbeRoundSerializer,
    ProbeTimeQuery,
    ProbeTimeSerializer,
    ProbeWeekSerializer,
    ReportMailsCreateSerializer,
    ReportMailSerializer,
    ReportMailsSerializer,
)
from provisioner.probes.comparing import Report, compare_periods
from provisioner.probes.models import Moment, ProbePlan, ProbeRun, ProbeTime, ReportMail
from provisioner.probes.queries import (
    moments_visible_to,
    plans,
    report_mails_visible_to,
    rounds_matching,
    times_matching,
    weeks_of,
)
from provisioner.sites.models import PerforceServer


class ProbePlanViewSet(ShortListViewSet):
    """For administrators: which commands are timed at each server."""

    queryset = ProbePlan.objects.none()
    serializer_class = ProbePlanSerializer
    is_for_administrators = True

    @described(
        "List the plans of probes",
        "For administrators. One for each server at a site.",
        ok=ProbePlanSerializer(many=True),
        refused=[403],
        operation_id="probes_list",
        examples=examples.PLANS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(plans())

    @described(
        "Change the plan of a probe",
        "For administrators, by the id of its server. A command that may change "
        "something is refused.",
        body=ProbePlanChangeSerializer,
        ok=ProbePlanSerializer,
        refused=[400, 403, 404],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = self.read_body(ProbePlanChangeSerializer)
        return self.shown(actions.probe_plan_save(by=self.user, server=server, **asked))


class ProbeTimeViewSet(ApiViewSet):
    """For administrators: what each command took in each round."""

    queryset = ProbeTime.objects.none()
    serializer_class = ProbeTimeSerializer
    is_for_administrators = True

    @described(
        "List what commands took",
        "For administrators, newest round first. They are kept for 13 months.",
        ok=ProbeTimeSerializer(many=True),
        refused=[400, 403],
        parameters=[ProbeTimeQuery],
        operation_id="probes_times_list",
        examples=examples.TIMES,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ProbeTimeQuery)
        return self.page_of(times_matching(self.user, **query).order_by("-pk"))


class ProbeRoundViewSet(ApiViewSet):
    """For administrators: each round, and each gap with its reason."""

    queryset = ProbeRun.objects.none()
    serializer_class = ProbeRoundSerializer
    is_for_administrators = True

    @described(
        "List the rounds of probes",
        "For administrators, newest first, with those that did not happen. They are "
        "kept for 13 months.",
        ok=ProbeRoundSerializer(many=True),
        refused=[400, 403],
        parameters=[ProbeRoundQuery],
        operation_id="probes_rounds_list",
        examples=examples.ROUNDS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ProbeRoundQuery)
        return self.page_of(rounds_matching(self.user, **query))


class ProbeWeekViewSet(ShortListViewSet):
    """For administrators: average, median, maximum and minimum by week."""

    queryset = ProbeTime.objects.none()
    serializer_class = ProbeWeekSerializer
    is_for_administrators = True

    @described(
        "List what commands took by week",
        "For administrators, newest week first, of the last eight.",
        ok=ProbeWeekSerializer(many=True),
        refused=[403],
        operation_id="probes_weeks_list",
        examples=examples.WEEKS,
    )
    def list(self, request: Request) -> Response:
        servers = [plan.server for plan in plans()]
        return self.page_of(weeks_of(servers, now=clocks.database_now()))


class MomentViewSet(ApiViewSet):
    """For administrators: when something was changed at a server."""

    queryset = Moment.objects.none()
    serializer_class = MomentSerializer
    is_for_administrators = True

    def get_queryset(self) -> QuerySet[Moment]:
        return moments_visible_to(self.user)

    @described(
        "List moments",
        "For administrators, newest first.",
        ok=MomentSerializer(many=True),
        refused=[400, 403],
        operation_id="moments_list",
        examples=examples.MOMENTS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Mark a moment",
        "For administrators. What was measured before and after it can be compared.",
        body=MomentCreateSerializer,
        ok=MomentSerializer,
        status=201,
        refused=[400, 403],
        examples=examples.MARK,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(MomentCreateSerializer)
        return self.shown(actions.moment_mark(by=self.user, **asked), status=201)

    @described(
        "Delete a moment",
        "For administrators. What was measured stays.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        actions.moment_delete(by=self.user, moment=self.get_object())
        return Response(status=204)


class ComparisonViewSet(ShortListViewSet):
    """For administrators: two periods of a server compared."""

    queryset = Moment.objects.none()
    serializer_class = ComparisonSerializer
    is_for_administrators = True

    @described(
        "Compare two periods",
        "For administrators: some days before and after a moment, or two periods of a "
        "server. One entry for each measure, none if nothing was measured.",
        ok=ComparisonSerializer(many=True),
        refused=[400, 403],
        parameters=[ComparisonQuery],
        operation_id="comparison_list",
        examples=examples.COMPARISON,
    )
    def list(self, request: Request) -> Response:
        asked = self.read_query(ComparisonQuery)
        return self.page_of(_compared(self.user, asked).measures)


class ReportMailViewSet(ApiViewSet):
    """For administrators: mails with reports."""

    queryset = ReportMail.objects.none()
    serializer_class = ReportMailSerializer
    is_for_administrators = True

    @described(
        "List mails with reports",
        "For administrators, newest first, with what became of each.",
        ok=ReportMailSerializer(many=True),
        refused=[400, 403],
        operation_id="report_mails_list",
        examples=examples.REPORT_MAILS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(report_mails_visible_to(self.user))

    @described(
        "Mail a report",
        "For administrators. Two periods are compared as in a comparison, and each of "
        "the people gets the report by mail.",
        body=ReportMailsCreateSerializer,
        ok=ReportMailsSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.REPORT_MAIL,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(ReportMailsCreateSerializer)
        people = " ".join(asked.pop("people"))
        report = _compared(self.user, asked)
        mails = actions.report_mail(by=self.user, report=report, people=people)
        return Response(ReportMailsSerializer({"mails": mails}).data, status=202)


def _compared(user: User, asked: dict[str, Any]) -> Report:
    """Compare as asked: servers by their names, moments by their ids."""
    if "server" in asked:
        asked["server"] = chosen(
            PerforceServer.objects.all(), word="server", id_or_name=asked["server"]
        )
    if "moment" in asked:
        asked["moment"] = chosen(
            moments_visible_to(user), word="moment", id_or_name=asked["moment"]
        )
    return compare_periods(by=user, **asked)
