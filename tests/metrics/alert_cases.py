"""For each alert, series with which it fires and with which it does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """`bad` and `good` are values of the series; `beside` has what stays as it is.

    With `bad` values the alert fires `after` some minutes, with `good` ones not even
    then.
    """

    alert: str
    series: tuple[str, ...]
    bad: str
    good: str
    after: int
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def every(self) -> str:
        """How often the rules are evaluated: seldom where it takes days."""
        return "1m" if self.after <= 240 else "10m"


def _settled(outcome: str) -> str:
    return f'cloneyard_requests_settled_5m{{outcome="{outcome}"}}'


CASES = (
    Case("CloneyardIsDown", ('up{job="cloneyard"}',), "0", "1", 5),
    Case(
        "CloneyardWorkspaceVolumeIsGone",
        ('cloneyard_drift_findings{site="a",kind="row_without_volume"}',),
        "1",
        "0",
        1,
    ),
    Case(
        "CloneyardQueueHasNoWorker",
        ('cloneyard_queue_unserved{queue="storage"}',),
        "1",
        "0",
        10,
    ),
    Case(
        "CloneyardWorkerClockIsOff",
        ('cloneyard_workers{clock="off"}',),
        "1",
        "0",
        10,
    ),
    Case(
        "CloneyardReleasesAreMixed",
        ('cloneyard_worker_releases{release="1.1"}',),
        "1",
        "0",
        180,
        beside=(('cloneyard_worker_releases{release="1.0"}', "3"),),
    ),
    Case(
        "CloneyardIsSlow",
        ('cloneyard_request_to_ready_seconds{quantile="0.95"}',),
        "121",
        "119",
        20,
    ),
    Case(
        "CloneyardOperationsFail",
        ('cloneyard_operations_ended_1h{kind="provision",state="failed"}',),
        "6",
        "5",
        15,
        (('cloneyard_operations_ended_1h{kind="provision",state="succeeded"}', "20"),),
    ),
    Case(
        "CloneyardStepIsOld",
        ('cloneyard_oldest_step_seconds{state="running"}',),
        "21700",
        "21500",
        15,
    ),
    Case(
        "CloneyardPerforceIsBusy",
        ('cloneyard_perforce_slot_wait_p95_seconds{server="m"}',),
        "601",
        "599",
        20,
    ),
    Case(
        "CloneyardAggregateIsFull",
        ('cloneyard_aggregate_bytes{site="a",part="used"}',),
        "91",
        "89",
        15,
        (('cloneyard_aggregate_bytes{site="a",part="size"}', "100"),),
    ),
    Case(
        "CloneyardVolumesAreFull",
        ('cloneyard_volumes_filling{level="95"}',),
        "1",
        "0",
        15,
    ),
    Case(
        "CloneyardLimitIsNear",
        ('cloneyard_limit_used_ratio{site="a",limit="volumes"}',),
        "0.91",
        "0.89",
        15,
    ),
    Case(
        "CloneyardSiteIsNotMeasured",
        ('cloneyard_site_failing_seconds{site="a"}',),
        "901",
        "899",
        1,
    ),
    Case(
        "CloneyardMirrorFailed",
        ('cloneyard_mirrors{site="a",state="failed"}',),
        "1",
        "0",
        15,
    ),
    Case(
        "CloneyardDriftIsNotChecked",
        ('cloneyard_drift_checked_seconds{site="a",system="ontap"}',),
        "172900",
        "172700",
        120,
    ),
    Case(
        "CloneyardReadyBudgetBurnsFast",
        (_settled("late"),),
        "3",  # of four in five minutes: 75 %
        "2",
        120,
        ((_settled("in_time"), "1"), (_settled("failed"), "0")),
    ),
    Case(
        "CloneyardReadyBudgetBurns",
        (_settled("failed"),),
        "1",  # of three: 33 %
        "0",
        420,
        ((_settled("in_time"), "2"), (_settled("late"), "0")),
    ),
    # Two requests an hour, both late: a fifth of one in each five minutes.
    Case(
        "CloneyardReadyBudgetBurnsFast",
        (_settled("late"),),
        "1",
        "0.16",
        120,
        ((_settled("in_time"), "0"), (_settled("failed"), "0")),
    ),
    Case(
        "CloneyardReadyBudgetLeaks",
        (_settled("late"),),
        "0.06",
        "0.04",
        5760,
        ((_settled("in_time"), "0.94"), (_settled("failed"), "0")),
    ),
    Case(
        "CloneyardStepsAreOftenOld",
        ('cloneyard_oldest_step_seconds{state="queued"}',),
        "21700",
        "21500",
        240,
    ),
)
