"""Whether hosts are gone, as far as the network says so."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from provisioner.gateways.reach import BARE_HOST

ANSWER_WITHIN_SECONDS = 2.0
AT_A_TIME = 8
# Discard: closed nearly everywhere, and a refusal proves that the host is there.
_PORT = 9
_NO_ROUTE = (errno.EHOSTUNREACH, errno.EHOSTDOWN)
_NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def gone_hosts(hosts: Collection[str]) -> set[str]:
    """Return those hosts that have no name or to which no route leads.

    A host that does not answer in time is not among them: a firewall may be silent.
    """
    names = [host for host in hosts if re.fullmatch(BARE_HOST, host)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return {
            name
            for name, is_gone in zip(names, pool.map(_is_gone, names), strict=True)
            if is_gone
        }


def _is_gone(host: str) -> bool:
    try:
        socket.create_connection((host, _PORT), timeout=ANSWER_WITHIN_SECONDS).close()
    except socket.gaierror as error:
        return error.errno in _NO_SUCH_NAME
    except OSError as error:
        return error.errno in _NO_ROUTE
    return False
