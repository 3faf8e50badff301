"""The keys of `evenhand.toml`: their types, bounds and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evenhand import limits
from evenhand.transcript import Judged

ANSWERS_FILE = "answers.jsonl"
"""Where a suite keeps the answers that it makes, in its own folder."""
Scalar = str | int | float | bool
Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
CheckType = Literal[
    "contains",
    "not_contains",
    "starts_with",
    "equals",
    "regex",
    "not_regex",
    "is_json",
    "json_schema",
    "max_chars",
    "min_chars",
]
PricePerMillion = Annotated[Decimal, Field(ge=0, le=limits.PRICE_MOST)]


def _as_list(value: object) -> object:
    """Return a single item as a list of one."""
    return [value] if isinstance(value, str | Mapping) else value


def _as_model(value: object) -> object:
    """Return the name of a model as its table."""
    return {"model": value} if isinstance(value, str) else value


def _join_dotted(value: object) -> object:
    """Return tables within a table as dotted names: TOML makes tables of unquoted dots."""
    if not isinstance(value, Mapping):
        return value
    names: dict[str, object] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            deeper: Any = _join_dotted(inner)
            names |= {f"{key}.{name}": item for name, item in deeper.items()}
        else:
            names[key] = inner
    return names


NameList = Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false where a number belongs: pydantic would take them for 1 and 0."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and annotation is not bool:
            raise ValueError("should not be true or false")
        return value


class PriceSpec(_Table):
    """Dollars a million tokens."""

    input: PricePerMillion
    output: PricePerMillion


class JudgeSpec(_Table):
    """One `[[judges]]` entry."""

    model: Text
    """`provider/model`, e.g. `openai/gpt-4.1-mini` or `embedded`."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """0 unless given."""
    repeats: Annotated[int, Field(ge=1, le=limits.REPEATS_MAX)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_TOKENS_MOST)] = limits.MAX_TOKENS
    base_url: str | None = None
    price: PriceSpec | None = None
    params: dict[str, Any] = {}
    """Copied into the request's body as they are: `reasoning_effort`, `top_p`, ..."""
    stream: bool = False
    """Stream the reply; a judge whose endpoint only streams does so by itself."""
    proxy: Text | None = None
    """`http://host:port`."""
    ca_file: Text | None = None
    """Certificates to trust beside those of the system."""


class ModelSpec(JudgeSpec):
    """A model that answers: named and set like a judge."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """The provider's own unless given."""


class AnswersSpec(_Table):
    """`[answers]`: questions, prompts and models whose answers are to be judged."""

    questions: Text
    """A table; its columns fill `{{column}}` in the prompts."""
    prompts: NameList = []
    """Files; without any, the question is sent as it is."""
    models: Annotated[
        list[
            Annotated[ModelSpec, BeforeValidator(_as_model, json_schema_input_type=str | ModelSpec)]
        ],
        Field(min_length=1),
    ]
    repeats: Annotated[int, Field(ge=1, le=limits.REPEATS_MAX)] = 1
    on_cut: Literal["judge", "leave out"] = "judge"
    """What becomes of an answer that was cut off, filtered or refused."""


class Limits(_Table):
    """`[limits]`: none of these changes a verdict, so none is part of the run."""

    concurrency: Annotated[int, Field(ge=1, le=limits.CONCURRENCY_MAX)] = limits.CONCURRENCY
    requests_per_minute: AtLeastOne | None = None
    tokens_per_minute: AtLeastOne | None = None
    budget_usd: Annotated[Decimal, Field(ge=0, le=limits.BUDGET_MOST)] | None = None
    max_failure_rate: Share | None = None
    attempt_seconds: Seconds = limits.ATTEMPT_SECONDS
    call_seconds: Seconds = limits.CALL_SECONDS
    run_seconds: Seconds | None = None


class Settings(_Table):
    """`[settings]`: what can change a verdict."""

    repairs: Annotated[int, Field(ge=0, le=limits.REPAIRS_MAX)] = limits.REPAIRS
    pass_share: Share | None = None
    """Checklist: the lowest score that passes; the protocol's own unless given."""
    pass_score: Annotated[float, Field(ge=0, le=100)] | None = None
    """Weighted: the lowest total that passes; the protocol's own unless given."""
    expose_meta: bool = False
    """Rubric: send `meta` to the judge too."""
    max_rounds: Annotated[int, Field(ge=1, le=limits.MAX_ROUNDS_MOST)] | None = None
    """Pairwise: rounds a pair may take; the protocol's own number unless given."""
    blind: Literal["flag", "mask"] = "flag"
    """Pairwise: flag candidates that name their model, or mask the name."""
    no_self_judging: bool = False
    """Pairwise: leave out a judge that shares its family with a candidate."""
    panel: Literal["each", "relay"] = "each"
    """Pairwise: several judges each settle a pair, or take a round each."""


class PassSpec(_Table):
    """`[pass]`: what a score must reach to pass. No judge is told."""

    all: bool = True
    """Every dimension that says `pass` must pass."""
    min_overall: Share | None = None
    """The share of the scale that the overall score must reach."""


class CheckSpec(_Table):
    """One `[[checks]]` entry: what code decides of every judged output, without a call."""

    name: Annotated[str, Field(pattern=r"^[^|\s]([^|\n]{0,62}[^|\s])?$")]
    type: CheckType
    value: Any = None
    """A text, a pattern, a number of characters, or a JSON Schema, also as the name of its file;
    `equals` without one means the reference."""
    must: bool = False
    """What fails it does not pass."""
    first: bool = False
    """What fails it does not pass, and no judge is asked."""


