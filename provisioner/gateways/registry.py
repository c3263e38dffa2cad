"""The gateways of a site: the one place that makes accounts of rows and secrets.

Each process creates a gateway once per account, so that connections stay open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from django.conf import settings

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import OntapAccount
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.gateways.reach import perforce_address
from provisioner.lib.databases import require_no_transaction


class PerforceAddress(Protocol):
    """What is needed of a Perforce server's row."""

    name: str
    p4port: str
    p4user: str
    p4charset: str
    fingerprint: str
    sync_connections: int | None


class SiteAddress(Protocol):
    """What is needed of a site's row."""

    name: str
    ontap_host: str
    ontap_port: int
    ontap_user: str
    ontap_ca_file: str
    svm: str


def ontap_account(site: SiteAddress) -> OntapAccount:
    """Return where to manage the site's SVM, and with which account.

    Raises: Refused where our password is not for that host; RuntimeError within a
    transaction.
    """
    require_no_transaction()
    require_secret_host(site.ontap_host, system="ontap")
    return OntapAccount(
        host=site.ontap_host,
        port=site.ontap_port,
        user=site.ontap_user,
        password=settings.SITE_SECRET("ONTAP_PASSWORD", key=site.name),
        ca_file=site.ontap_ca_file,
        svm=site.svm,
    )


def perforce_account(server: PerforceAddress) -> PerforceAccount:
    """Return how Cloneyard connects to the server.

    Raises: Refused where our password is not for that host; RuntimeError within a
    transaction.
    """
    require_no_transaction()
    require_secret_host(perforce_host(server), system="perforce")
    return PerforceAccount(
        port=server.p4port,
        user=server.p4user,
        password=settings.SITE_SECRET("P4PASSWD", key=server.name),
        charset=server.p4charset,
        fingerprint=server.fingerprint,
        sync_connections=server.sync_connections or 0,
    )


def perforce_host(server: PerforceAddress) -> str:
    """Return the host of a server, "" where its port is no address."""
    try:
        return perforce_address(server.p4port)[0]
    except ValueError:
        return ""


def require_secret_host(host: str, *, system: str) -> None:
    """Let a password be sent to a host that whoever runs Cloneyard has named.

    Addresses are typed on pages, and passwords are not: otherwise who may type the one
    would get the other. Raises: Refused.
    """
    hosts = {name.lower() for name in settings.SECRET_HOSTS}
    if hosts and host.strip("[]").lower() not in hosts:
        raise Refused(
            f"No password is sent to {host}: SECRET_HOSTS does not name it. Whoever "
            "runs Cloneyard can add it there.",
            system=system,
            operation="sign in",
        )


def ontap(site: SiteAddress) -> OntapGateway:
    """Return the gateway to the site's SVM."""
    return _ontap_gateway(ontap_account(site))


def perforce(server: PerforceAddress) -> PerforceGateway:
    """Return the gateway to the Perforce server."""
    return _perforce_gateway(perforce_account(server))


def perforce_for(server: PerforceAddress, *, client: str) -> PerforceGateway:
    """Return the gateway to the server, reporting the Host of a client as ours."""
    gateway = perforce(server)
    spec = gateway.clients.find(client)
    if spec is None or not spec.host:
        return gateway
    return _perforce_gateway(replace(perforce_account(server), host=spec.host))


def perforce_as(account: PerforceAccount) -> PerforceGateway:
    """Return a gateway for another account, whose ticket is not kept."""
    return PerforceGateway(account)


def hasty_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway for callers who wait: it limits the silence of commands."""
    account = perforce_account(server)
    return _perforce_gateway(
        replace(account, timeout_seconds=seconds, bulk_timeout_seconds=seconds)
    )


@contextmanager
def first_ontap(site: SiteAddress, *, seconds: float) -> Iterator[OntapGateway]:
    """Provide an unused gateway, which therefore tests the whole connection.

    No request may take longer than `seconds`.
    """
    account = replace(ontap_account(site), timeout_seconds=seconds)
    with closing(OntapGateway(account)) as gateway:
        yield gateway


def first_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway that signs in again; it limits the silence of commands."""
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
