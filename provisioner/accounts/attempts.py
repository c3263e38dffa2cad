"""Limits on failed sign-ins, on pages and API, to slow down guessing.

Attempts are counted in the database, so that all web processes count together: by name
and address, by name, and by address, in windows that begin with the first attempt. A
successful attempt does not count, nor does one refused for its name and address:
whoever tries one name again and again from one place locks out only themselves.

Guesses at many names from one address, such as a broker's or a proxy's, leave each name
a few tries there, so whoever knows their password gets in. Somebody who signed in from
an address within a month is not held up by others' attempts, at their name from
elsewhere or at other names from there. Names are stored as hashes, as people type
passwords into the wrong field.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import math
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.http import HttpRequest

from provisioner.accounts.models import SignInAttempts
from provisioner.lib import clocks
from provisioner.lib.times import duration_text

WINDOW = dt.timedelta(minutes=5)
# How p4flex.py says where the caller of its broker is.
BROKERS_CALLER = "HTTP_X_BROKER_CLIENT_IP"
KNOWN_FOR = dt.timedelta(days=30)
# What a person meets who forgot a password.
BY_NAME_AND_ADDRESS = 10
# Guesses at one name from many addresses. It holds up the name only at new addresses.
BY_NAME = 50
# Guesses at many names from one address; beyond that, each name has fewer tries there.
BY_ADDRESS = 200
BY_NAME_WHERE_MANY_FAILED = 3
# Each costs a hash that is slow on purpose, so not even that is without an end.
BY_ADDRESS_AT_MOST = 2000
# Whoever has one IPv6 address has as many as they like of its network, and who has
# a connection of their own may have 65,536 such networks. Neighbors share those of
# some providers, so the wider network has more tries.
IPV6_NETWORK_BITS = 64
IPV6_WIDER_BITS = 48
BY_NAME_AND_WIDER = 20
BY_WIDER = 1000
BY_WIDER_AT_MOST = 10_000


class TooManyAttempts(Exception):
    """Too many failed attempts to sign in. Try again in a while."""

    def __init__(self, *, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(
            "Too many failed attempts to sign in. Try again in "
            f"{duration_text(seconds)}."
        )


class TooManyAtOnce(Exception):
    """Too many tickets are being checked. Try again in a second."""

    seconds = 1

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


@dataclass(frozen=True)
class Attempt:
    """An attempt that is already counted; `succeeded` takes it back.

    `wider` is the wider network of an IPv6 address; for others, the address again.
    """

    name_and_address: str
    name_and_wider: str
    name: str
    address: str
    wider: str
    known: str

    def withdrawn(self) -> None:
        """Do not count it: no password was wrong."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE accounts_signinattempts SET count = greatest(0, count - 1) "
                "WHERE key = ANY(%s)",
                [
                    list(
                        {
                            *(self.name_and_address, self.name_and_wider),
                            *(self.name, self.address, self.wider),
                        }
                    )
                ],
            )

    def succeeded(self) -> None:
        """Clear the failures of this name and address. Other counts stay."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE accounts_signinattempts SET count = greatest(0, count - 1) "
                "WHERE key = ANY(%s)",
                [[self.name, self.address, self.wider]],
            )
            cursor.execute(
                "DELETE FROM accounts_signinattempts WHERE key = ANY(%s)",
                [[self.name_and_address, self.name_and_wider]],
            )
        SignInAttempts.objects.update_or_create(
            key=self.known,
            defaults={"count": 0, "ends_at": clocks.database_now() + KNOWN_FOR},
        )


def begin_attempt(request: HttpRequest | None, *, name: str) -> Attempt:
    """Count an attempt before its password is checked.

    Counting first leaves no gap for simultaneous guesses.

    Raises: TooManyAttempts.
    """
    said = client_address(request)
    address = _network_of(said, bits=IPV6_NETWORK_BITS)
    wider = _network_of(said, bits=IPV6_WIDER_BITS)
    name = name.strip().casefold()
    attempt = Attempt(
        name_and_address=_key("both", name, address),
        name_and_wider=_key("both", name, wider),
        name=_key("name", name),
        address=_key("address", address),
        wider=_key("address", wider),
        known=_key("known", name, address),
    )
    now = clocks.database_now()
    both = _counted([attempt.name_and_address, attempt.name_and_wider], now=now)
    limits = {
        attempt.name_and_wider: BY_NAME_AND_WIDER,
        attempt.name_and_address: BY_NAME_AND_ADDRESS,
    }
    _refuse_beyond(limits, both, now=now)
    counted = both | _counted([attempt.name, attempt.address, attempt.wider], now=now)
    if not SignInAttempts.objects.filter(key=attempt.known, ends_at__gt=now).exists():
        _refuse_beyond(_limits_of_newcomers(attempt, counted), counted, now=now)
    SignInAttempts.objects.filter(ends_at__lte=now).delete()
    return attempt


def count_visit(request: HttpRequest, *, what: str, most: int) -> None:
    """Count an anonymous request that costs a row or a remote call.

    It is counted by address alone. `most` is for an office behind one address.

    Raises: TooManyAttempts.
    """
    address = _network_of(client_address(request), bits=IPV6_NETWORK_BITS)
    key = _key(what, address)
    now = clocks.database_now()
    _refuse_beyond({key: most}, _counted([key], now=now), now=now)


Counted = dict[str, tuple[int, dt.datetime]]


def _limits_of_newcomers(attempt: Attempt, counted: Counted) -> dict[str, int]:
    """Return the limits for people who have not signed in from there lately."""
    many_failed_near = counted[attempt.wider][0] > BY_WIDER
    many_failed = many_failed_near or counted[attempt.address][0] > BY_ADDRESS
    few = BY_NAME_WHERE_MANY_FAILED
    # What is no IPv6 address has one network: its limits come last.
    return {
        attempt.name: BY_NAME,
        attempt.wider: BY_WIDER_AT_MOST,
        attempt.name_and_wider: few if many_failed_near else BY_NAME_AND_WIDER,
        attempt.address: BY_ADDRESS_AT_MOST,
        attempt.name_and_address: few if many_failed else BY_NAME_AND_ADDRESS,
    }


def _refuse_beyond(
    limits: dict[str, int], counted: Counted, *, now: dt.datetime
) -> None:
    """Raises: TooManyAttempts."""
    waits = [
        (ends_at - now).total_seconds()
        for key, (count, ends_at) in counted.items()
        if key in limits and count > limits[key]
    ]
    if waits:
        raise TooManyAttempts(seconds=max(1, math.ceil(max(waits))))


def _counted(keys: list[str], *, now: dt.datetime) -> Counted:
    """Count one attempt under each key; a window that has ended starts again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_signinattempts AS known (key, count, ends_at) "
            "SELECT key, 1, %(ends_at)s FROM unnest(%(keys)s::text[]) AS key "
            "ON CONFLICT (key) DO UPDATE SET "
            "count = CASE WHEN known.ends_at <= %(now)s THEN 1 "
            "ELSE known.count + 1 END, "
            "ends_at = CASE WHEN known.ends_at <= %(now)s THEN excluded.ends_at "
            "ELSE known.ends_at END RETURNING key, count, ends_at",
            # in one order, or two attempts could block each other
            {"keys": sorted(set(keys)), "now": now, "ends_at": now + WINDOW},
        )
        return {key: (count, ends_at) for key, count, ends_at in cursor.fetchall()}


