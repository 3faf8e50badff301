"""Ask, check, and ask again for what only the judge knows, for every kind.

A kind has no event loop. Whoever supplies `ask` also supplies the way to hold several conversations
at the same time, and to run work that grows with a text off the loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.errors import CallError
from evenhand.exchange import Ask, Message, Question, Reply, Style
from evenhand.judgment import Failure, Judgment, Pass, Problem, Verdict
from evenhand.kinds.prompt import CustomPrompt, Prompt, fence_blocks, shown_extras
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import Checked, V
from evenhand.limits import PROBLEMS_SHOWN, REPAIRS
from evenhand.observation import Ends, PassMarks
from evenhand.transcript import Judged, Transcript, count_shared_turns, turn_code


class ShownTexts(NamedTuple):
    """What was asked and what is judged, by their placeholders, and what explains them."""

    parts: dict[str, str]
    texts: dict[str, str]
    """Empty, or the sentence on numbered turns, as a prompt inserts it."""


class Try(NamedTuple, Generic[V]):
    """One question, the reply to it, and what the contract says of it."""

    question: Question
    reply: Reply
    checked: Checked[V]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first problems, without the wording for the judge: as a judgment keeps them."""
        return tuple(
            replace(problem, wording="") for problem in self.checked.problems[:PROBLEMS_SHOWN]
        )

    @property
    def record(self) -> Pass:
        """The pass that a judgment keeps."""
        return Pass(
            reask=self.question.reask,
            problems=self.problems,
            odds={path: dict(odds) for path, odds in self.reply.odds.items()},
            sampling=dict(self.reply.sampling),
            uncut=dict(self.checked.uncut),
        )


