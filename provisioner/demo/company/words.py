"""The names of a fictional studio: its people, and its changes."""

from __future__ import annotations

import random

TEAMS = (
    *("Gameplay", "Engine", "Rendering", "Online Services"),
    *("Tools and Pipeline", "Art and Animation", "Quality", "Build and Release"),
)
FIRST_NAMES = (
    *("Adaeze", "Akira", "Alejandra", "Anders", "Anika", "Arjun", "Astrid", "Beatriz"),
    *("Bogdan", "Camille", "Chiara", "Daan", "Deniz", "Dmitri", "Elif", "Emeka"),
    *("Erik", "Fatima", "Felix", "Gabriela", "Giulia", "Hana", "Hugo", "Ines"),
    *("Ivan", "Jakub", "Jana", "Jasmin", "Jonas", "Kaito", "Katarina", "Kofi"),
    *("Lars", "Leila", "Liam", "Lin", "Lucie", "Magnus", "Maja", "Marco"),
    *("Mateusz", "Mei", "Mira", "Nadia", "Nikolai", "Noor", "Oliver", "Olumide"),
    *("Pavel", "Petra", "Priya", "Rafael", "Rania", "Ravi", "Rosa", "Samuel"),
    *("Sanna", "Sofia", "Stefan", "Svea", "Tariq", "Teodora", "Thomas", "Tomoko"),
    *("Umut", "Valentina", "Viktor", "Wanda", "Xavier", "Yara", "Yusuf", "Zofia"),
)
LAST_NAMES = (
    *("Abebe", "Almeida", "Andersson", "Baumann", "Becker", "Bianchi", "Boateng"),
    *("Bouchard", "Brandt", "Castillo", "Cohen", "Costa", "Dahl", "Demir", "Dubois"),
    *("Eriksen", "Fernandes", "Fischer", "Fontaine", "Fournier", "Gagnon", "Gallo"),
    *("Garcia", "Gruber", "Gupta", "Hansen", "Hartmann", "Herrera", "Horvat"),
    *("Ibrahim", "Ivanova", "Jansen", "Jensen", "Kaya", "Keller", "Kowalski"),
    *("Kumar", "Lang", "Lavoie", "Lehmann", "Lindqvist", "Marino", "Martin"),
    *("Meyer", "Mishra", "Moreau", "Nakamura", "Nguyen", "Novak", "Nowak"),
    *("Okafor", "Olsen", "Ortiz", "Park", "Pelletier", "Petrov", "Rao", "Ricci"),
    *("Rossi", "Roy", "Sato", "Schneider", "Silva", "Sokolov", "Suzuki", "Tanaka"),
    *("Tremblay", "Vasquez", "Vogel", "Wagner", "Weber", "Yilmaz", "Zimmermann"),
)
_FIXES = (
    *("Fix a crash", "Fix a hang", "Fix a leak", "Fix flickering", "Stop an assertion"),
    *("Fix wrong collisions", "Fix a race", "Avoid a hitch", "Fix missing audio"),
)
_WHEN = (
    *("when a saved game is loaded", "after the second respawn", "in split screen"),
    *("when the inventory is opened in a cutscene", "on the last boss", "at 120 Hz"),
    *("when a controller is unplugged", "on the loading screen", "in photo mode"),
    *("when the player leaves a lobby", "in the snow biome", "with ray tracing on"),
    *("after the console sleeps", "when a mod is missing", "on ultrawide displays"),
    *("when the language is changed", "in the third chapter", "with two followers"),
)
_CHANGES = (
    *("Speed up", "Rework", "Add tests for", "Split", "Simplify", "Tune", "Document"),
    *("Add a budget to", "Bring back", "Cache", "Stream", "Remove dead code from"),
)
_THINGS = (
    *("the animation graph", "the shader compiler", "the save system", "cloth"),
    *("crowd navigation", "the quest log", "the vehicle model", "texture streaming"),
    *("the audio mixer", "the matchmaking client", "foliage", "the photo mode"),
    *("the asset importer", "damage tables", "the dialogue editor", "lip sync"),
    *("the crash reporter", "telemetry events", "the patcher", "water"),
    *("the level editor", "input mapping", "the particle budget", "lighting probes"),
    *("the store page", "achievements", "subtitles", "the replay buffer"),
)
_CONTENT = (
    *("New idle animations for", "Second pass on", "Reduce texture sizes of"),
    *("Final voice lines for", "Retarget", "Block out", "Light", "Polish"),
)
_PLACES = (
    *("the harbor", "the old town", "the glass desert", "the ice caves", "the arena"),
    *("the observatory", "the tutorial", "the night market", "the shipyard"),
    *("the merchant", "the pilot", "the wolf pack", "the mechanic's garage"),
)


def change_title(chance: random.Random, *, has_content: bool) -> str:
    """Return the first line of a change's description."""
    kind = chance.random() * (1 if has_content else 0.79)
    if kind < 0.45:
        return f"{chance.choice(_FIXES)} {chance.choice(_WHEN)}"
    if kind < 0.8:
        return f"{chance.choice(_CHANGES)} {chance.choice(_THINGS)}"
    return f"{chance.choice(_CONTENT)} {chance.choice(_PLACES)}"


def team_name(number: int) -> str:
    """Return the name of the team of this number, from 0 on."""
    again, place = divmod(number, len(TEAMS))
    return TEAMS[place] if not again else f"{TEAMS[place]} {again + 1}"
