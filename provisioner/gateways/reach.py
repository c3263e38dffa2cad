"""Check that a server is reachable, and is the right one, before a library is used.

Libraries only say that "it failed". These checks say why: name, port, certificate.
"""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import closing

from provisioner.gateways.errors import AuthFailed, GatewayError, Unreachable

_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_LITERAL = r"\[[0-9A-Fa-f:.]+\]"
BARE_HOST = rf"\A(?:{_NAME}|{_LITERAL}|[0-9A-Fa-f]{{0,4}}(?::[0-9A-Fa-f.]*)+)\Z"
"""A host name, or an IP address with or without brackets; never with a port."""

_NUMBER = (
    r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}"
    r"|655[0-2][0-9]|6553[0-5])"
)
P4PORT = (
    r"\A(?:(?:tcp|ssl)(?:4|6|46|64)?:)?(?![rRjJ][sS][hH]:)"
    rf"(?:(?:{_NAME}|{_LITERAL})?:)?{_NUMBER}\Z"
)
"""A P4PORT that is an address, as a pattern that PostgreSQL also understands.

The library runs others (rsh:, jsh:) as commands on this host.
"""

_P4PORT = re.compile(P4PORT)
_SCHEME = re.compile(r"\A(?:tcp|ssl)(?:4|6|46|64)?:")


def check_port(host: str, port: int, *, system: str, timeout_seconds: float) -> None:
    """Check that the name resolves and that something answers at the port.

    Raises: Unreachable.
    """
    _open(host, port, system=system, timeout_seconds=timeout_seconds).close()


def check_certificate(
    host: str, port: int, *, ca_file: str, system: str, timeout_seconds: float
) -> None:
    """Do a TLS handshake, trusting the CA file, or the system's authorities for "".

    Raises: AuthFailed (the CA file or the certificate, and what is wrong with it),
    Unreachable (no answer, or none with TLS).
    """
    context = _context(ca_file, system=system)
    plain = _open(host, port, system=system, timeout_seconds=timeout_seconds)
    with closing(plain):
        try:
            context.wrap_socket(plain, server_hostname=_bare(host)).close()
        except ssl.SSLCertVerificationError as error:
            raise _wrong(
                AuthFailed,
                f"The certificate of {host}:{port} is not accepted: "
                f"{error.verify_message.rstrip('.')}.",
                system=system,
            ) from error
        except OSError as error:  # including TimeoutError and ssl.SSLError
            raise _wrong(
                Unreachable,
                f"{host}:{port} answers, but not with TLS.",
                system=system,
            ) from error


def perforce_address(p4port: str) -> tuple[str, int]:
    """Return host and port of a P4PORT.

    Raises: ValueError (not an address, but for example a command, rsh:).

    Source: p4 help environment, P4PORT.
    """
    if _P4PORT.search(p4port) is None:
        raise ValueError(f"{p4port} is not [ssl:]host:port.")
    host, _, port = _SCHEME.sub("", p4port).rpartition(":")
    return _bare(host) or "localhost", int(port)


def is_encrypted(p4port: str) -> bool:
    """Return whether a P4PORT uses TLS."""
    return p4port.startswith("ssl")


def _bare(host: str) -> str:
    """Return an IPv6 address without brackets; other hosts unchanged."""
    return host.removeprefix("[").removesuffix("]")


def _context(ca_file: str, *, system: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except FileNotFoundError as error:
        reason = "is not there"
        cause: OSError = error
    except ssl.SSLError as error:
        reason, cause = "holds no certificate in PEM form", error
    except OSError as error:
        reason, cause = "cannot be read", error
    sentence = f"The CA file {ca_file} {reason} on this machine."
    raise _wrong(AuthFailed, sentence, system=system) from cause


def _open(
    host: str, port: int, *, system: str, timeout_seconds: float
) -> socket.socket:
    try:
        return socket.create_connection((_bare(host), port), timeout=timeout_seconds)
    except (socket.gaierror, UnicodeError) as error:
        sentence = f"The name {host} cannot be resolved on this machine."
        raise _wrong(Unreachable, sentence, system=system) from error
    except TimeoutError as error:
        sentence = f"{host}:{port} did not answer within {timeout_seconds:g} s."
        raise _wrong(Unreachable, sentence, system=system) from error
    except ConnectionRefusedError as error:
        sentence = f"{host} answers, but nothing listens on port {port}."
        raise _wrong(Unreachable, sentence, system=system) from error
    except OSError as error:
        sentence = f"{host}:{port} cannot be reached: {error.strerror or error}."
        raise _wrong(Unreachable, sentence, system=system) from error


def _wrong(kind: type[GatewayError], sentence: str, *, system: str) -> GatewayError:
    return kind(sentence, system=system, operation="connect")
