"""The protocol kind `pairwise`: which of two answers to one topic is better, on content alone.

A pass is one call in one presentation order; code derives its winner from the marks. A round is
both orders. Where they agree the pair is settled, where they contradict each other another round
is asked, and a pair that no round settles is `uncertain`: never silently a tie.
Passes and verdicts speak of the candidates of the input file: `A` is the first of them, whatever
the order in which a judge saw them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace as changed

from evenhand.exchange import Message, Question, Schema, Style
from evenhand.judgment import Fix, Judgment, LeftOut, Verdict
from evenhand.kinds.check import Checked
from evenhand.kinds.conversation import Conversation, JudgingContext, converse
from evenhand.kinds.custom_prompt import CustomPrompt, unit_of
from evenhand.kinds.masking import family, mask_names, names_its_author
from evenhand.kinds.pairwise.check import check_reply, check_verdict
from evenhand.kinds.pairwise.form import Criterion, Form, compact_schema, form_of
from evenhand.kinds.pairwise.settle import (
    Round,
    agrees,
    derive_winner,
    mean_odds,
    settle,
    tied_round,
    to_pass,
)
from evenhand.kinds.pairwise.unit import first_order, is_one_text
from evenhand.kinds.pairwise.verdict import ORDERS, PairPass, PairReply, PairVerdict
from evenhand.kinds.prompt import (
    Prompt,
    extra_blocks,
    fenced,
    shown_extras,
    size_of,
)
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.rows import raw_json
from evenhand.limits import MAX_ROUNDS, REPAIRS
from evenhand.text import hidden_characters
from evenhand.units import Pair

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
"""Other names that a custom prompt may use."""
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
    """The priority that judges were told, where their replies are settled by another."""
    max_rounds: int = MAX_ROUNDS
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    blind: Literal["flag", "mask"] = "flag"
    no_self_judging: bool = False
    seed: int = 0
    tables: bool = False
    """True if the prompt asks for a verdict-table line."""
    own: CustomPrompt | None = None
    form: Form = field(init=False, compare=False)

    def __post_init__(self) -> None:
        form = form_of(self.criteria, self._told, self.words.phrases)
        object.__setattr__(self, "form", form)

    @property
    def _told(self) -> tuple[str, ...]:
        return self.priority if self.told_priority is None else self.told_priority

    @property
    def criterion_ids(self) -> list[str]:
        """Return the ids of the criteria, which are the same in every language."""
        return [criterion.id for criterion in self.criteria]

    # Judging

    async def judge(self, pair: Pair, context: JudgingContext) -> Judgment:
        """Ask both orders, compare, ask again on a contradiction; settle, fail or be uncertain."""
        size = size_of(pair.topic, *pair.texts, pair.extras)
        if is_one_text(pair):
            rounds = [tied_round(self.criterion_ids)]
            return await context.offload(partial(self._verdict, pair, pair, rounds, [], []), size)
        judges = self.eligible_judges(pair, context.judges)
        if not judges:
            return LeftOut(detail="shares its family with a candidate")
        visible = await context.offload(partial(self.mask, pair), size)
        rounds, passes, fixes = list[Round](), list[PairPass](), list[Fix]()
        while len(rounds) < self.max_rounds and not (rounds and agrees(rounds[-1])):
            time, place = divmod(len(rounds), len(judges))
            conversations = await self._ask_round(visible, size, context, time + 1, judges[place])
            counted: list[PairPass] = []
            for conversation in conversations:
                passes += [
                    to_pass(
                        attempt,
                        len(rounds) + 1,
                        context.judges[judges[place]],
                        self.priority,
                        self._told,
                    )
                    for attempt in conversation.tries
                ]
                counted += passes[-1:]
                if not conversation.failure:
                    fixes += conversation.tries[-1].checked.fixes
            if failures := [f for c in conversations if (f := c.failure)]:
                flags = await context.offload(partial(self._flags, pair, visible, passes), size)
                return replace(failures[0], flags=flags, passes=tuple(passes))
            rounds.append((counted[0], counted[1]))
        finish = partial(self._verdict, pair, visible, rounds, passes, fixes)
        return await context.offload(finish, size)

    async def _ask_round(
        self, visible: Pair, size: int, context: JudgingContext, time: int, judge_index: int
    ) -> Sequence[Conversation[PairReply]]:
        """Return the conversations about both orders, held at the same time, in the order of the
        questions."""
        style, judged = context.styles[judge_index], JudgedText(*visible.texts)
        ask = partial(self.questions, visible, context, time=time, judge_index=judge_index)
        conversations = [
            partial(
                converse,
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
            for question in await context.offload(ask, size)
        ]
        return await context.gather_conversations(conversations)

    def _verdict(
        self,
        pair: Pair,
        visible: Pair,
        rounds: Sequence[Round],
        passes: Sequence[PairPass],
        fixes: Sequence[Fix],
    ) -> Verdict:
        result, odds = settle(rounds), mean_odds(rounds[-1])
        explanations = {pass_.order: pass_.explanation for pass_ in rounds[-1]}
        notes = explanations["12"]
        if result.winner == "uncertain" and explanations["21"]:
            both = {"first": explanations["12"], "second": explanations["21"]}
            notes = self.words.phrases["both_orders"].format_map(both)
        verdict = PairVerdict(
            pair_id=pair.id,
            candidates=(pair.first.id, pair.second.id),
            winner=result.winner,
            settled=result.how,
            rounds=len(rounds) if passes else 0,
            criteria=result.marks,
            unstable=tuple(result.unstable),
            notes=notes,
            meta_json=raw_json(pair.meta),
            odds=odds or UNSET,
        )
        flags = [*self._flags(pair, visible, passes), *([] if passes else ["equal_text"])]
        flags += dict.fromkeys(flag for both in rounds for pass_ in both for flag in pass_.flags)
        likeliest = sorted(odds.values())
        if odds and likeliest[-1] - likeliest[-2] < LOW_MARGIN:
            flags.append("low_margin")
        return Verdict(value=verdict, fixes=tuple(fixes), flags=tuple(flags), passes=tuple(passes))

    def _flags(self, pair: Pair, visible: Pair, passes: Sequence[PairPass]) -> tuple[str, ...]:
        """Return what a reader of the verdict must know of the texts and of the judges asked."""
        judges = dict.fromkeys(pass_.judge for pass_ in passes)
        flags = [f"shares_family:{side}" for judge in judges for side in _relatives(pair, judge)]
        for side, text, seen in zip("AB", pair.texts, visible.texts, strict=True):
            flags += [f"masked:{side}"] if text != seen else []
            flags += [f"gives_itself_away:{side}"] if names_its_author(text) else []
        if self.blind == "mask" and visible is pair and not is_one_text(pair):
            flags.append("mask_hides_difference")
        hidden = hidden_characters(pair.topic, *pair.texts)
        return tuple(dict.fromkeys([*flags, *(f"hidden_characters:{kind}" for kind in hidden)]))

    def eligible_judges(self, pair: Pair, judges: Sequence[str]) -> list[int]:
        """Return the indexes of the judges that may judge this pair."""
        return [
            index
            for index, judge in enumerate(judges)
            if not (self.no_self_judging and _relatives(pair, judge))
        ]

    def mask(self, pair: Pair) -> Pair:
        """Return the pair as a judge sees it: with `blind = "mask"`, model names masked, unless
        they are all that tells the candidates apart."""
        if self.blind != "mask":
            return pair
        masked = pair.with_texts(*(mask_names(text, topic=pair.topic) for text in pair.texts))
        if is_one_text(masked):
            return pair
        extras = {name: _mask_value(value, pair.topic) for name, value in pair.extras.items()}
        return changed(masked, extras=extras)

    # Checks

    def check(
        self,
        text: str | bytes,
        style: Style = "full",
        *,
        finish: str = "stop",
        topic: str = "",
        judged: JudgedText | None = None,
        is_external: bool = False,
        tables: bool = False,
    ) -> Checked[PairReply]:
        """Return what one reply says of its slots, or what is wrong with it."""
        return check_reply(
            text,
            self.criterion_ids,
            self.words,
            finish,
            topic=topic,
            judged=judged,
            is_compact=style == "compact",
            is_external=is_external,
            tables=tables or self.tables or self.own is not None,
        )

    def check_external_reply(
        self, pair: Pair, text: str, finish: str = "stop"
    ) -> Checked[PairReply]:
        """Check a reply from another tool, which may be a verdict-table line; flagged as the pass
        of a run would be."""
        judged = JudgedText(*pair.texts)
        checked = self.check(text, finish=finish, topic=pair.topic, judged=judged, is_external=True)
        reply = checked.value
        if reply is None or reply.winner in (None, derive_winner(reply.marks, self.priority)):
            return checked
        return changed(checked, flags=("self_contradiction", *checked.flags))

    def check_verdict(self, value: dict[str, Any]) -> Checked[PairVerdict]:
        """Check a settled verdict from another tool, which has no replies any more."""
        return check_verdict(value, self.criterion_ids, self.words)

    # Questions

    def questions(
        self, pair: Pair, context: JudgingContext, *, time: int = 1, judge_index: int = 0
    ) -> list[Question]:
        """Return both orders, put to one judge for the first time, the second, ...; every other
        judgment of a pair starts with the other order."""
        style = context.styles[judge_index]
        is_swapped = (first_order(self.seed, pair) == "21") != bool(context.judgment_index % 2)
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
            for order in (ORDERS[::-1] if is_swapped else ORDERS)
        ]

    def _schema(self, pair: Pair, texts: tuple[str, str], style: Style) -> Schema | None:
        """Return None where the prompt may ask for another form than ours; a judge that fills a
        form by probabilities always needs one."""
        if style == "compact":
            leading = self._told[0] if self._told else self.criteria[0].id
            beside = extra_blocks(pair.extras, self.use).values()
            topic = "\n".join((*beside, pair.topic))
            say = self.words.phrases
            return Schema(compact_schema(self.criteria, leading, topic, texts, say))
        return None if self.tables or self.own else self.form.schema

    def _messages(self, pair: Pair, texts: tuple[str, str], style: Style) -> tuple[Message, ...]:
        form = self.form
        offered = {"criteria": form.criteria, "rule": form.rule, "shape": form.shape}
        if self.own is not None:
            blind: dict[str, Any] = dict(zip(_BLOCKS["full"], (pair.topic, *texts), strict=True))
            blind |= shown_extras(pair.extras, self.use)
            return self.own.messages(unit_of(blind, ALIASES, offered))
        # A protocol without prompts for small models shows them its full ones.
        names = _BLOCKS["full" if self.prompts[style] is self.prompts["full"] else style]
        blocks = dict(zip(names, (pair.topic, *texts), strict=True))
        extras = extra_blocks(pair.extras, self.use)
        # Long numbers cost a small model much of what it can tell.
        marked = fenced(blocks | extras, size=1 if style == "compact" else 4)
        values = {name: marked[block] for name, block in zip(_BLOCKS["full"], names, strict=True)}
        values["extras"] = "\n".join(marked[name] for name in extras)
        return self.prompts[style].messages(values | offered, offered)


def _mask_value(value: Any, topic: str) -> Any:
    """Return what is shown beside the candidates with its model names masked too."""
    if isinstance(value, str):
        return mask_names(value, topic=topic)
    if isinstance(value, list):
        return [_mask_value(item, topic) for item in value]
    if isinstance(value, Mapping):
        return {name: _mask_value(inner, topic) for name, inner in value.items()}
    return value


def _relatives(pair: Pair, judge: str) -> list[str]:
    """Return the sides whose model is of the judge's family."""
    judge_family = family(judge)
    return [
        side
        for side, candidate in zip("AB", (pair.first, pair.second), strict=True)
        if judge_family and judge_family == family(candidate.model or candidate.id)
    ]
