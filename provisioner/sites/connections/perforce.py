"""What Cloneyard needs of a Perforce server, checked in order of need."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from functools import cached_property

from django.conf import settings

from provisioner.gateways import registry
from provisioner.gateways.errors import AuthFailed, GatewayError, Refused
from provisioner.gateways.perforce.errors import (
    PROGRAM_REJECTED,
    UNICODE_CLIENT,
    UNICODE_SERVER,
    NotPermitted,
)
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ServerInfo
from provisioner.gateways.reach import check_port, is_encrypted, perforce_address
from provisioner.lib.spans import span_text
from provisioner.sites.connections.checklist import (
    ANSWER_WITHIN_SECONDS,
    Check,
    Checks,
    Remark,
    Unset,
    Wrong,
    check,
    secret_of,
)
from provisioner.sites.connections.server_kinds import kind_sentence, row_sentence
from provisioner.sites.models import PerforceServer
from provisioner.sites.replicas import measure

ENDS_SOON = dt.timedelta(days=7)
# With these our account can define clients for others and read the protections.
ENOUGH = ("super", "admin")

_RAISE_LIMITS = (
    "Put our account into a group with MaxResults, MaxScanRows and MaxLockTime "
    "unlimited (p4 group)."
)
CLIENT_PREFIX = "cy-"
_SET_CHARSET = (
    "Set P4CHARSET: utf8 for most servers in Unicode mode, none for all others."
)
_LET_IN_AGAIN = (
    "With another program, run p4 configure show rejectList, and set it again without "
    "the entry that matches: the name cloneyard, its version, build or platform. "
    "That takes effect at once, without a restart. The server's log does not name the "
    "programs that it rejects."
)
_LET_IN = {
    str(UNICODE_SERVER): _SET_CHARSET,
    str(UNICODE_CLIENT): _SET_CHARSET,
    str(PROGRAM_REJECTED): _LET_IN_AGAIN,
}
_GIVE_SUPER = "Give {server.p4user} super in the protections (p4 protect)."
_ASK = "Ask the administrator of the Perforce server, with this sentence."


# What tells whether the server can be reached and signed in to.
REACH = (
    *("perforce_password", "perforce_address", "perforce_fingerprint"),
    *("perforce_server", "perforce_sign_in"),
)


def check_perforce(server: PerforceServer) -> list[Check]:
    """Check everything that Cloneyard needs of a server. No transaction may be open."""
    return _Checks(server).run()


def reach_perforce(server: PerforceServer) -> list[Check]:
    """Check that this process can reach the server and sign in."""
    return _Checks(server).run(*REACH)


class _Checks(Checks):
    """The checks of one server; `info` is set once it has answered."""

    info: ServerInfo

    def __init__(self, server: PerforceServer) -> None:
        self.server = server
        self.variable = settings.SITE_SECRET_NAMES("P4PASSWD", key=server.name)[0]

    @cached_property
    def gateway(self) -> PerforceGateway:
        return registry.first_perforce(self.server, seconds=ANSWER_WITHIN_SECONDS)

    @check()
    def perforce_password(self) -> str:
        try:
            host = registry.perforce_host(self.server)
            return secret_of(
                "P4PASSWD", key=self.server.name, host=host, system="perforce"
            )
        except Unset as unset:
            raise Remark(unset.sentence, advice=unset.advice) from None

    @check(
        advice="Check P4PORT, name service, routes and firewalls between this "
        "machine and the Perforce server."
    )
    def perforce_address(self) -> str:
        p4port = self.server.p4port
        try:
            address = perforce_address(p4port)
        except ValueError as error:
            raise Wrong(str(error), advice="Such as ssl:perforce:1666.") from error
        host, port = address
        check_port(host, port, system="perforce", timeout_seconds=ANSWER_WITHIN_SECONDS)
        return f"{host} answers at port {port}."

    @check(
        after=("perforce_address",),
        advice="Check P4PORT: does the server speak TLS there?",
    )
    def perforce_fingerprint(self) -> str:
        if not is_encrypted(self.server.p4port):
            return "None: P4PORT has no ssl:, so nothing is encrypted."
        try:
            self.gateway.get_info()
        except AuthFailed as error:
            raise Wrong(
                error.sentence,
                advice="Compare it with p4d -Gf on the server itself. If it is the "
                "same, set it as fingerprint. If not, someone may be "
                "intercepting the connection.",
            ) from error
        except Refused:
            pass  # about something else, which is checked next
        return "The server shows the key that is expected."

    @check(after=("perforce_fingerprint",), advice="Check P4PORT and P4CHARSET.")
    def perforce_server(self) -> str:
        try:
            self.info = self.gateway.get_info()
        except Refused as error:
            raise Wrong(
                error.sentence, advice=_LET_IN.get(error.remote_code, _ASK)
            ) from error
        return f"{self.info.version or 'It'} answers ({self.info.services or 'p4d'})."

    @check(
        after=("perforce_server",),
        advice="Set a password of {server.p4user}, or a ticket that does not end "
        "soon (p4 login -a -p, in a group with a long Timeout), into {variable}; then "
        "start Cloneyard again.",
    )
    def perforce_sign_in(self) -> str:
        self.gateway.check_login()
        user = self.server.p4user
        if not registry.perforce_account(self.server).has_ticket:
            return f"{user} is signed in."
        seconds = self.gateway.ticket_seconds()
        ends_in = span_text(seconds - seconds % 3600 or seconds)
        if seconds < ENDS_SOON.total_seconds():
            raise Remark(
                f"{user} is signed in, with a ticket that ends in {ends_in}.",
                advice="Give a password, or put our account into a group with a long "
                "Timeout and give a new ticket: when it expires, nothing works any "
                "more.",
            )
        return f"{user} is signed in, with a ticket for {ends_in}."

    @check(after=("perforce_kind", "perforce_sign_in"), advice=_ASK)
    def perforce_position(self) -> str:
        if not self.server.what.replicates:
            return "It follows no other server with a copy of its data."
        position = measure(self.server, within_seconds=ANSWER_WITHIN_SECONDS)
        if position.behind is None:
            raise Remark(
                position.sentence,
                advice=f"Test the connection of {self.server.upstream}: without it, "
                "nobody knows how far behind this server is.",
            )
        return position.sentence

    @check(after=("perforce_sign_in",), advice=_GIVE_SUPER)
    def perforce_level(self) -> str:
        level, user = self.gateway.access_level(), self.server.p4user
        if level not in ENOUGH:
            raise Wrong(
                f"{user} has no more than {level}: it cannot keep clients of others.",
                advice=f"Give it super in the protections: super user {user} * //...",
            )
        if level != "super":
            raise Remark(
                f"{user} is admin, and not super.",
                advice="With super, opened files of retired workspaces are shelved as "
                "their user; with admin they are archived as files.",
            )
        return f"{user} is super."

    @check(
        after=("perforce_level",),
        advice="Give {server.p4user} super, or admin with dm.protects.allow.admin=1; "
        "or turn “Checks read access” off, if everybody may read everything.",
    )
    def perforce_protections(self) -> str:
        server = self.server
        if not server.checks_read_access:
            raise Remark(
                "What people may read is not checked: everybody may read everything.",
                advice="Turn “Checks read access” on, unless everybody may read "
                "everything there.",
            )
        # Some user: one's own may be seen by everybody.
        found = self.gateway.protections_of(
            server.p4user, host=server.read_access_host or ""
        )
        if found.is_unprotected:
            raise Remark(
                "The server has no protections: everybody is super there.",
                advice="Run p4 protect, unless this is on purpose.",
            )
        return "What people may read can be checked."

    @check(after=("perforce_server",))
    def perforce_names(self) -> str:
        charset = self.server.p4charset
        remark = charset_remark(self.info, charset=charset)
        if remark and self.info.is_unicode != (charset != "none"):
            raise Wrong(remark, advice="Correct P4CHARSET.")
        if remark:
            raise Remark(remark, advice="Nothing, if everybody uses it.")
        unicode = "in Unicode mode" if self.info.is_unicode else "without Unicode"
        if not self.info.is_case_sensitive:
            raise Remark(
                f"The server ignores case, and is {unicode}.",
                advice="Nothing. Note that names that differ only in case are one "
                "file there and two in a clone.",
            )
        return f"Case matters; {unicode}, P4CHARSET is {charset}."

    @check(after=("perforce_level",), advice=_GIVE_SUPER)
    def perforce_clients(self) -> str:
        types = self.gateway.clients.types()
        said = f"New clients may be {', '.join(types)}."
        if "readonly" not in types:
            raise Remark(
                said,
                advice="For workspaces of CI set client.readonly.dir (p4 configure), "
                "which allows readonly ones.",
            )
        if self.server.partitioned_development and "partitioned-jnl" not in types:
            raise Remark(
                said,
                advice="Turn “Partitioned development” off: this server has no such "
                "clients (2024.1 has).",
            )
        return said

    @check(after=("perforce_server",))
    def perforce_kind(self) -> str:
        return row_sentence(self.server, self.info)

    @check(after=("perforce_kind",))
    def perforce_people(self) -> str:
        """Compare the server that people's P4PORT leads to, without signing in."""
        people = self.server.people_p4port
        if not people:
            return "People use the same P4PORT."
        account = replace(
            registry.perforce_account(self.server),
            port=people,
            password="",
            timeout_seconds=ANSWER_WITHIN_SECONDS,
        )
        try:
            theirs = registry.perforce_as(account).get_info()
        except GatewayError as error:
            raise Remark(
                f"Where {people} leads was not found out: {error.sentence}",
                advice="Check the P4PORT of people, unless only they reach it.",
            ) from error
        if theirs.server_id != self.info.server_id:
            raise _leads_elsewhere(self.server, theirs=theirs)
        return f"{people} leads to the same server."

    @check(after=("perforce_server",))
    def perforce_services(self) -> str:
        return kind_sentence(
            self.info.services or "standard", server_id=self.info.server_id
        )

    @check(after=("perforce_level",), advice=_RAISE_LIMITS)
    def perforce_limits(self) -> str:
        user = self.server.p4user
        limits = self.gateway.limits_of(user)
        if limits:
            said = " and ".join(f"{name} to {most:,}" for name, most in limits.items())
            raise Remark(
                f"Groups of {user} limit {said}: a flush, sync or list of more is "
                "refused.",
                advice=_RAISE_LIMITS,
            )
        return f"No group of {user} limits its commands."

    @check(after=("perforce_level",), advice="Check p4 configure show.")
    def perforce_settings(self) -> str:
        try:
            prefix = self.gateway.setting("zerosyncPrefix")
            monitor = self.gateway.setting("monitor")
            rejected = self.gateway.setting("rejectList")
        except NotPermitted as error:
            raise Remark(
                f"{self.server.p4user} may not read the server's settings.",
                advice="Nothing, if zerosyncPrefix is not set: with it, syncs of "
                "clients whose names begin so bring no files. With super, rejectList "
                "and the level of p4 monitor are shown here, too.",
            ) from error
        if prefix and (
            CLIENT_PREFIX.startswith(prefix) or prefix.startswith(CLIENT_PREFIX)
        ):
            raise Wrong(
                f"zerosyncPrefix is {prefix}: syncs of clients that begin so bring no "
                f"files, and ours begin with {CLIENT_PREFIX}.",
                advice="Have it unset, or set to something else (p4 configure).",
            )
        watched = "are not" if monitor in ("", "0") else "are"
        rejects = f" rejectList is {rejected}; Cloneyard is let in." if rejected else ""
        return (
            f"Syncs bring files. Commands {watched} monitored "
            f"(monitor={monitor or 0}).{rejects}"
        )


