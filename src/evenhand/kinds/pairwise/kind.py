"""The kind `pairwise`: which of two answers to one topic is better, on content alone.

A pass is one call in one presentation order; code derives its winner from the marks. A round is
both orders. Where they agree the pair is settled, where they contradict each other another round
is asked, and a pair that no round settles is `uncertain`: never silently a tie.
Passes and verdicts speak of the candidates of the input file: `A` is the first of them, whatever
the order in which a judge saw them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from msgspec.structs import replace as replace_fields

from evenhand import jsontext
from evenhand.exchange import Message, Question, Reply, Schema, Style
from evenhand.judgment import Fix, Judgment, LeftOut, Verdict
from evenhand.kinds.conversation import (
    Conversation,
    JudgingContext,
    PreparedProtocol,
    ShownTexts,
)
from evenhand.kinds.kind import ExampleSuite, Kind, ReplyLength, Terms, VerdictTable, Voting
from evenhand.kinds.masking import family, mask_names, names_its_author
from evenhand.kinds.pairwise.check import (
    ReplyForm,
    check_reply,
    check_verdict,
    compact_schema,
    reply_schema,
    reply_shape,
)
from evenhand.kinds.pairwise.present import present
from evenhand.kinds.pairwise.table import header, line, read_lines, sides
from evenhand.kinds.pairwise.unit import (
    FIELDS,
    first_order,
    gather,
    ids_of_pairs,
    is_one_text,
    load_pair,
    pair_text,
    read_pairs,
)
from evenhand.kinds.pairwise.verdict import (
    ORDERS,
    READER,
    PairPass,
    PairReply,
    PairVerdict,
    Round,
    agrees,
    derive_winner,
    measure_judgment,
    measure_pair,
    settle,
    tied_round,
    to_pass,
)
from evenhand.kinds.phrases import asks_both_orders
from evenhand.kinds.prompt import CustomForm, extra_blocks, size_of
from evenhand.kinds.protocol import (
    PROTOCOL_FILE,
    Protocol,
    ProtocolError,
    ProtocolForm,
    require_same_ids,
)
from evenhand.kinds.reply import Checked, JudgedText
from evenhand.kinds.rows import TableForm, raw_json
from evenhand.limits import MAX_ROUNDS, MAX_ROUNDS_MOST, REPAIRS
from evenhand.text import hidden_characters
from evenhand.units import TOPIC_ID, Pair, named_pair_id, topic_id
from evenhand.words import Code, Sentence

ALIASES = {
    "question": "topic",
    "first": "candidate_1",
    "second": "candidate_2",
    "candidate_a": "candidate_1",
    "candidate_b": "candidate_2",
}


def read_priority(protocol: Protocol) -> tuple[str, ...]:
    """Return the criteria that decide a conflict of marks, in order; raise ProtocolError."""
    priority, ids = protocol.given.get("priority", []), protocol.ids("criteria")
    if not isinstance(priority, list):
        raise ProtocolError(PROTOCOL_FILE, Sentence("kinds.no_priority_list"))
    for name in priority:
        if name not in ids:
            message = Sentence("kinds.unknown_priority", name=str(name), ids=Code(", ".join(ids)))
            raise ProtocolError(PROTOCOL_FILE, message)
        if priority.count(name) > 1:
            raise ProtocolError(PROTOCOL_FILE, Sentence("kinds.same_priority", name=name))
    return tuple(priority)


def read_max_rounds(protocol: Protocol) -> int:
    """Return the most rounds that a pair may take; raise ProtocolError."""
    rounds = protocol.given.get("max_rounds", MAX_ROUNDS)
    if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS_MOST:
        message = Sentence("kinds.no_rounds", most=MAX_ROUNDS_MOST)
        raise ProtocolError(PROTOCOL_FILE, message)
    return rounds


def asks_for_table(protocol: Protocol) -> bool:
    """Return True if the prompts ask for a verdict-table line; raise ProtocolError."""
    if protocol.given.get("reply", "table") != "table":
        raise ProtocolError(PROTOCOL_FILE, Sentence("kinds.no_reply_form"))
    return "reply" in protocol.given


@dataclass(frozen=True, kw_only=True)
class PairwiseProtocol(PreparedProtocol):
    """A pairwise protocol in one language, with the settings that can change a verdict."""

    aliases = ALIASES
    compact_names: ClassVar = {"topic": "question", "candidate_1": "A", "candidate_2": "B"}
    # Long numbers cost a small model much of what it can tell.
    compact_fence_bytes = 1

    criteria: Mapping[str, str]
    """The id of each, and its text."""
    priority: tuple[str, ...]
    told_priority: tuple[str, ...] | None = None
    """The priority that judges were told, where their replies are settled by another."""
    max_rounds: int = MAX_ROUNDS
    blind: Literal["flag", "mask"] = "flag"
    no_self_judging: bool = False
    seed: int = 0
    tables: bool = False
    """True if the prompt asks for a verdict-table line."""

    @cached_property
    def texts(self) -> dict[str, str]:
        """The texts that every prompt may insert."""
        return {
            "criteria": "\n".join(f"- {name}: {text}" for name, text in self.criteria.items()),
            "rule": "\n".join(self._describe_rule()),
            "shape": jsontext.dump(reply_shape(self.dimension_ids)),
        }

    @cached_property
    def schema(self) -> Schema:
        """The schema of a reply."""
        return Schema(reply_schema(self.dimension_ids))

    def _describe_rule(self) -> Iterator[str]:
        """Yield the rule of `derive_winner` as the judge is told it, one case per line."""
        phrases, priority = self.words.phrases, self._asked_priority
        yield phrases["rule.all_tie"]
        yield phrases["rule.one_side"]
        if not priority:
            yield phrases["rule.conflict_is_tie"]
            return
        yield phrases["rule.conflict"].format(priority=phrases["rule.join"].join(priority))
        if set(self.criteria) - set(priority):
            yield phrases["rule.still_tie"]

    @property
    def _asked_priority(self) -> tuple[str, ...]:
        return self.priority if self.told_priority is None else self.told_priority

    @property
    def dimension_ids(self) -> list[str]:
        return list(self.criteria)

    @property
    def rounds(self) -> int:
        return self.max_rounds

    def read(self, row: Mapping[str, Any]) -> list[Pair]:
        return read_pairs(row, self.judged)

    # Judging

    async def judge(self, pair: Pair, context: JudgingContext) -> Judgment:
        """Ask both orders, compare, ask again on a contradiction; settle, fail or be uncertain."""
        size = size_of(pair.topic, *pair.texts, pair.extras, *pair.turn_texts)
        if is_one_text(pair):
            rounds = [tied_round(self.dimension_ids)]
            return await context.offload(partial(self._verdict, pair, pair, rounds, [], []), size)
        judges = self.eligible_judges(pair, context.judges)
        if not judges:
            return LeftOut(detail="shares its family with a candidate")
        visible = await context.offload(partial(self.mask, pair), size)
        rounds, passes, fixes = list[Round](), list[PairPass](), list[Fix]()
        while len(rounds) < self.max_rounds and not (rounds and agrees(rounds[-1])):
            time, index = divmod(len(rounds), len(judges))
            judge_index = judges[index]
            conversations = await self._ask_round(visible, size, context, time + 1, judge_index)
            judge, counted = context.judges[judge_index], list[PairPass]()
            for conversation in conversations:
                passes += [
                    to_pass(attempt, len(rounds) + 1, judge, self.priority, self._asked_priority)
                    for attempt in conversation.tries
                ]
                counted += passes[-1:]
                if not conversation.failure:
                    fixes += conversation.tries[-1].checked.fixes
            if failures := [failure for each in conversations if (failure := each.failure)]:
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
        style = context.styles[judge_index]
        judged = JudgedText(*visible.texts, *visible.turn_texts)

        def check(reply: Reply) -> Checked[PairReply]:
            topic = visible.topic
            return self.check(reply.text, style, finish=reply.finish, topic=topic, judged=judged)

        ask = partial(self.questions, visible, context, time=time, judge_index=judge_index)
        return await context.gather_conversations(
            [
                partial(self.converse, context, question, check, style, size)
                for question in await context.offload(ask, size)
            ]
        )

    def _verdict(
        self,
        pair: Pair,
        visible: Pair,
        rounds: Sequence[Round],
        passes: Sequence[PairPass],
        fixes: Sequence[Fix],
    ) -> Verdict:
        result = settle(rounds)
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
        )
        flags = [*self._flags(pair, visible, passes), *([] if passes else ["equal_text"])]
        flags += dict.fromkeys(flag for both in rounds for pass_ in both for flag in pass_.flags)
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
        hidden = hidden_characters(pair.topic, *pair.texts, *pair.turn_texts)
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
        masked = pair.map_answers(partial(mask_names, topic=pair.topic))
        if is_one_text(masked):
            return pair
        extras = {name: _mask_value(value, pair.topic) for name, value in pair.extras.items()}
        return replace_fields(masked, extras=extras)

    # Checks

    def check(
        self,
        text: str,
        style: Style = "full",
        *,
        finish: str = "stop",
        topic: str = "",
        judged: JudgedText | None = None,
        is_external: bool = False,
    ) -> Checked[PairReply]:
        """Return what one reply says of its slots, or what is wrong with it."""
        form: ReplyForm = "external" if is_external else style
        if self.tables or self.custom_prompt is not None:
            form = "table"
        criteria, words = self.dimension_ids, self.words
        return check_reply(text, criteria, words, finish, topic=topic, judged=judged, form=form)

    def check_external_reply(
        self, pair: Pair, text: str, finish: str = "stop"
    ) -> Checked[PairReply]:
        """Check a reply from another tool, which may be a verdict-table line; flagged as the pass
        of a run would be."""
        judged = JudgedText(*pair.texts, *pair.turn_texts)
        checked = self.check(text, finish=finish, topic=pair.topic, judged=judged, is_external=True)
        reply = checked.value
        if reply is None or reply.winner in (None, derive_winner(reply.marks, self.priority)):
            return checked
        return replace_fields(checked, flags=("self_contradiction", *checked.flags))

    def check_output(self, pair: Pair, output: dict[str, Any]) -> Checked[PairVerdict]:
        """Check a settled verdict from another tool, which has no replies any more."""
        return check_verdict(output, self.dimension_ids, self.words)

    # Questions

    def first_questions(self, pair: Pair, context: JudgingContext) -> list[Question]:
        visible, judges = self.mask(pair), self.eligible_judges(pair, context.judges)
        if not judges or is_one_text(visible):
            return []
        return self.questions(visible, context, judge_index=judges[0])

    def questions(
        self, pair: Pair, context: JudgingContext, *, time: int = 1, judge_index: int = 0
    ) -> list[Question]:
        """Return both orders, put to one judge for the first time, the second, ...; every other
        judgment of a pair starts with the other order."""
        style = context.styles[judge_index]
        is_swapped = (first_order(self.seed, pair) == "21") != bool(context.judgment_index % 2)
        shown = {order: self._show(pair, order) for order in ORDERS}
        return [
            Question(
                messages=self._messages(pair, shown[order], style),
                schema=self._schema(pair, shown[order], style),
                unit=pair.id,
                order=order,
                round=time,
                judge_index=judge_index,
            )
            for order in (ORDERS[::-1] if is_swapped else ORDERS)
        ]

    def _show(self, pair: Pair, order: str) -> ShownTexts:
        """Return topic and candidates as a judge is shown them in an order."""
        first, second = (pair.first, pair.second) if order == "12" else (pair.second, pair.first)
        parts = {"topic": pair.topic, "candidate_1": first.text, "candidate_2": second.text}
        return self.show_turns(parts, first.transcript, second.transcript)

    def _schema(self, pair: Pair, shown: ShownTexts, style: Style) -> Schema | None:
        """Return None where the prompt may ask for another form than ours; a judge that fills a
        form by probabilities always needs one."""
        if style == "compact":
            criteria = self.dimension_ids
            leading = self._asked_priority[0] if self._asked_priority else criteria[0]
            beside = extra_blocks(pair.extras, self.use).values()
            asked, *texts = shown.parts.values()
            topic = "\n".join((*beside, asked))
            return Schema(compact_schema(criteria, leading, topic, texts, self.words.phrases))
        return None if self.tables or self.custom_prompt else self.schema

    def _messages(self, pair: Pair, shown: ShownTexts, style: Style) -> tuple[Message, ...]:
        parts, texts = shown.parts, {**self.texts, **shown.texts}
        if self.custom_prompt is not None:
            return self.fill_custom_prompt(self.custom_prompt, parts, pair.extras, texts)
        extras = extra_blocks(pair.extras, self.use)
        return self.fill_prompt(style, parts, extras, texts, self.texts)


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


# The record


def _prepare(protocol: Protocol, language: str, terms: Terms) -> PairwiseProtocol:
    settings, criteria = terms.settings, protocol.read_table("criteria", language)
    priority = read_priority(protocol)
    prepared = PairwiseProtocol(
        **protocol.prepare(language, settings),
        criteria=criteria,
        priority=tuple(settings.get("priority", priority)),
        told_priority=priority,
        max_rounds=settings["max_rounds"] or read_max_rounds(protocol),
        blind=settings["blind"],
        no_self_judging=settings["no_self_judging"],
        seed=terms.seed,
        tables=asks_for_table(protocol),
    )
    custom_prompt = prepared.custom_prompt
    if custom_prompt is None or not asks_both_orders(custom_prompt.text):
        return prepared
    one_order = prepared.words.phrases["one_order"]
    return replace(prepared, custom_prompt=custom_prompt.prefix(one_order))


def _check_protocol(protocol: Protocol, language: str) -> None:
    protocol.read_table("criteria", language)
    read_priority(protocol)
    read_max_rounds(protocol)
    asks_for_table(protocol)


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    require_same_ids(protocol, asked, "criteria")
    return {"priority": list(read_priority(protocol)), "max_rounds": read_max_rounds(protocol)}


def _unit_keys(pair: Pair) -> list[str]:
    """Return the id of a pair, and the one that names its candidates, as a topic with more of them
    or an import of votes has it, unless `A` would be the other one there."""
    named = named_pair_id(pair.row, (pair.first.id, pair.second.id))
    return [pair.id] if pair.second.id < pair.first.id else [pair.id, named]


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["pair_id"]) if "pair_id" in output else None


KIND = Kind(
    name="pairwise",
    noun="pair",
    question_noun="topic",
    settings={
        "repairs": REPAIRS,
        "max_rounds": None,
        "blind": "flag",
        "no_self_judging": False,
        "panel": "each",
    },
    form=ProtocolForm(
        keys=("criteria", "priority", "max_rounds", "reply"),
        tables=("criteria",),
        must=frozenset({"topic", "candidate_1", "candidate_2"}),
        may=frozenset({"criteria", "rule", "extras", "shape"}),
        custom_prompt=CustomForm(
            parts=("topic", "candidate_1", "candidate_2"),
            aliases=ALIASES,
            offered=("criteria", "rule", "shape"),
            marks=("winner", "pair_id", "tie", "candidate_1", "candidate_2", "A+", "B+"),
            asks_both_orders=asks_both_orders,
        ),
    ),
    table_form=TableForm(
        question="topic",
        answer="answer",
        fields=FIELDS,
        id_of=topic_id,
        ids=("id", "pair_id"),
        gather=gather,
        several="candidates",
        unit_ids=ids_of_pairs,
        number=TOPIC_ID,
        row_noun="topic",
    ),
    table=VerdictTable(header, line, sides, read_lines),
    example=ExampleSuite("pairs.jsonl"),
    reply_length=ReplyLength(form=15, prose=80, form_each=22, prose_each=20),
    imports="votes",
    dump=pair_text,
    load=load_pair,
    unit_keys=_unit_keys,
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=_check_protocol,
    resettle_settings=_resettle_settings,
    read_judgment=READER.read,
    present=present,
    measure=Voting(lambda text: measure_pair(load_pair(text)), measure_judgment),
)
