"""What the tests of the rubric protocol judge: one small sample, one rubric, one good reply."""

import json

from evenhand import jsontext
from evenhand.exchange import Reply
from evenhand.files.protocols import find_protocol
from evenhand.kinds.rubric.kind import RubricProtocol
from evenhand.kinds.rubric.rubric import parse_rubric
from evenhand.units import Sample

PHRASES = {
    "en": "no evidence found",
    "ru": "свидетельств не найдено",
    "zh": "未找到相关证据",
    "ja": "該当する根拠なし",
}
RUBRIC_TEXT = json.dumps(
    {
        "dimensions": [
            {
                "id": "correct",
                "name": "Correctness",
                "scale": "1-5",
                "definition": "Are the stated facts right?",
                "bands": [{"score": s, "criteria": f"band {s}"} for s in (1, 3, 5)],
            },
            {
                "id": "brief",
                "name": "Brevity",
                "scale": "0 or 2.5",
                "definition": "Does it stop in time?",
                "bands": [{"score": s, "criteria": f"band {s}"} for s in (0, 2.5)],
            },
        ]
    }
)
RUBRIC = parse_rubric(RUBRIC_TEXT)
META = jsontext.parse('{"run_id":"r1","model":"m-7","extra":{"t":1.50,"n":1e3},"question_id":"q"}')
SAMPLE = Sample(
    id="r1/m-7///q",
    question="Why is the sky blue at noon?",
    model_output="Because of Rayleigh scattering: “short waves”\nscatter more.",
    meta=META,
)


def protocol(language="en", **settings):
    """The built-in protocol in one language, with this rubric unless told."""
    builtin = find_protocol("rubric")
    return RubricProtocol(
        prompts=builtin.prompts(language),
        words=builtin.words(language),
        **({"rubric": RUBRIC} | settings),
    )


def good():
    """A reply that keeps the contract."""
    one = {"evidence": ["Rayleigh scattering"], "rationale": "It is.", "score": 5}
    other = {"evidence": ["scatter more."], "rationale": "It does.", "score": 2.5}
    return {"scores": {"correct": one, "brief": other}, "failure_tags": [], "notes": ""}


class Scripted:
    """An `ask` that gives the replies it was made with, and remembers what it was asked."""

    def __init__(self, replies):
        self.replies = [Reply(text=r) if isinstance(r, str) else r for r in replies]
        self.asked = []

    async def __call__(self, question):
        self.asked.append(question)
        return self.replies[len(self.asked) - 1]
