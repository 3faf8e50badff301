"""A key goes where it belongs, where both came from together, or where the user said so. Hosts that
are not this machine are reached through a proxy on it, which keeps what arrives."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import evenhand as package
from evenhand.errors import UsageError
from evenhand.judges import PROVIDERS
from evenhand.judges.credentials import environment as dotenv_environment
from evenhand.judges.trust import TrustedHosts, host_named
from tests.sentences import is_told
from tests.suites import EVENHAND, environment, evenhand_here, write_suite
from tests.unit.judges.questions import opened

KEY = "sk-of-the-user-0123456789"
GATEWAY = "http://gateway.test/v1"
HOST = "gateway.test"


class Proxy:
    """Takes every request for the host it is meant for, and refuses the key."""

    def __init__(self):
        self.requests: list[tuple[str, str]] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((self.path, self.headers.get("Authorization", "")))
                self.send_response(401)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_CONNECT(self):
                requests.append((self.path, ""))
                self.send_error(403)

            def log_request(self, code="-", size="-"):
                """Nothing on stderr."""

            log_error = log_request

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def has_key(self):
        return any(KEY in key for _, key in self.requests)


@pytest.fixture
def proxy():
    recorder = Proxy()
    thread = threading.Thread(target=recorder.server.serve_forever)
    thread.start()
    yield recorder
    recorder.server.shutdown()
    thread.join()
    recorder.server.server_close()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "suite").mkdir()
    return tmp_path / "suite"


class Settings:
    """A suite with a key and an address, each in a place of its own."""

    def __init__(self, folder, home, proxy):
        self.folder = folder
        self.env = {"XDG_CONFIG_HOME": str(home), "http_proxy": proxy.url, "no_proxy": ""}
        self.dotenv: dict[str, str] = {}
        self.judge: dict[str, Any] = {"model": "openai/test-model", "max_tokens": 64}

    def put(self, name, value, place):
        if place == "environment":
            self.env[name] = value
        elif place == ".env":
            self.dotenv[name] = value
        elif place == "suite":
            self.judge["base_url"] = value

    def run(self, *flags, **env):
        write_suite(self.folder, 1, self.judge)
        text = "".join(f"{name}={value}\n" for name, value in self.dotenv.items())
        (self.folder / ".env").write_text(text)
        return evenhand_here("run", *flags, cwd=self.folder, env=self.env | env)


@pytest.fixture
def settings(folder, home, proxy):
    return Settings(folder, home, proxy)


@pytest.fixture
def strange(settings):
    """A key of the user's, and an address of the suite's."""
    settings.put("OPENAI_API_KEY", KEY, "environment")
    settings.put("", GATEWAY, "suite")
    return settings


PLACES = {
    ("environment", "environment"): True,
    (".env", ".env"): True,
    ("environment", ".env"): False,
    (".env", "environment"): False,
    ("environment", "suite"): False,
    (".env", "suite"): False,
}


@pytest.mark.parametrize(("key_place", "address_place"), PLACES)
def test_a_key_goes_where_its_address_came_from(settings, proxy, key_place, address_place):
    settings.put("OPENAI_API_KEY", KEY, key_place)
    settings.put("OPENAI_BASE_URL", GATEWAY, address_place)
    dry = settings.run("--dry-run")
    result = settings.run()
    if PLACES[key_place, address_place]:
        assert (dry.returncode, result.returncode) == (0, 4), result.stderr
        assert proxy.has_key
        return
    assert (dry.returncode, result.returncode) == (2, 2), result.stderr
    assert proxy.requests == []
    names = {"suite": "evenhand.toml:", ".env": ".env", "environment": "the environment"}
    for word in ("OPENAI_API_KEY", names[key_place], names[address_place], HOST):
        assert word in result.stderr
    assert f"--trust-host {HOST}" in result.stderr and "EVENHAND_TRUST_HOSTS" in result.stderr
    assert KEY not in result.stderr + dry.stderr


def test_a_judge_named_on_the_command_line_has_the_address_of_the_file(strange, proxy):
    assert strange.run("--judge", "openai/test-model").returncode == 2
    assert proxy.requests == []


def test_a_host_is_trusted_once_and_remembered(strange, proxy, home):
    assert strange.run().returncode == 2
    assert strange.run("--trust-host", "other.test").returncode == 2
    assert strange.run("--trust-host", HOST).returncode == 4
    assert proxy.has_key
    file = home / "evenhand" / "trusted-hosts"
    assert file.read_text().split() == ["other.test", HOST]
    assert file.stat().st_mode & 0o777 == 0o600
    proxy.requests.clear()
    assert strange.run().returncode == 4
    assert proxy.has_key
    file.unlink()
    assert strange.run().returncode == 2
    file.symlink_to(home / "elsewhere")
    assert strange.run("--trust-host", HOST).returncode == 2
    assert not (home / "elsewhere").exists()
    file.unlink()
    assert strange.run(EVENHAND_TRUST_HOSTS=f"a.test, {HOST}").returncode == 4


def test_what_is_no_host_is_not_trusted(settings):
    for host in ("", "*", "a b", "user@gateway.test", "http://"):
        result = settings.run("--trust-host", host)
        assert (result.returncode, "host" in result.stderr) == (2, True), host


@pytest.mark.parametrize(
    "line", [f"EVENHAND_TRUST_HOSTS={HOST}", "XDG_CONFIG_HOME=config", "HOME=."]
)
def test_no_file_in_the_suites_folder_trusts_a_host(strange, proxy, line):
    for place in ("evenhand", ".config/evenhand", "config/evenhand"):
        (strange.folder / place).mkdir(parents=True)
        (strange.folder / place / "trusted-hosts").write_text(f"{HOST}\n")
    strange.put(*line.split("=", 1), place=".env")
    assert strange.run().returncode == 2
    assert proxy.requests == []


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "Https_Proxy"])
def test_dotenv_sets_no_proxy(settings, proxy, name):
    settings.put("OPENAI_API_KEY", KEY, "environment")
    settings.put("OPENAI_BASE_URL", "http://192.0.2.1:9/v1", "environment")
    settings.dotenv[name] = settings.env.pop("http_proxy")
    result = settings.run("--dry-run")
    assert result.returncode == 0 and is_told(result.stderr, "runs.not_from_env", name=name)
    environ = dotenv_environment(settings.folder)
    judge = judge_at(None, folder=settings.folder, environment=environ)
    assert proxy.url not in repr(vars(judge)["_transport"].__dict__)


@pytest.mark.parametrize(
    "name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "ssl_cert_dir", "no_proxy"]
)
def test_dotenv_sets_no_certificates(settings, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    settings.dotenv[name] = "cert.pem"
    settings.put("OPENAI_API_KEY", KEY, "environment")
    settings.env.pop("no_proxy")
    result = settings.run("--dry-run")
    assert result.returncode == 0 and is_told(result.stderr, "runs.not_from_env", name=name)


def test_dotenv_carries_no_other_variable_into_an_address(settings, proxy):
    """Key and address of a stranger, and in the address a key of the user's."""
    settings.put("ANTHROPIC_API_KEY", KEY, "environment")
    settings.put("OPENAI_API_KEY", "sk-of-a-stranger", ".env")
    settings.put("OPENAI_BASE_URL", "http://gateway.test/${ANTHROPIC_API_KEY}/v1", ".env")
    result = settings.run()
    assert result.returncode == 2 and "${ANTHROPIC_API_KEY}" in result.stderr
    assert proxy.requests == [] and KEY not in result.stderr


