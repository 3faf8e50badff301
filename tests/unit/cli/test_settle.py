"""`settle` under new rules: no call, a run beside the old one, and pending what needs a call."""

from __future__ import annotations

import json

from evenhand.files.protocols import protocol_texts
from tests.sentences import is_told
from tests.suites import (
    GRADE_JUDGE,
    answers,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)

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


JUDGE = {"model": "python/judge:judge"}


FACT = {"logic_and_fact": 30, "constraint_adherence": 60, "helpfulness_and_creativity": 10}


def winners(folder, run="latest"):
    return [row["output"]["winner"] for row in stored(folder, run) if row["output"]]


def pairs_of_two(number):
    return [pair_row(f"p{i}", 1, 2, topic=f"Topic {i}?") for i in range(number)]


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
    write_pairs(tmp_path, pairs_of_two(4), JUDGE, judge=PRIORITY_JUDGE)
    old = call.json("run")
    assert winners(tmp_path) == ["B"] * 4
    settled = call.json("settle latest --priority C2,C1")
    assert (settled["calls"], settled["verdicts"], settled["pending"]) == (0, 4, 0)
    assert settled["run"] != old["run"]
    assert settled["settled_from"] == old["run"]
    assert settled["rules"] == {"priority": {"old": ["C1", "C2", "C5"], "new": ["C2", "C1"]}}
    assert winners(tmp_path, settled["run"]) == ["A"] * 4
    assert winners(tmp_path, old["run"]) == ["B"] * 4
    flags = [flag for row in stored(tmp_path, settled["run"]) for flag in row["flags"]]
    # The judge kept to the rule that it was told.
    assert "self_contradiction" not in flags
    assert call.json(f"show {settled['run']}")["pairwise"]["self_contradictions"] == 0
    # What was sent is shown as it was sent.
    (judgment,) = call.json(f"show {settled['run']} p0")["judgments"]
    assert [len(one["messages"]) for one in judgment["exchanges"]] == [2, 2]


def test_rules_add_up_from_one_settling_to_the_next(call, tmp_path):
    write_pairs(tmp_path, pairs_of_two(2), JUDGE, judge=PRIORITY_JUDGE)

    def settle(run, *rules):
        return call.json(f"settle {run}", *rules)

    old = call.json("run")["run"]
    same = settle(old, "--priority", "C1,C2,C5", "--max-rounds", "3")
    assert (same["run"], same["settled_from"], same["rules"]) == (old, None, {})
    new = settle(old, "--priority", "C2")["run"]
    assert settle(new, "--priority", "C1,C2,C5")["run"] == old, "and back again"
    assert winners(tmp_path, old) == ["B", "B"]
    both = settle(new, "--max-rounds", "1")
    assert both["rules"] == {"max_rounds": {"old": 3, "new": 1}}
    assert winners(tmp_path, both["run"]) == ["A", "A"]


def test_fewer_rounds_settle_and_more_rounds_are_pending(call, tmp_path):
    write_pairs(
        tmp_path, pairs_of_two(3), {"model": "python/judge:first"}, settings={"max_rounds": 2}
    )
    old = call.json("run")["run"]
    assert {row["output"]["rounds"] for row in stored(tmp_path, old)} == {2}
    fewer = call.json(f"settle {old} --max-rounds 1")
    assert (fewer["verdicts"], fewer["pending"], fewer["calls"]) == (3, 0, 0)
    assert {row["output"]["rounds"] for row in stored(tmp_path, fewer["run"])} == {1}
    said = call(f"settle {old} --max-rounds 5")
    assert is_told(said.err, "cli.not_settled", n="3 judgments")
    more = call.json(f"settle {old} --max-rounds 5")
    assert (more["verdicts"], more["pending"], more["calls"]) == (0, 3, 0)
    assert winners(tmp_path, old) == ["uncertain"] * 3


def test_new_weights_rescale_and_flag(call, tmp_path):
    write_answers(tmp_path, answers(3))
    old = call.json("run")["run"]
    (tmp_path / "weights.json").write_text(json.dumps({"fact": FACT}))
    settled = call.json(f"settle {old} --weights weights.json")
    assert (settled["calls"], settled["verdicts"], settled["pending"]) == (0, 3, 0)
    first, second, failed = stored(tmp_path, settled["run"])
    assert first["output"]["weights"] == FACT
    # Seven of 60, 30 and 10 points.
    assert list(first["output"]["score"].values()) == [3.5, 14, 7]
    assert first["output"]["total_score"] == 24.5
    fixes = [(fix["code"], fix["path"]) for fix in first["fixes"]]
    assert fixes == [
        ("rescaled", "score.logic_and_fact"),
        ("rescaled", "score.constraint_adherence"),
    ]
    assert "new_weights" in first["flags"]
    assert "new_weights" in second["flags"]
    assert failed["output"]["critical_fail"]
    assert (failed["output"]["total_score"], failed["output"]["weights"]) == (0, FACT)
    assert [row["output"]["total_score"] for row in stored(tmp_path, old)] == [21, 21, 0]
    call.ok("store verify")


