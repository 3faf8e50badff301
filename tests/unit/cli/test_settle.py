"""`settle` under new rules: no call, a run beside the old one, and pending what needs a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.files.protocols import protocol_texts
from tests.sentences import is_told
from tests.suites import (
    GRADE_JUDGE,
    PAIR_JUDGE,
    answers,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import put, values

PRIORITY_JUDGE = """
import json, re
BLOCK = re.compile(r"\\[\\[(\\w+) ([0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1 \\2\\]\\]", re.DOTALL)
TURNED = {"A+": "B+", "B+": "A+", "tie": "tie"}

async def judge(messages, schema, params):
    "Factual correctness goes to the reply, completeness to the answer, in whichever slot they are."
    shown = {name: text for name, _, text in BLOCK.findall(messages[-1]["content"])}
    marks = {"C1": "B+", "C2": "A+", "C3": "tie", "C4": "tie", "C5": "tie"}
    is_turned = shown["candidate_1"].startswith("A reply")
    marks = {c: TURNED[m] if is_turned else m for c, m in marks.items()}
    criteria = {
        c: {"first_meets": True, "second_meets": True, "comment": "so", "mark": mark}
        for c, mark in marks.items()
    }
    winner = "A" if marks["C1"] == "A+" else "B"
    return json.dumps({"criteria": criteria, "explanation": "by C1", "winner": winner})
