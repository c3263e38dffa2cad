"""Pages of long lists that stay correct while rows are added and deleted."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field, QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination, Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.lib.refusals import InvalidRequest


class Pages(CursorPagination):
    """Newest first, 50 at a time or `limit`, up to 200."""

    ordering = "-id"
    page_size = 50
    largest_page_size = 200

    def paginate_queryset(
        self, queryset: QuerySet[Any], request: Request, view: Any = None
    ) -> list[Any] | None:
        field = queryset.model._meta.get_field(self.ordering.lstrip("-"))
        assert isinstance(field, Field)
        self.field = field
        return super().paginate_queryset(queryset, request, view)

    def get_page_size(self, request: Request) -> int:
        """Raises: InvalidRequest for a limit that is not 1 to 200."""
        limit = request.query_params.get("limit")
        if limit is None:
            return self.page_size
        if not (limit.isascii() and limit.isdecimal() and len(limit) <= 3):
            raise InvalidRequest("limit: must be a number.")
        if not 1 <= int(limit) <= self.largest_page_size:
            raise InvalidRequest(f"limit: 1 to {self.largest_page_size} are possible.")
        return int(limit)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Raises: InvalidRequest for a cursor that we did not make."""
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                self.field.to_python(cursor.position)
        except (NotFound, ValidationError) as error:
            raise InvalidRequest(
                "Invalid cursor. Take it from “next” or “previous”."
            ) from error
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "nullable": True, "format": "uri", "example": None}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        sizes = {
            "type": "integer",
            "minimum": 1,
            "maximum": self.largest_page_size,
            "default": self.page_size,
        }
        return [
            {
                "name": "cursor",
                "in": "query",
                "description": "The cursor, from “next” or “previous”.",
                "schema": {"type": "string"},
            },
            {
                "name": "limit",
                "in": "query",
                "description": "The page size.",
                "schema": sizes,
            },
        ]


class Whole(BasePagination):
    """Short lists, returned whole under `results`."""

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results"],
            "properties": {"results": schema},
        }


class TokenPages(Pages):
    """Tokens have no numeric id, so they are ordered by age."""

    ordering = "-created"
