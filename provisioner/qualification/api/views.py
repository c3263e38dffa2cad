"""/api/v1/qualification-runs."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts import permissions
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.lib.refusals import InvalidRequest
from provisioner.qualification.actions import baselines, running
from provisioner.qualification.api import examples
from provisioner.qualification.api.shapes import (
    BaselineCreateSerializer,
    QualificationRunCreateSerializer,
    QualificationRunSerializer,
)
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.queries import (
    may_measure,
    runs_visible_to,
    templates_to_measure,
)
from provisioner.sandboxes.models import P4dVersion, SandboxHost
from provisioner.sandboxes.queries import sandboxes_visible_to
from provisioner.sandboxes.refusals import NoSandboxesForYou
from provisioner.sites.models import PerforceServer


class QualificationRunViewSet(ApiViewSet):
    """Profiles that were measured at sandboxes and scratch servers."""

    queryset = QualificationRun.objects.none()
    serializer_class = QualificationRunSerializer

    def get_queryset(self) -> QuerySet[QualificationRun]:
        return runs_visible_to(self.user)

    @described(
        "List qualification runs",
        "Your own; administrators see all.",
        ok=QualificationRunSerializer,
        refused=[400],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a qualification run",
        ok=QualificationRunSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "Measure a sandbox, a scratch server, or workspaces of a template",
        "A sandbox for its owner and administrators, the others for administrators. "
        "Numbers that are left out have the profile's defaults.",
        body=QualificationRunCreateSerializer,
        ok=QualificationRunSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(QualificationRunCreateSerializer)
        permissions.require(may_measure(self.user))
        sandbox, server = asked.pop("sandbox", None), asked.pop("server", None)
        template = asked.pop("template", None)
        run = running.run_start(
            by=self.user,
            sandbox=None
            if sandbox is None
            else chosen(
                sandboxes_visible_to(self.user), word="sandbox", id_or_name=sandbox
            ),
            server=None
            if server is None
            else chosen(PerforceServer.objects.all(), word="server", id_or_name=server),
            template=None
            if template is None
            else chosen(
                templates_to_measure(self.user), word="template", id_or_name=template
            ),
            **asked,
        )
        return self.shown_now(run, status=202, at="qualification-run-detail")

    @described(
        "Measure a baseline",
        "A sandbox is made, measured and retired; the figures stay. For whoever may "
        "have sandboxes.",
        body=BaselineCreateSerializer,
        ok=QualificationRunSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.BASELINE,
    )
    @action(methods=["post"], detail=False)
    def baseline(self, request: Request) -> Response:
        asked = self.read_body(BaselineCreateSerializer)
        if not may_measure(self.user):
            raise NoSandboxesForYou
        server, host = asked.pop("server"), asked.pop("host")
        release = asked.pop("version")
        version = P4dVersion.objects.filter(release=release).first()
        if version is None:
            raise InvalidRequest.at("version", f"p4d {release} is not offered.")
        run = baselines.baseline_start(
            by=self.user,
            server=chosen(
                PerforceServer.objects.all(), word="server", id_or_name=server
            ),
            host=chosen(SandboxHost.objects.all(), word="host", id_or_name=host),
            version=version,
            **asked,
        )
        return self.shown_now(run, status=202, at="qualification-run-detail")

    @described(
        "Go on with a run that failed",
        "For its owner and administrators. Repeats that are complete are kept.",
        ok=QualificationRunSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RETRY,
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        run = running.run_retry(by=self.user, run=self.get_object())
        return self.shown_now(run, status=202, at="qualification-run-detail")
