"""Whose the commands in a log are: of people, of builds, or ours."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.gateways.perforce.connection import is_ours
from provisioner.server_log.models import Origin, ServerLog
from provisioner.server_log.records import LoggedCommand
from provisioner.workspaces.models import Workspace

_OF_BUILDS = (Workspace.Purpose.CI, Workspace.Purpose.CI_EDIT)


class Origins:
    """Tells whose commands of a server are, as accounts and workspaces are now.

    Those of builds are of machines' accounts, of clients of workspaces for CI, and of
    the log's `build_users`. Ours are known by account and program.
    """

    def __init__(self, log: ServerLog) -> None:
        self._our_user = log.server.p4user
        self._accounts = {
            account.perforce_name
            for account in User.objects.filter(is_service=True).only(
                "p4_user", "username"
            )
        }
        self._clients = {
            workspace.client_name
            for workspace in Workspace.objects.filter(purpose__in=_OF_BUILDS)
            .exclude(retired_at__lt=Now() - dt.timedelta(days=settings.SERVER_LOG_DAYS))
            .only("purpose", "name", "remote_name", "tag", "client_suffix")
        }
        self._build_users = Names(log.build_users)
        self._known: dict[tuple[str, str, str], str] = {}

    def of(self, command: LoggedCommand) -> str:
        """Return a value of Origin."""
        key = (command.user, command.client, command.program)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._of(*key)
        return known

    def _of(self, user: str, client: str, program: str) -> str:
        if is_ours(user, program, our_user=self._our_user):
            return Origin.OURS.value
        is_of_builds = (
            user in self._accounts
            or client in self._clients
            or user in self._build_users
        )
        return Origin.BUILDS.value if is_of_builds else Origin.PEOPLE.value


class Names:
    """Names one a line, in which * is any text.

    What fits is found from left to right, once: a pattern of people with many * would
    keep a regular expression busy for minutes.
    """

    def __init__(self, text: str) -> None:
        lines = {line.strip() for line in text.splitlines()} - {""}
        self._exact = {line for line in lines if "*" not in line}
        self._parts = [line.split("*") for line in lines - self._exact]

    def __contains__(self, name: str) -> bool:
        return name in self._exact or any(_fits(name, parts) for parts in self._parts)


def _fits(name: str, parts: Sequence[str]) -> bool:
    """Return whether a name is these parts, with any text between them."""
    first, *middle, last = parts
    position, end = len(first), len(name) - len(last)
    if end < position or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
