"""The API of warm pools, for administrators."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.queries import templates_visible_to
from provisioner.lib.refusals import InvalidRequest
from provisioner.pools import queries
from provisioner.pools.actions import (
    pool_create,
    pool_delete,
    pool_update,
)
from provisioner.pools.api import examples
from provisioner.pools.api.shapes import (
    PoolChangeSerializer,
    PoolCreateSerializer,
    PoolSerializer,
)
from provisioner.pools.models import Pool
from provisioner.sites.models import Site


class PoolViewSet(ApiViewSet):
    """For administrators: workspaces made ahead of requests."""

    queryset = Pool.objects.none()
    serializer_class = PoolSerializer

    def get_queryset(self) -> QuerySet[Pool]:
        permissions.require(permissions.can_administer(self.user))
        return queries.all_pools()

    @described(
        "List warm pools",
        ok=PoolSerializer,
        refused=[400, 403],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a warm pool",
        ok=PoolSerializer,
        refused=[403, 404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Create a warm pool",
        "It is filled after all requests. Requests by that account for that "
        "template and purpose at that site are then answered from it.",
        body=PoolCreateSerializer,
        ok=PoolSerializer,
        status=201,
        refused=[403, 409],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_administer(self.user))
        asked = self.read_body(PoolCreateSerializer)
        template = chosen(
            templates_visible_to(self.user),
            word="template",
            id_or_name=asked.pop("template"),
            hint="Give its id.",
        )
        if "site" in asked:
            asked["site"] = chosen(
                Site.objects.select_related("perforce_server"),
                word="site",
                id_or_name=asked["site"],
            )
        username = asked.pop("owner")
        owner = User.objects.filter(username=username).first()
        if owner is None:
            raise InvalidRequest(f"There is no account “{username}”.")
        pool = pool_create(by=self.user, template=template, owner=owner, **asked)
        return self.shown_now(pool, status=201, at="pool-detail")

    @described(
        "Change a warm pool",
        "An idle pool, and one that pauses after failures, is filled again.",
        body=PoolChangeSerializer,
        ok=PoolSerializer,
        refused=[403, 404, 409],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        pool = self.get_object()
        asked = self.read_body(PoolChangeSerializer)
        pool_update(by=self.user, pool=pool, **asked)
        return self.shown_now(pool)

    @described(
        "Delete a warm pool",
        "Its members are retired; `figures` counts them. Claimed workspaces stay.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        pool_delete(by=self.user, pool=self.get_object())
        return Response(status=204)
