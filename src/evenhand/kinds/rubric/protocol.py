"""The protocol kind `rubric`: one output scored on every dimension, each score backed by a quote.

The judge sees question, output and rubric, never `meta`: code copies that into the result. What
code knows it repairs and logs as a fix; what only the judge knows it asks again, with the exact
list of what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, NamedTuple, cast

from evenhand import jsontext
from evenhand.exchange import Message, Question, Reply, Schema, Style
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.check import Checked
from evenhand.kinds.conversation import Conversation, JudgingContext, converse
from evenhand.kinds.custom_prompt import CustomPrompt, unit_of
from evenhand.kinds.evidence import fragments
from evenhand.kinds.prompt import (
    Prompt,
    extra_blocks,
    fenced,
    object_of,
    shown_extras,
    size_of,
)
from evenhand.kinds.protocol import Words
from evenhand.kinds.rows import object_text
from evenhand.kinds.rubric.check import Sources, check_reply
from evenhand.kinds.rubric.rubric import Dimension, Rubric, parse_rubric
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.limits import REPAIRS
from evenhand.text import hidden_characters
from evenhand.units import Sample

LOW_MARGIN = 0.05
"""A score that so little probability more or less would have changed is flagged."""

RATIONALE_CHARS = 160
_OUTPUT: dict[Style, str] = {"full": "model_output", "compact": "answer"}
"""The name of the block that holds the output: the contract's, or the word a small model knows."""
ALIASES = {"answer": "model_output", "output": "model_output"}
"""Other names that a prompt of the user's own may use."""


class Form(NamedTuple):
    """What every question under one rubric shares."""

    shape: str
    schema: Schema


