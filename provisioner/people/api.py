"""/api/v1/tokens: API tokens of people and scripts."""

from __future__ import annotations

import threading
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from provisioner.accounts import permissions
from provisioner.accounts.attempts import TooManyAtOnce, TooManyAttempts, begin_attempt
from provisioner.accounts.authentication import PasswordAuthentication, Throttled
from provisioner.accounts.models import ApiToken
from provisioner.accounts.tokens import LONGEST_DAYS, tokens_of, tokens_visible_to
from provisioner.api.examples import WRONG_PASSWORD, answer, request_body
from provisioner.api.fields import Flag, IdOrName, Number, Text
from provisioner.api.pagination import TokenPages
from provisioner.api.schema import described
from provisioner.api.viewsets import ApiViewSet, chosen
from provisioner.catalog.queries import templates_visible_to
from provisioner.leases.api.shapes import Seconds
from provisioner.lib import names
from provisioner.people.actions.tickets import token_for_ticket
from provisioner.people.actions.tokens import (
    LONGEST_NAME,
    MOST_WORKSPACES,
    api_token_create,
    api_token_revoke,
)
from provisioner.workspaces.models import Workspace

# Nobody has signed in yet, and a Perforce server that is silent holds a thread for
# seconds: others are left to those who have.
TICKETS_AT_A_TIME = 4
_asking_perforce = threading.BoundedSemaphore(TICKETS_AT_A_TIME)


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    prefix = serializers.CharField(
        source="token_key", help_text="How the token begins."
    )
    owner = serializers.CharField(source="user.username")
    templates = serializers.ListField(
        source="template_ids",
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="Ids of the allowed templates; null: all.",
    )
    purposes = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: all."
    )
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry")

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "prefix",
            "name",
            "owner",
            "templates",
            "purposes",
            "max_lease_seconds",
            "max_workspaces",
            "reads_mounts",
            "created_at",
            "expires_at",
            "last_used_at",
        )
        read_only_fields = fields


@extend_schema_serializer(component_name="TokenCreate")
class TokenCreateSerializer(serializers.Serializer[Any]):
    """With any of the last five fields the token is scoped.

    It then requests only workspaces within those bounds, and sees and changes only its
    own.
    """

    name = Text(
        max_length=LONGEST_NAME,
        default="",
        allow_blank=True,
        help_text="The allowed purposes.",
    )
    days = Number(
        required=False,
        min_value=1,
        max_value=LONGEST_DAYS,
        help_text="Its lifetime; the default if not given.",
    )
    templates = serializers.ListField(
        child=IdOrName(),
        required=False,
        max_length=1000,
        help_text="Ids or names; all if not given or empty.",
    )
    purposes = serializers.ListField(
        child=serializers.ChoiceField(choices=Workspace.Purpose.choices),
        required=False,
        max_length=len(Workspace.Purpose),
        help_text="All if not given or empty.",
    )
    max_lease_seconds = Seconds(required=False, help_text="The maximum lease from now.")
    max_workspaces = Number(
        required=False,
        min_value=1,
        max_value=MOST_WORKSPACES,
        help_text="The maximum number at a time, without those in the trash.",
    )
    reads_mounts = Flag(
        default=False,
        help_text="For automounters: it reads everybody's mounts and does nothing "
        "else. Administrators create it, without other bounds.",
    )


class TokenCreatedSerializer(TokenSerializer):
    token = serializers.CharField(help_text="Shown only once: store it.")

    class Meta(TokenSerializer.Meta):
        fields: tuple[str, ...] = ("token", *TokenSerializer.Meta.fields)
        read_only_fields = fields


_MADE: dict[str, Any] = {
    "token": "3f9c1b7e2d5a4c60a1b2c3d4e5f60718293a4b5c6d7e8f901a2b3c4d5e6f7081",
    "prefix": "3f9c1b7e2d5a4c6",
    "name": "nightly",
    "owner": "ci",
    "templates": [3],
    "purposes": ["ci"],
    "max_lease_seconds": 14400,
    "max_workspaces": 10,
    "reads_mounts": False,
    "created_at": "2026-11-24T09:00:00Z",
    "expires_at": "2026-12-24T09:00:00Z",
    "last_used_at": None,
}
EXAMPLES = [
    request_body("For yourself", {"name": "laptop"}),
    request_body(
        "For one job",
        {
            "name": "nightly",
            "days": 30,
            "templates": ["main"],
            "purposes": ["ci"],
            "max_lease_seconds": 14400,
            "max_workspaces": 10,
        },
    ),
    answer("Made", _MADE, status=201),
    WRONG_PASSWORD,
]


