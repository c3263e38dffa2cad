"""/api/v1/storage-advice and /api/v1/support-matrix."""

from __future__ import annotations

from dataclasses import dataclass

from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.advice.api import examples
from provisioner.advice.api.shapes import (
    StorageAdviceQuery,
    StorageAdviceSerializer,
    SupportRowSerializer,
)
from provisioner.advice.deviations import Held
from provisioner.advice.forms import AdviceForm
from provisioner.advice.overviews import support_rows
from provisioner.advice.recommending import Rated, Recommendation
from provisioner.advice.reports import shown_advice, shown_places
from provisioner.api.schema import described
from provisioner.api.viewsets import ShortListViewSet
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer


@dataclass(frozen=True, kw_only=True)
class RoleAdvice:
    """A role's recommendation with all protocols, and what is in use for it."""

    found: Recommendation
    protocols: list[Rated]
    in_use: list[Held]


class StorageAdviceViewSet(ShortListViewSet):
    """Which protocol for which role, for administrators."""

    queryset = PerforceServer.objects.none()
    serializer_class = StorageAdviceSerializer
    is_for_administrators = True

    @described(
        "Recommend storage for Perforce",
        "For administrators. A protocol for each role by weights and facts, with "
        "reasons, sources and doubts, and what in use deviates from it. An unknown "
        "score counts as bad for the order, and as best for `high`.",
        ok=StorageAdviceSerializer(many=True),
        refused=[400, 403],
        parameters=[StorageAdviceQuery],
        operation_id="storage_advice_list",
        examples=examples.ADVICE,
    )
    def list(self, request: Request) -> Response:
        form = AdviceForm.of(self.read_query(StorageAdviceQuery))
        advice = shown_advice(form.weights(), form.facts())
        places = [each.held for each in shown_places(advice)]
        return self.page_of(
            RoleAdvice(
                found=each.found,
                protocols=[row.rated for row in each.rows],
                in_use=[held for held in places if held.place.role is each.found.role],
            )
            for each in advice
        )


class SupportViewSet(ShortListViewSet):
    """Which releases in use are known good, for administrators."""

    queryset = PerforceServer.objects.none()
    serializer_class = SupportRowSerializer
    is_for_administrators = True

    @described(
        "List the releases in use",
        "For administrators: ONTAP of sites, p4d of servers, kernels of workers' "
        "hosts, and how they mount workspaces. What no source says is unknown.",
        ok=SupportRowSerializer(many=True),
        refused=[403],
        operation_id="support_matrix_list",
        examples=examples.SUPPORT,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(support_rows(today=clocks.database_now().date()))
