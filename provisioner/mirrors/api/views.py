"""/api/v1/mirrors."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.models import Snapshot
from provisioner.catalog.queries import (
    default_snapshot,
    named_template,
    templates_visible_to,
)
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.lib.refusals import InvalidRequest
from provisioner.mirrors import actions
from provisioner.mirrors.api import examples
from provisioner.mirrors.api.shapes import (
    MirrorChangeSerializer,
    MirrorCreateSerializer,
    MirroredSnapshotSerializer,
    MirrorListQuery,
    MirrorSerializer,
    MirrorTransferSerializer,
    PromotionSerializer,
    WayBackSerializer,
)
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.previews import promotion_preview, way_back_preview
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.sites.models import Site


class MirrorViewSet(ApiViewSet):
    """Templates' snapshots at other sites."""

    queryset = Mirror.objects.none()
    serializer_class = MirrorSerializer

    def get_queryset(self) -> QuerySet[Mirror]:
        return mirrors_visible_to(self.user)

    @described(
        "List mirrors",
        ok=MirrorSerializer,
        refused=[400],
        parameters=[MirrorListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(MirrorListQuery)
        mirrors = self.get_queryset()
        if "template" in query:
            mirrors = mirrors.filter(named_template(query.pop("template")))
        return self.page_of(mirrors.filter(**query))

    @described(
        "Get a mirror",
        ok=MirrorSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Mirror a template to another site",
        "For administrators. Its default snapshot is transferred first.",
        body=MirrorCreateSerializer,
        ok=MirrorSerializer,
        status=202,
        refused=[403, 409],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(MirrorCreateSerializer)
        template = chosen(
            templates_visible_to(self.user),
            word="template",
            id_or_name=asked.pop("template"),
            hint="Give its id.",
        )
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        mirror = actions.mirror_create(
            by=self.user, template=template, site=site, **asked
        )
        return self.shown_now(mirror, status=202, at="mirror-detail")

    @described(
        "Change a mirror",
        "For administrators: when transfers start, how fast they may be, and how many "
        "snapshots are kept.",
        body=MirrorChangeSerializer,
        ok=MirrorSerializer,
        refused=[403, 404, 409],
        examples=examples.CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        mirror = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        asked = self.read_body(MirrorChangeSerializer)
        actions.mirror_update(by=self.user, mirror=mirror, **asked)
        return self.shown_now(mirror)

    @described(
        "Retry a mirror that failed or has trouble",
        "For administrators. It begins with the first step that is not done, and "
        "transfers the default snapshot. The answer is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RETRY,
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        operation = actions.mirror_retry(by=self.user, mirror=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Transfer a snapshot to a mirror",
        "For the template's owner and administrators. The answer is the operation to "
        "follow.",
        body=MirrorTransferSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.TRANSFER,
    )
    @action(methods=["post"], detail=True)
    def transfer(self, request: Request, pk: int) -> Response:
        mirror = self.get_object()
        permissions.require(permissions.can_change_template(self.user, mirror.template))
        asked = self.read_body(MirrorTransferSerializer)
        snapshot = _snapshot(mirror, asked.get("snapshot"))
        operation = actions.mirror_transfer(
            by=self.user, mirror=mirror, snapshot=snapshot
        )
        return operation_answer(request, operation)

    @described(
        "Preview the promotion of a mirror",
        "For administrators: what is left behind at the template's home, and whom it "
        "affects.",
        ok=PromotionSerializer,
        refused=[403, 404],
        examples=examples.PROMOTION,
    )
    @action(methods=["get"], detail=True)
    def promotion(self, request: Request, pk: int) -> Response:
        mirror = self._for_administrators()
        return Response(PromotionSerializer(promotion_preview(mirror)).data)

    @described(
        "Promote a mirror to be the home of its template",
        "For administrators, when a site is lost: the present home is not asked. The "
        "template is built at the mirror's site from then on. The answer is the "
        "operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.PROMOTE,
    )
    @action(methods=["post"], detail=True)
    def promote(self, request: Request, pk: int) -> Response:
        operation = actions.mirror_promote(by=self.user, mirror=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Preview the way back of a former home",
        "For administrators: what is discarded there when it is re-established.",
        ok=WayBackSerializer,
        refused=[403, 404],
        examples=examples.WAY_BACK,
    )
    @action(methods=["get"], detail=True, url_path="way-back")
    def way_back(self, request: Request, pk: int) -> Response:
        mirror = self._for_administrators()
        return Response(WayBackSerializer(way_back_preview(mirror)).data)

    @described(
        "Re-establish a former home as a mirror",
        "For administrators. Its volume goes back to the newest common snapshot. It is "
        "refused while clones need what would be discarded. The answer is the "
        "operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.REESTABLISH,
    )
    @action(methods=["post"], detail=True, url_path="re-establish")
    def reestablish(self, request: Request, pk: int) -> Response:
        operation = actions.mirror_reestablish(by=self.user, mirror=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Give up a former home",
        "For administrators. Its volume stays until the mirror is deleted. The answer "
        "is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.GIVE_UP,
    )
    @action(methods=["post"], detail=True, url_path="give-up")
    def give_up(self, request: Request, pk: int) -> Response:
        operation = actions.mirror_give_up(by=self.user, mirror=self.get_object())
        return operation_answer(request, operation)

    def _for_administrators(self) -> Mirror:
        mirror: Mirror = self.get_object()
        permissions.require(permissions.can_manage_templates(self.user))
        return mirror

    @described(
        "List the snapshots of a mirror",
        "Newest first, including those that are no longer there.",
        ok=MirroredSnapshotSerializer(many=True),
        refused=[400, 404],
        examples=examples.SNAPSHOTS,
    )
    @action(methods=["get"], detail=True, serializer_class=MirroredSnapshotSerializer)
    def snapshots(self, request: Request, pk: int) -> Response:
        mirror = self.get_object()
        return self.page_of(mirror.snapshots.select_related("snapshot"))

    @described(
        "Delete a mirror",
        "For administrators. Its relationship and its volume are deleted. It is "
        "refused while workspaces at the site are clones of it. The answer is the "
        "operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.DELETE,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        operation = actions.mirror_delete(by=self.user, mirror=self.get_object())
        return operation_answer(request, operation)


def _snapshot(mirror: Mirror, id_or_name: int | str | None) -> Snapshot:
    """Return a snapshot of a mirror's template, by default its default snapshot.

    Raises: InvalidRequest if there is none.
    """
    if id_or_name is not None:
        of_it = Snapshot.objects.there().filter(template=mirror.template)
        return chosen(of_it, word="snapshot", id_or_name=id_or_name)
    snapshot = default_snapshot(mirror.template)
    if snapshot is None:
        raise InvalidRequest.at(
            "snapshot", "The template has no default snapshot. Name another one."
        )
    return snapshot
