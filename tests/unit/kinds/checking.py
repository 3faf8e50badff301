"""What the tests of the checklist protocol judge: the small sample, a checklist, a good reply."""

from evenhand.files.protocols import find_protocol
from evenhand.kinds.checklist.criteria import build_checklist
from evenhand.kinds.checklist.kind import ChecklistProtocol
from tests.unit.kinds.material import SAMPLE

__all__ = ["CHECKLIST", "PHRASES", "SAMPLE", "good", "protocol"]

PHRASES = {
    "en": "nothing to quote",
    "ru": "цитировать нечего",
    "zh": "无可引用之处",
    "ja": "引用できる箇所なし",
}
CHECKLIST = build_checklist(
    [
        {"id": "cause", "text": "Does it name the cause?", "points": 3, "must": True},
        {"id": "brief", "text": "Is it brief?"},
        {"id": "vague", "text": "It leaves a word unexplained.", "points": -1},
    ]
)


def protocol(language="en", **settings):
    """The built-in protocol in one language, with this checklist unless told."""
    builtin = find_protocol("checklist")
    return ChecklistProtocol(
        prompts=builtin.prompts(language),
        words=builtin.words(language),
        **({"rubric": CHECKLIST} | settings),
    )


def good():
    """A reply that keeps the contract."""
    cause = {"evidence": ["Rayleigh scattering"], "reason": "It is named.", "met": True}
    brief = {"evidence": [], "reason": "It runs on.", "met": False}
    vague = {"evidence": ["scatter more."], "reason": "More than what?", "met": True}
    return {"criteria": {"cause": cause, "brief": brief, "vague": vague}, "notes": ""}
