"""A Chinese prompt that hands over meta and wants it back byte for byte."""

import json
from dataclasses import dataclass

from evenhand import jsontext
from evenhand.files.protocols import lint_prompt, protocol_of_prompt
from tests.users_prompts.running import HERE, is_reask, judged_under, style_of

PROMPT = "pingce.md"
RUBRIC = (HERE / "rubric_zh.json").read_text(encoding="utf-8")
QUESTIONS = [
    json.loads(row)
    for row in (HERE / "questions_zh.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Questions with the outputs that are judged."""
METAS = [
    '{"run_id":"2024-07-01#1","model":"m-A","prompt_variant":"v1","eval_set_variant":"s1",'
    '"question_id":"q%d","temperature":0.70,"seed":9007199254740993}',
    '{"question_id":"q%d","prompt_variant":"v2","run_id":"2024-07-01#2","model":"m/A",'
    '"eval_set_variant":"s1","tags":[],"note":null,"cost":1.50e-3}',
    '{"run_id":"r 3","model":"模型甲","prompt_variant":"v1","eval_set_variant":"s2",'
    '"question_id":"q%d","params":{"top_p":1.0,"stop":["\\\\n"],"z":1,"a":2}}',
    '{"run_id":"r4","model":"m-B","prompt_variant":"v2","eval_set_variant":"s2",'
    '"question_id":"q%d","empty":"","zero":-0,"ok":true}',
    '{"model":"m-B","run_id":"r5","prompt_variant":"v1","eval_set_variant":"s3",'
    '"question_id":"q%d","emoji":"😀","quote":"他说：\\"好\\"","slash":"a\\\\/b"}',
    '{"run_id":"r6","model":"m-C","prompt_variant":"v2","eval_set_variant":"s3","question_id":"q%d"}',
]


def metas():
    return [meta % number for number in range(len(QUESTIONS)) for meta in METAS]


def rows():
    """Every question under every meta, spelled as it stands."""
    made = []
    for number, meta in enumerate(metas()):
        question, output = QUESTIONS[number // len(METAS)]
        texts = json.dumps({"question": question, "model_output": output}, ensure_ascii=False)
        made.append(f'{{"meta":{meta},{texts[1:]}')
    return made


@dataclass(frozen=True)
class Asked:
    """A sample as the judge got it, meta as it was spelled."""

    meta: str
    output: str


def asked(messages):
    text = messages[1]["content"]
    start = text.index('"meta":') + len('"meta":')
    _, length = json.JSONDecoder().raw_decode(text[start:])
    return Asked(text[start : start + length], json.loads(text)["model_output"])


def scores(unit):
    head, tail = unit.output[:8], unit.output[-9:]
    return {
        "accuracy": {"score": 5, "evidence": [head], "rationale": "内容与题意一致，没有差错。"},
        "instruction": {"score": 3, "evidence": [tail], "rationale": "要求基本做到，略有欠缺。"},
    }


def written(unit):
    """The object with meta copied to the letter."""
    parts = {"scores": scores(unit), "failure_tags": [], "notes": ""}
    return f'{{"meta":{unit.meta},{json.dumps(parts, ensure_ascii=False)[1:]}'


def meta_last(unit):
    """Keys in another order, inside too."""
    turned = {
        name: {key: part[key] for key in ("rationale", "evidence", "score")}
        for name, part in reversed(scores(unit).items())
    }
    parts = {"notes": "", "failure_tags": [], "scores": turned}
    return f'{json.dumps(parts, ensure_ascii=False)[:-1]},"meta":{unit.meta}}}'


def indented(unit):
    """Pretty-printed by hand, as models do: white space between tokens of meta too."""
    meta = unit.meta.replace(',"', ',\n    "').replace('":', '": ')
    parts = {"scores": scores(unit), "failure_tags": [], "notes": ""}
    rest = json.dumps(parts, ensure_ascii=False, indent=2)[1:]
    return f'```json\n{{\n  "meta": {meta},{rest}\n```'


def careless(unit):
    """meta read and written anew, as a serialiser does: numbers respelled, keys sorted."""
    meta = json.dumps(json.loads(unit.meta), ensure_ascii=False, sort_keys=True)
    return written(Asked(meta, unit.output))


STYLES = [
    written,
    lambda unit: f"<think>\n先看准确性 {{5 分？}}，再看指令遵循。\n</think>\n{written(unit)}",
    meta_last,
    indented,
    careless,
]
PROSE = lambda unit: f"评测结果如下：\n\n```json\n{written(unit)}\n```\n\n以上为本条样本的评分。"  # noqa: E731
"""Words around the object, against the prompt: they are asked again."""
STYLES += [PROSE]


def reply(messages):
    unit = asked(messages)
    if is_reask(messages):
        return written(unit)
    return STYLES[style_of(messages, len(STYLES))](unit)


SUITE = {"protocol": "rubric", "language": "zh", "rubric": "rubric.json"}


def suite_folder(folder):
    (folder / "rubric.json").write_text(RUBRIC, encoding="utf-8")
    return folder


async def test_no_sample_is_lost_and_every_meta_comes_back_to_the_byte(tmp_path):
    folder = suite_folder(tmp_path)
    run = await judged_under(folder, PROMPT, reply, rows(), SUITE, expose_meta=True)
    assert (run.summary.counts.planned, run.summary.counts.verdicts) == (30, 30)
    sent = {jsontext.dump(jsontext.parse(meta)) for meta in metas()}
    returned = {jsontext.dump(row["output"]["meta"]) for row in run.rows.values()}
    assert returned == sent
    assert len(sent) == 30
    for row in run.rows.values():
        assert list(row["output"]) == ["meta", "scores", "failure_tags", "notes"]
        assert list(row["output"]["scores"]) == ["accuracy", "instruction"]
    styles = run.styles(STYLES)
    assert set(styles) == set(STYLES), "the replies are to be varied"
    assert styles.count(PROSE) <= run.reasks <= styles.count(PROSE) + styles.count(careless)


async def test_the_prompt_is_sent_as_it_is_and_the_whole_sample_follows(tmp_path):
    folder = suite_folder(tmp_path)
    run = await judged_under(folder, PROMPT, reply, rows()[:6], SUITE, expose_meta=True)
    text = (HERE / PROMPT).read_text(encoding="utf-8").strip()
    for call in run.calls:
        system, user = call.body["messages"][:2]
        assert system == {"role": "system", "content": text}
        assert list(json.loads(user["content"])) == ["meta", "question", "model_output", "rubric"]
    assert {asked(call.body["messages"]).meta for call in run.calls} == set(metas()[:6])


async def test_a_respelled_meta_is_asked_again_in_the_names_of_the_prompt(tmp_path):
    def respelling(messages):
        return (written if is_reask(messages) else careless)(asked(messages))

    folder = suite_folder(tmp_path)
    run = await judged_under(folder, PROMPT, respelling, rows()[:1], SUITE, expose_meta=True)
    assert run.summary.counts.verdicts == 1
    (again,) = run.asked_again
    assert "`meta`" in again


async def test_without_exposing_it_meta_is_filled_in_and_the_setting_is_named(
    tmp_path,
):
    def blind(messages):
        output = json.loads(messages[1]["content"])["model_output"]
        return written(Asked('{"run_id":"unknown"}', output))

    folder = suite_folder(tmp_path)
    run = await judged_under(folder, PROMPT, blind, rows(), SUITE)
    assert run.summary.counts.verdicts == 30
    assert run.reasks == 0
    assert all("run_id" not in call.body["messages"][1]["content"] for call in run.calls)
    kept = {jsontext.dump(row["output"]["meta"]) for row in run.rows.values()}
    assert kept == {jsontext.dump(jsontext.parse(meta)) for meta in metas()}
    (finding,) = lint_prompt("rubric", HERE / PROMPT)
    assert "set expose_meta = true" in finding.message
    assert lint_prompt("rubric", HERE / PROMPT, expose_meta=True) == []
    assert protocol_of_prompt(HERE / PROMPT) == "rubric"
