"""The tokens and cost to expect of a call, told before it is sent: from what replies of its form
take, and from what the store has seen of the same judge and kind of protocol.

The lengths are measured, in tokens of OpenAI's o200k_base; other vocabularies differ, and the store
says by how much as soon as something was judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from evenhand.engine.prices import Price, token_guess
from evenhand.engine.run import judging_context
from evenhand.engine.stop import Stopped
from evenhand.errors import StoreError, UsageError
from evenhand.exchange import Question, Reply, Usage
from evenhand.kinds.kind import ReadyKind
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope

CALLS_ENOUGH = 5
"""Fewer calls say little about the next ones."""
CALLS_ASKED_FOR = 200
"""More do not say more; the newest are looked at first."""
RUNS_READ = 100
"""The newest; what older ones took is not what the next will take."""
RUNS_LOOKED_AT = 10
"""Of those, the ones of the same kind and with one of the judges."""
JUDGMENTS_LOOKED_AT = 200
JUDGMENTS_SAMPLED = 40
"""Of the first judgments of a run, spread over them: tables are often sorted."""
DIMENSIONS_GUESSED = 4
"""Where units bring their own rubrics."""


_PROSE = {"en": 1.0, "ru": 1.26, "zh": 1.18, "ja": 1.61}
"""Tokens of the same text against English: of the bundled prompts, which were written natively in
each language."""
_REASKS = 1.03
_CONTRADICTIONS = 0.2
"""The share of rounds that contradict themselves: 31 % of the first GPT-4's on the Vicuna
questions, about half of that with newer judges."""


class Experience(Struct, frozen=True):
    """The tokens to expect of the questions that open a judgment, with all that follows from
    them."""

    input_factor: float
    """Tokens read per token that their prompts are guessed to have."""
    output_tokens: float
    """Tokens written per question."""
    cached_share: float = 0.0
    """Of the tokens read, those that the provider had in its cache."""

    def cost(self, price: Price, guess: int, most: int) -> float:
        """Return the cost to expect of a question, in picodollars: its prompt has about `guess`
        tokens, a reply at most `most`."""
        discount = 1 - price.cached / price.input if price.input else 0.0
        read = price.bound(guess, 0) * self.input_factor * (1 - self.cached_share * discount)
        calls = max(1.0, self.input_factor)
        return read + price.output * min(self.output_tokens, most * calls)


def expected(
    judging: ReadyKind, language: str, archive: Archive | None, judges: Sequence[str]
) -> dict[str, Experience]:
    """Return the tokens to expect of each judge: those that replies of this form take, corrected by
    what the newest runs of the same kind took of that judge."""
    usual = reply_tokens(judging, language)
    again = _calls_per_question(judging.rounds)
    experiences = dict.fromkeys(judges, Experience(again, usual * again))
    for judge, past in (_past(archive, judging.kind.name, judges) if archive else {}).items():
        if past.calls >= CALLS_ENOUGH and past.guess and past.usual_output:
            experiences[judge] = Experience(
                past.input_tokens / past.guess,
                usual * past.output_tokens / past.usual_output,
                past.cached_tokens / past.input_tokens if past.input_tokens else 0.0,
            )
    return experiences


def reply_tokens(judging: ReadyKind, language: str) -> float:
    """About how many tokens a reply of a judging has."""
    dimensions = len(judging.dimensions) or len(judging.ends) or DIMENSIONS_GUESSED
    length = judging.kind.reply_length
    prose = length.prose + length.prose_each * dimensions
    return length.form + length.form_each * dimensions + prose * _PROSE.get(language, 1.0)


def _calls_per_question(rounds: int) -> float:
    """Calls per question that opens a judgment, with re-asks and later rounds."""
    return _REASKS * sum(_CONTRADICTIONS**later for later in range(rounds))


class _Past(Struct):
    """The tokens that calls of a judge took, and those that they would have been guessed to
    take."""

    calls: int = 0
    guess: int = 0
    usual_output: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, opening: Sequence[Question], usual: float, usages: Sequence[Usage]) -> None:
        """A judgment: the questions that opened it, the usual length of a reply, and what all its
        calls took."""
        self.calls += len(usages)
        self.guess += sum(token_guess(question.messages) for question in opening)
        self.usual_output += usual * len(opening)
        self.input_tokens += sum(usage.input_tokens or 0 for usage in usages)
        self.output_tokens += sum(usage.output_tokens or 0 for usage in usages)
        self.cached_tokens += sum(usage.cached_tokens for usage in usages)


def _past(archive: Archive, kind: str, judges: Sequence[str]) -> dict[str, _Past]:
    """Return the tokens that the newest runs of a kind took of each judge, read until there are
    enough."""
    past: dict[str, _Past] = defaultdict(_Past)
    looked_at = 0
    for row in archive.runs()[:RUNS_READ]:
        if looked_at >= RUNS_LOOKED_AT or all(
            past[name].calls >= CALLS_ASKED_FOR for name in judges
        ):
            break
        # A run of an older version, or one that was damaged, says nothing of the next.
        with suppress(StoreError, UsageError):
            run = recorded_run(archive, row)
            names = {judge.name for judge in run.judges}
            if not run.imported and names & set(judges) and run.kind_name == kind:
                looked_at += 1
                _look(archive, run, past)
    return past


def _look(archive: Archive, run: Recorded, past: dict[str, _Past]) -> None:
    """Add what some judgments of a run took: those whose tokens the provider counted."""
    usual = reply_tokens(run.judging, run.manifest.judging.language)
    judgments = islice(archive.judgments(Scope(run.id, JUDGMENTS_LOOKED_AT)), JUDGMENTS_LOOKED_AT)
    rows = [(unit, stored) for unit, stored in judgments if stored.calls]
    for unit, stored in rows[:: max(1, len(rows) // JUDGMENTS_SAMPLED)]:
        group = run.judge_groups[stored.judge]
        context = judging_context(group, stored.repeat, _nothing)
        opening = run.judging.first_questions(run.kind.load(unit.body), context)
        usages = [call.call.reply.usage for call in archive.calls(stored.calls).values()]
        if len(group.names) == 1 and opening and all(usage.input_tokens for usage in usages):
            past[group.names[0]].add(opening, usual, usages)


async def _nothing(question: Question) -> Reply:
    raise Stopped
