"""Lists of API tokens: one's own, and for administrators everybody's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from provisioner.accounts.models import ApiToken
from provisioner.accounts.tokens import tokens_of, tokens_visible_to
from provisioner.catalog.models import Template
from provisioner.lib.spans import span_text
from provisioner.people.actions.tokens import api_token_revoke
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched


class Revoke(Act[ApiToken]):
    name, label, done = "revoke", "Revoke", "Revoked"
    lead = "Workspaces that were created with them stay."
    is_dangerous = True

    def do(self, row: ApiToken, **told: Any) -> None:
        api_token_revoke(by=self.by, token=row)

    def says(self, row: ApiToken, result: None) -> str:
        return f"Requests of {row.user.username} with it are refused now."


@dataclass(frozen=True, kw_only=True)
class ShownToken:
    """A token with the names of its templates, and whether to show its owner."""

    token: ApiToken
    templates: list[str]
    has_owner: bool

    @property
    def bounds(self) -> str:
        """Its scope, in a line."""
        token = self.token
        if not token.is_scoped:
            return "everything its owner may do"
        parts = [
            ", ".join(self.templates) or "all templates",
            ", ".join(token.purposes or ()) or "all purposes",
        ]
        if token.max_lease_seconds:
            parts.append(f"leases up to {span_text(token.max_lease_seconds)}")
        if most := token.max_workspaces:
            parts.append(f"{most} workspace{'s' if most > 1 else ''} at a time")
        return "; ".join(parts)


def shown_tokens(
    found: Iterable[ApiToken], *, has_owner: bool = False
) -> list[ShownToken]:
    """Return tokens with the names of their templates, in one more query."""
    tokens = list(found)
    wanted = {pk for token in tokens for pk in token.template_ids or ()}
    names = dict(Template.with_deleted.filter(pk__in=wanted).values_list("pk", "name"))
    return [
        ShownToken(
            token=token,
            templates=[names[pk] for pk in token.template_ids or () if pk in names],
            has_owner=has_owner,
        )
        for token in tokens
    ]


_NAME = Column("name", "Token", "token.name", "name")
_REST = (
    Column("prefix", "", "token.token_key"),
    Column("bounds", "For", "bounds"),
    Column(
        *("last_used_at", "Last used", "token.last_used_at", "last_used_at"),
        has_gaps=True,
        begins_descending=True,
    ),
    Column("created_at", "", "token.created", "created"),
    Column("expires_at", "Until", "token.expiry", "expiry"),
    Column("actions", "Actions", None, is_label_spoken=True),
)

TOKENS = Listing[ApiToken](
    name="tokens",
    one="token",
    many="tokens",
    columns=(_NAME, *_REST),
    cells="people/_token_cells.html",
    matching=searched(tokens_of, "name", "token_key"),
    usual="-created_at",
    dress=lambda user, tokens: shown_tokens(tokens),
    acts=(Revoke,),
    key="token_key",
    quiet_below=10,
    nothing="You have no tokens.",
)

EVERYBODYS_TOKENS = Listing[ApiToken](
    name="everybodys-tokens",
    one="token",
    many="tokens",
    columns=(
        _NAME,
        Column("owner", "Whose", "token.user.username", "user__username"),
        *_REST,
    ),
    cells="people/_token_cells.html",
    matching=searched(tokens_visible_to, "name", "token_key", "user__username"),
    usual="owner",
    dress=lambda user, tokens: shown_tokens(tokens, has_owner=True),
    acts=(Revoke,),
    key="token_key",
    nothing="There are no tokens.",
)
