"""Outputs never take the place of what was read, or of a file that is no output."""

from __future__ import annotations

import pytest

import evenhand
from tests.suites import evenhand_here, ok_here, write_answers, write_pairs, write_suite

INPUTS = ("evenhand.db", "evenhand.toml", "rubric.json", "samples.jsonl", "judge.py", "notes.txt")


SUITES = {
    "rubric": write_suite,
    "pairwise": write_pairs,
    "weighted": write_answers,
}


def command(name, file, *rest):
    flag = {"gate": "--junit", "report": "-o", "export": "-o"}[name]
    more = "--max-failure-rate 0.5" if name == "gate" else ""
    return [f"{name} latest {more} {flag}", file, *rest]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = write_suite(tmp_path_factory.mktemp("outputs"), 3)
    (folder / "notes.txt").write_text("mine\n")
    ok_here("run", cwd=folder)
    return folder


@pytest.mark.parametrize("name", ["report", "export", "gate"])
@pytest.mark.parametrize("file", INPUTS)
def test_what_was_read_or_is_no_output_is_not_replaced(suite, name, file):
    before = (suite / file).read_bytes()
    done = evenhand_here(*command(name, file), cwd=suite)
    assert done.returncode == 2, done.stderr
    assert "--force" in done.stderr or "ending" in done.stderr or "verdict table" in done.stderr
    assert (suite / file).read_bytes() == before
    ok_here("show", cwd=suite)


def test_the_way_a_path_is_spelt_does_not_matter(suite):
    (suite / "link.html").symlink_to("evenhand.db")
    for file in ("./evenhand.db", str(suite / "evenhand.db"), "link.html"):
        assert evenhand_here(*command("report", file), cwd=suite).returncode == 2
    ok_here("show", cwd=suite)


@pytest.mark.parametrize("kind", SUITES)
def test_an_output_is_replaced_by_the_next_one(kind, tmp_path):
    SUITES[kind](tmp_path, 3)
    ok_here("run", cwd=tmp_path)
    endings = ("jsonl", "json", "csv", "jsonl.gz", "parquet", *["txt"][: kind == "pairwise"])
    outputs = [("export", f"out.{ending}") for ending in endings]
    outputs += [("export", "full.csv", "--full"), ("report", "report.html"), ("gate", "gate.xml")]
    for output in outputs:
        for _ in range(2):
            done = evenhand_here(*command(*output), cwd=tmp_path)
            assert done.returncode == 0, (output, done.stderr)


def test_force_and_an_empty_file_let_it_be_written(suite):
    (suite / "mine.html").write_text("<p>mine</p>")
    assert evenhand_here(*command("report", "mine.html"), cwd=suite).returncode == 2
    ok_here(*command("report", "mine.html", "--force"), cwd=suite)
    (suite / "empty.xml").touch()
    ok_here(*command("gate", "empty.xml"), cwd=suite)
    (suite / "mine.csv").write_text("question,answer\n")
    assert evenhand_here(*command("export", "mine.csv"), cwd=suite).returncode == 2
    assert (suite / "mine.csv").read_text() == "question,answer\n"


def test_python_is_held_to_the_same(suite):
    run = evenhand.open("latest", store=f"sqlite:{suite / 'evenhand.db'}")
    with pytest.raises(evenhand.EvenhandError, match="was not written"):
        run.report(suite / "evenhand.db")
    assert run.report(suite / "python.html").stat().st_size > 0
    assert run.report(suite / "python.html").stat().st_size > 0
