"""Cautions about the judges wherever a result of pairs is answered."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

import pytest

from evenhand.words import LANGUAGES
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import write_pairs
from tests.unit.web.serving import run_ids, served
from tests.waiting import awaited

ASKED = {
    "leaderboard": "",
    "compare": "--baseline weak",
    "gate": "--candidate strong --baseline weak --min-win-rate 0.1",
}


BOTH = (("strong", "weak"), ("weak", "strong"))


def rows(consistent, contradicting, judge="j"):
    """Votes of two orders: `strong` wins both, or the first shown wins both."""
    votes = []
    for place in range(consistent + contradicting):
        for first, second in BOTH:
            winner = "strong" if place < consistent else first
            votes.append((f"q{place}", judge, first, second, winner))
    return votes


PANEL = rows(20, 0, "good") + rows(1, 9, "bad")


def take(call, votes):
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("unit", "judge", "first", "second", "winner"), *votes])
    call.ok("import votes.csv --kind votes")


MISTRUST = "notes.inconsistent_import"


def page(path, language, call):
    call(f"report votes -o {path} --summary --language {language} --force")
    text = html.unescape(re.sub(r"<[^>]+>", " ", Path(path).read_text(encoding="utf-8")))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def ready(site, run):
    """Return the page of a run once its figures are there."""
    text = html.unescape(site.get(f"/runs/{run}?lang=en").text)
    return text if 'data-ready="yes"' in text else None


def test_orders_that_seldom_agree_are_warned_about(call, no_ci, tmp_path):
    take(call, rows(2, 9))
    for command, options in ASKED.items():
        note = first_note(call, f"{command} votes {options}")
        assert is_told(note, MISTRUST, n=2, of=11) and "18" in note, command
        assert is_told(call(f"{command} votes {options}").out, MISTRUST, n=2, of=11), command
    for language in LANGUAGES:
        assert is_told(page("r.html", language, call), MISTRUST, language, n=2, of=11), language
    with served(tmp_path / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        shown = awaited(lambda: ready(site, run), "the figures")
        assert is_told(shown, MISTRUST, n=2, of=11)
    # Of what was judged here no import is blamed.
    write_pairs(tmp_path, 6, "first")
    for text in (call("run").out, first_note(call, "leaderboard")):
        assert is_told(text, "notes.inconsistent", n=0, of=6)


@pytest.mark.parametrize(
    ("votes", "is_warned"),
    [
        (rows(2, 3), False),
        (rows(39, 61), True),
        (rows(40, 60), False),
        (rows(0, 4), False),
        (PANEL, True),
        (rows(1, 9)[::2], False),
    ],
    ids=["few", "below", "at", "none", "panel", "one order"],
)
def test_only_what_is_below_two_fifths_of_enough_pairs_is(call, votes, is_warned):
    take(call, votes)
    note = first_note(call, "leaderboard votes")
    assert is_told(note, MISTRUST) is is_warned
    if votes is PANEL:  # those are named who go by position
        assert is_told(note, MISTRUST, n=1, of=10, judges='"bad"')
        note = first_note(call, "leaderboard votes --judge good")
        assert not is_told(note, MISTRUST)


def families(leader, other, judge):
    return [
        (f"q{place}", judge, first, second, leader)
        for place in range(12)
        for first, second in ((leader, other), (other, leader))
    ]


LEADS = "notes.own_family_leads"
FAMILY = {"candidate": "gpt-4o", "family": "openai"}


def test_a_leader_of_the_judges_own_family_is_told(call, tmp_path):
    take(call, families("gpt-4o", "claude-3-5-sonnet", "openai/gpt-4.1-mini"))
    commands = ["leaderboard votes"]
    commands += [f"compare votes --baseline {n}" for n in ("gpt-4o", "claude-3-5-sonnet")]
    for command in commands:
        note = first_note(call, command)
        assert is_told(note, LEADS, **FAMILY, judges='"openai/gpt-4.1-mini"'), command
        assert is_told(call(command).out, LEADS, **FAMILY)
    for language in LANGUAGES:
        assert is_told(page("r.html", language, call), LEADS, language, **FAMILY), language
    with served(tmp_path / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        assert is_told(awaited(lambda: ready(site, run), "the figures"), LEADS, **FAMILY)


@cases
def test_no_other_leader_is(call, leader, other, judge):
    take(call, families(leader, other, judge))
    for command in ("leaderboard", "compare"):
        notes = call(f"{command} votes --json").json["notes"]
        assert not any(is_told(note, LEADS) for note in notes)


def first_note(call, line):
    return "".join(call(f"{line} --json").json["notes"][:1])
