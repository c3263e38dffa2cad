"""The gateways of a site: the one place that combines rows and secrets.

Each process creates one gateway per account, so that connections stay open.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from django.conf import settings

from provisioner.gateways.errors import PermanentGatewayError, Refused
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import OntapAccount
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.gateways.reach import perforce_address
from provisioner.lib.databases import require_no_transaction

ADDRESSES_KEPT_SECONDS = 600.0
_NFS_ADDRESSES: dict[tuple[str, str], tuple[list[str], float]] = {}


class PerforceAddress(Protocol):
    """The fields of a Perforce server's row that a gateway needs."""

    name: str
    p4port: str
    p4user: str
    p4charset: str
    fingerprint: str
    sync_connections: int | None


class SiteAddress(Protocol):
    """The fields of a site's row that a gateway needs."""

    name: str
    ontap_host: str
    ontap_port: int
    ontap_user: str
    ontap_ca_file: str
    svm: str


def ontap_account(site: SiteAddress) -> OntapAccount:
    """Return where to manage the site's SVM, and with which account.

    Raises: Refused (our password must not be sent to that host); RuntimeError (within a
    transaction).
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

    Raises: Refused (our password must not be sent to that host); RuntimeError (within a
    transaction).
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
    """Return the host of a server, "" if its port is not an address."""
    try:
        return perforce_address(server.p4port)[0]
    except ValueError:
        return ""


def require_secret_host(host: str, *, system: str) -> None:
    """Refuse to send a password to a host that SECRET_HOSTS does not name.

    Addresses are typed on pages, passwords are not: otherwise anybody who may enter an
    address would get the password.

    Raises: Refused.
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
    """Return the gateway to the server that reports a client's Host as ours."""
    gateway = perforce(server)
    spec = gateway.clients.find(client)
    if spec is None or not spec.host:
        return gateway
    return _perforce_gateway(replace(perforce_account(server), host=spec.host))


def perforce_as(account: PerforceAccount) -> PerforceGateway:
    """Return a gateway for another account, whose ticket is not stored."""
    return PerforceGateway(account)


def hasty_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway for callers who wait: a command may only be silent briefly."""
    account = perforce_account(server)
    return _perforce_gateway(
        replace(account, timeout_seconds=seconds, bulk_timeout_seconds=seconds)
    )


@contextmanager
def first_ontap(
    site: SiteAddress, *, seconds: float, until: float | None = None
) -> Iterator[OntapGateway]:
    """Return an unused gateway, which therefore tests the whole connection.

    No answer may take longer than `seconds`, nor come after `until`
    (time.monotonic()).
    """
    account = replace(ontap_account(site), timeout_seconds=seconds, answers_until=until)
    with closing(OntapGateway(account)) as gateway:
        yield gateway


def first_perforce(server: PerforceAddress, *, seconds: float) -> PerforceGateway:
    """Return a gateway that signs in again; a command may only be silent briefly."""
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


def nfs_addresses(site: SiteAddress) -> list[str]:
    """Return the SVM's NFS addresses; [] if our role may not read them.

    They are kept for some minutes.
    """
    of = (site.ontap_host, site.svm)
    known, until = _NFS_ADDRESSES.get(of, ([], 0.0))
    if time.monotonic() < until:
        return known
    try:
        known = [lif.address for lif in ontap(site).list_data_lifs()]
    except PermanentGatewayError:
        known = []
    _NFS_ADDRESSES[of] = (known, time.monotonic() + ADDRESSES_KEPT_SECONDS)
    return known
