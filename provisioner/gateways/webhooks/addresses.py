"""Which addresses messages may go to: people enter them, and must not reach internal
hosts.

The name is looked up once; the result is checked, and connected to. A second look-up
could be answered otherwise. One parser reads the address for both.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

LONGEST_URL = 500
PORTS = {"http": 80, "https": 443}

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
# An IPv4 address in its last 32 bits, reached through a translator (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# What Python's ipaddress takes for public, in some of its releases, and is not: see
# https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")
)
# Every public IPv6 address is in it: https://www.iana.org/assignments/ipv6-address-space
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")


class AddressRefused(ValueError):
    """Messages may not be sent there; the sentence says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`host` is named as in certificates and the Host header, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == PORTS[self.scheme] else f"{name}:{self.port}"


def read_url(url: str) -> Target:
    """Return the target of a URL.

    Raises: AddressRefused (not http or https, a password in it, no host).
    """
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if not is_plain or "\\" in url or len(url) > LONGEST_URL:
        raise AddressRefused(
            f"Give an address of at most {LONGEST_URL} plain ASCII characters."
        )
    try:
        parts = parse_url(url)
    except LocationParseError as error:
        raise AddressRefused("This is not an address.") from error
    if parts.scheme not in PORTS or not parts.host or "://" not in url:
        raise AddressRefused("Give an address that begins with https://.")
    if parts.auth is not None:
        raise AddressRefused(
            "Leave name and password out of the address: messages are signed, and "
            "others can read addresses."
        )
    if parts.fragment is not None:
        raise AddressRefused("Leave out what follows the #: it is never sent.")
    return Target(
        scheme=parts.scheme,
        host=parts.host.strip("[]"),
        port=PORTS[parts.scheme] if parts.port is None else parts.port,
        path=parts.request_uri,
    )


def read_networks(texts: Iterable[str]) -> tuple[IPNetwork, ...]:
    """Return networks such as 10.20.0.0/16.

    Raises: ValueError.
    """
    return tuple(ipaddress.ip_network(text.strip()) for text in texts)


def resolve(target: Target, *, allowed: Sequence[IPNetwork]) -> str:
    """Look up a host, once, and return the IP address to connect to.

    Each of its addresses must be in the public Internet or in a network that is
    `allowed`; plain HTTP is for the latter only.

    Raises: AddressRefused; OSError if the name is not known.
    """
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    texts = [str(entry[4][0]).partition("%")[0] for entry in found]
    addresses = [ipaddress.ip_address(text) for text in texts]
    for address in addresses:
        check_address(address, target=target, allowed=allowed)
    return texts[0]


def check_address(
    address: IPAddress, *, target: Target, allowed: Sequence[IPNetwork]
) -> None:
    """Refuse an address that is neither public nor allowed.

    Raises: AddressRefused.
    """
    if any(address in network for network in allowed):
        return
    if not all(_is_public(each) for each in _also(address)):
        raise AddressRefused(
            f"{target.host} is {address}, which is not in the public Internet. An "
            "administrator can allow its network (WEBHOOK_ALLOWED_NETWORKS)."
        )
    if target.scheme != "https":
        raise AddressRefused("Messages leave this network only by https://.")


def literal_address(target: Target) -> IPAddress | None:
    """Return the address if the host is an IP literal, None for a name."""
    try:
        return ipaddress.ip_address(target.host.partition("%")[0])
    except ValueError:
        return None


def _is_public(address: IPAddress) -> bool:
    if address.version == 6 and address not in _PUBLIC_IPV6:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _also(address: IPAddress) -> Iterator[IPAddress]:
    """Yield an address, and each one that packets to it may be forwarded to."""
    if not isinstance(address, ipaddress.IPv6Address):
        yield address
        return
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    embedded = [each for each in inner if each is not None]
    yield from embedded
    # ::ffff:a.b.c.d is that IPv4 address and nothing besides.
    if address.ipv4_mapped is None and address not in _NAT64:
        yield address
