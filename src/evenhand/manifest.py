"""The record that a run keeps of itself: its judging, and what is to be concluded from it.

A `JudgingRecord` is a judging as it is kept: everything that can change a verdict except the data.
Its id is a hash of that, so that equal judgings share their judgments whatever the data. A
`Manifest` is a judging and what a run says beside it. Their JSON is made and read here and nowhere
else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from evenhand import jsontext
from evenhand.exchange import Style
from evenhand.jsontext import StoredText, stored_value
from evenhand.observation import Ends, Rule

CONTRACT = "contract1"
"""The rules by which code reads replies and settles judgments. A change of them changes this word:
the next run is then of another judging, and judges from the ledger, at no cost."""


RELAY = " > "
"""Between the names of judges that make one judgment together."""


def number_names(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that repeat: judges of one name differ in their
    parameters."""
    times = Counter[str]()
    numbered: list[str] = []
    for name in names:
        times[name] += 1
        numbered.append(f"{name} ({times[name]})" if times[name] > 1 else name)
    return numbered


class JudgeRecord(Struct, frozen=True, kw_only=True):
    """A judge of a run: all of it that can change an answer, and what is said with its results."""

    name: str
    identity: Mapping[str, Any] = {}
    style: Style = "full"
    caveat: str = ""
    repeats: int = 1


class Source(Struct, frozen=True, kw_only=True):
    """The origin of judgments that were made elsewhere, and how they were read."""

    shape: Literal["", "votes", "scores", "grades"]
    version: int
    """Of how rows are read."""
    content: str
    """A hash of what the files hold."""
    map: Mapping[str, str] = {}
    """New names of columns to old ones."""
    key: tuple[str, ...] = ()
    """The columns that tell units apart."""
    on_conflict: Rule = "uncertain"


class JudgingRecord(Struct, frozen=True, kw_only=True):
    """Everything that can change a verdict except the data."""

    protocol: str = ""
    """The version of the protocol: a hash of its texts."""
    texts: Mapping[str, str] = {}
    """The files of the protocol by name; a store keeps each text once."""
    language: str = "en"
    rubric_json: Raw = Raw(b"null")
    """The rubric of the suite as it was written: its spelling is part of the prompts."""
    judges: tuple[JudgeRecord, ...] = ()
    seed: int = 0
    settings: Mapping[str, Any] = {}
    """The settings that the kind has, and `use`: they are the kind's to read."""
    source: Source | None = None
    contract: str = CONTRACT

    @property
    def rubric(self) -> Any:
        """Return the rubric of the suite; None where the units bring their own."""
        return stored_value(bytes(self.rubric_json).decode(), "a rubric")

    @property
    def is_relay(self) -> bool:
        """Return True if all judges make one judgment together, a round each."""
        return self.settings.get("panel") == "relay"

    @property
    def group_names(self) -> list[str]:
        """Return the name of each judge, or one for all the judges of a relay."""
        names = [judge.name for judge in self.judges]
        return number_names([RELAY.join(names)] if self.is_relay else names)

    @property
    def id(self) -> str:
        """Return the hash of what can change a verdict: neither texts that the protocol's version
        stands for, nor what is only said with a result."""
        judges = [(judge.name, judge.identity, judge.repeats) for judge in self.judges]
        parts = (self.contract, self.protocol, self.language, self.rubric_json, judges)
        text = _sorted.encode((*parts, self.seed, self.settings, self.source))
        return blake2b(text, digest_size=16, person=b"evenhand-judge-1").hexdigest()


class Compare(Struct, frozen=True, kw_only=True):
    """`[compare]`: the question that a run answers first."""

    by: tuple[str, ...] = ()
    baseline: str | None = None
    margin: float | None = None


class Stopping(Struct, frozen=True, kw_only=True):
    """`[stop]`: the comparison that ends a run once it is decided."""

    until_decided: bool = True
    alpha: float = 0.05
    dimension: str = "overall"
    variant: str | None = None
    min_units: int = 1