class Conversation(NamedTuple, Generic[V]):
    """A question and its re-asks, until a reply keeps the contract or no more can be had. `error`
    took the place of the last reply."""

    tries: Sequence[Try[V]]
    error: CallError | None = None

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The record of each reply, in the order of context."""
        return tuple(attempt.record for attempt in self.tries)

    @property
    def failure(self) -> Failure | None:
        """The failure of a conversation without a good reply; None where the last one is good."""
        if self.error is not None:
            return Failure(reason=self.error.reason, detail=str(self.error), passes=self.passes)
        last = self.tries[-1].checked
        if not last.problems:
            return None
        first = last.problems[0]
        return Failure(
            reason=first.code, detail=first.message, fixes=last.fixes, passes=self.passes
        )

    def to_judgment(self, flags: Iterable[str] = ()) -> Judgment:
        """Return the failure, or the verdict of the last reply with more flags."""
        if failure := self.failure:
            return failure
        last = self.tries[-1].checked
        assert last.value is not None
        return Verdict(
            value=last.value,
            evidence=last.evidence,
            fixes=last.fixes,
            flags=tuple(dict.fromkeys((*last.flags, *flags))),
            passes=self.passes,
        )


Converse = Callable[[], Awaitable[Conversation[V]]]


class GatherConversations(Protocol):
    """Hold several conversations and return them in the order given. All are brought to their end
    before the first exception, in that order, is raised."""

    async def __call__(self, conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]: ...


async def gather_in_order(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """Hold one conversation after the other: for replies that are there already."""
    ended: list[Conversation[V]] = []
    stops: list[Exception] = []
    for begin in conversations:
        try:
            ended.append(await begin())
        except Exception as stop:
            stops.append(stop)
    if stops:
        raise stops[0]
    return ended


T = TypeVar("T")


class Offload(Protocol):
    """Run work that goes through `size` characters off the event loop and return its result."""

    def __call__(self, work: Callable[[], T], size: int) -> Awaitable[T]: ...


async def run_inline(work: Callable[[], T], size: int) -> T:
    """Run work here and now: where no other judgment is under way."""
    return work()


class JudgingContext(Struct, frozen=True, kw_only=True):
    """All that a kind gets of the world: `ask`, and who is asked. There is one judge, or those of a
    relay, of which the k-th is asked in round k."""

    ask: Ask
    gather_conversations: GatherConversations = gather_in_order
    offload: Offload = run_inline
    judges: Sequence[str] = ("",)
    styles: Sequence[Style] = ("full",)
    judgment_index: int = 0
    """The index of this judgment among those of the unit, over all judges and repeats."""


@dataclass(frozen=True, kw_only=True)
class PreparedProtocol(ABC):
    """A protocol in one language with the settings of a suite: reads rows and judges units. Each
    kind has its own; a unit is of the kind's own type, and has at least `id` and `language`."""

    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names that a custom prompt may use for parts of a unit."""
    compact_names: ClassVar[Mapping[str, str]] = {}
    """The names of blocks in a compact prompt, where a small model knows another word."""
    compact_fence_bytes: ClassVar[int] = 4

    prompts: Mapping[Style, Prompt]
    words: JudgeWords
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    judged: Judged = "last"
    """What is judged of a transcript."""
    custom_prompt: CustomPrompt | None = None

    @property
    def ends(self) -> Ends:
        """The ends of the scores on each dimension, as far as protocol or suite give them."""
        return {}

    @property
    def pass_marks(self) -> PassMarks:
        """What a verdict must reach to pass, as far as protocol or suite say it."""
        return PassMarks()

    @property
    def dimension_ids(self) -> list[str]:
        """The ids of dimensions or criteria, as far as they are known before any unit is read."""
        return list(self.ends)

    @property
    def rounds(self) -> int:
        """The most times that the first questions of a judgment are asked."""
        return 1

    @abstractmethod
    def read(self, row: Mapping[str, Any]) -> Sequence[Any]:
        """Return the units of an input row; raise RowError."""

    def given_type(self, unit: Any) -> str | None:
        """Return the type of a unit's task, in a kind that has some and where one is given."""
        return None

    @abstractmethod
    def first_questions(self, unit: Any, context: JudgingContext) -> list[Question]:
        """Return the questions about a unit that are asked whatever the replies; none where code
        decides."""

    @abstractmethod
    async def judge(self, unit: Any, context: JudgingContext) -> Judgment:
        """Return the judgment of a unit."""

    @abstractmethod
    def check_external_reply(self, unit: Any, text: str, finish: str = "stop") -> Checked[Any]:
        """Apply the contract to the raw text of a reply from another tool and the way it ended."""

    def check_output(self, unit: Any, output: dict[str, Any]) -> Checked[Any]:
        """Apply the contract to an output object from another tool."""
        return self.check_external_reply(unit, jsontext.dump(output))

    def show_turns(self, parts: Mapping[str, str], *transcripts: Transcript | None) -> ShownTexts:
        """Return the texts of a unit, of which the first is what was asked and the others are what
        is judged; of a unit with a transcript for each of those, its turns instead: what all
        transcripts begin with was asked."""
        several = [each for each in transcripts if each is not None]
        if not several:
            return ShownTexts({**parts}, {})
        code, shared = turn_code(*several), count_shared_turns(several)
        (asked, question), *_ = parts.items()
        before = several[0].show(code, 1, shared + 1) if shared else question
        judged = zip(list(parts)[1:], several, strict=True)
        shown = {name: transcript.show(code, shared + 1) for name, transcript in judged}
        sentence = self.words.phrases["turns"].format(code=code)
        return ShownTexts({asked: before, **shown}, {"turns": sentence})

    def fill_prompt(
        self,
        style: Style,
        blocks: Mapping[str, str],
        extras: Mapping[str, str],
        texts: Mapping[str, str],
        shared: Collection[str],
    ) -> tuple[Message, ...]:
        """Return the opening of the conversation about one unit.

        Args:
            blocks: the texts of the unit, each to be fenced, by their placeholders.
            extras: more texts to be fenced, which stand together.
            texts: what else the prompt may insert; `turns` and `after_extras` follow those.
            shared: the placeholders whose values all units have in common.
        """
        prompt, is_compact = self.prompts[style], style == "compact"
        # A protocol without prompts for small models shows them its full ones.
        names = {} if prompt is self.prompts["full"] else self.compact_names
        renamed = {names.get(name, name): text for name, text in blocks.items()}
        fences = fence_blocks({**renamed, **extras}, self.compact_fence_bytes if is_compact else 4)
        values = {name: fences[names.get(name, name)] for name in blocks}
        closing = [texts[name] for name in ("turns", "after_extras") if name in texts]
        joined = "\n".join([*(fences[name] for name in extras), *closing])
        return prompt.messages({**texts, **values, "extras": joined}, shared)

    def fill_custom_prompt(
        self,
        custom_prompt: CustomPrompt,
        parts: Mapping[str, Any],
        extras: Mapping[str, Any],
        texts: Mapping[str, str],
    ) -> tuple[Message, ...]:
        """Return the opening by the user's own prompt: what it does not insert of the parts and of
        the extras follows it."""
        blind = {**parts, **shown_extras(extras, self.use)}
        if "turns" in texts:
            custom_prompt = custom_prompt.prefix(texts["turns"])
        return custom_prompt.messages(blind, self.aliases, texts)

    async def converse(
        self,
        context: JudgingContext,
        question: Question,
        check: Callable[[Reply], Checked[V]],
        style: Style,
        size: int = 0,
    ) -> Conversation[V]:
        """Ask until a reply keeps the contract, the repairs are used up, or a call is lost. `size`
        is how many characters a check may go through beside the reply's."""
        tries: list[Try[V]] = []
        while True:
            try:
                reply = await context.ask(question)
            except CallError as error:
                return Conversation(tries, error)
            checked = await context.offload(partial(check, reply), size + len(reply.text))
            tries.append(Try(question, reply, checked))
            if not checked.problems or question.reask >= self.repairs:
                return Conversation(tries)
            listed = "\n".join(f"- {each.wording}" for each in checked.problems[:PROBLEMS_SHOWN])
            again = self.prompts[style].again.fill({"problems": listed})
            question = question.again(reply.text, again)