def client_address(request: HttpRequest | None) -> str:
    """Return the address that a request comes from.

    Behind a trusted proxy, that is the last one in X-Forwarded-For; anybody could have
    made up the ones before. From a trusted Perforce broker, it is the address that the
    broker reports for its caller.
    """
    if request is None:
        return ""
    address = str(request.META.get("REMOTE_ADDR", ""))
    forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR", ""))
    if settings.BEHIND_TLS_PROXY and forwarded:
        address = forwarded.rpartition(",")[2].strip()
    said = _as_ip(request.META.get(BROKERS_CALLER, ""))
    return str(said) if said and _is_broker(address) else address


def _is_broker(address: str) -> bool:
    ip = _as_ip(address)
    brokers = map(ipaddress.ip_network, settings.TRUSTED_BROKERS)
    return ip is not None and any(ip in broker for broker in brokers)


def _as_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address; an IPv4 address mapped into IPv6 becomes IPv4."""
    try:
        ip = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def _network_of(address: str, *, bits: int) -> str:
    """Return the network that counts as one address; `bits` are for IPv6."""
    ip = _as_ip(address)
    if isinstance(ip, ipaddress.IPv6Address):
        network = (int(ip), bits)
        return str(ipaddress.IPv6Network(network, strict=False))
    return address if ip is None else str(ip)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