class GateRule(Struct, frozen=True, kw_only=True):
    """`[gate]`: the conditions that a run is held to."""

    dimension: tuple[str, ...] = ("overall",)
    variant: str | None = None
    candidate: str | None = None
    judge: str | None = None
    on_conflict: Rule | None = None
    level: float = 0.95
    better: bool = False
    no_worse_than: float | None = None
    min_mean: float | None = None
    min_win_rate: float | None = None
    min_pass_rate: float | None = None
    every: bool = False
    no_case_worse_than: float | None = None
    max_critical_fails: int | None = None
    max_failure_rate: float | None = None
    max_cost_increase: float | None = None
    max_latency_increase: float | None = None


class Wave(Struct, frozen=True, kw_only=True):
    """Units that a sequential test was about before others were added: the first so many of a
    run, or all of it."""

    run: str
    limit: int | None = None


class Imported(Struct, frozen=True, kw_only=True):
    """Of judgments made elsewhere: the layout and the names of the files, and the criteria."""

    kind: str
    files: tuple[str, ...]
    criteria: tuple[str, ...] = ()
    ends: Ends = {}
    """The ends of the scale of each dimension, as far as they are given."""


_NOT_TOLD = JudgingRecord()


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a run records of itself: its judging, and what it says beside it. No verdict hangs
    on the latter, so the run's id does not."""

    judging: JudgingRecord = _NOT_TOLD
    protocol: str = ""
    """The name of the protocol, as the suite has it."""
    prompt: str | None = None
    """The name of the file with a judge prompt of the user's own."""
    evenhand: str = ""
    """The version of the package."""
    compare: Compare | None = None
    stop: Stopping | None = None
    gate: GateRule | None = None
    imported: Imported | None = None
    settled_from: str | None = None
    """The run whose replies were settled anew under other rules."""
    limit: int | None = None
    """How many units the last start was about; None for all."""
    waves: tuple[Wave, ...] = ()
    copied: bool = False
    """True where the run came from another store and was not started in this one."""
    answers: str = ""
    """The run that made the answers, where the suite makes its own."""
    leaves_out_cut: bool = False
    """True where answers that are not complete were not to be judged."""
    terms: str = ""
    """The judges and limits of the suite as JSON, where other machines are to judge; no key."""
    author: str = ""
    """Who started the run first."""
    note: str = ""
    tags: tuple[str, ...] = ()

    def keep_labels(self, before: Manifest) -> Manifest:
        """Return it with the author of an earlier start, and its note and tags unless there are
        new ones."""
        return msgspec.structs.replace(
            self,
            author=before.author or self.author,
            note=self.note or before.note,
            tags=self.tags or before.tags,
        )

    @property
    def is_sequential(self) -> bool:
        """Return True if the run was last started to end when its comparison is decided."""
        return self.stop is not None and self.stop.until_decided


_sorted = msgspec.json.Encoder(order="sorted")
_manifests: StoredText[Manifest] = StoredText(Manifest, "the record of a run")
_judgings: StoredText[JudgingRecord] = StoredText(JudgingRecord, "the record of a judging")


def rubric_json(value: object) -> Raw:
    """Return a rubric as a judging keeps it."""
    return Raw(jsontext.dump(value).encode())


def plain(record: Struct) -> dict[str, Any]:
    """Return a record as JSON has it, for whoever prints it."""
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return value


def manifest_json(manifest: Manifest) -> bytes:
    """Return a manifest as a store keeps it: without its judging, which many runs may share."""
    return msgspec.json.encode(msgspec.structs.replace(manifest, judging=_NOT_TOLD))


def copied_manifest_json(text: bytes | str) -> bytes:
    """Return the text of a manifest for the store that its run is copied to."""
    return msgspec.json.encode(msgspec.structs.replace(_manifests.read(text), copied=True))


def read_manifest(text: bytes | str, judging: JudgingRecord) -> Manifest:
    """Return the manifest of what `manifest_json` wrote, and its judging; raise StoreError."""
    return msgspec.structs.replace(_manifests.read(text), judging=judging)


def judging_json(judging: JudgingRecord, texts: Mapping[str, str]) -> bytes:
    """Return a judging as a store keeps it, with what stands for its texts."""
    return msgspec.json.encode(msgspec.structs.replace(judging, texts=texts))


def read_judging(text: bytes | str) -> JudgingRecord:
    """Return the judging of what `judging_json` wrote, with what stands for its texts; raise
    StoreError."""
    return _judgings.read(text)
