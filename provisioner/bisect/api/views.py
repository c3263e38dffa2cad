"""The API of bisections."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts.models import User
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.api.waiting import ask_again_unless, wait_while
from provisioner.bisect.actions import (
    bisection_start,
    bisection_stop,
    bisection_verdict,
)
from provisioner.bisect.api import examples
from provisioner.bisect.api.shapes import (
    BisectionCreateSerializer,
    BisectionSerializer,
    BisectionWaitQuery,
    VerdictSerializer,
)
from provisioner.bisect.models import WAITS_FOR_VERDICT, Bisection
from provisioner.bisect.queries import BisectionOverview, bisections_visible_to
from provisioner.catalog.queries import templates_visible_to


def wait_until_asked_or_ended(bisection_id: int, *, seconds: float, by: User) -> bool:
    """Wait until a bisection has ended or waits for a verdict, or the time is over.

    Return False if too many requests wait already, so that this one did not.
    """
    running = Bisection.objects.filter(pk=bisection_id, state=Bisection.State.RUNNING)
    undecided = running.exclude(status_code=WAITS_FOR_VERDICT)
    return wait_while(undecided, seconds=seconds, by=by)


class BisectionViewSet(ApiViewSet):
    """Searches for the first bad change: yours, or everybody's for administrators."""

    queryset = Bisection.objects.none()
    serializer_class = BisectionSerializer
    makes_workspaces = "create"

    def get_queryset(self) -> QuerySet[Bisection]:
        return bisections_visible_to(self.user)

    @described(
        "List bisections",
        ok=BisectionSerializer,
        refused=[400],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        assert page is not None
        return self.get_paginated_response([self._shown(found) for found in page])

    @described(
        "Search for the first bad change",
        "Each step clones the nearest snapshot and syncs the clone to a change. No "
        "have list is written. A repeated request returns the search under way. A "
        "person may have a few running, by default three.",
        body=BisectionCreateSerializer,
        ok=BisectionSerializer,
        status=202,
        refused=[403, 409],
        parameters=[BisectionWaitQuery],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        seconds = self.read_query(BisectionWaitQuery)["wait"]
        asked = self.read_body(BisectionCreateSerializer)
        templates = templates_visible_to(self.user)
        if "site" in asked:
            templates = templates.filter(site__name=asked["site"])
        template = chosen(
            templates,
            word="template",
            id_or_name=asked["template"],
            hint="Name its site.",
        )
        bisection = bisection_start(
            by=self.user,
            template=template,
            good=asked["good"],
            bad=asked["bad"],
            command=asked["command"],
        )
        where = reverse("api:bisection-detail", [bisection.pk], request=request)
        answer = self._now(bisection.pk, seconds=seconds, status=202)
        answer["Location"] = where
        return answer

    @described(
        "Get a bisection",
        ok=BisectionSerializer,
        also={202: BisectionSerializer},
        refused=[400, 404],
        parameters=[BisectionWaitQuery],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(BisectionWaitQuery)["wait"]
        bisection = self.get_object()
        if not seconds:
            return Response(self._shown(bisection))
        return self._now(bisection.pk, seconds=seconds)

    @described(
        "Send a verdict",
        "It applies to the change being tested, whose clone is deleted. The next step "
        "starts. "
        "Repeating a verdict changes nothing.",
        body=VerdictSerializer,
        ok=BisectionSerializer,
        also={202: BisectionSerializer},
        refused=[403, 404, 409],
        parameters=[BisectionWaitQuery],
        examples=examples.VERDICT,
    )
    @action(methods=["post"], detail=True)
    def verdict(self, request: Request, pk: int) -> Response:
        seconds = self.read_query(BisectionWaitQuery)["wait"]
        bisection = self.get_object()
        asked = self.read_body(VerdictSerializer)
        bisection_verdict(by=self.user, bisection=bisection, **asked)
        return self._now(pk, seconds=seconds)

    @described(
        "Stop a bisection",
        "Its clone is deleted. A search that has ended does not change.",
        ok=BisectionSerializer,
        refused=[403, 404],
        examples=examples.STOP,
    )
    @action(methods=["post"], detail=True)
    def stop(self, request: Request, pk: int) -> Response:
        bisection_stop(by=self.user, bisection=self.get_object())
        return self._now(pk)

    def _now(self, pk: int, *, seconds: int = 0, status: int = 200) -> Response:
        """Answer with the bisection after the wait."""
        was_held = wait_until_asked_or_ended(pk, seconds=seconds, by=self.user)
        shown = self._shown(self.get_queryset().get(pk=pk))
        return ask_again_unless(was_held, Response(shown, status=status))

    def _shown(self, bisection: Bisection) -> dict[str, Any]:
        overview = BisectionOverview(bisection, user=self.user)
        return dict(BisectionSerializer(overview).data)
