"""A real OpenLDAP server on loopback, with TLS, that tests fill with people."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from ldap3 import (
    BASE,
    MODIFY_ADD,
    MODIFY_DELETE,
    MODIFY_REPLACE,
    SUBTREE,
    Connection,
    Server,
)
from ldap3.core.exceptions import LDAPException

from provisioner.gateways.directory.configuration import Directory

# It listens there too, and its certificate is not for it.
OTHER_HOST = "127.0.0.2"

SUFFIX = "dc=example,dc=com"
PEOPLE = f"ou=people,{SUFFIX}"
GROUPS = f"ou=groups,{SUFFIX}"
ROOT = f"cn=root,{SUFFIX}"
SERVICE = f"cn=cloneyard,{SUFFIX}"
PASSWORD = "correct horse battery"
SERVICE_PASSWORD = "of the service account"
STARTS_WITHIN_SECONDS = 30.0
TRIES = 5
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"

# What Active Directory and 389 Directory Server have beside OpenLDAP's schema, with
# the syntaxes and object identifiers of their own.
SCHEMA = r"""
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.159 NAME 'accountExpires'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.98 NAME 'primaryGroupID'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.146 NAME 'objectSid'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName'
  EQUALITY caseIgnoreMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 2.16.840.1.113730.3.1.610 NAME 'nsAccountLock'
  EQUALITY caseIgnoreMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
objectclass ( 1.3.6.1.4.1.4203.666.100 NAME 'cloneyardTest' SUP top AUXILIARY
  MAY ( userAccountControl $ accountExpires $ primaryGroupID $ objectGUID $
    objectSid $ sAMAccountName $ nsAccountLock ) )
"""

CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
include {home}/test.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {home}/slapd.pid
argsfile {home}/slapd.args
TLSCACertificateFile {home}/ca.pem
TLSCertificateFile {home}/server.pem
TLSCertificateKeyFile {home}/server.key
# What a careless administrator allows: a bind without a password says yes.
allow bind_anon_cred bind_anon_dn
database mdb
maxsize 67108864
suffix "{suffix}"
rootdn "{root}"
rootpw "{password}"
directory {home}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{service}" read by users read by * none
"""