class TicketSerializer(serializers.Serializer[Any]):
    p4_user = Text(max_length=128, help_text="The Perforce user.")
    ticket = Text(
        max_length=128, help_text="As p4 login -a -p prints it; never a password."
    )
    server = Text(
        max_length=names.LONGEST_NAME,
        default="",
        allow_blank=True,
        help_text="The Perforce server's name; not needed where there is one.",
    )


class TokenListQuery(serializers.Serializer[Any]):
    everybody = serializers.BooleanField(
        default=False, help_text="Those of all people; for administrators."
    )


class TokenViewSet(ApiViewSet):
    """API tokens: yours, or everybody's for administrators."""

    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = TokenPages
    lookup_field = "token_key"
    lookup_url_kwarg = "prefix"
    lookup_value_converter = "slug"

    def get_queryset(self) -> QuerySet[ApiToken]:
        return tokens_visible_to(self.user)

    def get_permissions(self) -> list[Any]:
        # The ticket is the proof.
        return [] if self.action == "perforce" else list(super().get_permissions())

    def get_authenticators(self) -> list[BaseAuthentication]:
        if self.action_map.get("post") == "perforce":
            return []
        # A token cannot make another, or revoking one would not end its access.
        if self.request is not None and self.request.method == "POST":
            return [PasswordAuthentication(), SessionAuthentication()]
        return super().get_authenticators()

    @described(
        "List tokens",
        "Active tokens. A scoped token sees only itself.",
        ok=TokenSerializer,
        refused=[400, 403],
        parameters=[TokenListQuery],
    )
    def list(self, request: Request) -> Response:
        if not self.read_query(TokenListQuery)["everybody"]:
            return self.page_of(tokens_of(self.user))
        permissions.require(permissions.can_administer(self.user))
        return self.page_of(self.get_queryset())

    @described(
        "Create a token",
        "Send your username and password with HTTP basic, or use a session. Only "
        "this answer has the token.",
        body=TokenCreateSerializer,
        ok=TokenCreatedSerializer,
        status=201,
        refused=[403],
        examples=EXAMPLES,
    )
    def create(self, request: Request) -> Response:
        asked = self.read_body(TokenCreateSerializer)
        templates = [
            chosen(
                templates_visible_to(self.user),
                word="template",
                id_or_name=id_or_name,
                hint="Give its id.",
            )
            for id_or_name in asked.pop("templates", ())
        ]
        made = api_token_create(by=self.user, templates=templates, **asked)
        return self._with_secret(*made)

    @described(
        "Create a token with a Perforce ticket",
        "For programs such as the filter of “p4 flex”. The Perforce server is asked "
        "whether the ticket is good; it must be valid on all hosts, and the server's "
        "row must allow this. The token is valid for minutes.",
        body=TicketSerializer,
        ok=TokenCreatedSerializer,
        status=201,
        refused=[403, 409],
        operation_id="tokens_perforce_create",
        by_anybody=True,
    )
    @action(methods=["post"], detail=False)
    def perforce(self, request: Request) -> Response:
        asked = self.read_body(TicketSerializer)
        if not _asking_perforce.acquire(blocking=False):
            raise Throttled(TooManyAtOnce())
        try:
            made = self._made_for_ticket(request, asked)
        finally:
            _asking_perforce.release()
        return self._with_secret(*made)

    def _with_secret(self, token: ApiToken, secret: str) -> Response:
        body = {**TokenSerializer(token).data, "token": secret}
        where = reverse("api:token-detail", [token.token_key], request=self.request)
        return Response(body, status=201, headers={"Location": where})

    def _made_for_ticket(
        self, request: Request, asked: dict[str, Any]
    ) -> tuple[ApiToken, str]:
        # By name and ticket: who guesses keeps out nobody but themselves.
        name = f"{asked['p4_user']} {asked['ticket']}"
        try:
            attempt = begin_attempt(request._request, name=name)
        except TooManyAttempts as refusal:
            raise Throttled(refusal) from None
        made = token_for_ticket(**asked)
        attempt.succeeded()
        return made

    @described(
        "Revoke a token",
        "It stops working with the next request. Its workspaces stay.",
        ok=None,
        status=204,
        refused=[403, 404],
    )
    def destroy(self, request: Request, prefix: str) -> Response:
        api_token_revoke(by=self.user, token=self.get_object())
        return Response(status=204)
