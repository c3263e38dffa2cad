"""/api/v1/templates."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.actions.lifecycle import (
    template_archive,
    template_delete,
    template_hand_over,
    template_rename,
    template_unarchive,
)
from provisioner.catalog.actions.refresh import refresh_policy_save
from provisioner.catalog.actions.snapshots import template_roll_back
from provisioner.catalog.actions.templates import (
    template_build,
    template_build_stop,
    template_create,
    template_pin,
    template_unpin,
    template_update,
)
from provisioner.catalog.api import examples
from provisioner.catalog.api.refresh_shapes import RefreshSaveSerializer
from provisioner.catalog.api.shapes import (
    OptionalReasonSerializer,
    SnapshotSerializer,
    TemplateBuildSerializer,
    TemplateChangeSerializer,
    TemplateCreateSerializer,
    TemplateListQuery,
    TemplateNeedsSerializer,
    TemplateRollBackSerializer,
    TemplateSerializer,
)
from provisioner.catalog.dependents import goes_with, needed_by
from provisioner.catalog.models import Template, TemplateOperation
from provisioner.catalog.queries import (
    is_archived,
    is_pinned_by,
    templates_visible_to,
)
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.models import Site


class TemplateViewSet(ApiViewSet):
    """Templates."""

    queryset = Template.objects.none()
    serializer_class = TemplateSerializer

    def get_queryset(self) -> QuerySet[Template]:
        templates = templates_visible_to(self.user)
        with_pins = templates.annotate(is_pinned=is_pinned_by(self.user))
        return with_pins.select_related("owner", "archived_by", "routed_to")

    @described(
        "List templates",
        ok=TemplateSerializer,
        refused=[400],
        parameters=[TemplateListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(TemplateListQuery)
        templates = is_archived(self.get_queryset(), query.pop("archived"))
        return self.page_of(templates.filter(**query))

    @described(
        "Get a template",
        ok=TemplateSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Define a template",
        "For administrators. Nothing is created on ONTAP or Perforce before its build.",
        body=TemplateCreateSerializer,
        ok=TemplateSerializer,
        status=201,
        refused=[403, 409],
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(TemplateCreateSerializer)
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        template = template_create(by=self.user, site=site, **asked)
        return self.shown_now(template, status=201, at="template-detail")

    @described(
        "Build a template",
        "For administrators. The answer is the operation to follow.",
        body=TemplateBuildSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.BUILD,
    )
    @action(methods=["post"], detail=True)
    def build(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(TemplateBuildSerializer)
        operation = template_build(
            by=self.user,
            template=template,
            change=asked["change"],
            is_clean=asked["clean"],
            paths=asked["paths"],
        )
        return operation_answer(request, operation)

    @described(
        "Pin a template",
        "Put it on top of your home page.",
        ok=TemplateSerializer,
        refused=[403, 404, 409],
    )
    @action(methods=["put"], detail=True)
    def pin(self, request: Request, pk: int) -> Response:
        template_pin(by=self.user, template=self.get_object())
        return self.shown(self.get_object())

    @described(
        "Unpin a template",
        ok=TemplateSerializer,
        refused=[403, 404],
        operation_id="templates_unpin",
    )
    @pin.mapping.delete  # type: ignore[untyped-decorator]  # of REST framework
    def unpin(self, request: Request, pk: int) -> Response:
        template_unpin(by=self.user, template=self.get_object())
        return self.shown(self.get_object())

    @described(
        "Stop the build under way",
        "For administrators. It publishes nothing; published snapshots stay.",
        ok=OperationSerializer,
        refused=[403, 404, 409],
    )
    @action(methods=["post"], detail=True, url_path="build/stop")
    def build_stop(self, request: Request, pk: int) -> Response:
        operation = template_build_stop(by=self.user, template=self.get_object())
        return operation_answer(request, operation, status=200)

    @described(
        "Set the refresh policy of a template",
        "For administrators: never, after changes, or on a schedule; always to the "
        "newest change under its view, and if there is one since its newest snapshot.",
        body=RefreshSaveSerializer,
        ok=TemplateSerializer,
        refused=[403, 404, 409],
    )
    @action(methods=["post"], detail=True)
    def refresh(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(RefreshSaveSerializer)
        refresh_policy_save(by=self.user, template=template, **asked)
        return self.shown(self.get_object())

    @described(
        "Roll back a build that failed",
        "For its owner and administrators. New workspaces get the newest good "
        "snapshot before that build, until it is released. The answer is that "
        "snapshot.",
        body=TemplateRollBackSerializer,
        ok=SnapshotSerializer,
        refused=[403, 404, 409],
        examples=examples.ROLL_BACK,
    )
    @action(methods=["post"], detail=True, url_path="roll-back")
    def roll_back(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        asked = self.read_body(TemplateRollBackSerializer)["build"]
        builds = template.operations.filter(kind=TemplateOperation.BUILD)
        named = builds if asked is None else builds.filter(pk=asked)
        build = named.first()
        if build is None:
            raise InvalidRequest("This template has no such build.")
        snapshot = template_roll_back(by=self.user, template=template, build=build)
        return Response(SnapshotSerializer(snapshot).data)

    @described(
        "Change a template's title, owner or size",
        "For its owner and administrators. The name never changes. Pages show titles.",
        body=TemplateChangeSerializer,
        ok=TemplateSerializer,
        refused=[403, 404, 409],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        asked = self.read_body(TemplateChangeSerializer)
        with transaction.atomic():
            if "title" in asked:
                template_rename(by=self.user, template=template, title=asked["title"])
            if "owner" in asked:
                owner = User.objects.filter(username=asked["owner"]).first()
                if owner is None:
                    raise InvalidRequest(f"There is no account “{asked['owner']}”.")
                template_hand_over(by=self.user, template=template, owner=owner)
            if "volume_size_bytes" in asked:
                size = asked["volume_size_bytes"]
                template_update(by=self.user, template=template, volume_size_bytes=size)
        return self.shown_now(template)

    @described(
        "Archive a template",
        "For its owner and administrators. Nobody gets a new workspace of it, and it "
        "is not built or pooled; existing workspaces stay.",
        body=OptionalReasonSerializer,
        ok=TemplateSerializer,
        refused=[403, 404],
        examples=examples.ARCHIVE,
    )
    @action(methods=["post"], detail=True)
    def archive(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        asked = self.read_body(OptionalReasonSerializer)
        template_archive(by=self.user, template=template, **asked)
        return self.shown_now(template)

    @described(
        "Unarchive a template",
        "For its owner and administrators. A template that is not archived does not "
        "change.",
        ok=TemplateSerializer,
        refused=[403, 404, 409],
    )
    @action(methods=["post"], detail=True)
    def unarchive(self, request: Request, pk: int) -> Response:
        template = self.get_object()
        template_unarchive(by=self.user, template=template)
        return self.shown_now(template)

    @described(
        "Get what needs a template",
        "For administrators: what prevents its deletion, and what is deleted with it.",
        ok=TemplateNeedsSerializer,
        refused=[403, 404],
        examples=examples.NEEDS,
    )
    @action(methods=["get"], detail=True)
    def needs(self, request: Request, pk: int) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        template = self.get_object()
        needed = needed_by(template)
        shown = {
            "can_be_deleted": not needed,
            "needed_by": needed,
            "goes_with": goes_with(template),
            "snapshots_count": template.snapshots.there().count(),
        }
        return Response(TemplateNeedsSerializer(shown).data)

    @described(
        "Delete a template that nothing needs",
        "For administrators. Its snapshots, volume and client are deleted; builds, "
        "logs and the "
        "audit log stay, and its name is free again. The answer is the operation to "
        "follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.DELETE,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        operation = template_delete(by=self.user, template=self.get_object())
        return operation_answer(request, operation)
