"""/api/v1/copy-rules and /api/v1/workspace-copies."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.copies import actions
from provisioner.copies.api import examples
from provisioner.copies.api.shapes import (
    CopyRuleSerializer,
    CopyRuleSetSerializer,
    WorkspaceCopySerializer,
)
from provisioner.copies.models import CopyRule, WorkspaceCopy
from provisioner.copies.queries import copies_visible_to, rules_visible_to
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.mirrors.queries import mirrors_visible_to


class CopyRuleViewSet(ApiViewSet):
    """Which workspaces are copied to other sites."""

    queryset = CopyRule.objects.none()
    serializer_class = CopyRuleSerializer

    def get_queryset(self) -> QuerySet[CopyRule]:
        return rules_visible_to(self.user)

    @described(
        "List rules for copies of workspaces",
        ok=CopyRuleSerializer,
        refused=[400],
        examples=examples.RULES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Copy workspaces to a mirror's site, or change how",
        "For administrators. Workspaces at other sites are copied to the mirror's, and "
        "those there to the template's home; after a promotion, too. A mirror has one "
        "rule: another request changes it.",
        body=CopyRuleSetSerializer,
        ok=CopyRuleSerializer,
        refused=[403],
        examples=examples.SET_RULE,
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(CopyRuleSetSerializer)
        mirror = chosen(
            mirrors_visible_to(self.user),
            word="mirror",
            id_or_name=asked.pop("mirror"),
        )
        rule = actions.copy_rule_set(by=self.user, mirror=mirror, **asked)
        return self.shown_now(rule)

    @described(
        "Stop copying workspaces to a mirror's site",
        "For administrators. The copies are deleted.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, pk: int) -> Response:
        rule = self.get_object()
        actions.copy_rule_delete(by=self.user, rule=rule)
        return Response(status=204)


class WorkspaceCopyViewSet(ApiViewSet):
    """Copies of workspaces at other sites."""

    queryset = WorkspaceCopy.objects.none()
    serializer_class = WorkspaceCopySerializer

    def get_queryset(self) -> QuerySet[WorkspaceCopy]:
        return copies_visible_to(self.user)

    @described(
        "List copies of workspaces",
        ok=WorkspaceCopySerializer,
        refused=[400],
        examples=examples.COPIES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a copy of a workspace",
        ok=WorkspaceCopySerializer,
        refused=[404],
        examples=examples.COPY,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Transfer what changed in a workspace now",
        "For those who may change the workspace. The answer is the operation to "
        "follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.TRANSFER,
    )
    @action(methods=["post"], detail=True)
    def transfer(self, request: Request, pk: int) -> Response:
        operation = actions.copy_transfer(by=self.user, copy=self.get_object())
        return operation_answer(request, operation)
