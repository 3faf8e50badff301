"""Addresses of judges and of proxies: which are taken, and what is told of the others."""

from __future__ import annotations

import pytest
from yarl import URL

from evenhand.errors import UsageError
from evenhand.judges.trust import base_url, is_loopback, parse_proxy, proxy_for


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        (" https://api.openai.com/v1/ ", "https://api.openai.com/v1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://gateway.test/a%2Fb/v1", "https://gateway.test/a%2Fb/v1"),
    ],
)
def test_a_base_url_is_tidied(text: str, url: str) -> None:
    assert str(base_url(text, where="base_url")) == url


@pytest.mark.parametrize(
    "text",
    [
        "api.openai.com/v1",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://host:port/v1",
        "http://user:hidden@host:port/v1",
        "http://user:x#hidden@host/v1",
        f"http://{'a' * 70}.test/v1",
        "http://a..test/v1",
        "http://a..b/v1",
        "https://user:hidden@host/v1",
        "https://hidden@host/v1",
        "https://host/v1?key=hidden",
        "https://host/v1#hidden",
        "",
    ],
)
def test_what_is_no_base_url_is_refused_without_showing_secrets(text: str) -> None:
    with pytest.raises(UsageError, match="base_url") as raised:
        base_url(text, where="base_url")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_this_machine_is_known(host: str) -> None:
    assert is_loopback(URL(f"http://{host}:80/v1"))


@pytest.mark.parametrize(
    "host", ["localhost.evil.test", "a.localhost", "127.0.0.1.evil.test", "10.0.0.1"]
)
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(URL(f"http://{host}/v1"))


# Proxies


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("http://host.test/v1", {}),
        ("http://host.test/v1", {"https_proxy": "http://proxy:1"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "host.test"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "NO_PROXY": ".test, other"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "*"}),
        ("http://127.0.0.1:8000/v1", {"http_proxy": "http://proxy:1"}),
    ],
)
def test_no_proxy_is_used_where_none_is_meant(url: str, environment: dict[str, str]) -> None:
    assert proxy_for(URL(url), environment) is None


def test_a_proxy_may_be_named_without_its_scheme() -> None:
    assert proxy_for(URL("https://h.test/"), {"HTTPS_PROXY": "p:1"}) == URL("http://p:1")


PASSWORD = "hunter2-of-the-user"
MISTYPED = (
    "socks5://user:PASSWORD@p:1",
    "http:/user:PASSWORD@p:1",
    "http//user:PASSWORD@p:1",
    "http://user:PASSWORD@p:port",
    "http://user:PASSWORD@p:99999",
    "http://user:PASSWORD@:1",
    "http://user:PASSWORD@",
    "http://user:PASSWORD/x@p:1",
    "http://user:PASSWORD#x@p:1",
    "http://user:PASSWORD?x@p:1",
    "http://user:PASSWORD@[::1:3",
    "http://user:PASSWORD@p\\q:1",
    "user:PASSWORD@p q",
)


@pytest.mark.parametrize("text", MISTYPED)
def test_a_proxy_that_is_none_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        proxy_for(URL("https://h.test/"), {"https_proxy": text.replace("PASSWORD", PASSWORD)})
    assert raised.value.where == "https_proxy"
    assert PASSWORD not in f"{raised.value}{raised.value!r}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "proxy", ["http://p..corp:1", "http://a..b:1", "ftp://p:1", "http://", "x y"]
)
def test_a_mistyped_proxy_is_told_before_anything_is_sent(proxy: str) -> None:
    with pytest.raises(UsageError, match="no http or https proxy"):
        parse_proxy(proxy, "http_proxy")
