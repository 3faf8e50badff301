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
from typing import Any, Literal, cast

from msgspec import UNSET
from msgspec.structs import replace as changed

from evenhand.exchange import Message, Question, Reply, Schema, Style
from evenhand.judgment import Failure, Fix, Judgment, LeftOut, Verdict
from evenhand.kinds.check import Checked
from evenhand.kinds.conversation import Conversation, JudgingContext, Try, converse
from evenhand.kinds.custom_prompt import CustomPrompt, Unit, unit_of
from evenhand.kinds.masking import family, mask_names, names_its_author
from evenhand.kinds.pairwise.check import check_reply, check_verdict
from evenhand.kinds.pairwise.form import WINNERS, Criterion, Form, compact_schema, form_of
from evenhand.kinds.pairwise.rule import Round, Settled, agrees, derived, settled
from evenhand.kinds.pairwise.unit import first_order, is_one_text
from evenhand.kinds.pairwise.verdict import (
    CriterionComment,
    CriterionReply,
    Mark,
    Order,
    PairPass,
    PairReply,
    PairVerdict,
    Winner,
)
from evenhand.kinds.prompt import (
    Prompt,
    extra_blocks,
    fenced,
    hidden_characters,
    shown_extras,
    size_of,
)
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.shared.raw import raw_json
from evenhand.limits import MAX_ROUNDS, REPAIRS
from evenhand.units import Pair

ORDERS: tuple[Order, Order] = ("12", "21")
_TURNED = {"A": "B", "B": "A", "A+": "B+", "B+": "A+"}
_TURNED_WINNERS: dict[Order, dict[Winner | None, Winner | None]] = {
    "12": {"A": "A", "B": "B", "tie": "tie", None: None},
    "21": {"A": "B", "B": "A", "tie": "tie", None: None},
}
_TURNED_MARKS: dict[Order, dict[Mark | None, Mark | None]] = {
    "12": {"A+": "A+", "B+": "B+", "tie": "tie", None: None},
    "21": {"A+": "B+", "B+": "A+", "tie": "tie", None: None},
}

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

_BOTH_ORDERS = "A shown first: {first} B shown first: {second}"
"""Of what a run recorded before its words had such a sentence."""

