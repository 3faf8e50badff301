"""A table of answers, suites on tables, and the units that they come to."""

from __future__ import annotations

import json
from pathlib import Path

from tests.suites import GRADE_JUDGE, JUDGE, PAIR_JUDGE, RUBRIC, TICK_JUDGE

LONG = """\
question,model,answer,area
Why is the sky blue?,m1,worth 5 of scattering,physics
Why is the sky blue?,m2,worth 3 of paint,physics
How much is 2+2?,m1,worth 1,sums
How much is 2+2?,m2,worth 9,sums
"""
SKY, SUM = "ba6ba125e6", "a687b20742"
JUDGES = {
    "rubric": "python/judge:good",
    "pairwise": "python/pair_judge:content",
    "weighted": "python/grade_judge:good",
    "checklist": "python/tick_judge:good",
}


def suite(folder, protocol, data, more=""):
    """A suite on these data, with a judge of Python that needs no key."""
    texts = {"judge": JUDGE, "pair_judge": PAIR_JUDGE, "grade_judge": GRADE_JUDGE}
    for name, text in (texts | {"tick_judge": TICK_JUDGE}).items():
        (folder / f"{name}.py").write_text(text)
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    (folder / "task.md").write_text("The answer is right.\n")
    (folder / "criteria.txt").write_text("Is it right?\n")
    rubrics = {"rubric": "rubric.json", "weighted": "task.md", "checklist": "criteria.txt"}
    rubric = rubrics.get(protocol)
    (folder / "evenhand.toml").write_text(
        f'name = "tables"\nprotocol = "{protocol}"\ndata = {data}\n'
        + (f'rubric = "{rubric}"\n' if rubric else "")
        + f'judges = [{{ model = "{JUDGES[protocol]}" }}]\n{more}',
        encoding="utf-8",
    )


def units(call):
    """The units of the run by id, as `show` has them."""
    ran = call("run", "--json")
    assert ran.code == 0, ran.err
    call("export", "latest", "--full", "-o", "full.jsonl")
    rows = [json.loads(line) for line in Path("full.jsonl").read_text("utf-8").splitlines()]
    return {row["unit"]: call("show", "latest", row["unit"], "--json").json["unit"] for row in rows}
