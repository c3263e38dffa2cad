"""What can go wrong with a system that is not ours, in terms of what to do next.

The class answers the only question a caller has to ask: may another try help?
Sentences are for people: what happened; no secrets, no stack traces.
"""

from __future__ import annotations

from provisioner.lib.storable import shown


class GatewayError(Exception):
    """A remote system failed; raise one of the subclasses.

    `system` is "ontap", "perforce" or "host"; `operation` is the verb that was
    tried ("volume create"); `remote_code` is the far side's own code as text, or
    "" where it gave none.
    """

    def __init__(
        self,
        sentence: str,
        *,
        system: str,
        operation: str,
        remote_code: str = "",
    ) -> None:
        sentence = shown(sentence)
        super().__init__(sentence)
        self.sentence = sentence
        self.system = system
        self.operation = operation
        self.remote_code = remote_code

    def __str__(self) -> str:
        return self.sentence

    def log_context(self) -> dict[str, str]:
        """Return the keys under which this error enters a log line."""
        return {
            "system": self.system,
            "operation": self.operation,
            "remote_code": self.remote_code,
            "error": self.sentence,
        }


class TransientGatewayError(GatewayError):
    """Another try may help; the step is repeated after a pause."""


class Unreachable(TransientGatewayError):
    """No answer: refused, cut off, or too late. The effect may have happened."""


class Busy(TransientGatewayError):
    """The far side is there but asks to come back later."""


class PermanentGatewayError(GatewayError):
    """Another try with the same request will fail the same way."""


class AuthFailed(PermanentGatewayError):
    """The far side does not accept our account, or its ticket or certificate."""


class NotFound(PermanentGatewayError):
    """What the request names does not exist there."""


class AlreadyExists(PermanentGatewayError):
    """The name is taken there."""


class InUse(PermanentGatewayError):
    """Something still depends on it: clones, opened files, mounts."""


class Refused(PermanentGatewayError):
    """The far side understood and said no: a rule, a limit, a missing right."""


class LimitReached(Refused):
    """The far side has as many of them as it can have."""


class OutOfSpace(Refused):
    """The far side has no room for it."""