def test_dotenv_sets_nothing_of_the_suite(settings):
    settings.put("EVENHAND_LIMITS__BUDGET_USD", "1", ".env")
    result = settings.run()
    assert result.returncode == 2
    assert "EVENHAND_LIMITS__BUDGET_USD" in result.stderr and ".env" in result.stderr


NOT_OPENAIS = (
    "https://api.openai.com.evil.test/v1",
    "https://evil.test/api.openai.com/v1",
    "https://api.оpenai.com/v1",
    "https://api.openai.com@evil.test/v1",
    "https://api.openai.com%2eevil.test/v1",
    "https://api.openai.com\\@evil.test/v1",
    "https://xapi.openai.com/v1",
    "https://openai.com/v1",
    "http://api.openai.com/v1",
    "http://localhost.evil.test/v1",
    "http://evil.localhost/v1",
    "http://127.0.0.1.nip.io/v1",
    "http://0.0.0.0/v1",
    "http://[::]/v1",
    "http://[::ffff:192.0.2.1]/v1",
    "http://2130706433/v1",
    "http://127.1/v1",
    "http://0x7f000001/v1",
    "http://127.0.0.1@evil.test/v1",
    "http://192.168.0.1/v1",
    "http://169.254.169.254/v1",
    "http://localhost%2eevil.test/v1",
    "http://localhost%00.evil.test/v1",
)
OPENAIS = (
    "https://api.openai.com/v1",
    "https://API.OpenAI.com/v1",
    "https://api.openai.com./v1",
    "https://api.openai.com:443/v1",
    "http://127.0.0.1:1/v1",
    "http://127.9.9.9:1/v1",
    "http://localhost:1/v1",
    "http://LOCALHOST:1/v1",
    "https://[::1]:1/v1",
)


