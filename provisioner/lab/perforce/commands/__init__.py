"""The commands, one module per family; this module lists and describes them."""

from __future__ import annotations

from provisioner.lab.perforce.commands import (
    administering,
    annotating,
    changeforms,
    changes,
    clients,
    configure,
    copying,
    describe,
    diff2,
    diffing,
    filelog,
    files,
    fstat,
    helping,
    hosting,
    info,
    integrate,
    integrated,
    jobs,
    labels,
    locking,
    logtail,
    monitor,
    moving,
    opened,
    opening,
    otherforms,
    parallel,
    printing,
    protect,
    reconcile,
    resolve,
    reverting,
    searching,
    server,
    shelving,
    sizes,
    specdefs,
    streams,
    submit,
    sync,
    tables,
    undoing,
    unloading,
    unshelving,
    users,
)
from provisioner.lab.perforce.commands.registry import Command, parse_options

COMMANDS: dict[str, Command] = {
    name: command
    for module in (
        administering,
        info,
        users,
        clients,
        server,
        files,
        fstat,
        printing,
        filelog,
        changes,
        describe,
        changeforms,
        sync,
        parallel,
        opening,
        otherforms,
        reverting,
        opened,
        locking,
        submit,
        shelving,
        unshelving,
        streams,
        reconcile,
        protect,
        labels,
        jobs,
        integrate,
        integrated,
        resolve,
        moving,
        configure,
        monitor,
        logtail,
        unloading,
        diffing,
        diff2,
        sizes,
        specdefs,
        tables,
        copying,
        undoing,
        searching,
        annotating,
        helping,
        hosting,
    )
    for command in module.COMMANDS
    for name in command.names
}

helping.ALL.update(COMMANDS)

_ELSEWHERE = """
aliases backup broker browse dbpack diagnostics duplicate
durablewait grant-permission graph hotfiles journalwait logexport logger
pubkey pubkeys rebase revoke-permission search server show-permission
show-permissions snap sysinfo
archive attribute bgtask cachepurge check-permission
checkpoint clone cluster cstat dbschema dbstat dbverify export
extension failback failover fetch heartbeat ignores init
interchanges istat jobspec journalcopy journaldbchecksums
journals key keys ldap ldaps ldapsync list login2 logappend
logparse logrotate logschema logstat obliterate ping
property proxy prune pull purge push remote remotes renameclient
renameuser replicate repo repos reshelve restore resubmit retype review
reviews serverid servers storage streamlog streamspec switch topology trait
trust unsubmit unzip upgrades zip
"""
# Commands of Perforce that the lab refuses by name.
KNOWN_ELSEWHERE = frozenset(_ELSEWHERE.split())

__all__ = ["COMMANDS", "KNOWN_ELSEWHERE", "Command", "parse_options"]
