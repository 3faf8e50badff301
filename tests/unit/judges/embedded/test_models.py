import os
from pathlib import Path

import pytest

from evenhand.errors import UsageError
from evenhand.judges.embedded import models, weights


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


def test_a_model_is_found_by_its_alias():
    assert models.named("embedded").name == models.DEFAULT


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="smollm2-135m"):
        models.named("gpt-5")


def test_models_lie_in_the_users_cache_unless_told_otherwise(tmp_path, monkeypatch):
    model = models.named("smollm2-135m")
    assert model.path == tmp_path / "cache/evenhand/models/smollm2-135m" / model.file
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "elsewhere"))
    assert model.path == tmp_path / "elsewhere/smollm2-135m" / model.file


def test_an_absent_or_cut_off_model_is_not_found():
    model = models.named("smollm2-135m")
    assert models.find(model.name) is None
    model.folder.mkdir(parents=True)
    model.path.write_bytes(b"half of it")
    assert models.find(model.name) is None
    assert not models.verify(model.name)


def test_a_file_is_hashed_once_until_it_changes(tmp_path, monkeypatch):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    first = weights.remembered_sha256(file)
    monkeypatch.setattr(weights, "sha256_of", lambda _: "hashed again")
    assert weights.remembered_sha256(file) == first
    os.utime(file, ns=(1, 1))
    assert weights.remembered_sha256(file) == "hashed again"


def test_a_byte_changed_under_the_old_time_of_change_is_noticed(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    before, first = file.stat(), weights.remembered_sha256(file)
    file.write_bytes(b"onE")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert weights.remembered_sha256(file) != first


def test_an_opened_file_is_hashed_to_its_end_and_its_changes_are_seen(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one" * 9_000_000)
    opened = weights.Opened(file)
    assert opened.sha256() == weights.sha256_of(file)
    assert not opened.changed()
    with file.open("r+b") as other:
        other.write(b"One")
    assert opened.changed()
    opened.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_what_is_loaded_is_the_file_that_was_opened_whatever_its_name_leads_to(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    opened = weights.Opened(file)
    (tmp_path / "forged").write_bytes(b"two")
    (tmp_path / "forged").replace(file)
    assert opened.path.read_bytes() == b"one"
    opened.close()


def test_only_a_file_that_has_to_be_read_is_spoken_of(tmp_path):
    file, said = tmp_path / "own.gguf", []
    file.write_bytes(b"one")
    weights.remembered_sha256(file, said.append)
    weights.remembered_sha256(file, said.append)
    assert said == ["checking own.gguf"]
    assert models.find("smollm2-135m", said.append) is None
    assert len(said) == 1


def test_a_damaged_stamp_is_taken_again(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    first = weights.remembered_sha256(file)
    (stamp,) = (weights.cache_home() / "stamps").iterdir()
    stamp.write_text("[")
    assert weights.remembered_sha256(file) == first


def test_the_notice_names_the_model_and_its_licence():
    notice = models.named("embedded").notice
    assert "Qwen2.5-Coder-1.5B" in notice
    assert "Apache License" in notice