def judge_at(url, provider="openai", **more):
    """A judge at an address that the suite names, in an environment with its first key."""
    keys = dict.fromkeys(PROVIDERS[provider].key_names[:1], KEY)
    settings = {"base_url_place": "evenhand.toml:9", "environment": keys, **more}
    return opened(f"{provider}/m", url, **settings)


@pytest.fixture
def nobody_trusted(home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.delenv("EVENHAND_TRUST_HOSTS", raising=False)


@pytest.mark.parametrize("url", NOT_OPENAIS)
def test_hosts_that_look_like_the_right_one_get_no_key(nobody_trusted, url):
    with pytest.raises(UsageError) as raised:
        judge_at(url)
    assert KEY not in str(raised.value)


def test_the_provider_and_this_machine_get_the_key(nobody_trusted):
    for url in OPENAIS:
        judge_at(url)
    # A word that is no secret may go anywhere.
    judge_at("http://vllm.test/v1", environment={"OPENAI_API_KEY": "EMPTY"})


@pytest.mark.parametrize("provider", [name for name, one in PROVIDERS.items() if one.key_names])
def test_every_provider_keeps_its_keys(nobody_trusted, provider):
    record = PROVIDERS[provider]
    for name in record.key_names:
        for url in ("https://evil.test/v1", "https://mine.openai.azure.com"):
            with pytest.raises(UsageError, match=name):
                judge_at(url, provider, environment={name: KEY})
        if record.url:
            judge_at(record.url, provider, environment={name: KEY})


def test_plain_http_with_a_key_is_told_in_one_line(settings):
    settings.put("OPENAI_API_KEY", KEY, "environment")
    settings.put("OPENAI_BASE_URL", GATEWAY, "environment")
    result = settings.run("--dry-run")
    assert is_told(result.stderr, "judges.plain_http", key="OPENAI_API_KEY", host=HOST)
    for url in ("https://gateway.test/v1", "http://127.0.0.1:9/v1"):
        settings.put("OPENAI_BASE_URL", url, "environment")
        assert not is_told(settings.run("--dry-run").stderr, "judges.plain_http")


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("", 2), ("y", 4)])
def test_a_terminal_is_asked_once(strange, proxy, home, answer, code):
    assert strange.run("--dry-run").returncode == 2
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [EVENHAND, "run"],
        cwd=strange.folder,
        env=environment(strange.env),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        text = b""
        while b"[y/N]" not in text:
            text += os.read(ours, 4096)
        assert b"OPENAI_API_KEY" in text and b"evenhand.toml:" in text
        os.write(ours, f"{answer}\n".encode())
        with contextlib.suppress(OSError):  # its end, where the other side is closed
            while os.read(ours, 4096):
                pass
    os.close(ours)
    assert process.returncode == code
    assert proxy.has_key == (answer == "y")
    assert (home / "evenhand" / "trusted-hosts").exists() == (answer == "y")


PYTHON = {
    "run": lambda: package.run("."),
    "score": lambda: package.score(
        "q", "an output", rubric="Is it polite?", judge="openai/m", store="sqlite::memory:"
    ),
}