"""


WEIGHTS = "--weights weights.json"


FACT = {"logic_and_fact": 30, "constraint_adherence": 60, "helpfulness_and_creativity": 10}
CALLS = "calls verdicts pending"


def winners(folder, run="latest", name="winner"):
    return [row["output"][name] for row in stored(folder, run) if row["output"]]


def write_two(number, judge="judge", **rest):
    """Write a suite of as many pairs of two."""
    rows = [pair_row(f"p{i}", 1, 2, topic=f"Topic {i}?") for i in range(number)]
    code = PAIR_JUDGE if judge == "first" else f"{PRIORITY_JUDGE}alias = judge\n"
    write_pairs(Path(), rows, judge, judge=code, **rest)


def judged_pairs(call, *given, **rest):
    """Judge pairs of two, and return the id of the run."""
    write_two(*given, **rest)
    return call.run()


def judged_answers(call, number, **rest):
    """Judge as many answers, with other weights in a file, and return the id of the run."""
    write_answers(Path(), answers(number), **rest)
    put("weights.json", json.dumps({"fact": FACT}))
    return call.run()


def own_protocol(folder, kind, **changes):
    """A copy of a built-in protocol in a folder, with some of its text changed."""
    for name, text in protocol_texts(kind).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for old, new in changes.values():
        edit(folder / "protocol.toml", old, new)
    return folder


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_another_priority_turns_verdicts_without_a_call(call, tmp_path):
    old = judged_pairs(call, 4)
    settled = call.json("settle latest --priority C2,C1")
    new = settled["run"]
    assert new != old and values(settled, CALLS) == [0, 4, 0]
    rules = {"priority": {"old": ["C1", "C2", "C5"], "new": ["C2", "C1"]}}
    assert values(settled, "settled_from rules") == [old, rules]
    assert (winners(tmp_path, old), winners(tmp_path, new)) == (["B"] * 4, ["A"] * 4)
    # The judge kept to the rule that it was told.
    flags = [flag for row in stored(tmp_path, new) for flag in row["flags"]]
    assert "self_contradiction" not in flags
    # What was sent is shown as it was sent.
    (judgment,) = call.json(f"show {new} p0")["judgments"]
    assert [len(one["messages"]) for one in judgment["exchanges"]] == [2, 2]


def test_rules_add_up_from_one_settling_to_the_next(call, tmp_path):
    old = judged_pairs(call, 2)
    same = call.json(f"settle {old} --priority C1,C2,C5 --max-rounds 3")
    assert values(same, "run settled_from rules") == [old, None, {}]
    new = call.json(f"settle {old} --priority C2")["run"]
    back = call.json(f"settle {new} --priority C1,C2,C5")["run"]
    assert back == old and winners(tmp_path, old) == ["B", "B"]
    both = call.json(f"settle {new} --max-rounds 1")
    assert both["rules"] == {"max_rounds": {"old": 3, "new": 1}}
    assert winners(tmp_path, both["run"]) == ["A", "A"]


def test_fewer_rounds_settle_and_more_rounds_are_pending(call, tmp_path):
    old = judged_pairs(call, 3, "first", settings={"max_rounds": 2})
    assert {row["output"]["rounds"] for row in stored(tmp_path, old)} == {2}
    fewer = call.json(f"settle {old} --max-rounds 1")
    assert values(fewer, CALLS) == [0, 3, 0]
    assert {row["output"]["rounds"] for row in stored(tmp_path, fewer["run"])} == {1}
    more = f"settle {old} --max-rounds 5"
    assert is_told(call(more).err, "cli.not_settled", n="3 judgments")
    assert values(call.json(more), CALLS) == [0, 0, 3]
    assert winners(tmp_path, old) == ["uncertain"] * 3


def test_new_weights_rescale_and_flag(call, tmp_path):
    old = judged_answers(call, 3)
    settled = call.json(f"settle {old} {WEIGHTS}")
    assert values(settled, CALLS) == [0, 3, 0]
    rows = stored(tmp_path, settled["run"])
    assert [row["output"]["weights"] for row in rows] == [FACT] * 3
    # Seven of 60, 30 and 10 points.
    assert list(rows[0]["output"]["score"].values()) == [3.5, 14, 7]
    assert [row["output"]["total_score"] for row in rows] == [24.5, 24.5, 0]
    fixes = [(fix["code"], fix["path"]) for fix in rows[0]["fixes"]]
    names = ("logic_and_fact", "constraint_adherence")
    assert fixes == [("rescaled", f"score.{name}") for name in names]
    assert all("new_weights" in row["flags"] for row in rows[:2])
    assert rows[2]["output"]["critical_fail"]
    assert [row["output"]["total_score"] for row in stored(tmp_path, old)] == [21, 21, 0]
    call.ok("store verify")


def test_weights_may_stand_in_toml_or_in_a_protocol(call, tmp_path):
    old = judged_answers(call, 1)
    row = ", ".join(f"{name} = {weight}" for name, weight in FACT.items())
    put("plain.toml", f"fact = {{ {row} }}\n")
    put("nested.toml", f"[weights]\nfact = {{ {row} }}\n")
    own_protocol(
        tmp_path / "mine",
        "weighted",
        weights=(
            "logic_and_fact = 60, constraint_adherence = 30",
            "logic_and_fact = 30, constraint_adherence = 60",
        ),
    )
    files = ("weights.json", "plain.toml", "nested.toml", "mine/protocol.toml")
    ways = (*(f"--weights {file}" for file in files), "--protocol mine")
    runs = {call.json(f"settle {old} {way}")["run"] for way in ways}
    assert len(runs) == 1 and runs != {old}


def test_points_that_could_not_be_given_are_pending(call, tmp_path):
    most, least = "logic_and_fact = 70,", "helpfulness_and_creativity = 0"
    mine = own_protocol(
        tmp_path / "mine",
        "weighted",
        most=("logic_and_fact = 60,", most),
        least=("helpfulness_and_creativity = 10", least),
    )
    judge = GRADE_JUDGE.replace(
        '"score": dict.fromkeys(dimensions, 7)', '"score": dict(zip(dimensions, (7, 7, 0)))'
    )
    old = judged_answers(call, 3, judge=judge, protocol="mine")
    assert None not in winners(tmp_path, old, "total_score")
    edit(mine / "protocol.toml", most, "logic_and_fact = 60,")
    edit(mine / "protocol.toml", least, "helpfulness_and_creativity = 10")
    settled = call.json(f"settle {old} --protocol mine")
    # What code failed has no points to rescale.
    assert values(settled, CALLS) == [0, 1, 2]


def test_a_protocol_folder_brings_its_rules(call, tmp_path):
    old = judged_pairs(call, 2)
    priority = ('priority = ["C1", "C2", "C5"]', 'priority = ["C2"]')
    rounds = ("max_rounds = 3", "max_rounds = 2")
    own_protocol(tmp_path / "strict", "pairwise", priority=priority, rounds=rounds)
    settled = call.json(f"settle {old} --protocol strict")
    changes = {"priority": {"old": ["C1", "C2", "C5"], "new": ["C2"]}}
    assert settled["rules"] == changes | {"max_rounds": {"old": 3, "new": 2}}
    assert winners(tmp_path, settled["run"]) == ["A", "A"]
    shown = call(f"show {settled['run']}").out
    assert old in shown
    for text in (call(f"settle {old} --protocol strict").out, shown):
        assert is_told(text, "runs.differs_rule", name="priority", new="C2", old="C1, C2, C5")
        assert is_told(text, "runs.differs_rule", name="max_rounds", new=2, old=3)


REFUSED = {
    "pairs": {
        **{"--priority C9": "kinds.unknown_priority", WEIGHTS: "runs.no_rule"},
        **{"--weights bare.json": "runs.no_weights", "--weights nowhere.json": "data.no_file"},
        **{"--protocol other": "kinds.other_ids", "--protocol grades": "runs.other_kind"},
        "--protocol nowhere": "files.no_protocol",
    },
    "answers": {
        **{"--weights total.json": "kinds.weights_total", "--max-rounds 1": "runs.no_rule"},
        **{"--weights type.json": "runs.no_task_type", "--priority C1": "runs.no_rule"},
        "--weights ids.json": "kinds.other_weights",
    },
}


@pytest.mark.parametrize("kind", REFUSED)
def test_rules_that_do_not_fit_are_refused_and_leave_nothing(call, tmp_path, kind):
    {"pairs": judged_pairs, "answers": judged_answers}[kind](call, 1)
    put("weights.json", json.dumps({"fact": FACT}))
    ids, priority = ('id = "C5"', 'id = "C6"'), ('"C2", "C5"]', '"C2"]')
    own_protocol(tmp_path / "other", "pairwise", ids=ids, priority=priority)
    own_protocol(tmp_path / "grades", "weighted")
    for name, weights in (
        ("bare", [1, 2]),
        ("total", {"fact": FACT | {"logic_and_fact": 31}}),
        ("type", {"facts": FACT}),
        ("ids", {"fact": {"logic_and_fact": 100}}),
    ):
        put(f"{name}.json", json.dumps(weights))
    for options, key in REFUSED[kind].items():
        call.refused(f"settle latest {options}", key=key)
    missing = call.refused("settle latest --weights weight.json", says=['"weights.json"'])
    assert is_told(missing, "data.no_file", path="weight.json")
    assert len(call.json("runs")["runs"]) == 1


NOTE = "runs.suite_differs"


def test_a_word_wherever_the_folder_differs_from_what_a_run_used(call, tmp_path):
    mine = own_protocol(tmp_path / "mine", "pairwise")
    old = judged_pairs(call, 3, protocol="mine")
    lines = [f"{name} {old}" for name in ("show", "compare", "leaderboard", "settle")]
    lines += [f"show {old} p0", f"report {old} -o report.html"]
    assert not [line for line in lines if is_told(call(line).err, NOTE)]
    edit(mine / "protocol.toml", '"C1", "C2", "C5"]', '"C2", "C1"]')
    edit(mine / "prompts" / "en.md", "{{topic}}", "\n{{topic}}")
    changed = {"name": "mine", "files": '"prompts/en.md", "protocol.toml"'}
    for line in lines:
        said = call.ok(line).err
        assert is_told(said, NOTE, run=old), (line, said)
        assert is_told(said, "runs.differs_protocol", **changed)
        assert max(map(len, said.splitlines())) <= 120
    assert is_told(call("run").err, "runs.differs_protocol", **changed)
    assert [is_told(call(f"show {run}").err, NOTE) for run in ("latest", old)] == [False, True]


def test_a_rubric_that_was_edited_is_told_too(call, tmp_path):
    write_suite(tmp_path, 2)
    old = call.run()
    edit(tmp_path / "rubric.json", "Is it clear?", "Is it very clear?")
    assert is_told(call(f"show {old}").err, "runs.differs_rubric_file", file="rubric.json")
    assert "rubric" in call("run").err


def test_run_names_each_part_of_the_judging_that_changed(call):
    name, settings = "python/judge:judge", {"max_rounds": 5}
    judged_pairs(call, 3, seed=1, settings={"max_rounds": 3, "repairs": 1})
    # The seed reaches the judge too, which is still the same.
    rules = (("seed", 2, 1), ("[settings] repairs", 2, 1), ("[settings] max_rounds", 5, 3))
    for judge, what in (
        ("judge", "; ".join(f"{name}: {new} instead of {old}" for name, new, old in rules)),
        (
            {"model": name, "repeats": 2, "temperature": 0.5},
            f"[[judges]] {name}: temperature, repeats",
        ),
        ("alias", f"[[judges]] model: python/judge:alias instead of {name}"),
    ):
        write_two(3, judge, seed=2, settings=settings)
        said = call("run").err
        assert is_told(said, "cli.data_same") and is_told(said, "cli.judging_changed", what=what)


def test_no_word_where_rules_were_set_by_settling(call):
    old = judged_answers(call, 3)
    new = call.json(f"settle {old} {WEIGHTS}")["run"]
    for line in (f"show {new}", f"compare {new} --against {old}", f"show {old}"):
        assert not is_told(call(line).err, NOTE), line


TAGGING_JUDGE = """
import json, re

