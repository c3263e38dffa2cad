"""Answers to requests that take a while."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts.models import User
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_visible_to


def operation_answer(
    request: Request, operation: Operation, *, status: int = 202
) -> Response:
    """Answer with an operation; with status 202 also with its URL, to follow it."""
    assert isinstance(request.user, User)
    about = operation.subject.kind
    shown = operations_visible_to(request.user, about=about).get(pk=operation.pk)
    where = reverse("api:operation-detail", [operation.pk], request=request)
    headers = {"Location": where} if status == 202 else {}
    return Response(OperationSerializer(shown).data, status=status, headers=headers)
