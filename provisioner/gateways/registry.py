"""The gateway for a site: the one place where rows and secrets become accounts.

Gateways are made once per process and account, so connections stay open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from django.conf import settings

from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import OntapAccount
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount


class PerforceAddress(Protocol):
    """What a Perforce server's row has to say."""

    name: str
    p4port: str
    p4user: str
    p4charset: str
    fingerprint: str
    sync_connections: int | None


class SiteAddress(Protocol):
    """What a site's row has to say."""

    name: str
    ontap_host: str
    ontap_port: int
    ontap_user: str
    ontap_ca_file: str
    svm: str


def ontap_account(site: SiteAddress) -> OntapAccount:
    """Return where and as whom the site's SVM is managed."""
    return OntapAccount(
        host=site.ontap_host,
        port=site.ontap_port,
        user=site.ontap_user,
        password=settings.SITE_SECRET("ONTAP_PASSWORD", key=site.name),
        ca_file=site.ontap_ca_file,
        svm=site.svm,
    )


def perforce_account(server: PerforceAddress) -> PerforceAccount:
    """Return where and as whom Cloneyard speaks to the server."""
    return PerforceAccount(
        port=server.p4port,
        user=server.p4user,
        password=settings.SITE_SECRET("P4PASSWD", key=server.name),
        charset=server.p4charset,
        fingerprint=server.fingerprint,
        sync_connections=server.sync_connections or 0,
    )


def ontap(site: SiteAddress) -> OntapGateway:
    """Return the gateway to the site's SVM."""
    return _ontap_gateway(ontap_account(site))


def perforce(server: PerforceAddress) -> PerforceGateway:
    """Return the gateway to the Perforce server."""
    return _perforce_gateway(perforce_account(server))


def perforce_for(server: PerforceAddress, *, client: str) -> PerforceGateway:
    """Return the gateway to the server as from the Host of a client."""
    gateway = perforce(server)
    spec = gateway.clients.find(client)
    if spec is None or not spec.host:
        return gateway
    return _perforce_gateway(replace(perforce_account(server), host=spec.host))


def perforce_as(account: PerforceAccount) -> PerforceGateway:
    """Return a gateway as somebody else; their ticket is not kept."""
    return PerforceGateway(account)


def hasty_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway for somebody who waits: no command may be silent for longer."""
    account = perforce_account(server)
    return _perforce_gateway(
        replace(account, timeout_seconds=seconds, bulk_timeout_seconds=seconds)
    )


@contextmanager
def first_ontap(site: SiteAddress, *, seconds: float) -> Iterator[OntapGateway]:
    """Give a gateway that nobody has used before, so that it proves all of its way.

    No request may take longer than so many seconds.
    """
    account = replace(ontap_account(site), timeout_seconds=seconds)
    with closing(OntapGateway(account)) as gateway:
        yield gateway


def first_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway that signs in anew; no command may be silent for longer."""
    account = perforce_account(server)
    return PerforceGateway(
        replace(account, timeout_seconds=seconds, bulk_timeout_seconds=seconds)
    )


@lru_cache(maxsize=64)
def _ontap_gateway(account: OntapAccount) -> OntapGateway:
    return OntapGateway(account)


@lru_cache(maxsize=64)
def _perforce_gateway(account: PerforceAccount) -> PerforceGateway:
    return PerforceGateway(account)
