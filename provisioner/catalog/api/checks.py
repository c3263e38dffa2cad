"""Remarks on a template's definition."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.actions.checks import template_check, template_preview
from provisioner.catalog.api.shapes import TemplateCreateSerializer
from provisioner.catalog.checks import Check
from provisioner.catalog.models import Template, TemplateCheck
from provisioner.catalog.queries import templates_visible_to
from provisioner.sites.models import Site


class RemarkSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="For programs; it does not change.")
    sentence = serializers.CharField(help_text="For people.")


class TemplateCheckSerializer(serializers.Serializer[Any]):
    """Remarks block nothing."""

    remarks = RemarkSerializer(many=True)
    files = serializers.IntegerField(
        allow_null=True, help_text="Of the view. null: the server did not answer."
    )
    size_bytes = serializers.IntegerField(allow_null=True)
    depot_files = serializers.IntegerField(
        allow_null=True, help_text="Of all depots that the view maps."
    )
    error = serializers.CharField(help_text="Why the server did not answer, or empty.")
    checked_at = serializers.DateTimeField(
        allow_null=True, help_text="null: not checked, or not stored."
    )


class TemplateCheckViewSet(ApiViewSet):
    """Template checks: remarks on a definition."""

    queryset = Template.objects.none()
    serializer_class = TemplateCheckSerializer

    def get_queryset(self) -> QuerySet[Template]:
        return templates_visible_to(self.user)

    @described(
        "Read the remarks on a template's definition",
        "From the last check: after each change, and on demand.",
        ok=TemplateCheckSerializer,
        refused=[404],
    )
    @action(methods=["get"], detail=True)
    def check(self, request: Request, pk: int) -> Response:
        found = TemplateCheck.objects.filter(template=self.get_object()).first()
        return Response(TemplateCheckSerializer(found or _NOTHING).data)

    @described(
        "Check a template's definition now",
        "For administrators. It takes seconds, and asks the Perforce server how large "
        "the view and its depots are.",
        ok=TemplateCheckSerializer,
        refused=[403, 404],
        operation_id="templates_check_now",
    )
    @check.mapping.post  # type: ignore[untyped-decorator]  # of REST framework
    def check_now(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        found = template_check(by=self.user, template=template)
        return Response(TemplateCheckSerializer(found).data)

    @described(
        "Check a definition before it is saved",
        "For administrators. Nothing is saved.",
        body=TemplateCreateSerializer,
        ok=TemplateCheckSerializer,
        refused=[403, 409],
    )
    @action(methods=["post"], detail=False)
    def preview(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(TemplateCreateSerializer)
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        found = template_preview(by=self.user, site=site, **asked)
        return Response(TemplateCheckSerializer(_as_shown(found)).data)


_NOTHING: dict[str, Any] = {
    "remarks": [],
    "files": None,
    "size_bytes": None,
    "depot_files": None,
    "error": "",
    "checked_at": None,
}


def _as_shown(found: Check) -> dict[str, Any]:
    survey = found.survey
    return {
        **_NOTHING,
        "remarks": found.remarks,
        "files": survey.files if survey else None,
        "size_bytes": survey.size_bytes if survey else None,
        "depot_files": survey.depot_files if survey else None,
        "error": found.error,
    }
