"""/api/v1/processes, /api/v1/orphan-rules and /api/v1/perforce-configurations."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, ShortListViewSet
from provisioner.insight import actions
from provisioner.insight.api import examples
from provisioner.insight.api.shapes import (
    AdviceRuleChangeSerializer,
    AdviceRuleSerializer,
    AdvisedClientListQuery,
    AdvisedClientSerializer,
    ConfigurationSerializer,
    ConfigurationsRequestedSerializer,
    OrphanRuleChangeSerializer,
    OrphanRuleSerializer,
    OrphansEndSerializer,
    ProcessEndingSerializer,
    ProcessListQuery,
    ProcessSerializer,
    ProgramMailsSerializer,
    ProgramReleaseChangeSerializer,
    ProgramUseListQuery,
    ProgramUseSerializer,
    ServerReleasesSerializer,
)
from provisioner.insight.client_advice import advised_clients, with_findings
from provisioner.insight.models import (
    AdviceRule,
    ListedClient,
    OrphanRule,
    Process,
    ProgramRelease,
    ProgramUse,
    ServerConfiguration,
)
from provisioner.insight.overviews import (
    orphan_overview,
    orphan_overviews,
    release_overview,
    release_overviews,
)
from provisioner.insight.queries import (
    configurations_visible_to,
    processes_matching,
    processes_visible_to,
    program_uses_matching,
    servers_with_clients,
    servers_with_orphan_rules,
    servers_with_programs,
)


class ProcessViewSet(ApiViewSet):
    """What runs at the Perforce servers, for administrators."""

    queryset = Process.objects.none()
    serializer_class = ProcessSerializer
    is_for_administrators = True

    def get_queryset(self) -> QuerySet[Process]:
        return processes_visible_to(self.user)

    @described(
        "List processes of Perforce servers",
        "For administrators, as last read: every minute. Longest first.",
        ok=ProcessSerializer,
        refused=[400, 403],
        parameters=[ProcessListQuery],
        examples=examples.LIST,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ProcessListQuery)
        return self.page_of(processes_matching(self.user, **query))

    @described(
        "Get a process of a Perforce server",
        "For administrators.",
        ok=ProcessSerializer,
        refused=[403, 404],
        examples=examples.GET,
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return self.shown(self.get_object())

    @described(
        "End a process of a Perforce server",
        "For administrators. A worker reads the server's processes again right before, "
        "and ends nothing else that has its number by then.",
        ok=ProcessEndingSerializer,
        status=202,
        refused=[403, 404, 409],
        examples=examples.END,
    )
    @action(methods=["post"], detail=True)
    def end(self, request: Request, pk: int) -> Response:
        ending = actions.process_end(by=self.user, process=self.get_object())
        return Response(ProcessEndingSerializer(ending).data, status=202)


class ProgramUseViewSet(ApiViewSet):
    """Who uses which program in which release, for administrators."""

    queryset = ProgramUse.objects.none()
    serializer_class = ProgramUseSerializer
    is_for_administrators = True

    @described(
        "List uses of programs",
        "For administrators, last seen first: by the processes that are read every "
        "minute and by the server's log where it is followed. Without a log, what runs "
        "for less than a minute may be missing.",
        ok=ProgramUseSerializer(many=True),
        refused=[400, 403],
        parameters=[ProgramUseListQuery],
        operation_id="perforce_programs_list",
        examples=examples.PROGRAMS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(ProgramUseListQuery)
        return self.page_of(program_uses_matching(self.user, **query))


class ProgramReleaseViewSet(ShortListViewSet):
    """Which releases people should have at each server, for administrators."""

    queryset = ProgramRelease.objects.none()
    serializer_class = ServerReleasesSerializer
    is_for_administrators = True

    @described(
        "List the releases that people should have",
        "For administrators. One for each server, with the people who have older ones.",
        ok=ServerReleasesSerializer(many=True),
        refused=[403],
        operation_id="program_releases_list",
        examples=examples.RELEASES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(release_overviews())

    @described(
        "Change the releases of a program that people should have",
        "For administrators, by the id of the server.",
        body=ProgramReleaseChangeSerializer,
        ok=ServerReleasesSerializer,
        refused=[400, 403, 404],
        examples=examples.RELEASE_CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(servers_with_programs(), pk=pk)
        asked = self.read_body(ProgramReleaseChangeSerializer)
        actions.program_release_save(by=self.user, server=server, **asked)
        return self.shown(release_overview(servers_with_programs().get(pk=pk)))

    @described(
        "Ask people to update their programs",
        "For administrators, by the id of the server. Everybody who is due gets one "
        "mail, and none again for 30 days. 200 people at a time; the list shows whom.",
        ok=ProgramMailsSerializer,
        status=202,
        refused=[403, 404, 409],
        operation_id="program_releases_ask",
        examples=examples.RELEASES_ASK,
    )
    @action(methods=["post"], detail=True)
    def ask(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(servers_with_programs(), pk=pk)
        mails = actions.program_mails_send(by=self.user, server=server)
        return Response(ProgramMailsSerializer({"mails": mails}).data, status=202)


class OrphanRuleViewSet(ShortListViewSet):
    """Which processes of each Perforce server count as orphans, for administrators."""

    queryset = OrphanRule.objects.none()
    serializer_class = OrphanRuleSerializer
    is_for_administrators = True

    @described(
        "List rules for orphaned processes",
        "For administrators. One for each server with the processes that count now; a "
        "server without one has the default rule, which ends nothing by itself.",
        ok=OrphanRuleSerializer(many=True),
        refused=[403],
        operation_id="orphan_rules_list",
        examples=examples.ORPHAN_RULES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(orphan_overviews())

    @described(
        "Change a rule for orphaned processes",
        "For administrators, by the id of its server.",
        body=OrphanRuleChangeSerializer,
        ok=OrphanRuleSerializer,
        refused=[400, 403, 404],
        examples=examples.ORPHAN_RULE_CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(servers_with_orphan_rules(), pk=pk)
        asked = self.read_body(OrphanRuleChangeSerializer)
        rule = actions.orphan_rule_save(by=self.user, server=server, **asked)
        return self.shown(orphan_overview(rule))

    @described(
        "End the orphaned processes of a server",
        "For administrators, by the id of the server. The user, command and start of "
        "each are read again right before.",
        ok=OrphansEndSerializer,
        status=202,
        refused=[403, 404],
        operation_id="orphan_rules_end",
        examples=examples.ORPHANS_END,
    )
    @action(methods=["post"], detail=True)
    def end(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(servers_with_orphan_rules(), pk=pk)
        endings = actions.orphans_end(by=self.user, server=server)
        body = OrphansEndSerializer({"endings": endings}).data
        return Response(body, status=202)


class ClientAdviceViewSet(ApiViewSet):
    """Clients of Perforce servers that get advice, for administrators."""

    queryset = ListedClient.objects.none()
    serializer_class = AdvisedClientSerializer
    is_for_administrators = True

    @described(
        "List clients with advice",
        "For administrators, by server and name, as listed once a day. Reading moves "
        "no Access date, so a view is known once its client was used.",
        ok=AdvisedClientSerializer(many=True),
        refused=[400, 403],
        parameters=[AdvisedClientListQuery],
        operation_id="perforce_clients_list",
        examples=examples.CLIENTS,
    )
    def list(self, request: Request) -> Response:
        query = self.read_query(AdvisedClientListQuery)
        clients = advised_clients(self.user, **query).order_by("server__name", "name")
        page = self.paginate_queryset(clients)
        assert page is not None
        shown = AdvisedClientSerializer(with_findings(self.user, page), many=True)
        return self.get_paginated_response(shown.data)


class AdviceRuleViewSet(ShortListViewSet):
    """When clients and protections of each server get advice, for administrators."""

    queryset = AdviceRule.objects.none()
    serializer_class = AdviceRuleSerializer
    is_for_administrators = True

    @described(
        "List rules for advice",
        "For administrators. One for each server; a server without one has the "
        "default.",
        ok=AdviceRuleSerializer(many=True),
        refused=[403],
        operation_id="advice_rules_list",
        examples=examples.ADVICE_RULES,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(map(AdviceRule.of, servers_with_clients()))

    @described(
        "Change a rule for advice",
        "For administrators, by the id of its server.",
        body=AdviceRuleChangeSerializer,
        ok=AdviceRuleSerializer,
        refused=[400, 403, 404],
        examples=examples.ADVICE_RULE_CHANGE,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        server = get_object_or_404(servers_with_clients(), pk=pk)
        asked = self.read_body(AdviceRuleChangeSerializer)
        return self.shown(
            actions.advice_rule_save(by=self.user, server=server, **asked)
        )


class ConfigurationViewSet(ShortListViewSet):
    """How the Perforce servers are set up, for administrators."""

    queryset = ServerConfiguration.objects.none()
    serializer_class = ConfigurationSerializer
    is_for_administrators = True

    def get_queryset(self) -> QuerySet[ServerConfiguration]:
        return configurations_visible_to(self.user)

    @described(
        "List the configurations of Perforce servers",
        "For administrators, as read once a day, each with what the rules say of it. "
        "Cloneyard changes nothing itself.",
        ok=ConfigurationSerializer,
        refused=[403],
        examples=examples.CONFIGURATIONS,
    )
    def list(self, request: Request) -> Response:
        return self.page_of(self.get_queryset())

    @described(
        "Read the configurations now",
        "For administrators. List them again once the jobs have run.",
        ok=ConfigurationsRequestedSerializer,
        status=202,
        refused=[403],
        operation_id="perforce_configurations_read",
    )
    @action(methods=["post"], detail=False)
    def read(self, request: Request) -> Response:
        queued = actions.configurations_read(by=self.user)
        where = reverse("api:configuration-list", request=request)
        return Response({"queued": queued}, status=202, headers={"Location": where})