def _leads_elsewhere(server: PerforceServer, *, theirs: ServerInfo) -> Wrong:
    """Return what is wrong, or worth a remark, with a P4PORT to another server."""
    leads = f"{server.people_p4port} leads to {theirs.server_id or 'another server'}"
    if server.served_by.what.binds_clients:
        return Wrong(
            f"{leads}, and the clients of workspaces can be used at "
            f"{server.served_by.server_id} alone.",
            advice="Give the P4PORT of this server, or of a proxy or broker before it.",
        )
    return Remark(
        f"{leads}, and Cloneyard uses {server.p4port}.",
        advice="Nothing, if it forwards what people do to the same installation.",
    )


def charset_remark(info: ServerInfo, *, charset: str) -> str:
    """Return a remark on our P4CHARSET at a server, "" for none."""
    if info.is_unicode and charset == "none":
        return (
            "The Perforce server is in unicode mode, and P4CHARSET of its row is none: "
            "it will refuse every command. Set it, to utf8 in most places."
        )
    if not info.is_unicode and charset != "none":
        return (
            f"The Perforce server is not in unicode mode, and P4CHARSET of its row is "
            f"{charset}: clients that have one are refused. Set it to none."
        )
    if info.is_unicode and charset != "utf8":
        return (
            f"Text of type unicode is written as {charset}. Who works in a clone with "
            "another P4CHARSET sees every such file as changed."
        )
    return ""
