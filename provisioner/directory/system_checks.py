"""Ask the directory before people do: `cloneyard-server check --deploy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

from provisioner.gateways.directory.gateway import DirectoryGateway
from provisioner.identities.queries import (
    break_glass_accounts,
    people_come_from_elsewhere,
)


@register("directory", deploy=True)
def the_directory_answers(**kwargs: Any) -> list[CheckMessage]:
    """Report servers that do not answer, and settings that they contradict."""
    if settings.DIRECTORY is None:
        return []
    return [
        Warning(problem, hint="docs/sign-in.md", id="cloneyard.W002")
        for problem in DirectoryGateway(settings.DIRECTORY).problems()
    ]


@register(Tags.database, deploy=True)
def somebody_gets_in_without_it(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Report if nobody could sign in while directory and provider are down."""
    if not databases or not people_come_from_elsewhere():
        return []
    if any(account.has_usable_password() for account in break_glass_accounts()):
        return []
    return [
        Warning(
            "There is no break-glass administrator: nobody gets in while directory and "
            "provider do not answer.",
            hint="cloneyard-server createsuperuser makes one.",
            id="cloneyard.W003",
        )
    ]
