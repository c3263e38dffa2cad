"""The API of moves of a template's volume to another aggregate."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.catalog.models import Template
from provisioner.catalog.queries import templates_visible_to
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.moves import actions
from provisioner.moves.api import examples
from provisioner.moves.api.shapes import MovePreviewSerializer, MoveRequestSerializer
from provisioner.moves.previews import move_preview


class TemplateMoveViewSet(ApiViewSet):
    """Move a template's volume to another aggregate."""

    queryset = Template.objects.none()
    serializer_class = MovePreviewSerializer
    is_for_administrators = True

    def get_queryset(self) -> QuerySet[Template]:
        return templates_visible_to(self.user)

    @described(
        "Move a template to another aggregate",
        "For administrators. Workspaces are cloned from it as before meanwhile, but it "
        "is not built. After a stop or a failure it begins again. The answer is the "
        "operation to follow.",
        body=MoveRequestSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.MOVE,
    )
    @action(methods=["post"], detail=True)
    def move(self, request: Request, pk: int) -> Response:
        asked = self.read_body(MoveRequestSerializer)
        operation = actions.template_move(
            by=self.user, template=self.get_object(), **asked
        )
        return operation_answer(request, operation)

    @described(
        "Preview a move",
        "For administrators. What the volume needs, what its clones share, which "
        "aggregates have room, and the last move that was requested.",
        ok=MovePreviewSerializer,
        refused=[403, 404],
        operation_id="templates_move_get",
        examples=examples.PREVIEW,
    )
    @move.mapping.get  # type: ignore[untyped-decorator]  # of REST framework
    def preview(self, request: Request, pk: int) -> Response:
        return Response(MovePreviewSerializer(move_preview(self.get_object())).data)

    @described(
        "Pause a move",
        "For administrators. ONTAP keeps what is copied, and the template can be built "
        "meanwhile. The answer is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.PAUSE,
    )
    @action(methods=["post"], detail=True, url_path="move/pause")
    def pause_move(self, request: Request, pk: int) -> Response:
        operation = actions.template_move_pause(
            by=self.user, template=self.get_object()
        )
        return operation_answer(request, operation)

    @described(
        "Resume a move",
        "For administrators. It continues where it was paused. The answer is the "
        "operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RESUME,
    )
    @action(methods=["post"], detail=True, url_path="move/resume")
    def resume_move(self, request: Request, pk: int) -> Response:
        operation = actions.template_move_resume(
            by=self.user, template=self.get_object()
        )
        return operation_answer(request, operation)

    @described(
        "Stop a move",
        "For administrators. The volume stays where it is. The answer is the "
        "operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.STOP,
    )
    @action(methods=["post"], detail=True, url_path="move/stop")
    def stop_move(self, request: Request, pk: int) -> Response:
        operation = actions.template_move_stop(by=self.user, template=self.get_object())
        return operation_answer(request, operation)
