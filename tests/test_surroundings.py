"""What surrounds a call: a locale, a folder where nothing may be written."""

import ctypes
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.command_line import good, invoke

try:
    import resource
except ImportError:  # on Windows
    resource = None


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "ihgmm", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, **options,
    )  # fmt: skip


def as_others():
    """Take from root, in a new process, what lets it write everywhere."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


@pytest.mark.skipif(sys.platform != "linux", reason="not Linux")
def test_a_folder_where_nothing_may_be_written_is_named(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    model = folder / "model.npz"
    process = command("fit", "iris", "-k", 3, "--save", model, preexec_fn=as_others)

    assert process.returncode == 1, process.stderr
    assert "model.npz could not be written (Permission denied)" in process.stderr
    assert not list(folder.iterdir())


@contextmanager
def little_room():
    """Let files have 2 kB at most, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(resource is None, reason="limits are of Unix")
@pytest.mark.parametrize("what", ["fit", "report"])
def test_a_full_disk_leaves_no_half_of_a_file(what, tmp_path):
    file = tmp_path / {"fit": "model.npz", "report": "page.html"}[what]
    file.write_text("old")
    where = ("--save", file) if what == "fit" else ("-o", file)
    with little_room():
        result = invoke(what, "iris", "-k", 3, *where)

    assert result.exit_code == 1, result.stderr
    message = " ".join(result.stderr.split())
    assert f"{file.name} could not be written (File too large)" in message
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert file.read_text() == "old"


def test_a_decimal_comma_of_the_locale_changes_nothing(tmp_path):
    if not Path("/usr/bin/localedef").exists():
        pytest.skip("this machine has no localedef")
    process = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"],
        capture_output=True,
    )
    if process.returncode:
        pytest.skip("this machine has no German locale")
    # A locale is that of a process: this one has its own.
    german = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    here = tmp_path / "here.csv"
    there = tmp_path / "there.csv"
    fit = ("fit", "iris", "-k", 3, "--quiet", "-o")
    good(*fit, here)
    process = command(*fit, there, env=german)

    assert process.returncode == 0, process.stderr
    assert here.read_bytes() == there.read_bytes()
    assert b";" not in there.read_bytes()
