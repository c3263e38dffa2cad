"""The people of the studio: teams, accounts, tokens, and their clients."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from provisioner.accounts.models import ApiToken, Team, User
from provisioner.accounts.system import system_user
from provisioner.demo import seed
from provisioner.demo.company import words
from provisioner.demo.company.studio import Studio

GIB = 2**30
DOMAIN = "studio.example"
AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_1) AppleWebKit/605.1.15 Safari/605.1",
    "cloneyard-cli/0.1.0 Python/3.12",
)
OF_MACHINES = "curl/8.10.1"


@dataclass(frozen=True, kw_only=True)
class People:
    """`developers` own workspaces; `by_team` has them by the number of their team."""

    admin: User
    alice: User
    bob: User
    machines: list[User]
    developers: list[User]
    administrators: list[User]
    by_team: dict[int, list[User]]
    system: User
    tokens: dict[int, ApiToken] = field(default_factory=dict)


def settle(studio: Studio) -> People:
    """Make teams and accounts; those of the demo join them."""
    seed.ensure_people()
    system = system_user()
    teams = [_team(studio, number) for number in range(studio.size.teams)]
    named = {user.username: user for user in User.objects.exclude(uid=None)}
    password = named["alice"].password
    taken = {user.username for user in User.objects.all()}
    hired: list[User] = []
    for number in range(studio.size.people - len(named)):
        hired.append(_person(studio, number, teams, password=password, taken=taken))
    by_team: dict[int, list[User]] = {number: [] for number in range(len(teams))}
    for name in ("alice", "bob"):
        _join(named[name], teams[0], quota=8)
        by_team[0].append(named[name])
    for user in hired:
        if user.is_active and user.uid is not None:
            assert user.team is not None
            by_team[teams.index(user.team)].append(user)
    machines = [named["ci"], *_machines(studio, password=password)]
    people = People(
        admin=named["admin"],
        alice=named["alice"],
        bob=named["bob"],
        machines=machines,
        developers=[user for members in by_team.values() for user in members],
        administrators=[named["admin"], *(u for u in hired if u.is_staff)],
        by_team=by_team,
        system=system,
    )
    for machine in machines:
        people.tokens[machine.pk] = _token(studio, machine, name="build farm")
    for user in studio.chance.sample(people.developers, k=len(people.developers) // 6):
        people.tokens[user.pk] = _token(studio, user, name="command line")
    return people


def _team(studio: Studio, number: int) -> Team:
    chance = studio.chance
    return studio.rows.add(
        Team(
            name=words.team_name(number),
            max_workspaces=chance.choice((120, 150, 200, None)),
            max_unique_bytes=chance.choice((2500 * GIB, 4000 * GIB, None)),
        )
    )


def _join(user: User, team: Team, *, quota: int) -> None:
    user.team, user.max_workspaces = team, quota
    user.email = f"{user.username}@{DOMAIN}"


def _person(
    studio: Studio, number: int, teams: list[Team], *, password: str, taken: set[str]
) -> User:
    chance = studio.chance
    first, last = chance.choice(words.FIRST_NAMES), chance.choice(words.LAST_NAMES)
    username = _username(first, last, taken=taken)
    has_left = number % 23 == 22
    is_guest = number % 37 == 36
    hired_at = studio.calendar.ago(days=chance.uniform(190, 2400))
    seen_at = studio.calendar.moment(
        after=studio.calendar.ago(days=9), before=studio.calendar.now
    )
    return studio.rows.add(
        User(
            username=username,
            password=password,
            first_name=first,
            last_name=last,
            email="" if is_guest else f"{username}@{DOMAIN}",
            p4_user=f"{first}.{last}".lower() if number % 29 == 28 else "",
            uid=None if is_guest else 21000 + number,
            gid=None if is_guest else seed.GID,
            team=teams[number % len(teams)],
            max_workspaces=chance.choice((6, 8, 10, None)),
            is_staff=number in (7, 61),
            is_active=not has_left,
            date_joined=hired_at,
            last_login=studio.calendar.ago(days=70) if has_left else seen_at,
            time_zone=chance.choice(("", "", "Europe/Berlin", "America/Montreal")),
        )
    )


def _username(first: str, last: str, *, taken: set[str]) -> str:
    base = f"{first[0]}{last}".lower()
    name, again = base, 1
    while name in taken:
        again += 1
        name = f"{base}{again}"
    taken.add(name)
    return name


def _machines(studio: Studio, *, password: str) -> list[User]:
    return [
        studio.rows.add(
            User(
                username=name,
                password=password,
                uid=20100 + number,
                gid=seed.GID,
                is_service=True,
                date_joined=studio.calendar.began,
                last_login=None,
            )
        )
        for number, name in enumerate(("ci-nightly", "ci-localization"))
    ]


def _token(studio: Studio, user: User, *, name: str) -> ApiToken:
    key = f"{studio.chance.getrandbits(60):015x}"
    made_at = studio.calendar.ago(days=studio.chance.uniform(5, 170))
    return studio.rows.add(
        ApiToken(
            user=user,
            digest=hashlib.sha512(key.encode()).hexdigest(),
            token_key=key,
            name=name,
            created=made_at,
            expiry=studio.calendar.ago(days=-studio.chance.uniform(20, 200)),
            purposes=["ci", "ci-edit", "build"] if user.is_service else None,
            last_used_at=studio.calendar.ago(minutes=studio.chance.uniform(1, 4000)),
        )
    )


def address_of(user: User) -> str:
    """Return the IP address of a person's requests."""
    return f"10.20.{(user.pk or 0) // 250 % 250}.{(user.pk or 0) % 250 + 2}"


def agent_of(user: User) -> str:
    """Return a person's browser or program."""
    return OF_MACHINES if user.is_service else AGENTS[(user.pk or 0) % len(AGENTS)]
