"""The API of splits, what holds snapshots, plans, ceilings, and volumes' settings."""

from __future__ import annotations

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet, chosen
from provisioner.catalog.models import Snapshot, VolumePolicy
from provisioner.catalog.queries import templates_visible_to
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.lib import clocks
from provisioner.sites.models import Ceiling, Site
from provisioner.storage import actions
from provisioner.storage.api import examples
from provisioner.storage.api.shapes import (
    CeilingSaveSerializer,
    CeilingSerializer,
    HeldSnapshotQuery,
    HeldSnapshotSerializer,
    PlanOutcomesSerializer,
    SpacePlanQuery,
    SpacePlanRequestSerializer,
    SpacePlanSerializer,
    SplitSerializer,
    VolumePolicySaveSerializer,
    VolumePolicySerializer,
)
from provisioner.storage.freeing import space_plan
from provisioner.storage.overviews import held, snapshots_matching
from provisioner.storage.previews import split_preview
from provisioner.workspaces.api.viewsets import OfWorkspace
from provisioner.workspaces.permissions import can_change_workspace


class WorkspaceSplitViewSet(OfWorkspace):
    """Make a workspace independent of its snapshot."""

    @described(
        "Split a workspace from its snapshot",
        "For administrators, and for owners where the site's policy says so. The "
        "workspace stays usable meanwhile. After a stop or a failure it goes on. The "
        "answer is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.SPLIT,
    )
    @action(methods=["post"], detail=True)
    def split(self, request: Request, pk: int) -> Response:
        operation = actions.workspace_split(by=self.user, workspace=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Preview a split",
        "What a split of the workspace's clone would copy and free now, and the last "
        "one that was requested. For those who may change it.",
        ok=SplitSerializer,
        refused=[403, 404],
        operation_id="workspaces_split_get",
        examples=examples.PREVIEW,
    )
    @split.mapping.get  # type: ignore[untyped-decorator]  # of REST framework
    def preview(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        permissions.require(can_change_workspace(self.user, workspace))
        return Response(SplitSerializer(split_preview(self.user, workspace)).data)

    @described(
        "Stop a split",
        "What was copied stays copied, and the workspace stays a clone. The answer is "
        "the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.STOP,
    )
    @action(methods=["post"], detail=True, url_path="split/stop")
    def stop_split(self, request: Request, pk: int) -> Response:
        workspace = self.get_object()
        operation = actions.workspace_split_stop(by=self.user, workspace=workspace)
        return operation_answer(request, operation)


class HeldSnapshotViewSet(ApiViewSet):
    """For administrators: what holds each published snapshot."""

    queryset = Snapshot.objects.none()
    serializer_class = HeldSnapshotSerializer

    @described(
        "List what holds snapshots",
        "For administrators. Each published snapshot with its size, the workspaces "
        "that need it and what else keeps it. Newest first.",
        ok=HeldSnapshotSerializer(many=True),
        refused=[400, 403],
        parameters=[HeldSnapshotQuery],
        operation_id="storage_snapshots_list",
        examples=examples.HELD,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(HeldSnapshotQuery)
        page = self.paginate_queryset(snapshots_matching(self.user, **query))
        shown = HeldSnapshotSerializer(held(page or []), many=True)
        return self.get_paginated_response(shown.data)


class SpacePlanViewSet(ShortListViewSet):
    """For administrators: plans that free space at a site."""

    queryset = Site.objects.none()
    serializer_class = SpacePlanSerializer
    is_for_administrators = True

    @described(
        "Plan what frees so much",
        "For administrators. The lightest set of retirements, splits and prunings. "
        "Nothing is done.",
        ok=SpacePlanSerializer,
        refused=[400, 403],
        parameters=[SpacePlanQuery],
        operation_id="storage_plan_get",
        examples=examples.PLAN,
    )
    def list(self, request: Request) -> Response:
        asked = self.read_query(SpacePlanQuery)
        asked["site"] = _site(asked["site"])
        found = space_plan(self.user, now=clocks.database_now(), **asked)
        return Response(SpacePlanSerializer(found).data)

    @described(
        "Request the acts of a plan",
        "For administrators, with the `seal` of the plan that was shown. Each act "
        "passes its own checks and has its own result. A plan that has "
        "changed since is refused.",
        body=SpacePlanRequestSerializer,
        ok=PlanOutcomesSerializer,
        status=202,
        refused=[403, 409],
        operation_id="storage_plan_request",
        examples=examples.FREE,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(SpacePlanRequestSerializer)
        asked["site"] = _site(asked["site"])
        results = actions.free_space(by=self.user, **asked)
        body = PlanOutcomesSerializer({"results": results}).data
        return Response(body, status=202)


class CeilingViewSet(ShortListViewSet):
    """For administrators: the most traffic of a site's volumes, by their purpose."""

    queryset = Ceiling.objects.none()
    serializer_class = CeilingSerializer
    is_for_administrators = True

    @described(
        "List ceilings",
        "For administrators. With the volumes below each, and how many reached it in "
        "ONTAP's last sample.",
        ok=CeilingSerializer(many=True),
        refused=[403],
        operation_id="storage_ceilings_list",
        examples=examples.CEILINGS,
    )
    def list(self, request: Request) -> Response:
        found = Ceiling.objects.select_related("site")
        return self.page_of(found.order_by("site__name", "purpose"))

    @described(
        "Save a ceiling",
        "For administrators. It replaces the one of that site and purpose. Without "
        "limits it is removed. ONTAP's QoS policy follows within minutes.",
        body=CeilingSaveSerializer,
        ok=CeilingSerializer,
        status=202,
        refused=[403],
        operation_id="storage_ceilings_save",
        examples=examples.CEILING,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(CeilingSaveSerializer)
        asked["site"] = _site(asked["site"])
        ceiling = actions.ceiling_save(by=self.user, **asked)
        return Response(CeilingSerializer(ceiling).data, status=202)


class VolumePolicyViewSet(ShortListViewSet):
    """For administrators: how templates' volumes grow, and what they set apart."""

    queryset = VolumePolicy.objects.none()
    serializer_class = VolumePolicySerializer
    is_for_administrators = True

    @described(
        "List settings of volumes",
        "For administrators. The defaults of sites, and what single "
        "templates have instead.",
        ok=VolumePolicySerializer(many=True),
        refused=[403],
        operation_id="storage_volume_policies_list",
        examples=examples.VOLUME_POLICIES,
    )
    def list(self, request: Request) -> Response:
        found = VolumePolicy.objects.select_related("site", "template")
        return self.page_of(found.order_by("site__name", "template__name"))

    @described(
        "Save settings of volumes",
        "For administrators. They replace those of that site or template. ONTAP "
        "follows within minutes. What is not given has the site's default, or stays "
        "as it is in ONTAP.",
        body=VolumePolicySaveSerializer,
        ok=VolumePolicySerializer,
        status=202,
        refused=[403],
        operation_id="storage_volume_policies_save",
        examples=examples.VOLUME_POLICY,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(VolumePolicySaveSerializer)
        site = asked["site"] = _site(asked["site"])
        if asked["template"] is not None:
            asked["template"] = chosen(
                templates_visible_to(self.user).filter(site=site),
                word="template",
                id_or_name=asked["template"],
            )
        policy = actions.volume_policy_save(by=self.user, **asked)
        return Response(VolumePolicySerializer(policy).data, status=202)


def _site(name: str) -> Site:
    return chosen(Site.objects.all(), word="site", id_or_name=name)
