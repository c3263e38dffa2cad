"""Examples of advice on storage for the schema."""

from __future__ import annotations

from provisioner.api.examples import answer

_PLANNING = "Perforce, Planning Your Perforce Installation"
ADVICE = [
    answer(
        "The archives",
        {
            "role": "depots",
            "recommended": "nfs3",
            "most": 57,
            "is_certain": True,
            "reasons": [
                {
                    "text": "Performance: fair. “Fair: NAS”.",
                    "reference": _PLANNING,
                }
            ],
            "doubts": [
                {
                    "text": "Our judgment, without a source: cost.",
                    "reference": "",
                }
            ],
            "protocols": [
                {
                    "protocol": "nfs3",
                    "low": 39,
                    "high": 39,
                    "excluded": None,
                    "scores": [
                        {
                            "criterion": "performance",
                            "weight": 8,
                            "score": 1,
                            "why": "“Fair: NAS”",
                            "doubt": "stated",
                            "reference": _PLANNING,
                        }
                    ],
                }
            ],
            "in_use": [
                {
                    "whose": "commit",
                    "name": "depot",
                    "saw": "nfs at /hxdepots, mount options not known",
                    "may_be": ["nfs3", "nfs41"],
                    "fit": "unknown",
                    "sentence": "Recommended is NFSv3. This may be NFSv3 or NFSv4.1: "
                    "look at its host.",
                }
            ],
        },
    )
]
SUPPORT = [
    answer(
        "A site's ONTAP",
        {
            "component": "ONTAP",
            "subject": "munich",
            "found": "9.16.1P4",
            "support": "good",
            "says": "NetApp updates it until 2028-01-31.",
            "do": "",
            "reference": "NetApp, ONTAP Software Version Support",
        },
    )
]