class CompareSpec(_Table):
    """`[compare]`: the question that the run answers first; `compare`, `gate` and `run
    --until-decided` take it from here."""

    by: NameList = []
    """The field, or fields, that tell the variants apart; pairs are compared by candidate."""
    baseline: str | None = None
    margin: Annotated[float, Field(gt=0)] | None = None
    """Variants whose difference lies within it are the same."""


class StopSpec(_Table):
    """`[stop]`: judge in random order, and stop when the comparison is decided."""

    until_decided: bool = True
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """The highest accepted probability of finding a difference where there is none."""
    dimension: str = "overall"
    variant: str | None = None
    """Which variant must be decided against the baseline; all of them unless given."""
    min_units: AtLeastOne = 1
    """Decide on no fewer units."""


class GateSpec(_Table):
    """`[gate]`: the conditions that `evenhand gate` checks."""

    dimension: Annotated[NameList, Field(min_length=1)] = ["overall"]
    variant: str | None = None
    candidate: str | None = None
    judge: str | None = None
    """Only verdicts of this judge."""
    on_conflict: Literal["tie", "uncertain", "drop", "split"] | None = None
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    better: bool = False
    no_worse_than: Annotated[float, Field(ge=0)] | None = None
    """How much lower than the baseline the mean may be."""
    min_mean: float | None = None
    min_win_rate: Share | None = None
    min_pass_rate: Share | None = None
    every: bool = False
    """No judged unit may fail."""
    no_case_worse_than: Annotated[float, Field(ge=0)] | None = None
    """How much lower than the baseline a single case may be; none may turn from pass to fail."""
    max_critical_fails: Annotated[int, Field(ge=0)] | None = None
    max_failure_rate: Share | None = None
    max_cost_increase: Annotated[float, Field(ge=0)] | None = None
    """How much more than the baseline's the answers may cost; 0.1 is a tenth."""
    max_latency_increase: Annotated[float, Field(ge=0)] | None = None


class DataSpec(_Table):
    """A data file with what is true of all its rows: `{ file = "v1.csv", prompt_variant = "v1" }`.
    Every key beside `file`, `encoding` and `sheet` is a constant field; one that is none of the
    contract's belongs to `meta`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Scalar]

    file: Text
    encoding: Text | None = None
    """Of a text file that is not UTF-8, e.g. `cp1251`."""
    sheet: str | None = None
    """Of a workbook; its first one unless given."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"file": value} if isinstance(value, str) else _join_dotted(value)

    @property
    def constants(self) -> dict[str, Scalar]:
        """Field to value, for all rows of the file."""
        return self.__pydantic_extra__


class StoreSpec(_Table):
    """`[store]`."""

    url: str = "sqlite:evenhand.db"


class SuiteFile(_Table):
    """The keys of `evenhand.toml`."""

    name: Text = "evenhand"
    protocol: str
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z]+)*$")] = "en"
    """ru, zh, ja or en; another one where the protocol or the prompt speaks it."""
    data: Annotated[
        list[DataSpec],
        Field(min_length=1),
        BeforeValidator(_as_list, json_schema_input_type=str | DataSpec | list[Text | DataSpec]),
    ]
    """Files, or patterns such as `answers/*.csv` and `runs/{week}/{model}.jsonl`, whose names in
    braces are fields; or a file with constants."""
    join: Text | None = None
    """A table of the questions, whose columns are added to the rows."""
    rubric: str | list[Text] | None = None
    """A file, a sentence, or a list of sentences."""
    criteria: str | list[Text | dict[str, Any]] | None = None
    """Checklist: the criteria themselves, or their file."""
    answers: AnswersSpec | None = None
    prompt: Text | None = None
    """A judge prompt of your own, any text."""
    seed: int = 0
    use: list[Literal["reference", "context", "messages"]] = []
    judged: Judged = "last"
    """Of messages in place of an answer: the assistant's last turn, all of its turns, or its tool
    calls alone."""
    judges: Annotated[list[JudgeSpec], Field(min_length=1)]
    limits: Limits = Limits()
    settings: Settings = Settings()
    store: StoreSpec = StoreSpec()
    compare: CompareSpec | None = None
    checks: list[CheckSpec] = []
    pass_: Annotated[PassSpec | None, Field(alias="pass")] = None
    stop: StopSpec | None = None
    gate: GateSpec | None = None
    columns: Annotated[
        dict[str, str], BeforeValidator(_join_dotted, json_schema_input_type=dict[str, Any])
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _judge_own_answers(cls, values: Any) -> Any:
        """Judge the answers that the suite makes, unless it names other data."""
        if isinstance(values, Mapping) and values.get("answers") and "data" not in values:
            return {**values, "data": [ANSWERS_FILE]}
        return values


TABLES: Mapping[str, type[BaseModel]] = {
    "judges": JudgeSpec,
    "limits": Limits,
    "settings": Settings,
    "pass": PassSpec,
    "checks": CheckSpec,
    "store": StoreSpec,
    "price": PriceSpec,
    "compare": CompareSpec,
    "stop": StopSpec,
    "gate": GateSpec,
    "answers": AnswersSpec,
}


def keys_of(part: type[BaseModel]) -> list[str]:
    """Return the keys of a table, as a suite writes them."""
    return [field.alias or name for name, field in part.model_fields.items()]


def suite_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, as shipped beside this module."""
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, **SuiteFile.model_json_schema()}
