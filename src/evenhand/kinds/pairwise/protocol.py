"""The protocol kind `pairwise`: which of two answers to one topic is better, on content alone.

A pass is one call in one presentation order; code derives its winner from the marks. A round is
both orders. Where they agree the pair is settled, where they contradict each other another round
is asked, and a pair that no round settles is `uncertain`: never silently a tie.
Everything below speaks of the candidates of the input file: `A` is the first of them, whatever
the order in which a judge saw them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from evenhand.exchange import Message, Question, Style
from evenhand.judgment import Judgment, left_out, verdict
from evenhand.kinds.disguise.families import family, gives_itself_away, masked
from evenhand.kinds.pairwise.check import check_reply, check_verdict
from evenhand.kinds.pairwise.form import WINNERS, Criterion, Form, compact_schema, form_of
from evenhand.kinds.pairwise.unit import is_one_text
from evenhand.kinds.shared.asking import Asking, Conversation, Try, converse
from evenhand.kinds.shared.check import Checked
from evenhand.kinds.shared.own import OwnPrompt, Unit, unit_of
from evenhand.kinds.shared.render import (
    Prompt,
    extra_blocks,
    fenced,
    hidden_characters,
    shown_extras,
)
from evenhand.kinds.shared.words import Words
from evenhand.limits import MAX_ROUNDS, REPAIRS
from evenhand.units import Pair

Winner = Literal["A", "B", "tie"]
Settling = Literal["stable", "resolved", "uncertain"]

ORDERS = ("12", "21")
BETTER: dict[str | None, Winner] = {"A+": "A", "B+": "B"}
_TURNED = {"A": "B", "B": "A", "A+": "B+", "B+": "A+"}

_BLOCKS: dict[Style, tuple[str, str, str]] = {
    "full": ("topic", "candidate_1", "candidate_2"),
    "compact": ("question", "A", "B"),
}
"""The names of the blocks; a small model is asked for A or B and must find them so called."""

ALIASES = {
    "question": "topic",
    "first": "candidate_1",
    "second": "candidate_2",
    "candidate_a": "candidate_1",
    "candidate_b": "candidate_2",
}
"""Other names that a prompt of the user's own may use."""

LOW_MARGIN = 0.1
"""A winner that so little probability more or less would have changed is flagged."""


