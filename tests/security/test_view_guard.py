"""What the web interface refuses: foreign names and pages, changes, paths."""

from __future__ import annotations

import socket
import sqlite3

import pytest

from evenhand.results import pages
from evenhand.web import security
from evenhand.web.security import BODY_BYTES, HEADERS, Endpoint
from tests.suites import write_suite
from tests.unit.web.serving import TOKEN, judge_all, served
from tests.waiting import PATIENCE

PAGES = ["/", "/runs/latest", "/runs/latest/units", "/static/view.js", "/nowhere"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = write_suite(tmp_path_factory.mktemp("guarded"), 2)
    judge_all(folder)
    return folder / "evenhand.db"


@pytest.fixture(scope="module")
def site(store):
    with served(store) as found:
        yield found


@pytest.fixture(scope="module")
def closed(store):
    with served(store, closed=True, host="0.0.0.0") as found:
        yield found


def raw(site, request):
    """What the server says to the very bytes of a request."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as line:
        line.sendall(request.encode("latin-1"))
        said = b""
        while part := line.recv(65536):
            said += part
    return said.decode("utf-8", "replace")


FOREIGN = """
evil.example evil.example:{port} 127.0.0.1.evil.example:{port} localhost.evil.example:{port}
127.0.0.1 127.0.0.1:1 127.0.0.2:{port} 192.168.0.1:{port} [::2]:{port} 0.0.0.0:{port}
127.0.0.1:{port}@evil.example
"""


@pytest.mark.parametrize("host", [*FOREIGN.split(), "", "127.0.0.1:{port}, evil.example"])
def test_a_foreign_host_is_refused(site, host):
    for path in PAGES:
        answer = site.get(path, host=host.format(port=site.port))
        assert answer.status_code == 403, path
        assert "evil.example" not in answer.text


def test_its_own_names_and_its_own_origin_are_known(site):
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert site.get("/", host=f"{host}:{site.port}").status_code == 200
    assert Endpoint(host="::1", port=80, token="t", closed=False).is_own_host("[::1]")
    assert site.get("/runs/latest", origin=site.url).status_code == 200


def test_a_request_with_no_host_or_with_two_is_refused(site):
    assert " 400 " in raw(site, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").split("\r\n")[0]
    assert " 403 " in raw(site, "GET / HTTP/1.0\r\n\r\n").split("\r\n")[0]
    two = f"Connection: close\r\nHost: 127.0.0.1:{site.port}\r\nHost: evil.example\r\n"
    assert " 400 " in raw(site, f"GET / HTTP/1.1\r\n{two}\r\n").split("\r\n")[0]


ORIGINS = """
https://evil.example null http://127.0.0.1 http://localhost:1 file:// https://127.0.0.1:{port}
http://127.0.0.1:{port}.evil.example
"""


@pytest.mark.parametrize("origin", [*ORIGINS.split(), ""])
def test_a_foreign_origin_is_refused(site, origin):
    for path in PAGES:
        assert site.get(path, origin=origin.format(port=site.port)).status_code == 403, path


def test_other_sites_may_link_to_pages_and_load_nothing(site):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert site.get("/runs/latest", **link, **{"sec-fetch-dest": "document"}).status_code == 200
    for dest in ("image", "script", "iframe", "empty", "style"):
        for path in PAGES:
            assert site.get(path, **link, **{"sec-fetch-dest": dest}).status_code == 403
    report = "/runs/latest/report"
    assert site.get(report, **link, **{"sec-fetch-dest": "document"}).status_code == 403
    same = {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    assert site.get("/runs/latest", **same).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(site, method):
    for path in ("/", "/runs/latest", "/nowhere"):
        answer = site.client.request(method, path, headers={"x-evenhand-token": TOKEN})
        assert answer.status_code == 405
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", PAGES)
def test_head_is_answered_like_get(site, path):
    head, get = site.client.head(path), site.get(path)
    assert head.status_code == get.status_code
    assert head.headers.keys() == get.headers.keys()
    assert int(head.headers["content-length"]) > 0
    assert head.content == b""
    assert site.client.head(path, headers={"host": "evil.example"}).status_code == 403


def test_no_get_changes_anything(site, store):
    def content():
        with sqlite3.connect(store) as database:
            return list(database.iterdump())

    before = content()
    for part in ("", "/units", "/changes", "/unit?id=u0", "/protocol", "/report"):
        site.get(f"/runs/latest{part}")
    site.get("/")
    assert content() == before
    assert [one.name for one in store.parent.glob("*report*")] == []


def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []
    real = security.hmac.compare_digest
    monkeypatch.setattr(
        security.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b)
    )
    endpoint = Endpoint(host="127.0.0.1", port=1, token="right", closed=True)
    assert endpoint.is_token("right")
    assert not endpoint.is_token("wrong")
    assert compared == [(b"right", b"right"), (b"wrong", b"right")]


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_carries_the_headers(site, path):
    answers = [site.get(path), site.get(path, host="evil.example"), site.client.put(path)]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "server" not in answer.headers
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


PATHS = """
/static/../app.py /static/..%2fapp.py /static/%2e%2e/app.py /static/....//app.py
/static//etc/passwd /static/%2fetc%2fpasswd /static/view.js%00.html /static/ /static
/../../../etc/passwd /..%5c..%5cetc/passwd /runs/..%2f..%2fetc%2fpasswd
/runs/latest/report/..%2f..%2fetc //evil.example/ /templates/base.html
"""


@pytest.mark.parametrize("path", PATHS.split())
def test_no_path_reaches_the_disk(site, path):
    said = raw(
        site, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n"
    )
    assert said.split(" ")[1] == "404"
    assert "root:" not in said
    assert "import" not in said


def test_long_bodies_are_refused_before_they_are_read(site):
    path, ask = "/runs/latest", site.client.request
    assert ask("GET", path, content=b"x" * (BODY_BYTES + 1)).status_code == 413
    parts = ask("GET", path, content=iter([b"x" * BODY_BYTES, b"x" * BODY_BYTES]))
    assert parts.status_code == 413
    host = f"Host: 127.0.0.1:{site.port}\r\nConnection: close\r\n"
    endless = raw(site, f"GET {path} HTTP/1.1\r\n{host}Content-Length: 99999999999\r\n\r\nx")
    assert endless.split(" ")[1] == "413"
    assert ask("GET", path, content=b"x" * 100).status_code == 200


def test_a_fault_says_nothing_of_the_program(site, monkeypatch, capsys):

    def broken(*_):
        raise RuntimeError("secret /path/to/things")

    monkeypatch.setattr(pages, "judgment_rows", broken)
    page = site.get("/runs/latest/units")
    assert page.status_code == 500
    for text in (page.text, capsys.readouterr().err):
        assert "secret" not in text
        assert "Traceback" not in text


def test_behind_a_closed_door_everything_needs_the_token(closed):
    for path in PAGES:
        assert closed.get(path).status_code == 401
        assert closed.get(f"{path}?token=wrong").status_code == 401
        answer = closed.get(path, **{"x-evenhand-token": TOKEN})
        assert answer.status_code in (200, 404)


def test_the_token_in_the_address_is_taken_once_and_taken_out(closed):
    answer = closed.get(f"/runs/latest/units?status=verdict&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs/latest/units?status=verdict"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert closed.get("/runs/latest/units").status_code == 200
    closed.client.cookies.clear()
    assert closed.get("/runs/latest/units").status_code == 401
    away = closed.get(f"//evil.example/x?token={TOKEN}")
    assert not away.headers.get("location", "/").startswith("//")


def test_behind_a_closed_door_addresses_are_known_and_foreign_names_are_not(closed):
    token = {"x-evenhand-token": TOKEN}
    assert closed.get("/", host=f"192.168.0.7:{closed.port}", **token).status_code == 200
    assert closed.get("/", host=f"evil.example:{closed.port}", **token).status_code == 403


def test_no_socket_but_http(site):
    upgrade = "Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    said = raw(
        site,
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{upgrade}"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert " 101 " not in said.split("\r\n")[0]