LOW_MARGIN = 0.1
"""A winner that so little probability more or less would have changed is flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseProtocol:
    """A pairwise protocol in one language, with the settings that can change a verdict."""

    prompts: Mapping[Style, Prompt]
    words: Words
    criteria: tuple[Criterion, ...]
    priority: tuple[str, ...]
    told_priority: tuple[str, ...] | None = None
    """What the judges were told of it, where their replies are settled by another."""
    max_rounds: int = MAX_ROUNDS
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    blind: Literal["flag", "mask"] = "flag"
    no_self_judging: bool = False
    seed: int = 0
    tables: bool = False
    """Whether the prompt asks for a verdict-table line."""
    own: CustomPrompt | None = None
    form: Form = field(init=False, compare=False)

    def __post_init__(self) -> None:
        form = form_of(self.criteria, self._told, self.words.phrases)
        object.__setattr__(self, "form", form)

    @property
    def _told(self) -> tuple[str, ...]:
        return self.priority if self.told_priority is None else self.told_priority

    async def judge(self, pair: Pair, context: JudgingContext) -> Judgment:
        """Ask both orders, compare, ask again on a contradiction; settle, fail or be uncertain."""
        size = size_of(pair.topic, *pair.texts, pair.extras)
        if is_one_text(pair):
            equal = [_equal(self.criteria)]
            return await context.offload(partial(self._verdict, pair, pair, equal, [], []), size)
        judges = self.eligible_judges(pair, context.judges)
        if not judges:
            return LeftOut(detail="shares its family with a candidate")
        visible = pair
        if self.blind == "mask":
            visible = await context.offload(partial(self.shown, pair), size)
        rounds: list[Round] = []
        passes: list[PairPass] = []
        fixes: list[Fix] = []
        while len(rounds) < self.max_rounds and not (rounds and agrees(rounds[-1])):
            outcome = await self._round(visible, size, context, judges, len(rounds), passes, fixes)
            if isinstance(outcome, Failure):
                flags = await context.offload(partial(self._flags, pair, visible, passes), size)
                return replace(outcome, flags=flags, passes=tuple(passes))
            rounds.append(outcome)
        settle = partial(self._verdict, pair, visible, rounds, passes, fixes)
        return await context.offload(settle, size)

    async def _round(
        self,
        visible: Pair,
        size: int,
        context: JudgingContext,
        judges: Sequence[int],
        before: int,
        passes: list[PairPass],
        fixes: list[Fix],
    ) -> Round | Failure:
        """Both passes of a round, asked at the same time and noted in `passes` in the order of the
        questions, whichever was answered first, with what code mended in the replies that count in
        `fixes`; a failure if one of them cannot be had."""
        time, place = divmod(before, len(judges))
        questions = await context.offload(
            partial(self.questions, visible, context, time=time + 1, judge_index=judges[place]),
            size,
        )
        about = (context, visible, JudgedText(*visible.texts), size)
        conversations = await context.gather_conversations(
            [partial(self._converse, question, *about) for question in questions]
        )
        last: list[PairPass] = []
        failures: list[Failure] = []
        judge = context.judges[judges[place]]
        for conversation in conversations:
            passes += [self._pass(attempt, before + 1, judge) for attempt in conversation.tries]
            if failed := conversation.failure:
                failures.append(failed)
            else:
                last.append(passes[-1])
                fixes += conversation.tries[-1].checked.fixes
        return failures[0] if failures else (last[0], last[1])

    def shown(self, pair: Pair) -> Pair:
        """The pair as a judge sees it: with `blind = "mask"`, model names masked, unless they are
        all that tells the candidates apart."""
        if self.blind != "mask":
            return pair
        first, second = (mask_names(text, topic=pair.topic) for text in pair.texts)
        masked_pair = pair.with_texts(first, second)
        if is_one_text(masked_pair):
            return pair
        extras = {name: _masked(value, pair.topic) for name, value in pair.extras.items()}
        return changed(masked_pair, extras=extras)

    def questions(
        self, pair: Pair, context: JudgingContext, *, time: int = 1, judge_index: int = 0
    ) -> list[Question]:
        """Both orders, put to one judge for the first time, the second, ...; every other judgment
        of a pair starts with the other order."""
        style = context.styles[judge_index]
        turned = (first_order(self.seed, pair) == "21") != bool(context.judgment_index % 2)
        texts = {"12": pair.texts, "21": pair.texts[::-1]}
        return [
            Question(
                messages=self._messages(pair, texts[order], style),
                schema=self._schema(pair, texts[order], style),
                unit=pair.id,
                order=order,
                round=time,
                judge_index=judge_index,
            )
            for order in (ORDERS[::-1] if turned else ORDERS)
        ]

    def check(
        self,
        text: str | bytes,
        style: Style = "full",
        *,
        finish: str = "stop",
        topic: str = "",
        judged: JudgedText | None = None,
        elsewhere: bool = False,
        tables: bool = False,
    ) -> Checked[PairReply]:
        """The contract applied to one reply; the output speaks of slots, not of candidates."""
        return check_reply(
            text,
            [criterion.id for criterion in self.criteria],
            self.words,
            finish,
            topic=topic,
            judged=judged,
            is_compact=style == "compact",
            elsewhere=elsewhere,
            tables=tables or self.tables or self.own is not None,
        )

    def check_external_reply(
        self, pair: Pair, text: str, finish: str = "stop"
    ) -> Checked[PairReply]:
        """The same for a reply made elsewhere, which may be a verdict-table line; flagged as the
        pass of a run would be."""
        judged = JudgedText(*pair.texts)
        checked = self.check(text, finish=finish, topic=pair.topic, judged=judged, elsewhere=True)
        reply = checked.value
        if reply is None or reply.winner in (None, derived(reply.marks, self.priority)):
            return checked
        return changed(checked, flags=("self_contradiction", *checked.flags))

    def check_verdict(self, value: dict[str, Any]) -> Checked[PairVerdict]:
        """The contract applied to a settled verdict made elsewhere."""
        return check_verdict(value, [criterion.id for criterion in self.criteria], self.words)

    def _schema(self, pair: Pair, texts: tuple[str, str], style: Style) -> Schema | None:
        """None where the prompt may ask for another form than ours; a judge that fills a form by
        probabilities always needs one."""
        if style == "compact":
            leading = self._told[0] if self._told else self.criteria[0].id
            beside = extra_blocks(pair.extras, self.use).values()
            topic = "\n".join((*beside, pair.topic))
            say = self.words.phrases
            return Schema(compact_schema(self.criteria, leading, topic, texts, say))
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
        offered = self._offered()
        return self.prompts[style].messages(values | offered, offered)

    def _own_unit(self, pair: Pair, texts: tuple[str, str]) -> Unit:
        blind: dict[str, Any] = dict(zip(_BLOCKS["full"], (pair.topic, *texts), strict=True))
        blind |= shown_extras(pair.extras, self.use)
        return unit_of(blind, ALIASES, self._offered())

    def _offered(self) -> dict[str, str]:
        """What a prompt may insert beside the pair."""
        form = self.form
        return {"criteria": form.criteria, "rule": form.rule, "shape": form.shape}

    async def _converse(
        self,
        question: Question,
        context: JudgingContext,
        visible: Pair,
        judged: JudgedText,
        size: int,
    ) -> Conversation[PairReply]:
        style = context.styles[question.judge_index]
        return await converse(
            context,
            question,
            lambda reply: self.check(
                reply.text, style, finish=reply.finish, topic=visible.topic, judged=judged
            ),
            self.prompts[style],
            self.words,
            self.repairs,
            size,
        )

    def _pass(self, attempt: Try[PairReply], number: int, judge: str) -> PairPass:
        """One call of a round as the judgment keeps it."""
        order: Order = "21" if attempt.question.order == "21" else "12"
        bare = PairPass(
            reask=attempt.question.reask,
            problems=attempt.problems,
            odds=_turned_odds(attempt.reply, order) if attempt.checked.value else {},
            sampling=dict(attempt.reply.sampling),
            round=number,
            order=order,
            judge=judge,
            flags=attempt.checked.flags,
            marks={},
        )
        reply = attempt.checked.value
        return bare if reply is None else self._decided(bare, reply)

    def _decided(self, bare: PairPass, reply: PairReply) -> PairPass:
        """A pass with what a reply that keeps the contract says, of the candidates."""
        order, turned = bare.order, _TURNED_MARKS[bare.order]
        marks = {c: turned[answer.mark] for c, answer in reply.criteria.items()}
        named, winner = _TURNED_WINNERS[order][reply.winner], derived(marks, self.priority)
        # A judge contradicts itself by the rule that it was told, whichever settles the pair.
        told = winner if self.told_priority is None else derived(marks, self.told_priority)
        is_contradiction = named not in (None, told)
        return changed(
            bare,
            winner=winner,
            flags=(*("self_contradiction",) * is_contradiction, *bare.flags),
            said=named,
            marks=marks,
            criteria={c: _comment(answer, order) for c, answer in reply.criteria.items()},
            explanation=reply.explanation,
        )

    def _verdict(
        self,
        pair: Pair,
        visible: Pair,
        rounds: Sequence[Round],
        passes: Sequence[PairPass],
        fixes: Sequence[Fix],
    ) -> Verdict:
        result, last = settled(rounds), rounds[-1]
        odds = _mean_odds(last)
        verdict = PairVerdict(
            pair_id=pair.id,
            candidates=(pair.first.id, pair.second.id),
            winner=result.winner,
            settled=result.how,
            rounds=len(rounds) if passes else 0,
            criteria=result.marks,
            unstable=tuple(result.unstable),
            notes=self._notes(result, last),
            meta_json=raw_json(pair.meta),
            odds=odds or UNSET,
        )
        flags = [*self._flags(pair, visible, passes), *([] if passes else ["equal_text"])]
        flags += dict.fromkeys(flag for both in rounds for pass_ in both for flag in pass_.flags)
        if odds and _margin(odds) < LOW_MARGIN:
            flags.append("low_margin")
        return Verdict(value=verdict, fixes=tuple(fixes), flags=tuple(flags), passes=tuple(passes))

    def _notes(self, result: Settled, last: Round) -> str:
        """The reasons of the settling round in the order in which Candidate 1 is the first of the
        input file; of a pair that stays uncertain those of both orders."""
        explanations = {pass_.order: pass_.explanation for pass_ in last}
        if result.winner != "uncertain" or not explanations["21"]:
            return explanations["12"]
        return self.words.phrases.get("both_orders", _BOTH_ORDERS).format_map(
            {"first": explanations["12"], "second": explanations["21"]}
        )

    def _flags(self, pair: Pair, visible: Pair, passes: Sequence[PairPass]) -> tuple[str, ...]:
        """What a reader of the verdict must know of the texts and of the judges asked."""
        judges = dict.fromkeys(pass_.judge for pass_ in passes)
        flags = [f"shares_family:{side}" for judge in judges for side in _kin(pair, judge)]
        for side, text, seen in zip("AB", pair.texts, visible.texts, strict=True):
            flags += [f"masked:{side}"] if text != seen else []
            flags += [f"gives_itself_away:{side}"] if names_its_author(text) else []
        if self.blind == "mask" and visible is pair and not is_one_text(pair):
            flags.append("mask_hides_difference")
        hidden = hidden_characters(pair.topic, *pair.texts)
        return tuple(dict.fromkeys([*flags, *(f"hidden_characters:{kind}" for kind in hidden)]))

    def eligible_judges(self, pair: Pair, judges: Sequence[str]) -> list[int]:
        """Return the indexes of the judges that may judge this pair."""
        kin = [self.no_self_judging and _kin(pair, judge) for judge in judges]
        return [index for index in range(len(judges)) if not kin[index]]


def _masked(value: Any, topic: str) -> Any:
    """What is shown beside the candidates, with its model names masked too."""
    if isinstance(value, str):
        return mask_names(value, topic=topic)
    if isinstance(value, list):
        return [_masked(item, topic) for item in value]
    if isinstance(value, Mapping):
        values = cast("Mapping[str, Any]", value)
        return {name: _masked(inner, topic) for name, inner in values.items()}
    return value


def _equal(criteria: Sequence[Criterion]) -> Round:
    """The round that two equal texts are spared."""
    first, second = (
        PairPass(
            reask=0,
            problems=(),
            round=1,
            order=order,
            judge="",
            flags=(),
            winner="tie",
            marks={criterion.id: "tie" for criterion in criteria},
        )
        for order in ORDERS
    )
    return first, second


def _comment(reply: CriterionReply, order: Order) -> CriterionComment:
    """What a judge said of a criterion beside its mark, said of the candidates."""
    if order == "12":
        return CriterionComment(reply.first_meets, reply.second_meets, reply.comment)
    return CriterionComment(reply.second_meets, reply.first_meets, reply.comment)


def _turned_odds(reply: Reply, order: Order) -> dict[str, dict[str, float]]:
    """The log-probabilities of what a judge said of its slots, by what it says of candidates."""
    return {
        path: {_turned(name.strip('"'), order): value for name, value in odds.items()}
        for path, odds in reply.odds.items()
    }


def _turned(value: str, order: Order) -> str:
    """What a judge said of its slots, said of the candidates."""
    return value if order == "12" else _TURNED.get(value, value)


def _kin(pair: Pair, judge: str) -> list[str]:
    """The sides whose model is of the judge's family."""
    judge_family = family(judge)
    sides = zip("AB", (pair.first, pair.second), strict=True)
    return [
        side
        for side, candidate in sides
        if judge_family and judge_family == family(candidate.model or candidate.id)
    ]


def _mean_odds(both: Round) -> dict[str, float]:
    """The probability of each winner, the mean of both orders."""
    odds_of_passes = [pass_.odds.get("winner", {}) for pass_ in both]
    if not all(odds_of_passes):
        return {}
    return {
        name: math.fsum(math.exp(odds[name]) for odds in odds_of_passes if name in odds)
        / len(odds_of_passes)
        for name in WINNERS
    }


def _margin(odds: Mapping[str, float]) -> float:
    """How far the likeliest is before the next."""
    *_, second, first = sorted(odds.values())
    return first - second
