"""Ask Perforce before people do: `cloneyard-server check --deploy`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.reach import is_encrypted
from provisioner.perforce_sign_in.people import ANSWERS_WITHIN_SECONDS, sign_in_server
from provisioner.sites.models import PerforceServer

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@register(Tags.database, deploy=True)
def perforce_signs_people_in(
    *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Report a server that is missing, does not answer, or says too little."""
    if not databases or not settings.P4_SIGN_IN_SERVER:
        return []
    server = sign_in_server()
    name = settings.P4_SIGN_IN_SERVER
    problems = (
        [
            f"P4_SIGN_IN_SERVER is “{name}”, and there is no Perforce server of that "
            "name: enter it at /perforce/, or name one that is there."
        ]
        if server is None
        else [f"P4_SIGN_IN_SERVER: {problem}" for problem in _problems(server)]
    )
    return [
        Warning(problem, hint="docs/sign-in.md", id="cloneyard.W005")
        for problem in problems
    ]


def _problems(server: PerforceServer) -> Iterator[str]:
    host = registry.perforce_host(server).strip("[]")
    if not is_encrypted(server.p4port) and host not in LOOPBACK:
        yield (
            f"“{server.name}” is reached without TLS. Where it has a directory check "
            "passwords, they travel in clear text: use an ssl: port."
        )
    try:
        gateway = registry.first_perforce(server, seconds=ANSWERS_WITHIN_SECONDS)
        if server.p4user not in gateway.people.find([server.p4user]):
            yield f"“{server.name}” does not tell {server.p4user} which users it has."
        gateway.people.groups_of([server.p4user])
    except GatewayError as error:
        yield error.sentence
