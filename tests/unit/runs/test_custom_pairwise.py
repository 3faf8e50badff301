"""A pairwise protocol of the user: its criteria, priority and rounds, in one language."""

from __future__ import annotations

import json
import shutil

from tests import provider as p
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import at, evenhand_here, judged, ok_here, pairs, stored, write_pairs

PROTOCOL = """
kind = "pairwise"
about = "Recipes."
priority = ["safety", "taste"]
max_rounds = 2

[[criteria]]
id = "taste"
en = "Does it sound tasty?"

[[criteria]]
id = "safety"
en = "Is it safe to eat?"

[[criteria]]
id = "cost"
en = "Is it cheap?"
"""


PROMPT = """<!-- user -->
Compare two recipes for {{topic}}
{{candidate_1}}
{{candidate_2}}
by
{{criteria}}
as {{shape}}
<!-- again -->
Wrong: {{problems}}
"""


STRAIGHT = """
def is_straight(messages):
    "Whether the first candidate of the file is shown first."
    shown = messages[-1]["content"]
    return shown.index("An answer") < shown.index("A reply")
"""


JUDGE = (
    STRAIGHT
    + """
import json, re

def said(marks, winner):
    given = {"first_meets": True, "second_meets": True, "comment": "so"}
    criteria = {c: {**given, "mark": mark} for c, mark in marks.items()}
    return json.dumps({"criteria": criteria, "explanation": "x", "winner": winner})

async def conflict(messages, schema, params):
    "The first candidate of the file is safer, the second tastier and cheaper."
    own, other = ("A+", "B+") if is_straight(messages) else ("B+", "A+")
    return said({"taste": other, "safety": own, "cost": other}, "A")

async def first(messages, schema, params):
    return said(dict.fromkeys(("taste", "safety", "cost"), "A+"), "A")

async def spoilt(messages, schema, params):
    return said(dict.fromkeys(("taste", "safety", "cost"), "good"), "A")
"""
)


def folder_of(path, protocol=PROTOCOL, prompt=PROMPT):
    mine = path / "recipes"
    (mine / "prompts").mkdir(parents=True)
    (mine / "protocol.toml").write_text(protocol)
    (mine / "prompts" / "en.md").write_text(prompt)
    return "recipes"


async def test_its_priority_decides(tmp_path):
    folder_of(tmp_path)
    write_pairs(tmp_path, 2, "conflict", judge=JUDGE, protocol="recipes")
    await judged(tmp_path)
    before = stored(tmp_path)
    for output in (row["output"] for row in before):
        assert (output["winner"], output["settled"]) == ("A", "stable")
        assert output["criteria"] == {"taste": "B+", "safety": "A+", "cost": "B+"}
    # A run needs its folder no more.
    shutil.rmtree(tmp_path / "recipes")
    settled = evenhand_here("settle latest --json", cwd=tmp_path)
    assert (settled.returncode, json.loads(settled.stdout)["verdicts"]) == (0, 2)
    assert stored(tmp_path) == before


async def test_its_number_of_rounds_holds_unless_the_suite_says_otherwise(tmp_path):
    folder_of(tmp_path)
    for settings, most in (({}, 2), ({"max_rounds": 4}, 4)):
        write_pairs(tmp_path, 1, "first", judge=JUDGE, protocol="recipes", settings=settings)
        summary = await judged(tmp_path)
        assert stored(tmp_path, summary.run)[0]["output"]["rounds"] == most


async def test_the_prompt_and_the_schema_follow_its_criteria(tmp_path):
    folder_of(tmp_path)
    async with p.Provider(p.comparing(p.by_number)) as provider:
        write_pairs(tmp_path, 3, at(provider.url), protocol="recipes")
        summary = await judged(tmp_path)
    assert summary.counts.verdicts == 3
    asked = provider.calls[0].body["messages"][-1]["content"]
    assert "- safety: Is it safe to eat?" in asked
    schema = provider.calls[0].schema
    assert list(schema["properties"]["criteria"]["properties"]) == ["taste", "safety", "cost"]


