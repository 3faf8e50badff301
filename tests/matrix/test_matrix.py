"""Every kind, every command that reads, every way a run comes to be, odd but legal units: no crash,
figures that add up, and the same numbers from every command."""

import csv
import json
import re
from collections import Counter
from statistics import fmean
from urllib.parse import quote

import pytest

from tests.postgres import new_store_url
from tests.unit.web.serving import counts, listed, run_ids, served

FINE = (0, 1, 7)
"""Exit codes of a command that did what it was asked: done, not met, not enough evidence."""


def full_rows(place):
    """Everything the run holds, as `export --full` has it."""
    said = place.call("export", "-o", "-", "--full")
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def counted(rows):
    """Verdicts, failures by reason, and what judges were left out of."""
    statuses = Counter(row["status"] for row in rows)
    reasons = Counter(row["reason"] for row in rows if row["status"] == "failure")
    return statuses["verdict"], dict(sorted(reasons.items())), statuses["left_out"]


def numbers(summary):
    failures = summary["failures"]
    total = summary["verdicts"] + sum(failures.values()) + summary["pending"]
    assert summary["planned"] == total
    return summary["verdicts"], failures, summary["left_out"]


def test_every_summary_counts_what_the_export_holds(place):
    expected = counted(full_rows(place))
    assert expected[0] or place.world.origin == "failed"
    assert numbers(place.call("show", "--json").json) == expected
    (listed,) = place.call("runs", "--json").json["runs"]
    assert numbers(listed) == expected
    with served(place.folder / "evenhand.db") as site:
        (run,) = run_ids(site).values()
        shown = counts(site, run)
        assert (shown["verdicts"], shown["failed"]) == (expected[0], sum(expected[1].values()))
    if place.world.origin != "imported":
        again = place.call("run", "--json")
        assert again.code in (0, 1, 5), again.err
        assert numbers(again.json) == expected and again.json["calls"] == 0


def test_settling_from_stored_replies_changes_nothing(place):
    before = full_rows(place)
    said = place.call("settle", "--json")
    if place.world.origin == "imported":
        assert said.code == 2
    else:
        assert said.code in FINE, said.err
        assert numbers(said.json) == counted(before)
    assert full_rows(place) == before


def test_every_unit_can_be_shown(place):
    for unit in {row["unit"] for row in full_rows(place)}:
        for form in ((), ("--json",)):
            said = place.call("show", "latest", unit, *form)
            assert said.code == 0, said.err
            assert said.out.strip()
    assert place.call("show").code == 0


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "txt"])
@pytest.mark.parametrize("full", [False, True], ids=["contract", "full"])
def test_exports_hold_every_verdict(place, ending, full):
    target = place.folder / f"out.{ending}"
    said = place.call("export", "-o", str(target), *(["--full"] if full else []))
    if ending == "txt" and (place.world.kind != "pairwise" or full):
        assert said.code == 2
        return
    assert said.code == 0, said.err
    rows = full_rows(place)
    verdicts = [row for row in rows if row["status"] == "verdict"]
    if ending == "txt":
        lines = target.read_text(encoding="utf-8").splitlines()
        rows = [line for line in lines if line.strip() and not line.startswith("# ")]
        assert len(rows) - 1 == len({row["unit"] for row in verdicts})
        return
    assert written(target) == len(rows if full else verdicts)


