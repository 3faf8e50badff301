"""Stop a run whose judgments all fail before the rest of it is paid for."""

from __future__ import annotations

from collections import Counter

from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop
from evenhand.engine.unit import JudgeGroup
from evenhand.errors import NoVerdicts, quoted
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment
from evenhand.limits import FUTILE_JUDGMENTS

_REPLY_LINES, _REPLY_COLUMNS = 4, 100

_WITHOUT_REPLY = RETRIED_BY_NEXT_RUN | {"filtered", "context_overflow"}
_ADVICE: dict[str, str] = {
    "refused": "The judge declines the task: take another model, or change the prompt.",
    "filtered": "The provider's content filter blocks it: change the filter, or take another"
    " provider.",
    "truncated": "Replies are cut off: raise max_tokens of this judge.",
    "empty": "Replies are empty: raise max_tokens of this judge (a reasoning model may use all of"
    " it up), or take another model.",
    "not_json": "Replies are not JSON: take a model that follows the format, and check the chat"
    " template of a server of your own.",
    "ambiguous": "Replies hold more than one verdict: take another model, or change the prompt.",
    "schema": "Replies do not have the form that is asked for: take a stronger model; where the"
    " prompt is your own, check that it asks for this form.",
    "out_of_range": "Scores lie outside of the scale: check the scale in the rubric, or take a"
    " stronger model.",
    "evidence_missing": "Quotes are not in the judged text: check that the right column is judged,"
    " or take a stronger model.",
    "meta_changed": "Replies change the meta fields: take a stronger model.",
    "transport": "Calls are lost on their way: check the address and the server of the judge.",
    "timeout": "Answers come too late: raise [limits] attempt_seconds and call_seconds, or lower"
    " concurrency.",
    "context_overflow": "The texts are too long for this model: take one with a larger context.",
    "judge_crash": "The judge itself fails: mend its code, or its installation.",
}


def failure_advice(reason: str) -> str:
    """Return what to change where judgments fail for a reason; empty for an unknown one."""
    return _ADVICE.get(reason, "")


def note_outcome(tally: Tally, group: JudgeGroup, judgment: Judgment, reply: str | None) -> None:
    """Count a judgment of this command, and keep the last reply of a failure."""
    if judgment.status != "left_out":
        tally.outcomes.setdefault(group.index, Counter())[judgment.reason] += 1
    if judgment.reason is not None:
        is_lost = reply is None or judgment.reason in _WITHOUT_REPLY
        tally.last_failures[group.index] = judgment.detail if is_lost else str(reply)


def stop_if_futile(stop: Stop, tally: Tally, group: JudgeGroup) -> None:
    """Stop the run if this command paid for 20 judgments or more by a judge and none of them is a
    verdict, for whatever reasons they failed."""
    outcomes = tally.outcomes.get(group.index, Counter())
    if outcomes.total() < FUTILE_JUDGMENTS or outcomes[None]:
        return
    reasons = [(reason, number) for reason, number in outcomes.most_common() if reason]
    failed = ", ".join(f"{number:,} failed as {reason}" for reason, number in reasons)
    judge = quoted(" > ".join(group.names))
    stop.request(
        NoVerdicts(
            f"none of {outcomes.total():,} judgments by {judge} has a verdict: {failed}",
            advice=f"The last of them:\n{_cut(tally.last_failures.get(group.index, ''))}\n"
            f"  {failure_advice(reasons[0][0])}\n"
            "  Then run again: it goes on with the units that are not judged yet.",
        )
    )


def _cut(reply: str) -> str:
    """Return the first lines of a reply, each set off by a bar."""
    lines = reply.strip().splitlines() or ["(empty)"]
    kept = [
        line if len(line) <= _REPLY_COLUMNS else line[: _REPLY_COLUMNS - 1] + "…"
        for line in lines[:_REPLY_LINES]
    ]
    more = ["…"] if len(lines) > _REPLY_LINES else []
    return "\n".join(f"    | {line}" for line in [*kept, *more])
