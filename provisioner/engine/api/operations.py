"""/api/v1/operations."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.engine.api.shapes import OperationListQuery, OperationSerializer
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_visible_to


class OperationViewSet(ApiViewSet):
    """What was asked for and takes a while, step by step."""

    queryset = Operation.objects.none()
    serializer_class = OperationSerializer

    def get_queryset(self) -> QuerySet[Operation]:
        return operations_visible_to(self.user)

    @described(
        "List operations",
        ok=OperationSerializer,
        refused=[400],
        parameters=[OperationListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(OperationListQuery)
        about = {f"subject__{kind}": pk for kind, pk in query.items()}
        return self.page_of(self.get_queryset().filter(**about))

    @described("Look at an operation", ok=OperationSerializer, refused=[404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)