def test_the_verdict_table_follows_its_criteria_and_words_fall_back(tmp_path):
    folder_of(tmp_path)
    write_pairs(tmp_path, 2, "conflict", judge=JUDGE, protocol="recipes")
    ok_here("run", cwd=tmp_path)
    ok_here("export latest -o v.txt", cwd=tmp_path)
    assert (tmp_path / "v.txt").read_text().splitlines() == [
        "pair_id | winner | taste | safety | cost | notes",
        "# A = c1, B = c2",
        "p0 | A | B+ | A+ | B+ | x",
        "p1 | A | B+ | A+ | B+ | x",
    ]
    files = ("--units", "pairs.jsonl", "--replies", "v.txt")
    ok_here("check --protocol recipes", *files, cwd=tmp_path)
    other = evenhand_here("check --protocol pairwise", *files, cwd=tmp_path)
    assert (other.returncode, "v.txt:1" in other.stderr) == (3, True), other.stderr
    write_pairs(tmp_path, 1, "spoilt", judge=JUDGE, protocol="recipes")
    assert evenhand_here("run", cwd=tmp_path).returncode == 1  # nothing was judged
    (row,) = stored(tmp_path)
    assert "Choose one of: A+, B+, tie" in row["detail"]


@cases
def test_what_is_wrong_with_it_is_told_with_its_file_and_nothing_is_sent(tmp_path, old, new, key):
    assert old in PROTOCOL
    folder_of(tmp_path, PROTOCOL.replace(old, new))
    write_pairs(tmp_path, 2, "first", judge=JUDGE, protocol="recipes")
    done = evenhand_here("run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "recipes/protocol.toml" in done.stderr and is_told(done.stderr, key), done.stderr


def test_a_language_it_does_not_speak_is_refused(tmp_path):
    folder_of(tmp_path)
    rows = [pairs(1)[0], pairs(2)[1] | {"language": "ja"}]
    for data, code, key, language in (
        (rows, 3, "kinds.unknown_language", "en"),
        (2, 2, "files.no_language", "ja"),
    ):
        write_pairs(tmp_path, data, protocol="recipes", language=language)
        done = evenhand_here("run", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert is_told(done.stderr, key, language), done.stderr
        assert ("pairs.jsonl:2" in done.stderr) is (code == 3)


async def test_without_a_priority_a_conflict_is_a_tie(tmp_path):
    folder_of(tmp_path, PROTOCOL.replace('priority = ["safety", "taste"]\n', ""))
    write_pairs(tmp_path, 1, "conflict", judge=JUDGE, protocol="recipes")
    await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["flags"]) == ("tie", ["self_contradiction"])


async def test_words_of_its_own_stand_over_those_of_the_kind(tmp_path):
    name = folder_of(tmp_path)
    words = tmp_path / name / "words"
    words.mkdir()
    (words / "en.toml").write_text('[problems]\nnot_allowed = "{value} is no taste."\n')
    write_pairs(tmp_path, 1, "spoilt", protocol=name, judge=JUDGE)
    await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert row["detail"] == '"good" is no taste.'


async def test_a_prompt_that_asks_for_a_table_line_gets_one(tmp_path):
    code = (
        STRAIGHT
        + """
async def table(messages, schema, params):
    assert schema is None
    own = "A" if is_straight(messages) else "B"
    line = f"x | {own} | {own}+ | tie | tie | because"
    return f"```\\npair_id | winner | taste | safety | cost | notes\\n{line}\\n```"
"""
    )
    name = folder_of(tmp_path, 'reply = "table"\n' + PROTOCOL)
    write_pairs(tmp_path, 1, "table", protocol=name, judge=code)
    await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["output"]["notes"]) == ("A", "because")
    assert row["output"]["criteria"] == {"taste": "A+", "safety": "tie", "cost": "tie"}


async def test_a_re_ask_beside_a_table_prompt_asks_for_no_json(tmp_path):
    code = """
async def never(messages, schema, params):
    return "A is better, I think."
"""
    name = folder_of(tmp_path, 'reply = "table"\n' + PROTOCOL)
    write_pairs(tmp_path, 1, "never", protocol=name, judge=code)
    await judged(tmp_path)
    (row,) = stored(tmp_path)
    assert row["reason"] == "not_json"
    assert "Write exactly one line" in row["detail"]
    assert "JSON" not in row["detail"]
