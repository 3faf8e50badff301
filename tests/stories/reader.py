"""A judge at the loopback provider that reads what it judges: the more sentences an answer has, the
better it is. It obeys the contract of all three protocols, gives its reasons in the language of the
answer, and counts tokens as providers do."""

from __future__ import annotations

import hashlib
import json
import re

from aiohttp import web

from tests.provider import shown

TURN = re.compile(
    r"^\[\d+ \w+\] [^\n]*, judged:\n(.*?)(?=^\[\d+ \w+\] |\Z)", re.MULTILINE | re.DOTALL
)
"""A judged turn of a conversation."""
ENDS = re.compile(r"[.!?。！？]+")
SCRIPTS = {"ja": "[\u3040-\u30ff]", "ru": "[\u0400-\u04ff]", "zh": "[\u4e00-\u9fff]"}
REASONS = {
    "en": "The answer gives {} statements that bear on the question. It leaves open why they hold,"
    " and names no source that could be checked.",
    "ru": "В ответе {} утверждений, относящихся к вопросу. Почему они верны, не объясняется, и"
    " источника, который можно было бы проверить, не названо.",
    "zh": "回答中有{}处陈述与问题相关。但没有说明这些陈述为什么成立，也没有给出可以核实的来源。",
    "ja": "回答には質問に関わる記述が{}つある。ただし、なぜそう言えるのかは説明されておらず、"
    "確かめられる出典も示されていない。",
}
"""As long as the reasons that judges give in published records."""
BYTES_PER_TOKEN = {"ascii": 4.2, "ru": 7.0, "zh": 3.6, "ja": 4.2}
"""UTF-8 bytes of a token of o200k_base in published answers and verdicts."""


def worth(text):
    """How many sentences a text has."""
    return len(ENDS.findall(text))


def language_of(text):
    """By the script, Japanese before Chinese."""
    return next((name for name, script in SCRIPTS.items() if re.search(script, text)), "en")


def tokens(text):
    """About what a provider would count."""
    latin = len(re.findall(r"[\x00-\x7f]", text))
    rest = len(text.encode()) - latin
    per_token = BYTES_PER_TOKEN.get(language_of(text), BYTES_PER_TOKEN["ascii"])
    return round(latin / BYTES_PER_TOKEN["ascii"] + rest / per_token)


def verdict(body, *, wordiness=1, fickle=0):
    """A reply in the shape asked for; `wordiness` is how often a reason is said, 0 is a word. One
    pair in `fickle` is first judged by its order."""
    texts = shown(dict(body))
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    if "criteria" in schema:
        reply = _comparison(texts, schema, wordiness)
        if fickle and not body.get("temperature") and _number(texts) % fickle == 0:
            reply["winner"] = "A"
            marks = {name: {**mark, "mark": "A+"} for name, mark in reply["criteria"].items()}
            reply["criteria"] = marks
        return reply
    answer = texts.get("model_output", texts.get("answer", ""))
    answer = "\n".join(TURN.findall(answer)) or answer
    return (_scores if "scores" in schema else _grade)(answer, schema, wordiness)


def _number(texts):
    """A number of a pair that does not depend on its order."""
    pair = sorted((texts["candidate_1"], texts["candidate_2"]))
    return int.from_bytes(hashlib.blake2b("".join(pair).encode(), digest_size=4).digest())


def _reason(text, wordiness):
    return " ".join([REASONS[language_of(text)].format(worth(text))] * wordiness) or "OK"


def _scores(answer, schema, wordiness):
    scores = {}
    for name, part in schema["scores"]["properties"].items():
        bands = sorted(part["properties"]["score"]["enum"])
        band = bands[min(max(worth(answer), 1), len(bands)) - 1]
        quote = max(re.split(r"[\n\"]", answer), key=len).strip()[:40]
        scores[name] = {"evidence": [quote], "rationale": _reason(answer, wordiness), "score": band}
    return {"scores": scores, "failure_tags": [], "notes": ""}


def _comparison(texts, schema, wordiness):
    first, second = (worth(texts[f"candidate_{slot}"]) for slot in (1, 2))
    winner = "tie" if first == second else "A" if first > second else "B"
    reason = _reason(texts["candidate_1"], wordiness)
    comment = ENDS.split(reason)[0]
    mark = {"first_meets": first >= second, "second_meets": second >= first, "comment": comment}
    mark["mark"] = {"A": "A+", "B": "B+"}.get(winner, "tie")
    criteria = dict.fromkeys(schema["criteria"]["properties"], mark)
    return {"criteria": criteria, "explanation": f"{reason} {reason}", "winner": winner}


def _grade(answer, schema, wordiness):
    parts = schema["score"]["properties"]
    share = min(worth(answer), 4) / 4
    types = [name for name in schema["inferred_task_type"].get("enum", []) if name]
    most = {name: part.get("maximum", 10) for name, part in parts.items()}
    return {
        "inferred_task_type": types[0] if types else None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(parts, _reason(answer, wordiness)),
        "score": {name: round(points * share) for name, points in most.items()},
        "confidence": "high",
    }


def _said(body, wordiness, fickle):
    """A verdict; where none is asked for, what was said last."""
    if "json_schema" not in body.get("response_format", {}):
        return str(body["messages"][-1]["content"])
    return json.dumps(verdict(body, wordiness=wordiness, fickle=fickle), ensure_ascii=False)


def reading(wordiness=1, fickle=0):
    """The judge as a behaviour of the provider."""

    async def behaviour(call):
        reply = _said(call.body, wordiness, fickle)
        prompt = "".join(message["content"] for message in call.body["messages"])
        usage = {"prompt_tokens": tokens(prompt), "completion_tokens": tokens(reply)}
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {"object": "chat.completion", "model": "reader", "choices": [choice], "usage": usage}
        )

    return behaviour
