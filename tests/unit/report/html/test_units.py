"""One judged unit as blocks: everything that was said about it, in order, and safe to show."""

from __future__ import annotations

import itertools
import json

import pytest

from evenhand.kinds import KINDS
from evenhand.report.html.units import compared_texts, unit_blocks, unit_line
from evenhand.results.report import judged_units
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_store
from evenhand.text import visible
from evenhand.words import LANGUAGES, words
from tests.browser.runs import SUITES, judge, opened
from tests.suites import pair_row, samples, write_pairs, write_suite
from tests.unit.runs.importing import import_files

EN = words("en")


def judged(suite):
    with opened(judge(suite)) as (store, run):
        return run.kind, list(judged_units(store, run))


def blocks_of(
    kind,
    unit,
    judgments,
    say=EN,
    names=None,
):
    shown = kind.present(kind.load(unit.body), [one.judgment for one in judgments])
    return unit_blocks(shown, judgments, say, names)


def line_of(kind, unit, judgments, say=EN):
    return unit_line(kind, unit.id, kind.present(kind.load(unit.body), []), judgments, say)


def inner(blocks):
    """Every block, those within others too."""
    for one in blocks:
        yield one
        yield from inner(one.get("blocks", []))
        for column in one.get("columns", []):
            yield from inner(column)


def texts(blocks):
    return json.dumps(blocks, ensure_ascii=False)


@pytest.mark.parametrize("kind", SUITES)
def test_every_unit_of_every_kind_can_be_shown_in_every_language(tmp_path, kind):
    found, units = judged(SUITES[kind](tmp_path, 6))
    assert found.name == kind
    for (unit, rows), say in itertools.product(units, map(words, LANGUAGES)):
        blocks = blocks_of(found, unit, rows, say)
        calls = [call for one in rows for call in one.row["exchanges"]]
        groups = [one for one in inner(blocks) if one["kind"] == "group"]
        assert len(groups) >= len(calls)
        assert all(visible(one) == one for one in texts(blocks).split('"'))
        line = line_of(found, unit, rows, say)
        assert line["id"] == unit.id and line["result"]


def test_stretches_of_an_answer_are_the_answer_with_its_quotes_numbered(tmp_path):
    rows = samples(1)
    rows[0]["model_output"] = "🙂🙂 Ответ: ça va,\nand so on and on, to the end."
    kind, [(unit, judgments)] = judged(write_suite(tmp_path, rows))
    blocks, text = blocks_of(kind, unit, judgments), rows[0]["model_output"]
    output = next(b for b in inner(blocks) if b.get("label") == EN("unit.output"))
    assert "".join(one.text for one in output["stretches"]) == text
    (mark,) = [one for one in output["stretches"] if one.numbers]
    assert mark[:3] == (text[:20], "1,2", "1 correct · 2 clear")
    table = next(one for one in inner(blocks) if one["kind"] == "table")
    assert table["rows"][0][3][0].startswith("1 “🙂🙂 Ответ") and "[0:20]" in table["rows"][0][3][0]


def test_both_orders_stand_side_by_side_and_speak_of_the_same_candidates(tmp_path):
    kind, [(unit, rows)] = judged(write_pairs(tmp_path, [pair_row("p", 9, 2)]))
    blocks = blocks_of(kind, unit, rows, names={"C1": "Truth"})
    shown, compared = (one for one in inner(blocks) if one["kind"] == "columns")
    assert [column[0]["label"] for column in shown["columns"]] == ["c1", "c2"]
    orders = [column[0] for column in compared["columns"]]
    for order, name in zip(orders, ("c1", "c2"), strict=True):
        outcome = [EN("unit.shown_first", name=name), EN("unit.better", name="c1")]
        assert order["label"].startswith(" → ".join(outcome))
        assert order["rows"][0][:2] == [["C1 · Truth", ""], ["c1\u00a0+", "first"]]
    first, second = orders
    # The judge says each time that the slot shown first meets the criterion.
    assert [cell[0] for cell in first["rows"][0][2:4]] == ["yes", "no"]
    assert [cell[0] for cell in second["rows"][0][2:4]] == ["no", "yes"]


@pytest.mark.parametrize(
    ("first", "second", "only", "note"),
    [
        ("The sky is blue.", "The sky was blue!", (["is", "."], ["was", "!"]), "differs"),
        ("天空是蓝色的", "天空是红色的", (["蓝"], ["红"]), "differs"),
        ("**Same** text", "**Same** text", ([], []), ""),
        ("One thing.", "Quite another matter!", ([], []), ""),
        ("a b " * 5001, "a c " * 5001, ([], []), "not_compared"),
        ("a " * 9000, "a " * 8999 + "b", ([], []), "not_compared"),
    ],
)
def test_words_that_only_one_answer_has_are_marked(first, second, only, note):
    block = compared_texts(first, second, EN, most=30_000)
    texts = [column[0] for column in block["columns"]]
    assert ["".join(one.text for one in text["stretches"]) for text in texts] == [first, second]
    assert tuple([s.text for s in text["stretches"] if s.differs] for text in texts) == only
    assert block["note"] == (EN(f"unit.{note}") if note else "")
    assert all(text["formatted"] for text in texts)


