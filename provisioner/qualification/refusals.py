"""Why something is not measured."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NotScratch(ActionRefused):
    """{server} is not marked as scratch, so people may work with it. Nothing was
    run. Measure a sandbox of it, or mark it as scratch."""

    code = "server_not_scratch"
    field = "server"


class SandboxNotReady(ActionRefused):
    """The sandbox {name} is {state}. Only one that is ready is measured. Nothing was
    run."""

    code = "sandbox_not_ready"
    field = "sandbox"


class AlreadyMeasured(ActionRefused):
    """{target} is being measured. Two at a time would disturb each other. Nothing was
    run. Wait until run {number} has ended."""

    code = "already_measured"


class ColdNeedsASandbox(ActionRefused):
    """Only on the host of a sandbox can its files be forgotten. Nothing was run.
    Measure {server} with warm caches."""

    code = "cold_needs_a_sandbox"
    field = "is_cold"


class ProfileNeedsASandbox(ActionRefused):
    """The profile {profile} runs p4d itself, on the host of a sandbox. Nothing was
    run. Measure a sandbox of {server}."""

    code = "profile_needs_a_sandbox"
    field = "server"


class SandboxOutOfReach(ActionRefused):
    """The sandbox {name} answers at {address}, where no other host can reach it.
    Nothing was run. Choose one host."""

    code = "sandbox_out_of_reach"
    field = "hosts"


class OneHostAlone(ActionRefused):
    """The profile {profile} is measured from one host. Nothing was run."""

    code = "one_host_alone"
    field = "hosts"


class ServerWithoutSite(ActionRefused):
    """No site uses {server}, so no host can measure it. Nothing was run."""

    code = "server_without_site"
    field = "server"


class RunNotFailed(ActionRefused):
    """Run {number} is {state}. Only one that failed is tried again."""

    code = "run_not_failed"
