"""/api/v1/findings: where database, ONTAP and Perforce disagree."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet
from provisioner.drift.actions import drift_check_start, finding_resolve, findings_adopt
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import Finding


class FindingSerializer(serializers.ModelSerializer[Finding]):
    site = serializers.CharField(source="site.name")
    details = serializers.DictField(
        child=serializers.JSONField(allow_null=True), help_text="The evidence."
    )
    preview = serializers.SerializerMethodField(
        help_text="The steps of its repair, in order."
    )
    asked_by = serializers.CharField(
        source="asked_by.username", allow_null=True, default=None
    )
    resolved_by = serializers.CharField(
        source="resolved_by.username", allow_null=True, default=None
    )

    class Meta:
        model = Finding
        fields = (
            "id",
            "site",
            "kind",
            "subject",
            "external_id",
            "volume_uuid",
            "sentence",
            "details",
            "action",
            "is_automatic",
            "preview",
            "workspace",
            "template",
            "mirror",
            "first_seen_at",
            "last_seen_at",
            "times_seen",
            "asked_at",
            "asked_by",
            "status_message",
            "resolved_at",
            "resolution",
            "resolved_by",
        )
        read_only_fields = fields

    def get_preview(self, finding: Finding) -> list[str]:
        return preview(finding)


class FindingListQuery(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Finding.Kind.choices, required=False)
    site = serializers.CharField(
        source="site__name", required=False, help_text="A site's name."
    )
    resolved = serializers.BooleanField(
        default=False, help_text="Resolved findings instead of open ones."
    )


class DriftCheckStartedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="The number of queued checks.")


class AdoptionStartedSerializer(serializers.Serializer[Any]):
    asked_for = serializers.IntegerField(help_text="The number of requested adoptions.")


class FindingViewSet(ApiViewSet):
    """Differences between database, ONTAP and Perforce; for administrators."""

    queryset = Finding.objects.none()
    serializer_class = FindingSerializer

    def get_queryset(self) -> QuerySet[Finding]:
        permissions.require(permissions.can_administer(self.user))
        return Finding.objects.select_related("site", "asked_by", "resolved_by")

    @described(
        "List drift findings",
        ok=FindingSerializer,
        refused=[400, 403],
        parameters=[FindingListQuery],
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(FindingListQuery)
        is_open = not query.pop("resolved")
        findings = self.get_queryset().filter(resolved_at__isnull=is_open, **query)
        return self.page_of(findings)

    @described("Get a finding", ok=FindingSerializer, refused=[403, 404])
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Do what a finding's action says",
        "It is checked again first. If the difference is gone, nothing is done.",
        ok=FindingSerializer,
        status=202,
        refused=[403, 404, 409],
        operation_id="findings_resolve_create",
    )
    @action(methods=["post"], detail=True)
    def resolve(self, request: Request, pk: int) -> Response:
        finding = finding_resolve(by=self.user, finding=self.get_object())
        return self.shown_now(finding, status=202, at="finding-detail")

    @described(
        "Adopt everything missing from the database",
        "For after an older backup was restored: findings with the action `adopt`  "
        "say what adoption would do.",
        ok=AdoptionStartedSerializer,
        status=202,
        refused=[403],
        operation_id="findings_adopt_create",
    )
    @action(methods=["post"], detail=False)
    def adopt(self, request: Request) -> Response:
        asked_for = findings_adopt(by=self.user)
        return Response({"asked_for": asked_for}, status=202)

    @described(
        "Check every site for drift now",
        "Read the findings again once the jobs have run.",
        ok=DriftCheckStartedSerializer,
        status=202,
        refused=[403],
        operation_id="findings_check_create",
    )
    @action(methods=["post"], detail=False)
    def check(self, request: Request) -> Response:
        queued = drift_check_start(by=self.user)
        where = reverse("api:finding-list", request=request)
        return Response({"queued": queued}, status=202, headers={"Location": where})
