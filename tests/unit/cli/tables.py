"""A table of answers, suites on tables, and the units that they come to."""

from __future__ import annotations

import json
from pathlib import Path

from tests.suites import GRADE_JUDGE, JUDGE, PAIR_JUDGE, RUBRIC, TICK_JUDGE
from tests.unit.cli.conftest import put

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


def table_suite(protocol, rows, more=""):
    """A suite here on a table, as the text of a CSV file or of JSON lines; or on a table of each
    variant."""
    tables = rows if isinstance(rows, dict) else {"a": rows}
    entries = []
    for name, text in tables.items():
        file = f"{name}.jsonl" if text.startswith("{") else f"{name}.csv"
        put(file, text)
        field = f', prompt_variant = "{name}"' if tables is rows else ""
        entries.append(f'{{ file = "{file}"{field} }}')
    suite(Path(), protocol, f"[{', '.join(entries)}]", more)


def units(call):
    """The units of the run by id, as `show` has them."""
    call.run()
    rows = call.export("--full")
    return {row["unit"]: call.json("show latest", row["unit"])["unit"] for row in rows}


def field(value, path):
    """The value at a dotted path in objects and lists."""
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
