"""Ollama speaks OpenAI's protocol; only its address is spelled in a way of its own."""

from __future__ import annotations

from evenhand.regexp import regexp

_HOST = regexp(
    r"(?P<scheme>(?i:https?)://(?=[^:/]))?(?P<host>\[[^\]]*\]|[^:/]*)(?P<port>:\d+)?(?P<path>/.*)?"
)
# Where a server listens on all its addresses, with nothing to call by that name.
_ANYWHERE = regexp(r"(?:0\.0\.0\.0|\[[0:]+\])?")


def ollama_url(text: str) -> str:
    """What OLLAMA_HOST holds, as a URL: it may lack scheme, host or port, and it may be the
    address that a server listens on, which is none to call."""
    parts = _HOST.fullmatch(text)
    if parts is None:
        return text
    host = "127.0.0.1" if _ANYWHERE.fullmatch(parts["host"]) else parts["host"]
    port = parts["port"] or ("" if parts["scheme"] else ":11434")
    return f"{parts['scheme'] or 'http://'}{host}{port}{parts['path'] or ''}"