def test_weights_may_stand_in_toml_or_in_a_protocol(call, tmp_path):
    write_answers(tmp_path, answers(1))
    old = call.json("run")["run"]
    row = ", ".join(f"{name} = {weight}" for name, weight in FACT.items())
    (tmp_path / "plain.toml").write_text(f"fact = {{ {row} }}\n")
    (tmp_path / "nested.toml").write_text(f"[weights]\nfact = {{ {row} }}\n")
    old_row = "logic_and_fact = 60, constraint_adherence = 30"
    mine = own_protocol(
        tmp_path / "mine",
        "weighted",
        weights=(old_row, "logic_and_fact = 30, constraint_adherence = 60"),
    )
    ways = (("--weights", "plain.toml"), ("--weights", "nested.toml"))
    ways += (("--weights", str(mine / "protocol.toml")), ("--protocol", "mine"))
    runs = {call.json(f"settle {old}", *way)["run"] for way in ways}
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
    write_answers(tmp_path, answers(3), judge=judge, protocol="mine")
    old = call.json("run")
    assert old["verdicts"] == 3
    edit(mine / "protocol.toml", most, "logic_and_fact = 60,")
    edit(mine / "protocol.toml", least, "helpfulness_and_creativity = 10")
    settled = call.json(f"settle {old['run']} --protocol mine")
    # What code failed has no points to rescale.
    assert (settled["verdicts"], settled["pending"], settled["calls"]) == (1, 2, 0)


def test_a_protocol_folder_brings_its_rules(call, tmp_path):
    write_pairs(tmp_path, pairs_of_two(2), JUDGE, judge=PRIORITY_JUDGE)
    old = call.json("run")["run"]
    priority = ('priority = ["C1", "C2", "C5"]', 'priority = ["C2"]')
    rounds = ("max_rounds = 3", "max_rounds = 2")
    own_protocol(tmp_path / "strict", "pairwise", priority=priority, rounds=rounds)
    settled = call.json(f"settle {old} --protocol strict")
    assert settled["rules"] == {
        "priority": {"old": ["C1", "C2", "C5"], "new": ["C2"]},
        "max_rounds": {"old": 3, "new": 2},
    }
    assert winners(tmp_path, settled["run"]) == ["A", "A"]
    shown = call(f"show {settled['run']}").out
    assert old in shown
    for text in (call(f"settle {old} --protocol strict").out, shown):
        assert is_told(text, "runs.differs_rule", name="priority", new="C2", old="C1, C2, C5")
        assert is_told(text, "runs.differs_rule", name="max_rounds", new=2, old=3)


def test_rules_that_do_not_fit_are_refused_and_leave_nothing(call, tmp_path):
    write_pairs(tmp_path, pairs_of_two(1), JUDGE, judge=PRIORITY_JUDGE)
    call("run")
    own_protocol(
        tmp_path / "other",
        "pairwise",
        ids=('id = "C5"', 'id = "C6"'),
        priority=('"C2", "C5"]', '"C2"]'),
    )
    own_protocol(tmp_path / "grades", "weighted")
    (tmp_path / "weights.json").write_text(json.dumps({"fact": FACT}))
    (tmp_path / "bare.json").write_text("[1, 2]")
    refusals = {
        ("--priority", "C9"): "kinds.unknown_priority",
        ("--weights", "weights.json"): "runs.no_rule",
        ("--weights", "bare.json"): "runs.no_weights",
        ("--weights", "nowhere.json"): "data.no_file",
        ("--protocol", "other"): "kinds.other_ids",
        ("--protocol", "grades"): "runs.other_kind",
        ("--protocol", "nowhere"): "files.no_protocol",
    }
    for options, key in refusals.items():
        said = call("settle latest", *options)
        assert said.code == 2 and is_told(said.err, key), (options, said.err)
    assert len(call.json("runs")["runs"]) == 1


