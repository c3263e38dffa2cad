"""Refusals: a person asked for something that is not possible now.

Each class is one reason with a stable `code`; its docstring is the sentence they
read, filled with the keyword arguments of the constructor.
"""

from __future__ import annotations

from typing import ClassVar

from provisioner.lib.storable import shown


class ActionRefused(Exception):
    """This is not possible now."""

    code: ClassVar[str] = "refused"
    http_status: ClassVar[int] = 409
    field: str = ""
    """The field of the request that it is about; "": no single one."""

    def __init__(self, sentence: str = "", /, **facts: object) -> None:
        template = sentence or " ".join((type(self).__doc__ or "").split())
        self.facts = facts
        self.sentence = shown(template.format(**facts) if facts else template)
        super().__init__(self.sentence)


class InvalidRequest(ActionRefused):
    """The request is incomplete or malformed."""

    code = "invalid"
    http_status = 400
    message: str = ""
    """What is wrong with its `field`."""

    @classmethod
    def at(cls, field: str, message: str) -> InvalidRequest:
        """Return the refusal of a field's value."""
        refusal = cls(f"{field}: {message}")
        refusal.field, refusal.message = field, shown(message)
        return refusal


class NotAllowed(ActionRefused):
    """You may not do this. Ask the owner or an administrator."""

    code = "not_allowed"
    http_status = 403


class NameTaken(ActionRefused):
    """The name “{name}” is taken at this site. Choose another one."""

    code = "name_taken"
    field = "name"


class TooMany(ActionRefused):
    """There can be at most {most} {things}. {instead}"""

    code = "too_many"


class StateChanged(ActionRefused):
    """Somebody else changed this at the same moment. Check it again, then decide."""

    code = "state_changed"


class StepCutShort(Exception):
    """The step stops, as its operation ended or another attempt continues it."""


class StepRefused(Exception):
    """A step found a reason to stop that a retry cannot change.

    `code` is stable, `sentence` is for people. With `findings` it is not a failure:
    they are the reason why the request is refused.
    """

    findings: dict[str, object] | None = None

    def __init__(self, sentence: str, *, code: str) -> None:
        self.sentence = shown(sentence)
        super().__init__(self.sentence)
        self.code = code
