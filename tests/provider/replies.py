"""Replies that are in order: what a schema asks for, and the completion that carries it."""

from __future__ import annotations

import json
import re
from typing import Any

USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 200,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 128},
}
NO_EVIDENCE = "no evidence found 未找到相关证据 свидетельств не найдено 該当する根拠なし"
REASON = "Both say it, the first in plainer words."
ANSWER = re.compile(r"\[\[((?:answer|model_output) [0-9a-f]{8})\]\]\n(.*?)\n\[\[/\1\]\]", re.DOTALL)
BLOCK = re.compile(r"\[\[(\w+) ([0-9a-f]+)\]\]\n(.*?)\n\[\[/\1 \2\]\]", re.DOTALL)
FRAGMENT = re.compile(r"\S[^\n]{0,30}")


def completion(text: Any, *, finish: str = "stop", **message: Any) -> bytes:
    """The body of a chat completion that says `text`."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    return json.dumps(
        {"object": "chat.completion", "model": "test-model", "choices": [choice], "usage": USAGE}
    ).encode()


def valid_reply(body: dict[str, Any], schema: dict[str, Any] | None) -> Any:
    """A value that fits the schema: ties, middle scores, verbatim evidence from the prompt."""
    prompt = "\n".join(message["content"] for message in body["messages"])
    found = ANSWER.search(prompt)
    fragment = FRAGMENT.search(found[2]) if found else None
    quote = fragment[0] if fragment else None
    return {} if schema is None else _sample(schema, schema, "", quote)


def _sample(schema: Any, root: Any, name: str, quote: str | None) -> Any:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _chosen(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            options = schema[union]
            empty = [o for o in options if o.get("type") == "null"]
            return _sample((empty or options)[0], root, name, quote)
    return _sample_type(schema, root, name, quote)


def _chosen(options: list[Any]) -> Any:
    if "tie" in options:
        return "tie"
    real = [o for o in options if o is not None]
    return real[len(real) // 2] if real else None


def _sample_type(schema: Any, root: Any, name: str, quote: str | None) -> Any:
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else "null" if "null" in kinds else kinds[0]
    if kind == "object":
        parts = schema.get("properties", {})
        return {key: _sample(part, root, key, quote) for key, part in parts.items()}
    if kind == "array":
        return [quote] if name == "evidence" and quote else []
    if kind in ("number", "integer"):
        return schema.get("maximum", schema.get("minimum", 1))
    if kind == "string":
        unquoted = NO_EVIDENCE if name == "rationale" else REASON
        return "" if name == "notes" else "fits" if quote else unquoted
    return {"boolean": False, "null": None}[kind]


def shown(body: dict[str, Any]) -> dict[str, str]:
    """The texts between fences in the opening of a conversation, by the name of the block."""
    asked = next(message for message in body["messages"] if message["role"] == "user")
    return {name: text for name, _, text in BLOCK.findall(asked["content"])}
