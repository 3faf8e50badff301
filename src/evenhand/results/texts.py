"""What a person reads of a unit in two runs: whether it is the same, and in the same order."""

from __future__ import annotations

from typing import Any

from evenhand.jsontext import StoredText

ABOUT = frozenset({"id", "row", "of", "order", "meta", "language", "lengths"})
"""What a unit carries beside its texts: where it came from, and how it was asked about."""
_units: StoredText[dict[str, Any]] = StoredText(dict[str, Any], "a unit")
OTHER_SIDE = {"A": "B", "B": "A"}


class Texts:
    """The texts of a unit, by what they are; those of candidates by the candidate's name."""

    def __init__(self, body: str) -> None:
        unit = _units.read(body)
        self.candidates = [str(candidate["id"]) for candidate in unit.get("candidates", ())]
        texts = {name: unit[name] for name in unit.keys() - ABOUT - {"candidates"}}
        for candidate in unit.get("candidates", ()):
            texts[f"candidate {candidate['id']}"] = candidate["text"]
        # Of judgments made elsewhere the texts are often not there: then nobody knows them.
        self._known = {name: text for name, text in texts.items() if text not in ("", None)}

    def differ(self, texts: Texts) -> bool:
        """Whether something that both have is not the same, or the candidates are others."""
        shared = self._known.keys() & texts._known.keys()
        if any(self._known[name] != texts._known[name] for name in shared):
            return True
        return sorted(self.candidates) != sorted(texts.candidates)

    def is_turned(self, texts: Texts) -> bool:
        """Whether the same two candidates stand the other way round, so that A is B there."""
        return len(self.candidates) == 2 and self.candidates[::-1] == texts.candidates
