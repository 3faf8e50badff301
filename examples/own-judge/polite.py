"""A judge without a model: an answer is polite if it says please or thank you."""

import json
import re

OUTPUT = re.compile(r"\[\[model_output (\w+)\]\]\n(.*)\n\[\[/model_output \1\]\]", re.DOTALL)


async def judge(messages, schema, params):
    answer = OUTPUT.search(messages[-1]["content"])[2]
    found = re.search(r"please|thank you", answer, re.IGNORECASE)
    verdict = {
        "evidence": [found[0]] if found else [],
        "rationale": "It says so." if found else "no evidence found",
        "score": 1 if found else 0,
    }
    return json.dumps({"scores": {"polite": verdict}, "failure_tags": [], "notes": ""})
