"""A template's home is lost: its mirror is promoted, and the home comes back or not."""

from __future__ import annotations

from provisioner.catalog.models import Template
from provisioner.mirrors.models import Mirror, MirrorOperation
from tests.chaos.builds import Builder
from tests.chaos.judge import Fault
from tests.chaos.mirrors import M, MirrorTrial
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.trial import Stuck, Trial
from tests.chaos.witness import Perforce

APART = 40_000_000


def home_of(template: str) -> str:
    """Return the name of the site that is a template's home."""
    homes = Template.objects.filter(name=template).values_list("site__name", flat=True)
    return str(from_database(homes.get))


class HomeTrial(MirrorTrial):
    """A mirror that becomes the home, below a workspace that was cloned from it.

    The former home follows the new one, or is given up; what is left is deleted.
    """

    def _meanwhile(self, clone: Trial) -> None:
        self._promote()
        self._build()
        self._settle_former_home()

    def _settle_former_home(self) -> None:
        """Have it follow the new home, or give it up."""
        if self.rng.random() < 0.6:
            self._come_back()
        else:
            self._give_up()

    def _promote(self) -> None:
        """Promote it, at times while something is transferred to it."""
        before = self.site
        path = f"{self._path}/promote"
        self._insist(MirrorOperation.PROMOTE, "POST", path, until={M.PROMOTED})
        if home_of(self.template) != before:
            raise Stuck(f"promoted, and {self.template} is not at {before}")
        self.site = next(name for name in self.worlds if name != before)
        self._find()

    def _build(self) -> None:
        """Build at the new home, which has to be as good as the old one."""
        self.history.append("build")
        self._blame(
            *self._builder_at(home_of(self.template)).build_newer(seed=self.key)
        )

    def _builder_at(self, site: str) -> Builder:
        return Builder(
            self.admin, self.worlds[site], p4=self.builder.p4, name=self.template
        )

    def _come_back(self) -> None:
        path = f"{self._path}/re-establish"
        # A former home that fails is one still: this was the transfer that follows.
        back = {M.READY, M.FAILED}
        self._insist(MirrorOperation.REESTABLISH, "POST", path, until=back)
        self._insist_on_default()

    def _give_up(self) -> None:
        path = f"{self._path}/give-up"
        self._insist(MirrorOperation.GIVE_UP, "POST", path, until={M.GIVEN_UP})

    def run(self, *, person: Person, p4: Perforce) -> list[Fault]:
        """Do everything; the next trial of the template begins at its new home."""
        super().run(person=person, p4=p4)
        left = Mirror.objects.filter(template__name=self.template)
        if not self.faults and from_database(left.exists):
            self._blame(Fault(kind="orphans", what="a mirror's row is left"))
        return self.faults