def derived(marks: Mapping[str, str | None], priority: Sequence[str]) -> Winner:
    """The winner of a pass by its marks: dominance, then the first criterion of the priority list
    that is no tie."""
    favoured = {BETTER[mark] for mark in marks.values() if mark in BETTER}
    if len(favoured) == 1:
        return favoured.pop()
    if favoured:
        for criterion in priority:
            if marks.get(criterion) in BETTER:
                return BETTER[marks[criterion]]
    return "tie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One call in one order, mapped back to the candidates of the input file."""

    order: str
    winner: str
    marks: Mapping[str, str | None] = field(default_factory=dict)
    said: str | None = None
    """The winner that the judge itself named."""
    explanation: str = ""
    odds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Log-probabilities by the path of what was decided, where the judge tells them."""

    @property
    def contradicts_itself(self) -> bool:
        return self.said is not None and self.said != self.winner

    @property
    def record(self) -> dict[str, Any]:
        """What it adds to the record of its call."""
        flags = ["self_contradiction"] if self.contradicts_itself else []
        made: dict[str, Any] = {"winner": self.winner, "said": self.said}
        made |= {"marks": dict(self.marks), "flags": flags}
        return made | {"odds": self.odds} if self.odds else made


Round = tuple[Pass, Pass]


class Settled(NamedTuple):
    """What the rounds of a pair come to."""

    winner: str
    how: Settling
    marks: dict[str, str]
    unstable: list[str]
    """Criteria on which the two passes of the settling round differ; their mark is `tie`."""


def agrees(made: Round) -> bool:
    """Whether the two orders name the same winner, a tie included."""
    return made[0].winner == made[1].winner


def settled(rounds: Sequence[Round]) -> Settled:
    """The verdict of a pair: the first consistent round's, else `uncertain`."""
    number = next((i for i, made in enumerate(rounds) if agrees(made)), None)
    first, second = rounds[-1 if number is None else number]
    unstable = [c for c, mark in first.marks.items() if mark != second.marks.get(c)]
    marks = {c: "tie" if c in unstable else mark or "tie" for c, mark in first.marks.items()}
    if number is None:
        return Settled("uncertain", "uncertain", marks, unstable)
    return Settled(first.winner, "resolved" if number else "stable", marks, unstable)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseProtocol:
    """A pairwise protocol in one language, with the settings that can change a verdict."""

    prompts: Mapping[Style, Prompt]
    words: Words
    criteria: tuple[Criterion, ...]
    priority: tuple[str, ...]
    max_rounds: int = MAX_ROUNDS
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    blind: Literal["flag", "mask"] = "flag"
    no_self_judging: bool = False
    tables: bool = False
    """Whether the prompt asks for a verdict-table line."""
    own: OwnPrompt | None = None
    form: Form = field(init=False, compare=False)

    def __post_init__(self) -> None:
        form = form_of(self.criteria, self.priority, self.words.phrases)
        object.__setattr__(self, "form", form)

    async def judge(self, pair: Pair, asking: Asking) -> Judgment:
        """Ask both orders, compare, ask again on a contradiction; settle, fail or be uncertain."""
        if is_one_text(pair):
            return self._verdict(pair, pair, [_equal(self.criteria)], [])
        seats, shown = self.seats(pair, asking.judges), self.shown(pair)
        if not seats:
            return left_out("shares its family with a candidate")
        rounds: list[Round] = []
        made: list[dict[str, Any]] = []
        while len(rounds) < self.max_rounds and not (rounds and agrees(rounds[-1])):
            found = await self._round(shown, asking, seats, len(rounds), made)
            if isinstance(found, Judgment):
                return replace(found, flags=self._flags(pair, shown, made), passes=tuple(made))
            rounds.append(found)
        return self._verdict(pair, shown, rounds, made)

    async def _round(
        self,
        shown: Pair,
        asking: Asking,
        seats: Sequence[int],
        before: int,
        made: list[dict[str, Any]],
    ) -> Round | Judgment:
        """Both passes of a round, asked at the same time and noted in `made` in the order of the
        questions, whichever was answered first; a failure if one of them cannot be had."""
        time, place = divmod(before, len(seats))
        questions = self.questions(shown, asking, time=time + 1, seat=seats[place])
        conversations = await asking.together(
            [partial(self._converse, question, asking) for question in questions]
        )
        passes: list[Pass] = []
        failures: list[Judgment] = []
        judge = asking.judges[seats[place]]
        for conversation in conversations:
            made += [
                {"round": before + 1, "judge": judge} | _record(attempt)
                for attempt in conversation.tries
            ]
            if failed := conversation.failure:
                failures.append(failed)
            else:
                passes.append(self._pass(conversation.tries[-1]))
                made[-1] |= passes[-1].record
        return failures[0] if failures else (passes[0], passes[1])

    def shown(self, pair: Pair) -> Pair:
        """The pair as a judge sees it: with `blind = "mask"`, model names masked, unless they are
        all that tells the candidates apart."""
        if self.blind != "mask":
            return pair
        first, second = (masked(text, but=pair.topic) for text in pair.texts)
        found = pair.with_texts(first, second)
        if is_one_text(found):
            return pair
        extras = {name: _masked(value, pair.topic) for name, value in pair.extras.items()}
        return replace(found, extras=extras)

    def questions(
        self, pair: Pair, asking: Asking, *, time: int = 1, seat: int = 0
    ) -> list[Question]:
        """Both orders, put to one judge for the first time, the second, ...; every other judgment
        of a pair starts with the other order."""
        style = asking.styles[seat]
        turned = (pair.order == "21") != bool(asking.turn % 2)
        shown = {"12": pair.texts, "21": pair.texts[::-1]}
        return [
            Question(
                messages=self._messages(pair, shown[order], style),
                schema=self._schema(pair, shown[order], style),
                unit=pair.id,
                order=order,
                round=time,
                seat=seat,
            )
            for order in (ORDERS[::-1] if turned else ORDERS)
        ]

    def check(
        self,
        text: str | bytes,
        style: Style = "full",
        *,
        finish: str = "stop",
        tables: bool = False,
    ) -> Checked:
        """The contract applied to one reply; the output speaks of slots, not of candidates."""
        return check_reply(
            text,
            [criterion.id for criterion in self.criteria],
            self.words,
            finish,
            is_compact=style == "compact",
            tables=tables or self.tables or self.own is not None,
        )

    def check_verdict(self, value: dict[str, Any]) -> Checked:
        """The contract applied to a settled verdict made elsewhere."""
        return check_verdict(value, [criterion.id for criterion in self.criteria], self.words)

    def _schema(self, pair: Pair, texts: tuple[str, str], style: Style) -> dict[str, Any] | None:
        """None where the prompt may ask for another form than ours; a judge that fills a form by
        probabilities always needs one."""
        if style == "compact":
            leading = self.priority[0] if self.priority else self.criteria[0].id
            beside = extra_blocks(pair.extras, self.use).values()
            topic = "\n".join((*beside, pair.topic))
            return compact_schema(self.criteria, leading, topic, texts, self.words.phrases)
        return None if self.tables or self.own else self.form.schema

    def _messages(self, pair: Pair, texts: tuple[str, str], style: Style) -> tuple[Message, ...]:
        if self.own is not None:
            return self.own.messages(self._own_unit(pair, texts))
        # A protocol without prompts for small models shows them its full ones.
        names = _BLOCKS["full" if self.prompts[style] is self.prompts["full"] else style]
        blocks = dict(zip(names, (pair.topic, *texts), strict=True))
        extras = extra_blocks(pair.extras, self.use)
        # Long numbers cost a small model much of what it can tell.
        marked = fenced(blocks | extras, size=1 if style == "compact" else 4)
        values = {name: marked[block] for name, block in zip(_BLOCKS["full"], names, strict=True)}
        values["extras"] = "\n".join(marked[name] for name in extras)
        return self.prompts[style].messages(values | self._offered())

    def _own_unit(self, pair: Pair, texts: tuple[str, str]) -> Unit:
        blind: dict[str, Any] = dict(zip(_BLOCKS["full"], (pair.topic, *texts), strict=True))
        blind |= shown_extras(pair.extras, self.use)
        return unit_of(blind, ALIASES, self._offered())

    def _offered(self) -> dict[str, str]:
        """What a prompt may insert beside the pair."""
        form = self.form
        return {"criteria": form.criteria, "rule": form.rule, "shape": form.shape}

    async def _converse(self, question: Question, asking: Asking) -> Conversation:
        style = asking.styles[question.seat]
        return await converse(
            asking.ask,
            question,
            lambda reply: self.check(reply.text, style, finish=reply.finish),
            self.prompts[style],
            self.words,
            self.repairs,
        )

    def _pass(self, said: Try) -> Pass:
        """The pass of a reply that keeps the contract."""
        value, order = said.checked.output, said.question.order
        assert value is not None
        marks = {c: _turned(given["mark"], order) for c, given in value["criteria"].items()}
        own = _turned(value["winner"], order)
        # A verdict-table line may bring a winner and no marks to derive one from.
        winner = own if own and not any(marks.values()) else derived(marks, self.priority)
        odds = {
            path: {str(_turned(name.strip('"'), order)): value for name, value in found.items()}
            for path, found in said.reply.odds.items()
        }
        return Pass(
            order=order,
            winner=winner,
            marks=marks,
            said=own,
            explanation=value["explanation"],
            odds=odds,
        )

    def _verdict(
        self, pair: Pair, shown: Pair, rounds: Sequence[Round], made: Sequence[dict[str, Any]]
    ) -> Judgment:
        found, last = settled(rounds), rounds[-1]
        output: dict[str, Any] = {
            "pair_id": pair.id,
            "candidates": [pair.first.id, pair.second.id],
            "winner": found.winner,
            "settled": found.how,
            "rounds": len(rounds) if made else 0,
            "criteria": found.marks,
            "unstable": found.unstable,
            # What it calls Candidate 1 is the first candidate of the input file.
            "notes": next(one.explanation for one in last if one.order == "12"),
            "meta": pair.meta,
        }
        flags = [*self._flags(pair, shown, made), *([] if made else ["equal_text"])]
        if any(one.contradicts_itself for both in rounds for one in both):
            flags.append("self_contradiction")
        if any(mark is None for one in last for mark in one.marks.values()):
            flags.append("marks_missing")
        if odds := _mean_odds(last):
            output["odds"] = odds
            flags += ["low_margin"] if _margin(odds) < LOW_MARGIN else []
        return verdict(output, flags=tuple(flags), passes=tuple(made))

    def _flags(self, pair: Pair, shown: Pair, made: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """What a reader of the verdict must know of the texts and of the judges asked."""
        judges = dict.fromkeys(one["judge"] for one in made)
        flags = [f"shares_family:{side}" for judge in judges for side in _kin(pair, judge)]
        for side, text, seen in zip("AB", pair.texts, shown.texts, strict=True):
            flags += [f"masked:{side}"] if text != seen else []
            flags += [f"gives_itself_away:{side}"] if gives_itself_away(text) else []
        if self.blind == "mask" and shown is pair and not is_one_text(pair):
            flags.append("mask_hides_difference")
        hidden = hidden_characters("\n".join((pair.topic, *pair.texts)))
        return tuple(dict.fromkeys([*flags, *(f"hidden_characters:{kind}" for kind in hidden)]))

    def seats(self, pair: Pair, judges: Sequence[str]) -> list[int]:
        """Which judges of the asking judge this pair."""
        kin = [self.no_self_judging and _kin(pair, judge) for judge in judges]
        return [seat for seat in range(len(judges)) if not kin[seat]]


def _record(said: Try) -> dict[str, Any]:
    """One call as the judgment keeps it."""
    made = {"order": said.question.order, **said.record}
    return made | {"sampling": dict(said.reply.sampling)} if said.reply.sampling else made


def _masked(value: Any, topic: str) -> Any:
    """What is shown beside the candidates, with its model names masked too."""
    if isinstance(value, str):
        return masked(value, but=topic)
    if isinstance(value, list):
        return [_masked(one, topic) for one in value]
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return {name: _masked(inner, topic) for name, inner in given.items()}
    return value


def _equal(criteria: Sequence[Criterion]) -> Round:
    marks: dict[str, str | None] = {one.id: "tie" for one in criteria}
    both = [Pass(order=order, winner="tie", marks=marks) for order in ORDERS]
    return both[0], both[1]


def _turned(value: str | None, order: str) -> str | None:
    """What a judge said of its slots, said of the candidates."""
    return value if order == "12" or value is None else _TURNED.get(value, value)


def _kin(pair: Pair, judge: str) -> list[str]:
    """The sides whose model is of the judge's family."""
    own = family(judge)
    sides = zip("AB", (pair.first, pair.second), strict=True)
    return [side for side, one in sides if own and own == family(one.model or one.id)]


def _mean_odds(both: Round) -> dict[str, float]:
    """The probability of each winner, the mean of both orders."""
    told = [one.odds.get("winner", {}) for one in both]
    if not all(told):
        return {}
    return {
        name: math.fsum(math.exp(odds[name]) for odds in told if name in odds) / len(told)
        for name in WINNERS
    }


def _margin(odds: Mapping[str, float]) -> float:
    """How far the likeliest is before the next."""
    *_, second, first = sorted(odds.values())
    return first - second