@lru_cache(maxsize=64)
def form_of(rubric: Rubric, tags: tuple[str, ...]) -> Form:
    """The form of a reply under a rubric: rows often repeat one rubric."""
    return Form(jsontext.dump(_shape(rubric, None)), Schema(_full_schema(rubric, tags, None)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricProtocol:
    """A rubric protocol in one language, with the settings that can change a verdict."""

    prompts: Mapping[Style, Prompt]
    words: Words
    rubric: Rubric | None = None
    expose_meta: bool = False
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    own: CustomPrompt | None = None
    allowed_tags: tuple[str, ...] = ()
    """The failure tags that a verdict may have, where they are others than the judge was told."""
    tags: tuple[str, ...] = field(init=False, compare=False)
    """The failure tags that a judge is told of."""
    tag_lines: str = field(init=False, compare=False)
    """The same as a judge is told of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.words.tags))
        object.__setattr__(self, "tag_lines", _tag_lines(self.words))

    async def judge(self, sample: Sample, context: JudgingContext) -> Judgment:
        """Ask, check, ask again for what only the judge knows; settle or fail."""
        rubric, style = self.rubric_of(sample), context.styles[0]
        sources = Sources(sample, rubric)
        size = size_of(sample.question, sample.model_output, sample.extras)
        question = await context.offload(partial(self.question, sample, rubric, style), size)
        conversation = await converse(
            context,
            question,
            lambda reply: self.check(
                reply.text, sample, style, finish=reply.finish, sources=sources
            ),
            self.prompts[style],
            self.words,
            self.repairs,
            size,
        )
        if failed := conversation.failure:
            return failed
        return await context.offload(partial(self._settled, sample, conversation), size)

    def check(
        self,
        text: str | bytes,
        sample: Sample,
        style: Style = "full",
        *,
        finish: str = "stop",
        sources: Sources | None = None,
    ) -> Checked[RubricVerdict]:
        """The contract applied to one reply; `sources` are the sample's, where there are more."""
        return check_reply(
            text,
            sample,
            self.rubric_of(sample),
            self.words,
            finish,
            exposed=self.expose_meta,
            asked_meta=self.own is not None and self.own.says("meta"),
            is_compact=style == "compact",
            sources=sources,
            tags=self.allowed_tags or self.tags,
        )

    def check_external_reply(
        self, sample: Sample, text: str, finish: str = "stop"
    ) -> Checked[RubricVerdict]:
        """Apply the contract to a reply from another tool."""
        return self.check(text, sample, finish=finish)

    def rubric_of(self, sample: Sample) -> Rubric:
        """The sample's own rubric, else the suite's; the loader saw to it that there is one."""
        if sample.rubric is not None:
            return parse_rubric(object_text(sample.rubric))
        assert self.rubric is not None, "a sample without a rubric passed the loader"
        return self.rubric

    def question(self, sample: Sample, rubric: Rubric, style: Style) -> Question:
        """What the judge is asked about one sample."""
        prompt = self.prompts[style]
        shape, schema = form_of(rubric, self.tags)
        neutral = self._neutral(prompt, rubric, style) if style == "compact" else None
        if self.expose_meta:
            shape = jsontext.dump(_shape(rubric, sample.meta))
            schema = Schema(_full_schema(rubric, self.tags, dict(sample.meta)))
        if style == "compact":
            quotes = fragments(sample.model_output)
            meta = dict(sample.meta) if self.expose_meta else None
            schema = Schema(_compact_schema(rubric, quotes, self.words.no_evidence, meta))
        return Question(
            messages=self._messages(prompt, sample, rubric, shape, style),
            schema=None if self.own and style == "full" else schema,
            neutral=neutral,
            unit=sample.id,
        )

    def _neutral(self, prompt: Prompt, rubric: Rubric, style: Style) -> tuple[Message, ...]:
        """The prompt about nothing."""
        unknown = self.words.neutral
        blank = Sample(id="", question=unknown["question"], model_output=unknown["answer"])
        return self._messages(prompt, blank, rubric, form_of(rubric, self.tags).shape, style)

    def _messages(
        self, prompt: Prompt, sample: Sample, rubric: Rubric, shape: str, style: Style
    ) -> tuple[Message, ...]:
        if self.own is None:
            # A protocol without prompts for small models shows them its full ones.
            name = _OUTPUT["full" if prompt is self.prompts["full"] else style]
            suites = ("rubric", "shape", "tags") if sample.rubric is None else ("tags",)
            return prompt.messages(self._values(sample, rubric, shape, name), suites)
        blind: dict[str, Any] = {"question": sample.question, "model_output": sample.model_output}
        blind["rubric"] = rubric.value
        blind |= shown_extras(sample.extras, self.use)
        if self.expose_meta:
            blind = {"meta": sample.meta, **blind}
        offered = {"rubric": rubric.text, "shape": shape, "tags": self.tag_lines}
        return self.own.messages(unit_of(blind, ALIASES, offered))

    def _values(self, sample: Sample, rubric: Rubric, shape: str, output: str) -> dict[str, str]:
        extras = extra_blocks(sample.extras, self.use)
        if self.expose_meta:
            extras["meta"] = jsontext.dump(sample.meta)
        texts = {"question": sample.question, output: sample.model_output, "rubric": rubric.text}
        values = fenced(texts | extras)
        values["model_output"] = values[output]
        values["extras"] = "\n".join(values[name] for name in extras)
        values |= {"shape": shape, "tags": self.tag_lines}
        if self.expose_meta:
            values["extras"] += f"\n{self.words.copy_meta}"
        return values

    def _settled(self, sample: Sample, conversation: Conversation[RubricVerdict]) -> Verdict:
        reply, checked = conversation.tries[-1].reply, conversation.tries[-1].checked
        assert checked.value is not None
        flags = [*checked.flags, *_low_margins(reply)]
        hidden = hidden_characters(sample.question, sample.model_output)
        flags += [f"hidden_characters:{kind}" for kind in hidden]
        return Verdict(
            value=checked.value,
            evidence=checked.evidence,
            fixes=checked.fixes,
            flags=tuple(dict.fromkeys(flags)),
            passes=conversation.passes,
        )


def _tag_lines(words: Words) -> str:
    """The failure tags as a judge is told of them, one per line."""
    phrases = words.phrases
    return "\n".join(
        phrases["tag_line"]
        .format(tag=tag, name=name, meaning=phrases.get(f"tag_meanings.{tag}", ""))
        .rstrip(": ")
        for tag, name in words.tags.items()
    )


def _low_margins(reply: Reply) -> list[str]:
    """Scores that a judge by probabilities nearly gave otherwise: where the median tips over."""
    return [f"low_margin:{path}" for path, odds in reply.odds.items() if _margin(odds) < LOW_MARGIN]


def _margin(odds: Mapping[str, float]) -> float:
    """How far the probability up to some score is from one half, at the closest."""
    likely = [math.exp(odds[score]) for score in sorted(odds, key=float)]
    total = math.fsum(likely)
    return min((abs(below / total - 0.5) for below in accumulate(likely[:-1])), default=1.0)


def _shape(rubric: Rubric, meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """The reply as an example, with the rubric's own ids."""
    scores = {
        d.id: {"evidence": ["..."], "rationale": "...", "score": 0} for d in rubric.dimensions
    }
    shape: dict[str, Any] = {"scores": scores, "failure_tags": [], "notes": ""}
    return shape if meta is None else {"meta": meta, **shape}


def _full_schema(
    rubric: Rubric, tag_ids: Sequence[str], meta: Mapping[str, Any] | None
) -> dict[str, Any]:
    text = {"type": "string"}
    dimensions = {
        d.id: object_of(
            evidence={"type": "array", "items": text},
            rationale=text,
            score={"type": "number", "enum": d.scores},
        )
        for d in rubric.dimensions
    }
    tags = {"type": "array", "items": {"type": "string", "enum": list(tag_ids)}}
    reply = {"scores": object_of(**dimensions), "failure_tags": tags, "notes": text}
    return object_of(**(reply if meta is None else {"meta": _schema_of(meta), **reply}))


def _compact_schema(
    rubric: Rubric, quotes: list[str], phrase: str, meta: Mapping[str, Any] | None
) -> dict[str, Any]:
    """For a judge that fills a form: quotes enumerated, nothing it cannot decide."""
    none: dict[str, Any] = {"const": []}
    if quotes:
        items = {"enum": quotes, "x-quote": True}
        evidence = {"type": "array", "items": items, "minItems": 1, "maxItems": 1}
        rationale: dict[str, Any] = {"type": "string", "maxLength": RATIONALE_CHARS}
    else:
        evidence, rationale = none, {"const": phrase}
    dimensions = {
        d.id: object_of(evidence=evidence, rationale=rationale, score=_labelled(d))
        for d in rubric.dimensions
    }
    copied = {} if meta is None else {"meta": {"const": meta}}
    scores = object_of(**dimensions)
    return object_of(**copied, scores=scores, failure_tags=none, notes={"const": ""})


def _labelled(dimension: Dimension) -> dict[str, Any]:
    """The scores of a dimension, each with what it stands for."""
    labels = {jsontext.dump(band.score): band.criteria for band in dimension.bands}
    return {"enum": dimension.scores, "x-labels": labels}


def _any_of(schemas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    different = list({jsontext.dump(schema): schema for schema in schemas}.values())
    if len(different) > 1:
        return {"anyOf": different}
    return different[0] if different else {}


def _schema_of(value: object) -> dict[str, Any]:
    """A schema that a copy of `value` satisfies, in the strict form that endpoints take."""
    if isinstance(value, Mapping):
        return object_of(**{str(k): _schema_of(v) for k, v in value.items()})
    if isinstance(value, list):
        return {"type": "array", "items": _any_of(map(_schema_of, cast("list[object]", value)))}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return {"type": names.get(type(value), "number")}
