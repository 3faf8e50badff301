"""Cautions about the judges wherever a result of pairs is answered."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.suites import write_pairs
from tests.unit.cli.conftest import CallCommand
from tests.unit.web.serving import Site, run_ids, served
from tests.waiting import awaited

ASKED: dict[str, tuple[str, ...]] = {
    "leaderboard": (),
    "compare": ("--baseline", "weak"),
    "gate": ("--candidate", "strong", "--baseline", "weak", "--min-win-rate", "0.1"),
}


BOTH = (("strong", "weak"), ("weak", "strong"))


Row = tuple[str, str, str, str, str]


def rows(consistent: int, contradicting: int, judge: str = "j") -> list[Row]:
    """Votes of two orders: `strong` wins both, or the first shown wins both."""
    votes: list[Row] = []
    for place in range(consistent + contradicting):
        for first, second in BOTH:
            winner = "strong" if place < consistent else first
            votes.append((f"q{place}", judge, first, second, winner))
    return votes


PANEL = rows(20, 0, "good") + rows(1, 9, "bad")


def take(call: CallCommand, votes: Sequence[Row]) -> None:
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("unit", "judge", "first", "second", "winner"), *votes])
    assert call("import", "votes.csv", "--kind", "votes").code == 0


WORDS = {
    "en": "Do not trust this result yet: only 18 % of pairs (2 of 11)",
    "ru": "победитель совпал лишь в 18 % пар (2 из 11)",
    "zh": "配对只占 18%（11 对中有 2 对）",
    "ja": "ペアは 18%（11 組中 2 組）だけです",
}


def page(path: str, language: str, call: CallCommand) -> str:
    call("report", "votes", "-o", path, "--summary", "--language", language, "--force")
    text = html.unescape(re.sub(r"<[^>]+>", " ", Path(path).read_text(encoding="utf-8")))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def ready(site: Site, run: str) -> str | None:
    """Return the page of a run once its figures are there."""
    text = html.unescape(site.get(f"/runs/{run}?lang=en").text)
    return text if 'data-ready="yes"' in text else None


def test_orders_that_seldom_agree_are_warned_about(
    call: CallCommand, no_ci: None, tmp_path: Path
) -> None:
    take(call, rows(2, 9))
    for command, options in ASKED.items():
        note = first_note(call, command, "votes", *options)
        assert note.startswith(WORDS["en"]) and "goes by the position" in note, command
        said = " ".join(call(command, "votes", *options).out.split())
        assert "Do not trust this result yet" in said, command
    for language, words in WORDS.items():
        assert words in page("r.html", language, call)
    with served(tmp_path / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        shown = awaited(lambda: ready(site, run), "the figures")
        assert "Do not trust this result yet" in shown
    # Of what was judged here no import is blamed.
    write_pairs(tmp_path, 6, {"model": "python/judge:first"})
    assert "Do not trust this result yet" in " ".join(call("run").out.split())
    note = first_note(call, "leaderboard")
    assert "0 % of pairs (0 of 6)" in note and "more than by its content" in note
    assert "import" not in note


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
def test_only_what_is_below_two_fifths_of_enough_pairs_is(
    call: CallCommand, votes: Sequence[Row], is_warned: bool
) -> None:
    take(call, votes)
    note = first_note(call, "leaderboard", "votes")
    assert ("Do not trust" in note) is is_warned
    if votes is PANEL:  # those are named who go by position
        assert '"bad"' in note and '"good"' not in note and "10 % of pairs (1 of 10)" in note
        assert "Do not trust" not in first_note(call, "leaderboard", "votes", "--judge", "good")


def families(leader: str, other: str, judge: str) -> list[Row]:
    return [
        (f"q{place}", judge, first, second, leader)
        for place in range(12)
        for first, second in ((leader, other), (other, leader))
    ]


LEADS = {
    "en": '"gpt-4o", which leads, is of the judge\'s own family, openai,',
    "ru": "Лидер, «gpt-4o», — из того же семейства моделей, что и судья (openai)",
    "zh": "领先的“gpt-4o”与评测员同属一个模型家族（openai）",
    "ja": "首位の「gpt-4o」は審査員と同じモデル系列（openai）です",
}


def test_a_leader_of_the_judges_own_family_is_told(call: CallCommand, tmp_path: Path) -> None:
    take(call, families("gpt-4o", "claude-3-5-sonnet", "openai/gpt-4.1-mini"))
    commands: list[tuple[str, ...]] = [("leaderboard", "votes")]
    commands += [("compare", "votes", "--baseline", n) for n in ("gpt-4o", "claude-3-5-sonnet")]
    for command in commands:
        note = first_note(call, *command)
        assert note.startswith(LEADS["en"]) and '"openai/gpt-4.1-mini"' in note, command
        assert "which leads" in call(*command).out
    for language, words in LEADS.items():
        assert words in page("r.html", language, call)
    with served(tmp_path / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        assert "which leads" in awaited(lambda: ready(site, run), "the figures")


@pytest.mark.parametrize(
    ("leader", "other", "judge"),
    [
        ("claude-3-5-sonnet", "gpt-4o", "openai/gpt-4.1-mini"),
        ("gpt-4o", "gpt-4.1", "openai/gpt-4.1-mini"),
        ("gpt-4o", "claude-3-5-sonnet", "human/ann"),
        ("new", "old", "openai/gpt-4.1-mini"),
    ],
)
def test_no_other_leader_is(call: CallCommand, leader: str, other: str, judge: str) -> None:
    take(call, families(leader, other, judge))
    for command in ("leaderboard", "compare"):
        notes = call(command, "votes", "--json").json["notes"]
        assert not any("own family" in note for note in notes)


def first_note(call: CallCommand, *command: str) -> str:
    return "".join(call(*command, "--json").json["notes"][:1])