def written(path):
    """How many rows a file holds."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return int(pyarrow.parquet.read_table(path).num_rows)
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".json":
        return len(json.loads(text))
    if path.suffix == ".csv":
        return max(0, len(list(csv.reader(text.splitlines(keepends=True)))) - 1)
    return len(text.splitlines())


def test_what_is_exported_keeps_the_contract(place):
    if place.world.kind != "pairwise" and place.world.origin == "imported":
        pytest.skip("imported scores name no texts that evidence could be looked for in")
    target = place.folder / "out.jsonl"
    place.call("export", "-o", str(target))
    if place.world.kind == "weighted":  # several answers to one task are told apart by their unit
        target.write_text(
            "".join(
                json.dumps({"unit": row["unit"], "reply": json.dumps(row["output"])}) + "\n"
                for row in full_rows(place)
                if row["output"]
            )
        )
    units = place.folder / "units.jsonl"
    if place.world.origin == "imported":
        units.write_text(imported_units(place))
    else:
        units = next(
            file
            for file in place.folder.glob("*.jsonl")
            if file.stem in ("samples", "pairs", "answers")
        )
    rubric = {"rubric": "rubric.json", "checklist": "criteria.json"}.get(place.world.kind)
    more = ["--rubric", rubric] if rubric else []
    protocol = ("--protocol", place.world.kind, "--units", str(units))
    said = place.call("check", *protocol, "--replies", str(target), *more, "--json")
    if not target.read_text(encoding="utf-8"):
        return
    assert said.code == 0, said.out[:2000] + said.err
    assert said.json["problems"] == []


def imported_units(place):
    """The units of imported votes, as a data file has them."""
    rows = {row["unit"]: row["output"] for row in full_rows(place) if row["output"]}
    return "".join(
        json.dumps(
            {
                "pair_id": unit,
                "topic": "?",
                "candidates": [{"id": name, "text": name} for name in output["candidates"]],
            }
        )
        + "\n"
        for unit, output in rows.items()
    )


def test_compare_says_the_means_of_the_export(place):
    said = place.call("compare", *place.world.by, "--json")
    text = place.call("compare", *place.world.by)
    assert text.code == said.code
    if place.world.origin == "failed":
        assert said.code in (0, 2), said.err
        return
    assert said.code == 0, said.err
    rows = [row for row in said.json["rows"] if row["mean"] is not None]
    assert rows
    for row in rows:
        assert row["outcome"] in ("better", "worse", "not enough evidence")
        assert row["low"] <= row["difference"] <= row["high"]
    report = place.call("report", "-o", "r.html", *place.world.by)
    assert report.code == 0, report.err


def test_a_mean_is_the_same_from_export_compare_and_api(place):
    if place.world.kind == "pairwise" or place.world.origin != "judged":
        return
    by = place.world.by[1]
    variants = {}
    for row in full_rows(place):
        if row["status"] != "verdict":
            continue
        variant, overall = _overall(place, row, by)
        if variant:
            variants.setdefault(variant, {}).setdefault(row["unit"], []).append(overall)
    means = {
        variant: fmean(fmean(values) for values in units.values())
        for variant, units in variants.items()
    }
    (row,) = [
        row
        for row in place.call("compare", *place.world.by, "--json").json["rows"]
        if row["dimension"] == "overall"
    ]
    assert row["mean"] == pytest.approx(means[row["variant"]])
    assert row["baseline_mean"] == pytest.approx(means[place.world.by[3]])


def _overall(place, row, by):
    output = row["output"]
    if place.world.kind == "weighted":
        return row["unit"].rsplit("/", 1)[1], output["total_score"] / 100
    if place.world.kind == "checklist":
        return output["meta"].get(by), output["score"]
    scores = [(given["score"] - 1) / 4 for given in output["scores"].values()]
    return output["meta"].get(by), fmean(scores)


def test_pairs_are_counted_alike_by_every_command(place):
    said = place.call("leaderboard", "--json")
    if place.world.kind != "pairwise":
        assert said.code == 2
        return
    assert said.code == 0 or place.world.origin == "failed", said.err
    assert place.call("leaderboard").code == said.code
    shown = place.call("show", "--json").json["pairwise"]
    expected = majorities(full_rows(place))
    assert {name: n for name, n in shown["panel"].items() if n} == dict(expected)
    if said.code == 0:
        for row in said.json["rows"]:
            assert row["n"] >= 0
            if row["n"] and row["win_rate"] is not None:
                assert row["low"] <= row["win_rate"] <= row["high"]
        # Of topics without any verdict there is no front.
        fronts = set() if place.world.origin == "failed" else {"three"}
        assert set(said.json["fronts"]) >= fronts or place.world.origin == "imported"


def majorities(rows):
    """The panel's verdict of each pair: each judge's repeats settled first, then the judges."""
    units = {}
    for row in rows:
        if row["status"] == "verdict":
            judges = units.setdefault(row["unit"], {})
            judges.setdefault(row["judge"], []).append(row["output"]["winner"])
    return Counter(
        _majority([_majority(votes) for votes in judges.values()]) for judges in units.values()
    )


def _majority(votes):
    winner, number = Counter(votes).most_common(1)[0]
    return winner if 2 * number > len(votes) else "uncertain"


def test_judges_can_be_held_against_each_other(place):
    for form in ((), ("--json",)):
        said = place.call("agreement", *form)
        assert said.code in (0, 2), said.err
        if place.world.origin != "failed":
            assert said.code == 0, said.err


def test_a_gate_answers(place):
    kind = place.world.kind
    rate = place.call("gate", "--max-failure-rate", "0.5", "--json")
    assert rate.code in FINE, rate.err
    if place.world.origin == "failed":
        assert rate.code != 0
    if kind == "pairwise":
        asked = ["--candidate", "c2" if place.world.origin != "imported" else "b"]
        asked += [*place.world.by, "--min-win-rate", "0.1"]
    else:
        asked = ["--min-mean", "0.1", *place.world.by, "--no-worse-than", "0.9"]
    said = place.call("gate", *asked, "--json")
    assert said.code in (*FINE, 2), said.err
    if place.world.origin != "failed":
        assert said.code in FINE, said.err
        assert said.json["outcome"] in ("better", "worse", "not enough evidence")


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja"])
def test_a_report_can_be_written_and_names_its_counts(place, language):
    brief = [] if language == "en" else ["--summary"]
    said = place.call("report", "-o", "report.html", "--language", language, *brief)
    assert said.code == 0, said.err
    page = (place.folder / "report.html").read_text(encoding="utf-8")
    verdicts, failures, _ = counted(full_rows(place))
    text = re.sub(r"<[^>]+>", " ", page)
    for number in (verdicts, sum(failures.values())):
        assert re.search(rf"\b{number}\b", text)


def test_every_page_and_every_answer_of_the_view(place):
    rows = full_rows(place)
    units = sorted({row["unit"] for row in rows})
    see_pages(place.folder / "evenhand.db", units, len(rows))


def see_pages(store, units, judgments):
    with served(store) as site:
        (run,) = run_ids(site).values()
        names = [f"/unit?id={quote(unit, safe='')}" for unit in units]
        for page in ("", "/units", "/changes", "/protocol", "/report", *names):
            answer = site.get(f"/runs/{run}{page}")
            assert answer.status_code == 200, (page, answer.text[-500:])
        assert len(listed(site, run)) == judgments


READERS = (
    *(("show",), ("show", "--json"), ("export", "-o", "-", "--full"), ("compare", "--json")),
    *(("leaderboard", "--json"), ("agreement", "--json"), ("gate", "--json")),
)


def test_a_server_holds_what_the_file_holds_and_every_command_reads_it_alike(place):
    url = new_store_url()
    copied = place.call("store", "copy", "sqlite:evenhand.db", url)
    assert copied.code == 0, copied.err
    for command in READERS:
        here, there = (place.call(*command, "--store", at) for at in ("sqlite:evenhand.db", url))
        assert (here.code, here.out) == (there.code, there.out), command
    reports = [place.folder / f"{name}.html" for name in ("file", "server")]
    for report, at in zip(reports, ("sqlite:evenhand.db", url), strict=True):
        assert place.call("report", "-o", str(report), "--store", at, "--force").code in FINE
    assert reports[0].read_bytes() == reports[1].read_bytes()
    if place.world.origin != "imported":
        settled = [
            place.call("settle", "--json", "--store", at) for at in ("sqlite:evenhand.db", url)
        ]
        assert numbers(settled[0].json) == numbers(settled[1].json)
        again = place.call("run", "--json", "--store", url)
        assert again.json["calls"] == 0
        assert numbers(again.json) == numbers(settled[1].json)
    rows = full_rows(place)
    see_pages(url, sorted({row["unit"] for row in rows}), len(rows))
    assert place.call("store", "verify", "--store", url).code == 0
