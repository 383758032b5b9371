"""An invented file of support tickets: five kinds of trouble, each told in its own words."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

KINDS = {
    "delivery": (
        ("parcel", "package", "shipment", "order", "delivery"),
        ("has not arrived", "is late", "was left at the wrong door", "came damaged", "shows no tracking"),
        ("the courier never rang", "tracking stopped on monday", "the box was crushed", "the driver took it back"),
    ),
    "billing": (
        ("invoice", "payment", "card", "refund", "bill"),
        ("was charged twice", "shows the wrong amount", "was declined", "has no tax number", "is still open"),
        ("please refund the money", "my bank says it went through", "the amount differs from the contract"),
    ),
    "login": (
        ("password", "account", "login", "code", "session"),
        ("does not work", "was locked", "expired again", "is not accepted", "asks for a new one"),
        ("i can not sign in", "the reset mail never comes", "two factor codes are refused", "the page logs me out"),
    ),
    "crash": (
        ("app", "screen", "program", "update", "window"),
        ("crashes at once", "freezes on start", "turns black", "closes by itself", "hangs while loading"),
        ("since the last version", "on my old phone", "after the update to version nine", "the log shows an error"),
    ),
    "printer": (
        ("printer", "scanner", "cartridge", "paper", "tray"),
        ("is not found", "jams all the time", "prints blank pages", "shows a red light", "is offline"),
        ("the ink is new", "the cable is plugged in", "cleaning the heads did not help", "the driver was installed"),
    ),
}
OPENINGS = ("hello", "hi there", "good morning", "dear team", "urgent", "once more")
ENDINGS = ("thanks", "please help", "kind regards", "what can i do", "waiting for an answer")


def write_tickets(path: Path, number: int = 600, seed: int = 3) -> Path:
    """id, opened (a year), kind, text."""
    random = Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "year", "priority", "kind", "text"])
        for ticket in range(1, number + 1):
            kind = random.choice(list(KINDS))
            things, troubles, details = KINDS[kind]
            said = [
                f"{random.choice(OPENINGS)}, the {random.choice(things)} {random.choice(troubles)}.",
                f"My {random.choice(things)} {random.choice(troubles)}, {random.choice(details)}.",
                f"{random.choice(details)}, {random.choice(ENDINGS)}.",
            ]
            priority = random.choice(("low", "normal", "high"))
            rows.writerow([f"T{ticket:04}", random.randint(2019, 2024), priority, kind, " ".join(said)])
    return path
