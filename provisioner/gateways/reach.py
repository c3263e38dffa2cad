"""Is anybody there, and is it who it should be? Asked before a library is.

Libraries say that "it failed"; these say why: the name, the port, the certificate.
"""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import closing

from provisioner.gateways.errors import AuthFailed, GatewayError, Unreachable

_SECURE = re.compile(r"ssl(?:4|6|46|64)?:")
_PLAIN = re.compile(r"tcp(?:4|6|46|64)?:")


def check_port(host: str, port: int, *, system: str, timeout_seconds: float) -> None:
    """See that a name resolves and that something answers at the port.

    Raises: Unreachable.
    """
    _open(host, port, system=system, timeout_seconds=timeout_seconds).close()


def check_certificate(
    host: str, port: int, *, ca_file: str, system: str, timeout_seconds: float
) -> None:
    """Shake hands by TLS, trusting what the CA file ("": the system) vouches for.

    Raises: AuthFailed (the CA file, or the certificate, and what is wrong with it),
    Unreachable (no answer, or none by TLS).
    """
    context = _context(ca_file, system=system)
    plain = _open(host, port, system=system, timeout_seconds=timeout_seconds)
    with closing(plain):
        try:
            context.wrap_socket(plain, server_hostname=host).close()
        except ssl.SSLCertVerificationError as error:
            raise _wrong(
                AuthFailed,
                f"The certificate of {host}:{port} is not accepted: "
                f"{error.verify_message.rstrip('.')}.",
                system=system,
            ) from error
        except OSError as error:  # a TimeoutError and an ssl.SSLError are, too
            raise _wrong(
                Unreachable,
                f"{host}:{port} answers, but not by TLS.",
                system=system,
            ) from error


def perforce_address(p4port: str) -> tuple[str, int] | None:
    """Return host and port of a P4PORT; None for one that is no address (rsh:).

    Raises: ValueError.

    Source: p4 help environment, P4PORT.
    """
    if p4port.startswith("rsh:"):
        return None
    address = _PLAIN.sub("", _SECURE.sub("", p4port, count=1), count=1)
    host, _, port = address.rpartition(":")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{p4port} is not [ssl:]host:port.")
    return host.strip("[]") or "localhost", int(port)


def is_encrypted(p4port: str) -> bool:
    """Say whether a P4PORT asks for TLS."""
    return _SECURE.match(p4port) is not None


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
        return socket.create_connection((host, port), timeout=timeout_seconds)
    except (socket.gaierror, UnicodeError) as error:
        sentence = f"The name {host} is not known to this machine's resolver."
        raise _wrong(Unreachable, sentence, system=system) from error
    except TimeoutError as error:
        sentence = f"{host}:{port} did not answer within {timeout_seconds:g} s."
        raise _wrong(Unreachable, sentence, system=system) from error
    except ConnectionRefusedError as error:
        sentence = f"{host} is there, but nothing listens at port {port}."
        raise _wrong(Unreachable, sentence, system=system) from error
    except OSError as error:
        sentence = f"{host}:{port} cannot be reached: {error.strerror or error}."
        raise _wrong(Unreachable, sentence, system=system) from error


def _wrong(kind: type[GatewayError], sentence: str, *, system: str) -> GatewayError:
    return kind(sentence, system=system, operation="connect")