def test_weights_that_do_not_fit_are_refused(call, tmp_path):
    write_answers(tmp_path, answers(1))
    call("run")
    for weights, key in (
        ({"fact": FACT | {"logic_and_fact": 31}}, "kinds.weights_total"),
        ({"facts": FACT}, "runs.no_task_type"),
        ({"fact": {"logic_and_fact": 100}}, "kinds.other_weights"),
    ):
        (tmp_path / "weights.json").write_text(json.dumps(weights))
        said = call("settle latest --weights weights.json")
        assert said.code == 2 and is_told(said.err, key), said.err
    missing = call("settle latest --weights weight.json")
    assert missing.code == 2 and is_told(missing.err, "data.no_file", path="weight.json")
    assert '"weights.json"' in missing.err
    assert call("settle latest --max-rounds 1").code == 2
    assert call("settle latest --priority C1").code == 2
    assert len(call.json("runs")["runs"]) == 1


NOTE = "runs.suite_differs"


def test_a_word_wherever_the_folder_differs_from_what_a_run_used(call, tmp_path):
    mine = own_protocol(tmp_path / "mine", "pairwise")
    write_pairs(tmp_path, pairs_of_two(3), JUDGE, judge=PRIORITY_JUDGE, protocol="mine")
    old = call.json("run")["run"]
    commands = (("show", old), ("show", old, "p0"), ("compare", old), ("leaderboard", old))
    commands += (("report", old, "-o", "report.html"), ("settle", old))
    assert not [command for command in commands if is_told(call(*command).err, NOTE)]
    edit(mine / "protocol.toml", '"C1", "C2", "C5"]', '"C2", "C1"]')
    edit(mine / "prompts" / "en.md", "{{topic}}", "\n{{topic}}")
    changed = '"prompts/en.md", "protocol.toml"'
    for command in commands:
        said = call.ok(*command)
        assert is_told(said.err, NOTE, run=old), (command, said.err)
        assert is_told(said.err, "runs.differs_protocol", name="mine", files=changed)
        assert max(map(len, said.err.splitlines())) <= 120
    assert is_told(call("run").err, "runs.differs_protocol", name="mine", files=changed)
    assert [is_told(call(f"show {run}").err, NOTE) for run in ("latest", old)] == [False, True]


def test_a_rubric_that_was_edited_is_told_too(call, tmp_path):
    write_suite(tmp_path, 2)
    old = call.json("run")["run"]
    edit(tmp_path / "rubric.json", "Is it clear?", "Is it very clear?")
    assert is_told(call(f"show {old}").err, "runs.differs_rubric_file", file="rubric.json")
    assert "rubric" in call("run").err


def test_run_names_each_part_of_the_judging_that_changed(call, tmp_path):
    def changes(judge, **rest):
        code = f"{PRIORITY_JUDGE}alias = judge\n"
        write_pairs(tmp_path, pairs_of_two(3), judge, judge=code, **rest)
        return call("run").err

    changes(JUDGE, seed=1, settings={"max_rounds": 3, "repairs": 1})
    settings = {"max_rounds": 5}
    said = changes(JUDGE, seed=2, settings=settings)
    # The seed reaches the judge too, which is still the same.
    rules = (("seed", 2, 1), ("[settings] repairs", 2, 1), ("[settings] max_rounds", 5, 3))
    what = "; ".join(f"{name}: {new} instead of {old}" for name, new, old in rules)
    assert is_told(said, "cli.data_same") and is_told(said, "cli.judging_changed", what=what)
    name = JUDGE["model"]
    warm = {**JUDGE, "repeats": 2, "temperature": 0.5}
    said, what = (
        changes(warm, seed=2, settings=settings),
        f"[[judges]] {name}: temperature, repeats",
    )
    assert is_told(said, "cli.judging_changed", what=what)
    said = changes({"model": "python/judge:alias"}, seed=2, settings=settings)
    what = f"[[judges]] model: python/judge:alias instead of {name}"
    assert is_told(said, "cli.judging_changed", what=what)


def test_no_word_where_rules_were_set_by_settling(call, tmp_path):
    write_answers(tmp_path, answers(3))
    old = call.json("run")["run"]
    (tmp_path / "weights.json").write_text(json.dumps({"fact": FACT}))
    new = call.json(f"settle {old} --weights weights.json")["run"]
    for command in (("show", new), ("compare", new, "--against", old), ("show", old)):
        assert not is_told(call(*command).err, NOTE), command


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
    old = call.json("run")["run"]
    folder = own_protocol(tmp_path / "tagged", "rubric")
    with (folder / "protocol.toml").open("a") as file:
        file.write(TWO_TAGS)
    settled = call.json(f"settle {old} --protocol tagged")
    assert settled["rules"]["tags"] == {"old": list("ABCDE"), "new": ["D", "F"]}
    assert (settled["verdicts"], settled["pending"], settled["calls"]) == (2, 1, 0)
    rows = stored(tmp_path, settled["run"])
    assert [row["output"]["failure_tags"] for row in rows if row["output"]] == [["D"], []]
