"""Base classes of the API's viewsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from provisioner.accounts.models import User
from provisioner.accounts.token_throttling import WorkspaceThrottle
from provisioner.api.http import AlwaysJson
from provisioner.api.pagination import Pages, Whole
from provisioner.lib.refusals import InvalidRequest

AnyModel = TypeVar("AnyModel", bound=Model)


class ApiViewSet(GenericViewSet[Any]):
    """The base of all viewsets: JSON only, numeric ids, pages, strict input."""

    content_negotiation_class = AlwaysJson
    pagination_class: type[BasePagination] | None = Pages
    lookup_value_converter = "int"
    makes_workspaces: str | None = None
    """The action that counts as a request for a workspace."""
    is_for_hosts = False
    """Whether tokens that read mounts may come here."""
    is_for_administrators = False
    """Whether nobody else may come here, whatever the action."""

    @property
    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def get_throttles(self) -> list[BaseThrottle]:
        throttles = super().get_throttles()
        if self.action is None or self.action != self.makes_workspaces:
            return throttles
        return [*throttles, WorkspaceThrottle()]

    def read_body(self, shape: type[Serializer[Any]]) -> dict[str, Any]:
        return _validated(shape, self.request.data)

    def read_query(self, shape: type[Serializer[Any]]) -> dict[str, Any]:
        # A plain dict: a QueryDict would be taken for an HTML form, where "" is absent.
        return _validated(shape, self.request.query_params.dict())

    def shown(self, row: Any, *, status: int = 200, at: str = "") -> Response:
        """Answer with a row; `at` is the name of its URL, for the Location header."""
        body = self.get_serializer(row).data
        where = at and reverse(f"api:{at}", [row.pk], request=self.request)
        headers = {"Location": where} if where else {}
        return Response(body, status=status, headers=headers)

    def shown_now(self, row: Model, *, status: int = 200, at: str = "") -> Response:
        """Answer with the current state of a row, read again."""
        read_again = self.get_queryset().get(pk=row.pk)
        return self.shown(read_again, status=status, at=at)

    def page_of(self, queryset: QuerySet[Any]) -> Response:
        page = self.paginate_queryset(queryset)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class ShortListViewSet(ApiViewSet):
    """Lists that are short enough to need no pages."""

    pagination_class = Whole

    def page_of(self, queryset: Iterable[Any]) -> Response:
        serializer = self.get_serializer(queryset, many=True)
        return self.get_paginated_response(serializer.data)


def _validated(shape: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    validated: dict[str, Any] = serializer.validated_data
    return validated


def chosen(
    rows: QuerySet[AnyModel], *, word: str, id_or_name: int | str, hint: str = ""
) -> AnyModel:
    """Return the row with an id or name.

    Raises: InvalidRequest if there is none, or more than one of that name.
    """
    field = "pk" if isinstance(id_or_name, int) else "name"
    found = list(rows.filter(**{field: id_or_name})[:2])
    if not found:
        raise InvalidRequest(f"There is no {word} “{id_or_name}”.")
    if len(found) > 1:
        raise InvalidRequest(f"There is more than one {word} “{id_or_name}”. {hint}")
    return found[0]


class NothingHere(APIView):
    """The answer to every other URL below /api/."""

    schema = None
    content_negotiation_class = AlwaysJson
    is_for_hosts = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
