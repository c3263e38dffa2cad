"""A P4PORT is an address, or it is refused: the library runs `rsh:` as a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.gateways.reach import P4PORT, is_encrypted, perforce_address
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory

ADDRESSES = {
    "1666": ("localhost", 1666),
    ":1666": ("localhost", 1666),
    "perforce:1666": ("perforce", 1666),
    "tcp:perforce.example.com:1": ("perforce.example.com", 1),
    "tcp4:10.0.0.1:65535": ("10.0.0.1", 65535),
    "tcp6:[::1]:1666": ("::1", 1666),
    "tcp46:p:1666": ("p", 1666),
    "tcp64:p:1666": ("p", 1666),
    "ssl:perforce:1666": ("perforce", 1666),
    "ssl4:perforce:1666": ("perforce", 1666),
    "ssl6:[2001:db8::7]:1666": ("2001:db8::7", 1666),
    "ssl46:1666": ("localhost", 1666),
    "ssl64:p_4-d.example:1666": ("p_4-d.example", 1666),
}
NO_ADDRESSES = (
    *(
        "",
        " ",
        ":",
        "perforce",
        "perforce:",
        "perforce:p4",
        "p:0",
        "p:65536",
        "p:99999",
    ),
    *("rsh:/bin/sh -c id", "RSH:/bin/sh", " rsh:/bin/sh", "\nrsh:/bin/sh", "rsh:1666"),
    *("jsh:/bin/sh", "tcp:rsh:1666", "ssl:rsh:/bin/sh:1666", "tcp:rsh:/bin/sh:1666"),
    *("TCP:p:1666", "ssl5:p:1666", "http://p:1666", "ssl:ssl:p:1666", "quic:p:1666"),
    *("p:1666\n", "p:1666 ", " p:1666", "p:1666\nrsh:/bin/sh", "p\0:1666", "p:16 66"),
    *('"rsh:/bin/sh":1666', "'p':1666", "p:1666#", "p;id:1666", "$(id):1666", "`id`:1"),
    *(
        "p:\u0661\u0666\u0666\u0666",
        "p:\uff11666",
        "\uff50:1666",
        "[::1:1666",
        "::1]:1666",
        "::1:1666",
        "[p]:1666",
    ),
    *("p:01666", "-p:1666", "p/../q:1666", "user@p:1666", "%70:1666", "p=q:1666"),
)


@pytest.mark.parametrize("p4port", ADDRESSES)
def test_an_address_is_read(p4port: str) -> None:
    assert perforce_address(p4port) == ADDRESSES[p4port]
    assert is_encrypted(p4port) == p4port.startswith("ssl")


@pytest.mark.parametrize("p4port", NO_ADDRESSES)
def test_what_is_no_address_is_refused(p4port: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        perforce_address(p4port)


schemes = st.sampled_from(
    ["tcp", "ssl", "rsh", "RSH", "jsh", "ssl6", "http", "Tcp", ""]
)
hosts = st.sampled_from(["", "p", "[::1]", "/bin/sh -c id", "rsh", "10.0.0.1", '"p"'])
ports = st.one_of(st.integers(-1, 70000).map(str), st.text(max_size=6))
between = st.sampled_from([":", "::", " :", "\n", ": ", ""])
written = st.builds("{}{}{}{}{}".format, schemes, between, hosts, between, ports)


@given(p4port=st.one_of(st.text(max_size=60), written))
def test_whatever_is_taken_is_scheme_host_and_port(p4port: str) -> None:
    try:
        host, port = perforce_address(p4port)
    except ValueError:
        return
    assert 0 < port < 65536
    assert re.fullmatch(r"[A-Za-z0-9_.:-]+", host)
    schema, _, rest = p4port.partition(":")
    if rest.rpartition(":")[0] and not schema.startswith("["):
        assert re.fullmatch("(?:tcp|ssl)(?:4|6|46|64)?", schema)
    assert schema.lower() not in ("rsh", "jsh")


@pytest.mark.parametrize("p4port", ["rsh:touch {}", "RSH:touch {}", "jsh:touch {}"])
def test_the_gateway_starts_no_program(p4port: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    account = PerforceAccount(port=p4port.format(made), user="u", password="")
    with pytest.raises(Refused, match="is not an address"):
        PerforceGateway(account).get_info()
    assert not made.exists()


@pytest.mark.django_db
def test_the_database_keeps_addresses_alone() -> None:
    server = PerforceServerFactory.create()
    for p4port in NO_ADDRESSES:
        if "\0" in p4port:
            continue  # no text of the database's
        with pytest.raises(IntegrityError, match="is_address"), transaction.atomic():
            PerforceServer.objects.filter(pk=server.pk).update(p4port=p4port)


@pytest.mark.django_db
@given(p4port=st.one_of(st.text(max_size=40), written))
def test_the_database_reads_the_pattern_as_we_do(p4port: str) -> None:
    text = p4port.replace("\0", "")
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s ~ %s", [text, P4PORT])
        [taken] = cursor.fetchone()
    assert taken == (re.search(P4PORT, text) is not None)


@pytest.mark.parametrize("ask", ["spelling_of", "email_of", "protections_of"])
def test_a_name_that_is_an_option_reaches_no_command(ask: str) -> None:
    account = PerforceAccount(port="127.0.0.1:9", user="u", password="")
    with pytest.raises(Refused, match="cannot be the name"):
        getattr(PerforceGateway(account), ask)("-a")
