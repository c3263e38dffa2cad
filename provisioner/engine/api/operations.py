"""/api/v1/operations."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.engine.api import examples
from provisioner.engine.api.logs import LogQuery, LogSerializer, printed_piece
from provisioner.engine.api.shapes import OperationListQuery, OperationSerializer
from provisioner.engine.logs import of_steps
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_visible_to


class OperationViewSet(ApiViewSet):
    """Operations: requests that take a while, step by step."""

    queryset = Operation.objects.none()
    serializer_class = OperationSerializer

    def get_queryset(self) -> QuerySet[Operation]:
        return operations_visible_to(self.user)

    @described(
        "List operations",
        ok=OperationSerializer,
        refused=[400],
        parameters=[OperationListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(OperationListQuery)
        about = {f"subject__{kind}": pk for kind, pk in query.items()}
        return self.page_of(self.get_queryset().filter(**about))

    @described(
        "Get an operation",
        ok=OperationSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Read what a step printed",
        "Without `offset` its end; continue at `next_offset` until `is_last`. While "
        "`is_running`, more may come: poll every few seconds. Without "
        "`step`, of `current_step`.",
        ok=LogSerializer,
        parameters=[LogQuery],
        refused=[400, 404],
    )
    @action(detail=True)
    def log(self, request: Request, pk: int) -> Response:
        asked = self.read_query(LogQuery)
        overview = of_steps.find_operation(self.user, pk=pk)
        if overview is None:
            raise Http404
        return Response(LogSerializer(printed_piece(overview, **asked)).data)
