"""/api/v1/checkpoints, /api/v1/checkpoint-plans and /api/v1/verifications."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet, chosen
from provisioner.recipes import actions
from provisioner.recipes.api import examples
from provisioner.recipes.api.shapes import (
    CheckpointPlanSaveSerializer,
    CheckpointPlanSerializer,
    CheckpointQuery,
    CheckpointSerializer,
    DamagedFileSerializer,
    RecipeStartSerializer,
    VerificationPlanSaveSerializer,
    VerificationPlanSerializer,
    VerificationSerializer,
)
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    Verification,
    VerificationPlan,
)
from provisioner.recipes.queries import (
    checkpoints_matching,
    damaged_in,
    verifications_visible_to,
)
from provisioner.sandboxes.api.plans import with_rows
from provisioner.sandboxes.api.shapes import SandboxSerializer
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.queries import sandboxes_visible_to
from provisioner.sites.models import PerforceServer


def _begin(view: ApiViewSet, make: Callable[..., Sandbox]) -> Response:
    """Begin the work of a plan; answer with the sandbox that does it."""
    permissions.require(permissions.can_administer(view.user))
    asked = view.read_body(RecipeStartSerializer)
    servers = PerforceServer.objects.all()
    server = chosen(servers, word="server", id_or_name=asked["server"])
    made = make(by=view.user, server=server)
    sandbox = sandboxes_visible_to(view.user).get(pk=made.pk)
    where = reverse("api:sandbox-detail", [sandbox.pk], request=view.request)
    body = SandboxSerializer(sandbox).data
    return Response(body, status=202, headers={"Location": where})


class CheckpointViewSet(ApiViewSet):
    """For administrators: checkpoints that are or were kept."""

    queryset = Checkpoint.objects.none()
    serializer_class = CheckpointSerializer

    @described(
        "List checkpoints",
        "For administrators, newest first. Request one as a sandbox with the purpose "
        "“checkpoint”.",
        ok=CheckpointSerializer(many=True),
        refused=[400, 403],
        parameters=[CheckpointQuery],
        examples=examples.CHECKPOINTS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(CheckpointQuery)
        return self.page_of(checkpoints_matching(self.user, **query))

    @described(
        "Make a checkpoint",
        "For administrators, by the plan of the server. The answer is the "
        "sandbox that makes it.",
        body=RecipeStartSerializer,
        ok=SandboxSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.MAKE_CHECKPOINT,
    )
    def create(self, request: Request) -> Response:
        return _begin(self, actions.checkpoint_make)


class CheckpointPlanViewSet(ShortListViewSet):
    """For administrators: when checkpoints of a server are made, and how long kept."""

    queryset = CheckpointPlan.objects.none()
    serializer_class = CheckpointPlanSerializer
    is_for_administrators = True

    @described(
        "List plans of checkpoints",
        "For administrators.",
        ok=CheckpointPlanSerializer(many=True),
        refused=[403],
        examples=examples.PLANS,
    )
    def list(self, request: Request) -> Response:
        rows = CheckpointPlan.objects.select_related("server", "host", "version")
        return self.page_of(rows)

    @described(
        "Plan the checkpoints of a server",
        "For administrators, by the id of the server. The first time host, version and "
        "directory are needed.",
        body=CheckpointPlanSaveSerializer,
        ok=CheckpointPlanSerializer,
        refused=[400, 403, 404, 409],
        examples=examples.SAVE_PLAN,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = with_rows(self.read_body(CheckpointPlanSaveSerializer))
        plan = actions.checkpoint_plan_save(by=self.user, server=server, **asked)
        return self.shown(plan)


class VerificationPlanViewSet(ShortListViewSet):
    """For administrators: when the archives of a server are verified."""

    queryset = VerificationPlan.objects.none()
    serializer_class = VerificationPlanSerializer
    is_for_administrators = True

    @described(
        "List plans of verifications",
        "For administrators.",
        ok=VerificationPlanSerializer(many=True),
        refused=[403],
        examples=examples.VERIFICATION_PLANS,
    )
    def list(self, request: Request) -> Response:
        rows = VerificationPlan.objects.select_related("server", "host", "version")
        return self.page_of(rows)

    @described(
        "Plan the verifications of a server",
        "For administrators, by the id of the server. The first time host "
        "and version are needed.",
        body=VerificationPlanSaveSerializer,
        ok=VerificationPlanSerializer,
        refused=[400, 403, 404, 409],
        examples=examples.SAVE_VERIFICATION_PLAN,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(PerforceServer, pk=pk)
        asked = with_rows(self.read_body(VerificationPlanSaveSerializer))
        plan = actions.verification_plan_save(by=self.user, server=server, **asked)
        return self.shown(plan)


class VerificationViewSet(ApiViewSet):
    """Archives of copies, read and compared with their digests."""

    queryset = Verification.objects.none()
    serializer_class = VerificationSerializer

    def get_queryset(self) -> QuerySet[Verification]:
        return verifications_visible_to(self.user).prefetch_related("depots")

    @described(
        "List verifications of archives",
        "Of your own sandboxes; administrators see all. Request one as a sandbox with "
        "the purpose “verify”.",
        ok=VerificationSerializer(many=True),
        refused=[400],
        examples=examples.VERIFICATIONS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Verify the archives of a server",
        "For administrators, by the plan of the server. The answer is the "
        "sandbox that does it.",
        body=RecipeStartSerializer,
        ok=SandboxSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.VERIFY,
    )
    def create(self, request: Request) -> Response:
        return _begin(self, actions.verification_make)

    @described(
        "Get a verification of archives",
        ok=VerificationSerializer,
        refused=[404],
        examples=examples.VERIFICATIONS,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "List lost and damaged revisions",
        "Of a verification, at most 10,000 of each depot.",
        ok=DamagedFileSerializer(many=True),
        refused=[400, 404],
        examples=examples.DAMAGED,
    )
    @action(methods=["get"], detail=True, serializer_class=DamagedFileSerializer)
    def damaged(self, request: Request, pk: int) -> Response:
        return self.page_of(damaged_in(self.get_object(), self.user))
