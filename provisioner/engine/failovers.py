"""What a failover of PostgreSQL changes: which workers are dead, and what can be lost.

Each promotion of a standby begins a timeline. Source: PostgreSQL, "Timelines";
"Synchronous Replication".
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection
from procrastinate.connector import BaseConnector

from provisioner.lib.database_urls import hosts_of

# The first timeline that is seen is no failover. Rows of the former primary come along.
BEGAN_LATELY = """
    WITH present AS (
        SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
            AS timeline
    ), noted AS (
        INSERT INTO engine_knowntimeline AS known (id, timeline)
        SELECT 1, timeline FROM present
        ON CONFLICT (id) DO UPDATE SET timeline = excluded.timeline, since = now()
        WHERE known.timeline <> excluded.timeline OR known.since > now()
        RETURNING since
    )
    SELECT now() - greatest(
        pg_postmaster_start_time(),
        coalesce(
            (SELECT since FROM noted),
            (SELECT since FROM engine_knowntimeline WHERE since <= now())
        )
    ) < %(seconds)s * interval '1 second' AS is_new
"""
# Who may not look at standbys, without pg_monitor, sees that they are there.
REPLICATION = """
    SELECT current_setting('synchronous_standby_names') <> '' AS waits,
        current_setting('synchronous_commit') IN ('on', 'remote_apply') AS is_kept,
        (SELECT count(*) FROM pg_stat_replication
         WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')) AS standbys
"""


async def began_lately(connector: BaseConnector) -> bool:
    """Return whether the database started, or was promoted, a moment ago.

    All workers were silent then, so they get time to report. As long may one that was
    cut off together with a former primary hold a permit from that.
    """
    answer = await connector.execute_query_one_async(
        query=BEGAN_LATELY,
        seconds=settings.WORKER_STALLED_SECONDS + settings.WORKER_HEARTBEAT_SECONDS,
    )
    return bool(answer["is_new"])


def standby_trouble() -> str:
    """Return what a failover would lose, as a sentence, or "".

    Nothing where DATABASE_URL names one host: then there is none to fail over to. One
    query where it names several.
    """
    if len(hosts_of(connection.settings_dict)) < 2:
        return ""
    with connection.cursor() as cursor:
        cursor.execute(REPLICATION)
        waits, is_kept, standbys = cursor.fetchone()
    if not waits:
        return (
            "PostgreSQL waits for no standby: after a failover, requests that were "
            "accepted may be gone. Set synchronous_standby_names."
        )
    if not is_kept:
        return (
            "PostgreSQL does not wait until its standby has written a change: after a "
            "failover, requests that were accepted may be gone. Set "
            "synchronous_commit = on."
        )
    if not standbys:
        return (
            "No synchronous standby is connected to PostgreSQL: changes wait until "
            "there is one."
        )
    return ""
