"""Addresses of judges and of proxies: which are taken, and what is told of the others."""

import pytest
from yarl import URL

from evenhand.errors import UsageError
from evenhand.judges.trust import base_url, is_loopback, parse_proxy, proxy_for
from tests.cases import cases
from tests.sentences import refused

PASSWORD = "hunter2-of-the-user"


@cases
def test_a_base_url_is_tidied(text, url):
    assert str(base_url(text, where="base_url")) == url


@cases
def test_what_is_no_base_url_is_refused_without_showing_secrets(text):
    with pytest.raises(UsageError, match="base_url") as raised:
        base_url(text, where="base_url")
    assert raised.value.key.startswith("judges.url_") and "hidden" not in str(raised.value)


@cases
def test_this_machine_is_known(host, is_here):
    assert is_loopback(URL(f"http://{host}:80/v1")) is is_here


# Proxies


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("http://h.test/v1", {}, None),
        ("http://h.test/v1", {"https_proxy": "http://proxy:1"}, None),
        ("http://h.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "h.test"}, None),
        ("http://h.test/v1", {"http_proxy": "http://proxy:1", "NO_PROXY": ".test, other"}, None),
        ("http://h.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "*"}, None),
        ("http://127.0.0.1:8000/v1", {"http_proxy": "http://proxy:1"}, None),
        ("https://h.test/", {"HTTPS_PROXY": "p:1"}, URL("http://p:1")),
    ],
)
def test_a_proxy_is_used_where_one_is_meant(url, environment, proxy):
    assert proxy_for(URL(url), environment) == proxy


@cases
def test_a_proxy_that_is_none_is_refused_without_its_password(text):
    with pytest.raises(UsageError) as raised:
        proxy_for(URL("https://h.test/"), {"https_proxy": text.replace("PASSWORD", PASSWORD)})
    assert raised.value.where == "https_proxy"
    assert PASSWORD not in f"{raised.value}{raised.value!r}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("proxy", ["http://p..corp:1", "http://a..b:1", "ftp://p:1", "http://"])
def test_a_mistyped_proxy_is_told_before_anything_is_sent(proxy):
    with refused(UsageError, "judges.bad_proxy"):
        parse_proxy(proxy, "http_proxy")