@dataclass
class Slapd:
    """One server. `add`, `change` and `remove` are an administrator's doing."""

    home: Path
    port: int = 0
    tls_port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ldaps://127.0.0.1:{self.tls_port}"

    @property
    def plain_url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> str:
        return str(self.home / "ca.pem")

    def directory(self, **changes: Any) -> Directory:
        """Return it as settings.py would, with a service account."""
        usual = Directory.of(
            "openldap",
            urls=[self.url],
            name="Example",
            start_tls=True,
            ca_file=self.ca_file,
            bind_dn=SERVICE,
            bind_password=SERVICE_PASSWORD,
            direct_bind="",
            user_base=PEOPLE,
            user_filter="",
            id_attribute="",
            username_attribute="",
            group_base=GROUPS,
            groups="",
            follows_nested=True,
            id_base=0,
            timeout_seconds=10,
        )
        directory = replace(usual, **changes)
        directory.check()
        return directory

    def start(self) -> None:
        """Start it, at a port that somebody else may have taken meanwhile."""
        for _ in range(TRIES):
            self.port, self.tls_port = _free_port(), _free_port()
            addresses = " ".join(
                f"ldap://{host}:{self.port} ldaps://{host}:{self.tls_port}"
                for host in ("127.0.0.1", OTHER_HOST)
            )
            with (self.home / "stderr").open("wb") as stderr:
                self.process = subprocess.Popen(
                    [
                        "slapd",
                        "-f",
                        self.home / "slapd.conf",
                        "-dnone",
                        "-h",
                        addresses,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    env={**os.environ, "PATH": PATH},
                )
            if self._answers():
                return
            self.stop()
        said = (self.home / "stderr").read_text(errors="replace")
        pytest.fail(f"slapd does not start: {said}")

    def _answers(self) -> bool:
        ends = time.monotonic() + STARTS_WITHIN_SECONDS
        assert self.process is not None
        while time.monotonic() < ends and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.connect(("127.0.0.1", self.tls_port))
                return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.kill()
            self.process.wait(timeout=30)
            self.process = None

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Let it accept connections in the block, and answer none."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def empty(self) -> None:
        """Bring it back to two empty units and the service account."""
        with self._root() as root:
            root.search(SUFFIX, "(objectClass=*)", SUBTREE)
            names = sorted((entry.entry_dn for entry in root.entries), key=len)
            for name in reversed(names):
                root.delete(name)
        self.add(SUFFIX, "dcObject", "organization", dc="example", o="Example")
        self.add(PEOPLE, "organizationalUnit", ou="people")
        self.add(GROUPS, "organizationalUnit", ou="groups")
        self.add(
            SERVICE,
            *("organizationalRole", "simpleSecurityObject"),
            cn="cloneyard",
            userPassword=SERVICE_PASSWORD,
        )

    def add(self, dn: str, *classes: str, **values: Any) -> str:
        with self._root() as root:
            assert root.add(dn, list(classes), values), root.result
        return dn

    def person(self, name: str, *classes: str, under: str = PEOPLE, **more: Any) -> str:
        """Add a person; return the distinguished name."""
        return self.add(
            f"uid={name},{under}",
            *("inetOrgPerson", "cloneyardTest", *classes),
            **{"uid": name, "cn": name, "sn": name, "userPassword": PASSWORD, **more},
        )

    def group(self, name: str, *members: str, under: str = GROUPS) -> str:
        """Add a group of names; return the distinguished name."""
        dn = f"cn={name},{under}"
        return self.add(dn, "groupOfNames", cn=name, member=list(members))

    def change(self, dn: str, **values: Any) -> None:
        """Replace attributes; None takes one away."""
        changes = {
            name: [(MODIFY_REPLACE, [] if value is None else _listed(value))]
            for name, value in values.items()
        }
        with self._root() as root:
            assert root.modify(dn, changes), root.result

    def join(self, group: str, member: str) -> None:
        with self._root() as root:
            assert root.modify(group, {"member": [(MODIFY_ADD, [member])]}), root.result

    def leave(self, group: str, member: str) -> None:
        with self._root() as root:
            gone = {"member": [(MODIFY_DELETE, [member])]}
            assert root.modify(group, gone), root.result

    def remove(self, dn: str) -> None:
        with self._root() as root:
            assert root.delete(dn), root.result

    def value(self, dn: str, attribute: str) -> bytes:
        with self._root() as root:
            root.search(dn, "(objectClass=*)", BASE, attributes=[attribute])
            return bytes(root.response[0]["raw_attributes"][attribute][0])

    @contextlib.contextmanager
    def _root(self) -> Iterator[Any]:
        server = Server(self.plain_url, get_info="NO_INFO", connect_timeout=10)
        connection = Connection(server, ROOT, PASSWORD, receive_timeout=30)
        assert connection.bind(), connection.result
        try:
            yield connection
        finally:
            with contextlib.suppress(LDAPException):
                connection.unbind()


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def slapd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    if shutil.which("slapd", path=PATH) is None:
        pytest.skip("slapd is not installed: .ci/system-packages installs it")
    home = tmp_path_factory.mktemp("slapd")
    (home / "data").mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(home / "ca.pem")
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_pem.write_to_path(home / "server.key")
    for pem in certificate.cert_chain_pems:
        pem.write_to_path(home / "server.pem", append=True)
    (home / "test.schema").write_text(SCHEMA)
    names = {"suffix": SUFFIX, "root": ROOT, "service": SERVICE, "password": PASSWORD}
    (home / "slapd.conf").write_text(CONFIGURATION.format(home=home, **names))
    server = Slapd(home)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def slapd(slapd_server: Slapd) -> Slapd:
    """The server, with nobody in it."""
    slapd_server.empty()
    return slapd_server
