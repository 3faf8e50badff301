"""Where the interval of a comparison is narrow, every place that shows it says so."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import NEWEST, CallCommand

OWN, SURE = "a rare bad answer that is not among them", "however scores are spread"


def test_text_json_and_report_say_it(call: CallCommand, tmp_path: Path) -> None:
    gaps = (0.03, -0.02, 0.05, 0.01, -0.04)
    rows = [
        f"{question},j,{model},{0.1 + 0.8 * (question % 7) / 6 + half * gaps[question % 5]}\n"
        for question in range(20)
        for model, half in (("old", 0), ("new", 1))
    ]
    (tmp_path / "fine.csv").write_text("unit,judge,model,score\n" + "".join(rows))
    call("import", "fine.csv", "--kind", "scores")
    compared = call("compare", NEWEST, "--by", "model", "--baseline", "old", "--json").json
    (row,) = [row for row in compared["rows"] if row["dimension"] == "score"]
    assert row["narrow"] and row["sure_low"] < row["low"] < row["high"] < row["sure_high"]
    text = " ".join(call("compare", NEWEST, "--by", "model", "--baseline", "old").out.split())
    call("report", NEWEST, "-o", "r.html")
    page = (tmp_path / "r.html").read_text()
    for words in (OWN, SURE):
        assert any(words in note for note in compared["notes"])
        assert words in text and words in page