async def good(messages, schema, params):
    score = {"evidence": [], "rationale": "no evidence found", "score": 3}
    number = int(re.search(r"Answer number (\\\\d)", messages[-1]["content"])[1])
    tags = [["B"], ["D"], []][number]
    return json.dumps(
        {"scores": {"correct": score, "clear": score}, "failure_tags": tags, "notes": ""}
    )
""".replace("\\\\", "\\")


TWO_TAGS = "".join(
    f'\n[[tags]]\nid = "{tag}"\nen = "{name}"\nru = "{name}"\nzh = "{name}"\nja = "{name}"\n'
    f'meaning = {{ en = "So.", ru = "So.", zh = "So.", ja = "So." }}\n'
    for tag, name in (("D", "wavering"), ("F", "made up"))
)


def test_tags_of_a_folder_are_applied_and_one_that_is_gone_needs_the_judge(call, tmp_path):
    write_suite(tmp_path, 3, judge=TAGGING_JUDGE)
    old = call.run()
    folder = own_protocol(tmp_path / "tagged", "rubric")
    with (folder / "protocol.toml").open("a") as file:
        file.write(TWO_TAGS)
    settled = call.json(f"settle {old} --protocol tagged")
    assert settled["rules"]["tags"] == {"old": list("ABCDE"), "new": ["D", "F"]}
    assert values(settled, "verdicts pending calls") == [2, 1, 0]
    rows = stored(tmp_path, settled["run"])
    assert [row["output"]["failure_tags"] for row in rows if row["output"]] == [["D"], []]
