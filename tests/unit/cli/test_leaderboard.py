"""`evenhand leaderboard` on runs of our own and on votes made elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from evenhand.data.write import write
from tests.suites import pair_row, samples, write_pairs, write_suite
from tests.unit.cli.conftest import NEWEST, CallCommand

COIN, CONTENT, BAD = ({"model": f"python/judge:{name}"} for name in ("coin", "content", "bad"))
NAMES = ("春の答え-大きなモデル", "summer", "осень-модель-длинное-имя-варианта", "winter")


def votes(number: int = 40) -> list[dict[str, Any]]:
    """Votes in both orders; every fifth topic is called by the slot, every seventh is a tie."""
    made: list[dict[str, Any]] = []
    for topic in range(number):
        one, other = topic % 4, (topic + 1 + topic // 4 % 3) % 4
        for turned in (False, True):
            first, second = (other, one) if turned else (one, other)
            better = "first" if (first < second) == (topic % 3 > 0) else "second"
            winner = "first" if topic % 5 == 0 else "tie" if topic % 7 == 0 else better
            made.append(
                {
                    "unit": f"q{topic}",
                    "judge": "j",
                    "first": NAMES[first],
                    "second": NAMES[second],
                    "winner": winner,
                    "first_length": 500 + 40 * first + 7 * topic,
                    "second_length": 500 + 40 * second + 7 * topic,
                    "area": "code" if topic % 2 else "prose",
                }
            )
    return made


@pytest.fixture
def imported(call: CallCommand, tmp_path: Path) -> str:
    write(tmp_path / "votes.csv", votes())
    return str(call("import", "votes.csv", "--kind", "votes", "--json").json["run"])


def test_a_run_of_our_own(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 12, COIN, CONTENT, BAD)
    call("run")
    said = call("leaderboard", "--json")
    assert said.code == 0
    made, shown = said.json, call("show", "--json").json["pairwise"]
    assert {
        "candidate",
        "n",
        "win_rate",
        "low",
        "high",
        "rating",
        "rating_low",
        "rating_high",
    } <= set(made["rows"][0])
    assert made["votes"] == sum(shown["outcomes"].values()) == 24 and made["failed"] == 12
    assert made["n"] == sum(shown["panel"].values()) == 12
    assert made["consistency"] == shown["consistency"]["value"]
    assert made["first_slot_rate"] == shown["first_slot"]["value"]
    rounds = shown["first_rounds"]
    assert made["contradictions"] == pytest.approx(rounds * (1 - made["consistency"]))
    assert made["rule"] == "uncertain" and made["fronts"] == shown["fronts"] and made["run"]
    assert sorted(made["criteria"]) == ["C1", "C2", "C3", "C4", "C5"]
    judge = call("leaderboard", "--judge", "python/judge:content", "--json").json
    assert judge["n"] == 12 and judge["failed"] == 0 and judge["consistency"] == 1.0


def test_fronts_are_those_that_show_gives(call: CallCommand, tmp_path: Path) -> None:
    rows = [pair_row("three", 5, 6, 7, topic="One?"), pair_row("two", 1, 2, topic="Two?")]
    write_pairs(tmp_path, rows, CONTENT)
    call("run")
    made = call("leaderboard", "--json").json
    assert made["fronts"] == call("show", "--json").json["pairwise"]["fronts"]
    assert list(made["fronts"]) == ["three", "two"]
    assert "c3 1, c2 1 of 2 topics" in call("leaderboard").out


def test_the_same_store_gives_the_same_bytes(call: CallCommand, imported: str) -> None:
    once, again = (call("leaderboard", imported, "--json").out for _ in range(2))
    assert once == again


def test_rules_for_conflicts(call: CallCommand, imported: str) -> None:
    def made(rule: str) -> Any:
        return call("leaderboard", NEWEST, "--on-conflict", rule, "--json").json

    by_rule = {rule: made(rule) for rule in ("uncertain", "tie", "drop", "split")}
    assert all(one["conflicts"] == 8 and one["rule"] == rule for rule, one in by_rule.items())
    assert by_rule["drop"]["n"] == 32 and by_rule["drop"]["dropped"] == 8
    assert by_rule["drop"]["failed"] == 0
    totals = {
        rule: [sum(row[name] for row in one["rows"]) for name in ("ties", "uncertain", "dropped")]
        for rule, one in by_rule.items()
    }
    ties = totals["uncertain"][0]
    assert totals["uncertain"] == [ties, 16, 0] and totals["tie"] == [ties + 16, 0, 0]
    assert totals["drop"] == [ties, 0, 16] and totals["split"] == [ties, 16, 0]


def test_everything_asked_for_at_once(call: CallCommand, imported: str) -> None:
    asked = ("--ties", "half", "--scale", "elo", "--anchor", "summer")
    more = ("--length-controlled", "--by", "area", "--level", "0.9")
    said = call("leaderboard", imported, *asked, *more, "--json")
    assert said.code == 0, said.err
    made = said.json
    rows = {row["candidate"]: row for row in made["rows"]}
    assert rows["summer"]["rating"] == 1000
    assert made["level"] == 0.9 and made["scale"] == "elo"
    assert list(made["by"]["levels"]) == ["prose", "code"]
    assert all(0 < row["length_controlled"] < 1 for row in rows.values())
    text = call("leaderboard", imported, *asked, *more).out
    assert "area = code" in text


@pytest.mark.parametrize("columns", [80, 100])
def test_it_fits_a_terminal(
    call: CallCommand, imported: str, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = call("leaderboard", imported)
    lines = said.out.splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert [line for line in lines[lines.index("") :] if line != line.rstrip()] == []
    assert "春の答え" in said.out and "winter" in said.out
    assert re.search(r"winter +\d+ +\d+\.\d \[\d+\.\d, \d+\.\d\] +[+-]\d\.\d\d \[", said.out)
    text = re.sub(r"\s+", " ", said.out)
    assert "ties Davidson, parameter" in text
    assert "conflicts 8 verdicts that the orders left open; rule: uncertain, half a win" in text
    assert re.search(r"consistency 80 % \[\d+, \d+\] of 40 first rounds agree", text)


def test_two_votes_of_a_newcomer_have_an_interval_everywhere(
    call: CallCommand, tmp_path: Path
) -> None:
    table = [
        {"unit": f"q{k}", "judge": "j", "first": "a", "second": "b", "winner": "ab"[k % 7 > 4]}
        for k in range(14)
    ]
    table += [
        {"unit": "q1", "judge": judge, "first": "c", "second": "b", "winner": "b"}
        for judge in ("j", "k")
    ]
    write(tmp_path / "votes.csv", table)
    call("import", "votes.csv", "--kind", "votes")
    rows = {row["candidate"]: row for row in call("leaderboard", NEWEST, "--json").json["rows"]}
    newcomer = rows["c"]
    assert (newcomer["n"], newcomer["votes"], newcomer["win_rate"]) == (1, 2, 0)
    assert (newcomer["low"], newcomer["high"]) == pytest.approx((0, 1.0))
    assert re.search(r"c +1 +0\.0 \[0\.0, 100\.0\]", call("leaderboard", NEWEST).out)
    call("report", NEWEST, "-o", "report.html", "--summary")
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    answer = page.split('<div class="answer">')[1].split("</div>")[0]
    assert "too close to call" in answer and "c 0 % [0, 100]" in answer


def test_few_votes_have_words(call: CallCommand, tmp_path: Path) -> None:
    row = {"unit": "q", "judge": "j", "first": "a", "second": "b", "winner": "a"}
    write(tmp_path / "one.csv", [row])
    call("import", "one.csv", "--kind", "votes")
    text = re.sub(r"\s+", " ", call("leaderboard", NEWEST).out)
    assert "All votes are on one topic" in text
    assert "nan" not in text and "inf " not in text
    write(tmp_path / "none.csv", [row, row | {"unit": "r", "first": "c", "winner": "?"}])
    call("import", "none.csv", "--kind", "votes")
    text = call("leaderboard", NEWEST, "--where", "unit=r").out
    assert "No vote has a verdict" in text and "1 failed" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "jj"), 'no judge is called "jj"\n  Did you mean "j"?'),
        (("--anchor", "sumer"), 'Did you mean "summer"?'),
        (("--by", "aera"), 'Did you mean "area"?'),
        (("--criterion", "C1"), "There are: none"),
        (("--level", "95"), "0<x<1"),
        (("--ties", "win"), "davidson"),
    ],
)
def test_what_is_refused(
    call: CallCommand, imported: str, arguments: tuple[str, str], said: str
) -> None:
    told = call("leaderboard", imported, *arguments)
    assert told.code == 2 and said in told.err and not told.out


def test_scores_are_not_ranked(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, samples(2))
    assert call("run").code == 0
    told = call("leaderboard")
    assert told.code == 2 and "has no votes" in told.err and "evenhand compare" in told.err


def test_json_alone_is_on_stdout(call: CallCommand, imported: str) -> None:
    json.loads(call("leaderboard", imported, "--json").out)


def test_the_fronts_of_one_judge_are_its_own(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        {"unit": f"q{i}", "judge": judge, "first": "a", "second": "b", "winner": winner}
        for i in range(4)
        for judge, winner in (("x", "first"), ("y", "second"), ("z", "second"))
    ]
    write(tmp_path / "votes.csv", rows)
    call("import", "votes.csv", "--kind", "votes")
    fronts = {
        judge: call("leaderboard", NEWEST, *arguments, "--json").json["fronts"]
        for judge, arguments in (("", ()), ("x", ("--judge", "x")), ("y", ("--judge", "y")))
    }
    assert {
        name: {tuple(sets["front"]) for sets in front.values()} for name, front in fronts.items()
    } == {
        "": {("b",)},
        "x": {("a",)},
        "y": {("b",)},
    }
