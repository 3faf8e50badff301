"""What is said of the judges where a result of pairs is answered."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.suites import write_pairs
from tests.unit.cli.conftest import CallCommand
from tests.unit.web.serving import Site, run_ids, served
from tests.waiting import awaited

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


def take(call: CallCommand, votes: Sequence[Row]) -> None:
    with Path("votes.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("unit", "judge", "first", "second", "winner"), *votes])
    assert call("import", "votes.csv", "--kind", "votes").code == 0


ASKED: dict[str, tuple[str, ...]] = {
    "leaderboard": (),
    "compare": ("--baseline", "weak"),
    "gate": ("--candidate", "strong", "--baseline", "weak", "--min-win-rate", "0.1"),
}
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
        notes = call(command, "votes", *options, "--json").json["notes"]
        assert notes[0].startswith(WORDS["en"]), command
        assert "goes by the position" in notes[0] and "swapped twice" in notes[0]
        said = " ".join(call(command, "votes", *options).out.split())
        assert "Do not trust this result yet" in said, command
    for language, words in WORDS.items():
        assert words in page("r.html", language, call)
    with served(tmp_path / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        shown = awaited(lambda: ready(site, run), "the figures")
        assert "Do not trust this result yet" in shown


@pytest.mark.parametrize(
    ("votes", "is_warned"),
    [
        (rows(2, 3), False),
        (rows(39, 61), True),
        (rows(40, 60), False),
        (rows(0, 4), False),
        (rows(20, 0, "good") + rows(1, 9, "bad"), True),
        (rows(1, 9)[::2], False),
    ],
)
def test_only_what_is_below_two_fifths_of_enough_pairs_is(
    call: CallCommand, votes: Sequence[Row], is_warned: bool
) -> None:
    take(call, votes)
    notes = call("leaderboard", "votes", "--json").json["notes"]
    assert any("Do not trust" in note for note in notes) == is_warned


def test_of_a_panel_those_are_named_who_go_by_position(call: CallCommand) -> None:
    take(call, rows(20, 0, "good") + rows(1, 9, "bad"))
    note = call("leaderboard", "votes", "--json").json["notes"][0]
    assert '"bad"' in note and '"good"' not in note and "10 % of pairs (1 of 10)" in note
    only_good = call("leaderboard", "votes", "--judge", "good", "--json").json["notes"]
    assert not any("Do not trust" in each for each in only_good)


def test_of_what_was_judged_here_no_import_is_blamed(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 6, {"model": "python/judge:first"})
    judged = call("run")
    assert judged.code == 0
    assert "Do not trust this result yet" in " ".join(judged.out.split())
    note = call("leaderboard", "--json").json["notes"][0]
    assert "0 % of pairs (0 of 6)" in note and "more than by its content" in note
    assert "import" not in note


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
    commands: list[tuple[str, ...]] = [("leaderboard",)]
    commands += [("compare", "--baseline", name) for name in ("gpt-4o", "claude-3-5-sonnet")]
    for command, *options in commands:
        notes: list[Any] = call(command, "votes", *options, "--json").json["notes"]
        assert notes[0].startswith(LEADS["en"]), (command, options)
        assert '"openai/gpt-4.1-mini"' in notes[0]
        assert "which leads" in call(command, "votes", *options).out
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
