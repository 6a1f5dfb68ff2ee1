"""Keeping files: where, and how they get there whole or not at all."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ihgmm.datasets._catalog import Entry
from ihgmm.datasets._content import ContentError, read

__all__ = ["DatasetError", "cache_folder", "fetch"]

VARIABLE = "IHGMM_DATA"


class DatasetError(OSError):
    """A data set that cannot be had; the message says which file to put where."""


def fetch(
    entry: Entry,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
    timeout: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return data and classes from the cache, filling it first where needed."""
    path = cache_folder(data_home) / entry.file
    if path.exists():
        try:
            return read(entry, path)
        except ContentError as error:
            raise DatasetError(
                f"{path} is not the {entry.title} data: {error}. It was left as it "
                "is; move it away to have the data downloaded again, or put the file "
                f"from {entry.url} in its place."
            ) from error
    if not download_if_missing:
        raise DatasetError(
            f"{path} does not exist. Allow its download with download_if_missing=True, "
            f"or get {entry.url} and save it there."
        )
    return _download(entry, path, timeout)


def cache_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """Return the folder that data are kept in."""
    chosen = data_home if data_home is not None else os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return _user_cache() / "ihgmm"


def _user_cache() -> Path:
    """Return where the system wants programs to keep what they can get again."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return chosen if chosen.is_absolute() else Path.home() / ".cache"


def _pooch(entry: Entry, remedy: str) -> ModuleType:
    try:
        return importlib.import_module("pooch")
    except ImportError as error:
        raise ImportError(
            f"Downloading the {entry.title} data needs pooch, which is not installed: "
            f"pip install pooch tqdm. Or get {entry.url}, and {remedy}."
        ) from error


def _download(
    entry: Entry, path: Path, timeout: float
) -> tuple[np.ndarray, np.ndarray]:
    pooch = _pooch(entry, f"save it as {path}")
    bar = bool(sys.stderr and sys.stderr.isatty() and importlib.util.find_spec("tqdm"))
    # pooch leaves the connection open when a download fails; these are closed below.
    responses: list[Any] = []
    hooks = {"response": lambda response, **_: responses.append(response)}
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=timeout, hooks=hooks)
    # In the same folder, so that the last step is a rename; under a name of its own,
    # so that two processes do not write to one file.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    remedy = (
        f"Try again, or get the file by other means and save it as {path}; another "
        f"folder can be given as data_home (--data-home) or in {VARIABLE}."
    )
    new_folder = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        downloader(entry.url, str(part), None)
        content = read(entry, part)
        os.replace(part, path)
    except ContentError as error:
        raise DatasetError(
            f"What {entry.url} sent is not the {entry.title} data: {error}. It was "
            f"not kept. {remedy}"
        ) from error
    except OSError as error:  # those of requests are among them
        raise DatasetError(
            f"The {entry.title} data is not in {path.parent} and cannot be downloaded "
            f"from {entry.url}: {_reason(error, timeout)}. {remedy}"
        ) from error
    finally:
        for response in responses:
            response.close()
        with contextlib.suppress(OSError):
            part.unlink()
        if new_folder and not path.exists():
            with contextlib.suppress(OSError):
                path.parent.rmdir()
    return content


def _reason(error: OSError, timeout: float) -> str:
    # Where a connection failed, the cause is wrapped twice; the innermost tells most.
    cause = getattr(error.args[0], "reason", error) if error.args else error
    text = " ".join(str(cause).split())
    if "timed out" in text:
        return f"the server sent nothing for {timeout:g} seconds"
    return f"{type(cause).__name__}: {text[:300]}".rstrip(". ")
