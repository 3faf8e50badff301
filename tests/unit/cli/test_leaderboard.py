"""`evenhand leaderboard` on judged and imported votes, and counts that every command has alike."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.results.report import ReportOptions, make_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.sentences import is_told
from tests.suites import pair_row, samples, write_pairs, write_suite
from tests.unit.cli.conftest import values

COIN, CONTENT, BAD = ({"model": f"python/judge:{name}"} for name in ("coin", "content", "bad"))
NAMES = ("春の答え-大きなモデル", "summer", "осень-модель-длинное-имя-варианта", "winter")


def vote(unit, winner, judge="j", **rest):
    return {"unit": f"q{unit}", "judge": judge, "first": "a", "second": "b"} | {
        "winner": winner,
        **rest,
    }


def votes():
    """Votes in both orders; every fifth topic is called by the slot, every seventh is a tie."""
    made = []
    for topic in range(40):
        one, other = topic % 4, (topic + 1 + topic // 4 % 3) % 4
        for first, second in ((one, other), (other, one)):
            better = "first" if (first < second) == (topic % 3 > 0) else "second"
            winner = "first" if topic % 5 == 0 else "tie" if topic % 7 == 0 else better
            lengths = {
                f"{slot}_length": 500 + 40 * place + 7 * topic
                for slot, place in (("first", first), ("second", second))
            }
            names = {"first": NAMES[first], "second": NAMES[second]}
            made.append(
                vote(topic, winner, area="code" if topic % 2 else "prose", **names, **lengths)
            )
    return made


@pytest.fixture
def imported(call):
    return call.take("votes", votes())


def test_a_judged_run_has_the_figures_of_show(call):
    write_pairs(Path(), 12, COIN, CONTENT, BAD)
    call("run")
    made, shown = call.json("leaderboard"), call.json("show")["pairwise"]
    pinned = "candidate n win_rate low high rating rating_low rating_high"
    assert set(pinned.split()) <= set(made["rows"][0])
    assert made["votes"] == sum(shown["outcomes"].values()) == 24 and made["failed"] == 12
    assert made["n"] == sum(shown["panel"].values()) == 12
    assert made["consistency"] == shown["consistency"]["value"]
    assert made["first_slot_rate"] == shown["first_slot"]["value"]
    contradictions = shown["first_rounds"] * (1 - made["consistency"])
    assert made["contradictions"] == pytest.approx(contradictions)
    assert made["rule"] == "uncertain" and made["fronts"] == shown["fronts"] and made["run"]
    assert sorted(made["criteria"]) == ["C1", "C2", "C3", "C4", "C5"]
    judge = call.json("leaderboard --judge python/judge:content")
    assert values(judge, "n failed consistency") == [12, 0, 1]
    assert call.json("leaderboard") == made


def test_fronts_are_those_that_show_gives_and_of_one_judge_its_own(call):
    rows = [pair_row("three", 5, 6, 7, topic="One?"), pair_row("two", 1, 2, topic="Two?")]
    write_pairs(Path(), rows, CONTENT)
    call.run()
    made = call.json("leaderboard")["fronts"]
    assert made == call.json("show")["pairwise"]["fronts"] and list(made) == ["three", "two"]
    assert "c3 1, c2 1; 2 topics" in call("leaderboard --verbose").out
    call.take(
        "votes", [vote(i, winner, judge) for i in range(4) for judge, winner in ("xa", "yb", "zb")]
    )
    for flags, best in (("", "b"), ("--judge x", "a"), ("--judge y", "b")):
        fronts = call.json(f"leaderboard rows {flags}")["fronts"]
        assert {tuple(front["front"]) for front in fronts.values()} == {(best,)}


def test_rules_for_conflicts(call, imported):
    rules = ("uncertain", "tie", "drop", "split")
    made = {rule: call.json(f"leaderboard {imported} --on-conflict {rule}") for rule in rules}
    assert all(one["conflicts"] == 8 and one["rule"] == rule for rule, one in made.items())
    assert [made["drop"][name] for name in ("n", "dropped", "failed")] == [32, 8, 0]
    totals = [
        [sum(row[name] for row in made[rule]["rows"]) for name in ("ties", "uncertain", "dropped")]
        for rule in rules
    ]
    ties = totals[0][0]
    assert totals == [[ties, 16, 0], [ties + 16, 0, 0], [ties, 0, 16], [ties, 16, 0]]


def test_everything_asked_for_at_once(call, imported):
    flags = "--ties half --scale elo --anchor summer --level 0.9"
    asked = f"leaderboard {imported} {flags} --length-controlled --by area"
    made = call.json(asked)
    rows = {row["candidate"]: row for row in made["rows"]}
    assert (rows["summer"]["rating"], made["level"], made["scale"]) == (1000, 0.9, "elo")
    assert list(made["by"]["levels"]) == ["prose", "code"]
    assert all(0 < row["length_controlled"] < 1 for row in rows.values())
    assert "area = code" in call(asked).out


def test_it_fits_a_terminal(call, imported):
    call.narrow()
    said = call(f"leaderboard {imported}")
    assert said.width <= 80 and "春の答え" in said.out
    lines = said.out.splitlines()
    assert [line for line in lines[lines.index("") :] if line != line.rstrip()] == []
    assert re.search(r"winter +\d+ +\d+\.\d \[\d+\.\d, \d+\.\d\] +[+-]\d\.\d\d \[", said.out)
    every = call(f"leaderboard {imported} --verbose")
    assert every.width <= 80 and "both orders agree" not in said.text
    assert re.search(r"both orders agree 80 ?% \[\d+, \d+\] of 40 ", every.text)


def test_two_votes_of_a_newcomer_have_an_interval_everywhere(call):
    rows = [vote(k, "ab"[k % 7 > 4]) for k in range(14)]
    call.take("votes", [*rows, *(vote(1, "b", judge, first="c") for judge in "jk")])
    found = {row["candidate"]: row for row in call.json("leaderboard rows")["rows"]}["c"]
    assert values(found, "n votes win_rate") == [1, 2, 0]
    assert (found["low"], found["high"]) == pytest.approx((0, 1.0))
    assert re.search(r"c +1 +0\.0 \[0\.0, 100\.0\]", call("leaderboard rows").out)
    call("report rows -o report.html --summary")
    page = Path("report.html").read_text(encoding="utf-8")
    bar = page[page.index('<div class="screen">') : page.index('<p class="next"')]
    assert "0% [0,\xa0100]" in bar


def test_few_votes_have_words(call):
    call.take("votes", [vote(1, "a")])
    said = call("leaderboard rows").text
    assert is_told(said, "notes.one_topic") and "nan" not in said and "inf " not in said
    call.take("votes", [vote(1, "a"), vote(2, "?", first="c")], "none")
    said = call("leaderboard none --where unit=q2").text
    assert is_told(said, "notes.nothing_to_rate") and is_told(said, "terminal.votes_failed", n=1)


def test_what_is_refused(call, imported):
    for flags, key, told in (
        ("--judge jj", "stats.no_judge", '"j"?'),
        ("--anchor sumer", "stats.no_candidate", '"summer"?'),
        ("--by aera", "stats.no_such_field", '"area"?'),
        ("--criterion C1", "stats.no_criterion", "C1"),
    ):
        call.refused(f"leaderboard {imported} {flags}", key=key, says=[told])
    for flags, told in ("--level 95", "0<x<1"), ("--ties win", "davidson"):
        call.refused(f"leaderboard {imported} {flags}", says=[told])
    write_suite(Path(), samples(2))
    call.run()
    call.refused("leaderboard", key="compare.no_votes")


def test_votes_on_one_question_are_one_cluster_whatever_their_units_are_called(
    call,
):
    """A column called topic or colour is no question."""
    widths = {}
    for name in ("question_id", "colour", "topic"):
        rows = [vote(i, "a" if i % 6 < 3 else "b", **{name: f"q{i % 6}"}) for i in range(24)]
        call.take("votes", rows, name)
        found = call.json(f"leaderboard {name}")
        widths[name, found["topics"]] = found["rows"][0]["high"] - found["rows"][0]["low"]
    assert set(widths) == {("question_id", 6), ("colour", 24), ("topic", 24)}
    assert widths["question_id", 6] > 1.5 * widths["colour", 24]


def test_a_candidate_against_itself_says_nothing_of_positions(call):
    rows = [vote(i, "b", first=one, second=two) for i in range(10) for one, two in ("ab", "ba")]
    call.take("votes", [*rows, *(vote(f"s{i}", "first", second="a") for i in range(10))])
    found = call.json("leaderboard rows")
    assert values(found, "first_rounds consistency") == [10, 1.0]


# Wins, losses, ties and what is uncertain are counted once, by the verdict of the panel

COUNTED = ("wins", "losses", "ties", "uncertain")
# What each says of five pairs: a majority for either side, for a tie, for uncertain, and none.
SAID = {
    "ann": ["a", "b", "tie", "uncertain", "a"],
    "bob": ["a", "b", "tie", "uncertain", "b"],
    "cyd": ["b", "tie", "a", "a", "tie"],
}
PANEL = {"a": (1, 1, 1, 2), "b": (1, 1, 1, 2)}


def counts(call, run):
    """The counts of show, leaderboard and report, which are alike."""
    shown = call.json(f"show {run}")["pairwise"]["candidates"]
    found = {name: tuple(one[key] for key in COUNTED) for name, one in shown.items()}
    rows = call.json(f"leaderboard {run}")["rows"]
    assert all(sum(row[key] for key in COUNTED) == row["pairs"] for row in rows)
    assert {row["candidate"]: tuple(row[key] for key in COUNTED) for row in rows} == found
    with closing(open_archive("sqlite:evenhand.db")) as store:
        report = make_report(store, find_run(store, run), ReportOptions(summary=True))
    board = report.board.rows
    assert {row.candidate: tuple(getattr(row, key) for key in COUNTED) for row in board} == found
    return found


def test_a_panel_is_counted_alike_by_every_command(call):
    rows = [
        vote(place, order[0] if winner == "uncertain" else winner, judge)
        | dict(zip(("first", "second"), order, strict=True))
        for judge, winners in SAID.items()
        for place, winner in enumerate(winners)
        for order in ("ab", "ba")
    ]
    run = call.take("votes", rows)
    assert counts(call, run) == PANEL
    call(f"export {run} -o v.txt")
    lines = [line for line in Path("v.txt").read_text().splitlines()[1:] if line[0] != "#"]
    assert [line.split("|")[1].strip() for line in lines] == [
        *("A", "B", "tie", "uncertain", "uncertain")
    ]
    for rule in ("tie", "drop", "split"):
        flags = f"--kind votes --on-conflict {rule}"
        made = call.json(f"import rows.jsonl {flags}")
        assert (counts(call, made["run"]) == PANEL) == (rule == "split")


def test_a_judged_panel_with_repeats_is_counted_alike(call):
    judges = [{"model": f"python/judge:{name}"} for name in ("content", "first", "late", "bad")]
    judges[2]["repeats"] = 3
    worths = [(9, 2), (1, 7), (4, 4), (3, 8), (6, 5)]
    write_pairs(Path(), [pair_row(f"p{i}", *both) for i, both in enumerate(worths)], *judges)
    ran = call.json("run")
    found = counts(call, ran["run"])
    shown = ran["pairwise"]["candidates"]
    assert {name: tuple(one[key] for key in COUNTED) for name, one in shown.items()} == found
    assert sum(found["c1"]) == len(worths)


def test_each_judge_is_told_of_by_itself_where_judges_lean_apart(call):
    """One of two judges always takes the answer shown first, the other the same answer twice."""
    orders = (("a", "b"), ("b", "a"))
    rows = [
        {**vote(unit, winner, judge), "first": first, "second": second}
        for unit in range(6)
        for judge, winner in (("leans", "first"), ("fair", "a"), ("human/ann", "a"))
        for first, second in orders
    ]
    two, three = [row for row in rows if "/" not in row["judge"]], rows
    run = call.take("votes", two, "two")
    gate = f"gate {run} --candidate a --baseline b --better"
    for line in (f"leaderboard {run}", f"compare {run}", gate):
        said = call(line).out
        assert is_told(said, "notes.trust_contradicts_of", judge="leans", other=1.0, n=6)
        assert is_told(said, "notes.trust_orders_of", judge="fair", share=1.0, n=6)
    alone = call(f"{gate} --judge fair").out
    assert is_told(alone, "notes.trust_orders", share=1.0, n=6)
    said = call.ok(f"leaderboard {call.take('votes', three, 'three')}").out
    assert is_told(said, "notes.trust_least", n=3, judge="leans")
    assert not is_told(said, "notes.trust_orders_of") and is_told(said, "notes.trust_people")
    people = call.take("votes", [row for row in rows if "/" in row["judge"]], "people")
    assert not is_told(call.ok(f"leaderboard {people}").out, "notes.trust_people")


def test_run_and_report_warn_of_a_judge_that_contradicts_itself(call):
    write_pairs(Path(), 12, COIN)
    assert call.json("run")["pairwise"]["consistency"]["value"] < 0.6
    assert is_told(call("run").out, "notes.trust_contradicts")
    call.ok("report latest -o report.html")
    assert is_told(Path("report.html").read_text("utf-8"), "notes.trust_contradicts")