def test_rounds_and_contradictions_are_told(tmp_path):
    judge_of = {"model": "python/judge:first"}
    kind, [(unit, rows)] = judged(write_pairs(tmp_path, [pair_row("p", 9, 2)], judge_of))
    blocks = blocks_of(kind, unit, rows)
    rounds = [b["label"] for b in inner(blocks) if b["kind"] == "section"][1:]
    assert rounds == ["Round 1", "Round 2", "Round 3"]
    settled = next(b for b in inner(blocks) if b.get("label") == EN("unit.settled_marks"))
    assert all(row[1] == ["tie · the orders differ", "warn"] for row in settled["rows"])
    assert line_of(kind, unit, rows)["verdicts"] == ["uncertain"]


def test_a_failure_says_why_with_every_reply(tmp_path):
    kind, units = judged(write_suite(tmp_path, 1, {"model": "python/judge:bad"}))
    unit, rows = units[0]
    blocks = blocks_of(kind, unit, rows)
    notice = next(one for one in inner(blocks) if one["kind"] == "notice")
    assert notice["tone"] == "bad" and notice["text"].startswith("Failed: schema (")
    replies = [b for b in inner(blocks) if b.get("label") == EN("unit.reply")]
    assert [one["stretches"] for one in replies] == [[("{}", "", "", False)]] * 3
    line = line_of(kind, unit, rows)
    assert line["verdicts"] == ["failed"] and line["reasons"] == ["schema"]
    assert line["result"] == "failed · schema"


def test_a_unit_without_a_judgment_is_pending():
    kind, body = KINDS["rubric"], '{"id":"u","question":"q","model_output":"a","meta":{}}'
    blocks = unit_blocks(kind.present(kind.load(body), []), [], EN)
    assert blocks[-1]["text"] == "Not judged yet."
    assert unit_line(kind, "u", kind.present(kind.load(body), []), [], EN)["verdicts"] == [
        "pending"
    ]


def test_a_file_has_no_prompts_and_long_texts_are_cut_in_the_middle(tmp_path):
    rows = samples(1)
    rows[0]["model_output"] = "The beginning. " + "x" * 500 + " The end."
    kind, [(unit, judgments)] = judged(write_suite(tmp_path, rows))
    shown = kind.present(kind.load(unit.body), [one.judgment for one in judgments])
    sent = [one["content"] for one in judgments[0].row["exchanges"][0]["messages"]]
    whole = list(inner(unit_blocks(shown, judgments, EN)))
    told = ["".join(s[0] for s in one["stretches"]) for one in whole if one["kind"] == "text"]
    assert set(sent) <= set(told) and rows[0]["model_output"] in told
    short = list(inner(unit_blocks(shown, judgments, EN, most=90)))
    told = ["".join(s[0] for s in one["stretches"]) for one in short if one["kind"] == "text"]
    assert not set(sent) & set(told)
    (output,) = [one for one in told if one.startswith("The beginning. ")]
    assert EN("unit.gap", n="414") in output and output.endswith(" The end.")


def test_a_flag_says_what_it_means_in_the_text_itself(tmp_path):
    row = pair_row("p", 1, 2)
    for one in row["candidates"]:
        one["text"] = "The same."
    kind, [(unit, rows)] = judged(write_pairs(tmp_path, [row]))
    flags = next(one for one in inner(blocks_of(kind, unit, rows)) if one.get("label") == "Flags")
    assert f"equal_text · {EN.gloss('flag', 'equal_text')}" in flags["items"]


def test_what_is_not_there_of_judgments_made_elsewhere_is_not_shown(tmp_path):
    votes = [{"unit": "u", "judge": "ann", "first": "a", "second": "b", "winner": "first"}]
    scores = [{"unit": "u", "judge": "ann", "dimension": "true", "score": 3}]
    store = open_store("sqlite:elsewhere.db", tmp_path)
    try:
        for kind, rows in (("votes", votes), ("scores", scores)):
            path = tmp_path / f"{kind}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            made = import_files(store, [path], kind)
            run = find_run(store.archive, made.run)
            [(unit, judgments)] = judged_units(store.archive, run)
            blocks = list(inner(blocks_of(run.kind, unit, judgments)))
            assert not [one for one in blocks if one["kind"] == "text" and not one["stretches"]]
            tables = [one for one in blocks if one["kind"] == "table"]
            assert [one["head"] for one in tables] == (
                [["Dimension", "Score"]] * (kind == "scores")
            )
            assert EN("unit.settled_marks") not in texts(blocks)
            if kind == "votes":
                assert "judged in one order only" in texts(blocks)
    finally:
        store.close()
