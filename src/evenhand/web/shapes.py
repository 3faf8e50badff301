"""What the JSON API answers, for its OpenAPI description; tests hold the answers to it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Problem(BaseModel):
    """What went wrong, and what to do."""

    error: str
    advice: str


class Tokens(BaseModel):
    """Tokens as the provider counted them; of the input, those that its cache gave and took."""

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int
    stored_tokens: int


class Batch(BaseModel):
    """A batch that is under way: its questions, and what became of them."""

    batch: str
    name: str
    run: str
    judge: str
    stage: str
    status: str
    created: str
    ended: str | None
    requests: int
    answered: int
    refused: int
    unanswered: int
    open: int


class Counted(BaseModel):
    """How a run stands: planned = verdicts + failures + pending."""

    run: str
    planned: int
    verdicts: int
    failures: dict[str, int]
    pending: int
    left_out: int
    calls: int
    reasks: int
    cost_usd: float | None
    usage: Tokens
    batches: list[Batch]


class Progress(Counted):
    """How a run gets on."""

    judging: bool
    calls_a_minute: float
    seconds_left: int | None


class Run(Counted):
    """A run and how it stands."""

    name: str
    kind: str
    created: str
    started: str
    judges: list[str]
    protocol: str
    protocol_version: str | None
    prompt: str | None
    language: str | None
    seed: int | None
    settings: dict[str, Any]
    evenhand: str
    imported: dict[str, Any] | None


class Runs(BaseModel):
    """The runs of the store, the one started last first."""

    runs: list[Run]


class Judgment(BaseModel):
    """A judgment as `export --full` writes it; without a judge where the unit waits for one."""

    unit: str
    judge: str | None
    repeat: int | None
    status: str
    reason: str | None
    detail: str
    output: dict[str, Any] | None
    evidence: list[dict[str, Any]]
    passes: list[dict[str, Any]]
    fixes: list[dict[str, Any]]
    flags: list[str]
    calls: list[str]
    question: str


class Page(BaseModel):
    """The places of the pages beside this one, for `after` and `before`; `stopped` is set where a
    search looked at as much as it may before its page was full: go on from there."""

    next: str | None
    previous: str | None
    stopped: str | None


class Judgments(Page):
    """A page of judgments."""

    judgments: list[Judgment]


class Judged(Judgment):
    """A judgment with the conversation behind it."""

    exchanges: list[dict[str, Any]]


class Unit(BaseModel):
    """A unit with all its judgments."""

    unit: dict[str, Any]
    judgments: list[Judged]


class Call(BaseModel):
    """A call as the ledger keeps it."""

    no: int
    at: str
    key: str
    judge: str
    model: str
    finish: str
    set_aside: bool
    paid_by: str
    cost_usd: float | None
    usage: Tokens
    reply: str


class Calls(Page):
    """A page of the calls that a run paid for."""

    calls: list[Call]


class AskedCall(Call):
    """A call with its prompt, and the unit it was about, where a judgment rests on it."""

    unit: str | None
    messages: list[dict[str, str]]


class Figures(BaseModel):
    """What the judgments of a run come to; null while they are being computed."""

    figures: dict[str, Any] | None


class SideBySide(BaseModel):
    """Questions with both of their answers; null while they are being computed."""

    changes: dict[str, Any] | None


class Difference(BaseModel):
    """A unit of two runs, and what each says of it; null where it has no verdict."""

    unit: str
    same_text: bool
    first: dict[str, Any] | None
    second: dict[str, Any] | None


class Differences(BaseModel):
    """Units that two runs judge differently, how far they agree (null while it is being counted),
    and where the list goes on."""

    differences: list[Difference]
    agreement: dict[str, Any] | None
    next: int | None


class Protocol(BaseModel):
    """A built-in protocol."""

    name: str
    kind: str
    about: str
    version: str
    languages: list[str]


class Protocols(BaseModel):
    """The built-in protocols."""

    protocols: list[Protocol]


class ProtocolTexts(Protocol):
    """A protocol with its files."""

    texts: dict[str, str]


class Settled(BaseModel):
    """What `settle --json` prints."""

    run: str
    planned: int
    verdicts: int
    failures: dict[str, int]
    pending: int
    left_out: int
    calls: int
    cached: int
    reasks: int
    cost_usd: float | None
    spent_usd: float | None
    usage: Tokens
