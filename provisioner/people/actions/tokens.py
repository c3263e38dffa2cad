"""API tokens, with their scopes."""

from __future__ import annotations

from collections.abc import Sequence

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.permissions import can_administer
from provisioner.accounts.tokens import (
    longest_days,
    token_create,
    token_revoke,
    tokens_of,
    tokens_visible_to,
)
from provisioner.catalog.models import Template
from provisioner.leases.actions.leases import LONGEST_SECONDS
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.workspaces.models import Workspace

LONGEST_NAME = 100
MOST_WORKSPACES = 100_000


def api_token_create(
    *,
    by: User,
    name: str = "",
    days: int | None = None,
    templates: Sequence[Template] | None = None,
    purposes: Sequence[str] | None = None,
    max_lease_seconds: int | None = None,
    max_workspaces: int | None = None,
    reads_mounts: bool = False,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its secret, which cannot be shown again.

    With any of the last five arguments it is scoped: see ApiToken. None or empty is no
    bound. A token cannot create another one. One that reads mounts has no other bound,
    and only an administrator creates it.

    Raises: InvalidRequest, NotAllowed.
    """
    if by.token is not None:
        raise NotAllowed("A token cannot create a token. Sign in with your password.")
    if len(name) > LONGEST_NAME or "\0" in name:
        raise InvalidRequest(f"A name has up to {LONGEST_NAME} characters.")
    if days is not None and not 1 <= days <= longest_days():
        raise InvalidRequest(f"A token lives from 1 to {longest_days()} days.")
    for purpose in purposes or ():
        if purpose not in Workspace.Purpose.values:
            raise InvalidRequest(f"There is no purpose “{purpose}”.")
    if max_lease_seconds is not None and not 1 <= max_lease_seconds <= LONGEST_SECONDS:
        raise InvalidRequest(f"A lease lasts from 1 to {LONGEST_SECONDS} seconds.")
    if max_workspaces is not None and not 1 <= max_workspaces <= MOST_WORKSPACES:
        raise InvalidRequest(
            f"A token may have from 1 to {MOST_WORKSPACES} workspaces."
        )
    if reads_mounts and not can_administer(by):
        raise NotAllowed("Only an administrator creates tokens that read mounts.")
    if reads_mounts and (templates or purposes or max_lease_seconds or max_workspaces):
        raise InvalidRequest.at(
            "reads_mounts",
            "A token that reads mounts gets no workspaces: leave other bounds out.",
        )
    return token_create(
        by=by,
        name=" ".join(name.split()),
        days=days,
        template_ids=sorted({t.pk for t in templates}) if templates else None,
        purposes=sorted({str(purpose) for purpose in purposes}) if purposes else None,
        max_lease_seconds=max_lease_seconds,
        max_workspaces=max_workspaces,
        reads_mounts=reads_mounts,
    )


def api_token_revoke(*, by: User, token: ApiToken) -> None:
    """Revoke a token, effective with the next request: one's own, or any as an
    administrator. What it made stays.

    Raises: NotAllowed.
    """
    if not tokens_visible_to(by).filter(pk=token.pk).exists():
        raise NotAllowed
    token_revoke(token)


def api_tokens_revoke_own(*, by: User) -> int:
    """Revoke all of a person's own tokens; return how many there were."""
    tokens = list(tokens_of(by))
    for token in tokens:
        token_revoke(token)
    return len(tokens)
