"""Failures of remote systems, by what to do next.

The class answers a caller's only question: can a retry help? Sentences tell people what
happened, without secrets and stack traces.
"""

from __future__ import annotations

from provisioner.lib.storable import shown


class GatewayError(Exception):
    """A remote system failed; raise one of the subclasses.

    `system` is "ontap", "perforce" or "host"; `operation` is what was tried ("client
    -d", "POST /storage/volumes"); `remote_code` is the remote system's own code as
    text, "" if it gave none.
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
        """Return the keys of this error for a log line."""
        return {
            "system": self.system,
            "operation": self.operation,
            "remote_code": self.remote_code,
            "error": self.sentence,
        }


class TransientGatewayError(GatewayError):
    """A retry may help; the step is repeated after a pause."""


class Unreachable(TransientGatewayError):
    """No answer: refused, disconnected, or too late. The effect may have happened."""


class Busy(TransientGatewayError):
    """The remote system answers, but asks to retry later."""


class PermanentGatewayError(GatewayError):
    """Repeating the same request will fail the same way."""


class AuthFailed(PermanentGatewayError):
    """The remote system does not accept our account, ticket or certificate."""


class NotFound(PermanentGatewayError):
    """What the request names does not exist."""


class AlreadyExists(PermanentGatewayError):
    """The name is taken."""


class InUse(PermanentGatewayError):
    """Something depends on it: clones, opened files, mounts."""


class Refused(PermanentGatewayError):
    """The remote system refused: a rule, a limit, a missing right."""


class LimitReached(Refused):
    """The remote system has reached its maximum number of these."""


class OutOfSpace(Refused):
    """The remote system has no space for it."""