@pytest.mark.parametrize("call", PYTHON)
def test_from_python_the_same_holds(settings, proxy, monkeypatch, call):
    settings.put("OPENAI_BASE_URL", GATEWAY, ".env")
    settings.run("--dry-run")
    monkeypatch.chdir(settings.folder)
    for name, value in {**settings.env, "OPENAI_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="--trust-host"):
        PYTHON[call]()
    assert proxy.requests == []
    monkeypatch.setenv("EVENHAND_TRUST_HOSTS", HOST)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with contextlib.suppress(package.EvenhandError):
            PYTHON[call]()
    assert proxy.has_key
    assert "plain http" in str(warned[0].message)


def test_the_pytest_plugin_sends_no_key_to_an_address_of_dotenv(settings, proxy):
    settings.put("OPENAI_BASE_URL", GATEWAY, ".env")
    settings.run("--dry-run")
    (settings.folder / "test_it.py").write_text(
        "def test_it(evenhand):\n"
        "    evenhand.score('q', 'an output', rubric='Is it polite?', judge='openai/m')\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=settings.folder,
        env=environment({**settings.env, "OPENAI_API_KEY": KEY}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1 and "--trust-host" in result.stdout, result.stdout
    assert proxy.requests == [] and KEY not in result.stdout


def test_doctor_says_where_a_key_stands_and_may_not_go(strange):
    strange.run()
    result = evenhand_here("doctor", cwd=strange.folder, env=strange.env)
    assert result.returncode == 1, result.stdout
    assert f"--trust-host {HOST}" in result.stdout
    assert is_told(result.stdout, "cli.key_in_environment")
    strange.run("--trust-host", HOST)
    trusting = evenhand_here("doctor", cwd=strange.folder, env=strange.env)
    assert trusting.returncode == 0 and f"trusted hosts: {HOST}" in trusting.stdout
    assert KEY not in result.stdout + trusting.stdout


def test_a_host_may_be_named_in_any_spelling(home):
    names = ("Gateway.Test", "gateway.test.", "gateway.test:8443", "https://gateway.test/v1")
    assert {host_named(name) for name in names} == {HOST}
    assert {host_named(name) for name in ("::1", "[::1]", "[::1]:80", "http://[::1]:80")} == {"::1"}
    hosts = TrustedHosts(home / "list")
    hosts.remember([HOST])
    hosts.remember([HOST, "a.test"])
    assert hosts.hosts() == ["a.test", HOST]


# Proxies and certificates of the suite's own


def test_a_proxy_of_the_suite_gets_no_key_before_it_is_allowed(settings):
    settings.env["OPENAI_API_KEY"] = KEY
    settings.judge["proxy"] = "http://gateway.test:3128"
    refused = settings.run("--dry-run")
    assert refused.returncode == 2
    for word in (HOST, "--trust-host", "evenhand.toml:"):
        assert word in refused.stderr
    assert settings.run("--dry-run", EVENHAND_TRUST_HOSTS=HOST).returncode == 0


def test_a_proxy_on_this_machine_is_used(settings, proxy):
    settings.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": GATEWAY, "http_proxy": ""}
    settings.judge["proxy"] = proxy.url
    assert settings.run().returncode == 4
    assert proxy.has_key


def test_a_password_of_a_proxy_does_not_stand_in_the_suite(settings):
    settings.judge["proxy"] = "http://user:hunter2-of-the-user@127.0.0.1:1"
    refused = settings.run("--dry-run")
    assert refused.returncode == 2 and "hunter2" not in refused.stderr


def test_certificates_of_the_suite_vouch_for_no_provider(settings, certificate):
    settings.env["OPENAI_API_KEY"] = KEY
    (settings.folder / "ca.pem").write_bytes(certificate.read_bytes())
    settings.judge["ca_file"] = "ca.pem"
    refused = settings.run("--dry-run")
    assert refused.returncode == 2 and "api.openai.com" in refused.stderr
    settings.judge["base_url"] = GATEWAY.replace("http:", "https:")
    assert settings.run("--dry-run", EVENHAND_TRUST_HOSTS=HOST).returncode == 0
    settings.judge["ca_file"] = "../ca.pem"
    outside = settings.run("--dry-run")
    assert outside.returncode == 2 and is_told(outside.stderr, "suite.outside")
