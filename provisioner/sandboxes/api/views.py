"""/api/v1/sandboxes, and what they need: volumes, versions, hosts and policies."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from provisioner.accounts.models import Team
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.engine.api.answers import operation_answer
from provisioner.engine.api.shapes import OperationSerializer
from provisioner.lib.refusals import InvalidRequest
from provisioner.sandboxes.actions import creating, describing, hosts, keeping, policies
from provisioner.sandboxes.api import examples
from provisioner.sandboxes.api.shapes import (
    P4dVersionSaveSerializer,
    P4dVersionSerializer,
    SandboxCreateSerializer,
    SandboxExtendSerializer,
    SandboxHostSaveSerializer,
    SandboxHostSerializer,
    SandboxPolicySaveSerializer,
    SandboxPolicySerializer,
    SandboxRetireSerializer,
    SandboxSerializer,
    ServerVolumesSaveSerializer,
    ServerVolumesSerializer,
)
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sandboxes.queries import (
    hosts_with_numbers,
    may_have_sandboxes,
    sandboxes_ever,
    sandboxes_visible_to,
)
from provisioner.sandboxes.refusals import NoSandboxesForYou
from provisioner.sites.models import PerforceServer, Site


class SandboxViewSet(ApiViewSet):
    """Private copies of Perforce servers."""

    queryset = Sandbox.objects.none()
    serializer_class = SandboxSerializer

    def get_queryset(self) -> QuerySet[Sandbox]:
        return sandboxes_visible_to(self.user)

    @described(
        "List sandboxes",
        "Your own; administrators see all.",
        ok=SandboxSerializer,
        refused=[400],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Get a sandbox",
        "Those that are retired, too.",
        ok=SandboxSerializer,
        refused=[404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(get_object_or_404(sandboxes_ever(self.user), pk=pk))

    @described(
        "Request a sandbox of a Perforce server",
        "For administrators, and for teams whose policy allows it.",
        body=SandboxCreateSerializer,
        ok=SandboxSerializer,
        status=202,
        refused=[400, 403, 409],
        examples=examples.CREATE,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(SandboxCreateSerializer)
        if not may_have_sandboxes(self.user):
            raise NoSandboxesForYou
        release = asked.pop("version")
        version = P4dVersion.objects.filter(release=release).first()
        if version is None:
            raise InvalidRequest.at("version", f"p4d {release} is not offered.")
        server = chosen(
            PerforceServer.objects.all(),
            word="server",
            id_or_name=asked.pop("server"),
        )
        host = chosen(
            SandboxHost.objects.all(), word="host", id_or_name=asked.pop("host")
        )
        sandbox = creating.sandbox_create(
            by=self.user, server=server, host=host, version=version, **asked
        )
        return self.shown_now(sandbox, status=202, at="sandbox-detail")

    @described(
        "Extend a sandbox",
        "For its owner and administrators.",
        body=SandboxExtendSerializer,
        ok=SandboxSerializer,
        refused=[403, 404, 409],
        examples=examples.EXTEND,
    )
    @action(methods=["post"], detail=True)
    def extend(self, request: Request, pk: int) -> Response:
        sandbox = self.get_object()
        asked = self.read_body(SandboxExtendSerializer)
        keeping.sandbox_extend(by=self.user, sandbox=sandbox, **asked)
        return self.shown_now(sandbox)

    @described(
        "Retire a sandbox",
        "For its owner and administrators. Nothing of it is left. The answer is the "
        "operation to follow.",
        body=SandboxRetireSerializer,
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RETIRE,
    )
    @action(methods=["post"], detail=True)
    def retire(self, request: Request, pk: int) -> Response:
        sandbox, asked = self.get_object(), self.read_body(SandboxRetireSerializer)
        operation = keeping.sandbox_retire(by=self.user, sandbox=sandbox, **asked)
        return operation_answer(request, operation)

    @described(
        "Start the server of a stopped sandbox again",
        "For its owner and administrators. The answer is the operation to follow.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.START,
    )
    @action(methods=["post"], detail=True)
    def start(self, request: Request, pk: int) -> Response:
        operation = keeping.sandbox_start(by=self.user, sandbox=self.get_object())
        return operation_answer(request, operation)

    @described(
        "Retry what failed",
        "For its owner and administrators: the creation, a start, or the retirement.",
        ok=OperationSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.RETRY,
    )
    @action(methods=["post"], detail=True)
    def retry(self, request: Request, pk: int) -> Response:
        operation = keeping.sandbox_retry(by=self.user, sandbox=self.get_object())
        return operation_answer(request, operation)


class ServerVolumesViewSet(ApiViewSet):
    """The volumes that Perforce servers are on."""

    queryset = ServerVolumes.objects.none()
    serializer_class = ServerVolumesSerializer
    is_for_administrators = True

    def get_queryset(self) -> QuerySet[ServerVolumes]:
        rows = ServerVolumes.objects.select_related("server", "site")
        return rows.prefetch_related("places")

    @described(
        "List the volumes of Perforce servers",
        "For administrators.",
        ok=ServerVolumesSerializer,
        refused=[400, 403],
        examples=examples.VOLUMES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Describe the volumes of a Perforce server",
        "For administrators. It replaces what was described before.",
        body=ServerVolumesSaveSerializer,
        ok=ServerVolumesSerializer,
        refused=[400, 403],
        examples=examples.SAVE_VOLUMES,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(ServerVolumesSaveSerializer)
        server = chosen(
            PerforceServer.objects.all(),
            word="server",
            id_or_name=asked.pop("server"),
        )
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        volumes = describing.server_volumes_save(
            by=self.user, server=server, site=site, **asked
        )
        return self.shown_now(volumes)


class P4dVersionViewSet(ApiViewSet):
    """The releases of p4d, and their path on hosts of sandboxes."""

    queryset = P4dVersion.objects.all()
    serializer_class = P4dVersionSerializer
    is_for_administrators = True

    @described(
        "List the versions of p4d",
        "For administrators.",
        ok=P4dVersionSerializer,
        refused=[400, 403],
        examples=examples.VERSIONS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Name a version of p4d",
        "For administrators. An existing release gets the new path.",
        body=P4dVersionSaveSerializer,
        ok=P4dVersionSerializer,
        refused=[400, 403],
        examples=examples.SAVE_VERSION,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(P4dVersionSaveSerializer)
        return self.shown(hosts.p4d_version_save(by=self.user, **asked))

    @described(
        "Withdraw a version of p4d",
        "For administrators. Sandboxes that use it keep running.",
        ok=None,
        status=204,
        refused=[403, 404],
        examples=examples.NOTHING,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        hosts.p4d_version_delete(by=self.user, version=self.get_object())
        return Response(status=204)


class SandboxHostViewSet(ApiViewSet):
    """The hosts whose workers start the servers of sandboxes."""

    queryset = hosts_with_numbers()
    serializer_class = SandboxHostSerializer
    is_for_administrators = True

    @described(
        "List the hosts of sandboxes",
        "For administrators.",
        ok=SandboxHostSerializer,
        refused=[400, 403],
        examples=examples.HOSTS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Add a host of sandboxes",
        "For administrators. A host of that name is changed.",
        body=SandboxHostSaveSerializer,
        ok=SandboxHostSerializer,
        refused=[400, 403, 409],
        examples=examples.SAVE_HOST,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(SandboxHostSaveSerializer)
        site = chosen(Site.objects.all(), word="site", id_or_name=asked.pop("site"))
        host = hosts.sandbox_host_save(by=self.user, site=site, **asked)
        return self.shown_now(host)

    @described(
        "Remove a host of sandboxes",
        "For administrators.",
        ok=None,
        status=204,
        refused=[403, 404, 409],
        examples=examples.DELETE_HOST,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        hosts.sandbox_host_delete(by=self.user, host=self.get_object())
        return Response(status=204)


class SandboxPolicyViewSet(ApiViewSet):
    """Which teams may have sandboxes: how many, and for how long."""

    queryset = SandboxPolicy.objects.select_related("team")
    serializer_class = SandboxPolicySerializer
    is_for_administrators = True

    @described(
        "List the policies of sandboxes",
        "For administrators, who may have sandboxes without one.",
        ok=SandboxPolicySerializer,
        refused=[400, 403],
        examples=examples.POLICIES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Set the sandbox policy of a team",
        "For administrators. It replaces the team's policy.",
        body=SandboxPolicySaveSerializer,
        ok=SandboxPolicySerializer,
        refused=[400, 403],
        examples=examples.SAVE_POLICY,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(SandboxPolicySaveSerializer)
        team = chosen(Team.objects.all(), word="team", id_or_name=asked.pop("team"))
        return self.shown(
            policies.sandbox_policy_save(by=self.user, team=team, **asked)
        )

    @described(
        "Delete the sandbox policy of a team",
        "For administrators. Sandboxes that they have keep running until their end.",
        ok=None,
        status=204,
        refused=[403, 404],
        examples=examples.NOTHING,
    )
    def destroy(self, request: Request, pk: int) -> Response:
        policies.sandbox_policy_delete(by=self.user, policy=self.get_object())
        return Response(status=204)
