"""Files that are written whole or not at all."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from ihgmm._files import atomic_write


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_a_body_that_fails_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    with pytest.raises(error), atomic_write(path, "w") as file:  # noqa: PT012
        file.write("new")
        assert path.read_text() == "old"  # nobody sees a part
        raise error

    assert path.read_text() == "old"

    with pytest.raises(error), atomic_write(tmp_path / "b.txt"):
        raise error

    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, umask, expected):
    previous_umask = os.umask(umask)
    try:
        with atomic_write(tmp_path / "a.txt", "w") as file:
            file.write("x")
    finally:
        assert os.umask(previous_umask) == umask

    assert mode(tmp_path / "a.txt") == expected


def test_an_old_file_keeps_its_mode_and_owner(tmp_path):
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(0o604)
    owner = os.getuid()
    with suppress(PermissionError):  # only the administrator gives files away
        os.chown(path, 12345, 12345)
        owner = 12345
    with atomic_write(path, "w") as file:
        file.write("new")
        # Nobody else can read what is written before it is there.
        assert {mode(path) for path in tmp_path.iterdir()} == {0o600, 0o604}

    assert (mode(path), path.stat().st_uid) == (0o604, owner)


def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    link = tmp_path / "link"
    link.symlink_to(Path("folder", "target"))
    for text in ("new", "newer"):  # the first time, the link points nowhere
        with atomic_write(link, "w") as file:
            file.write(text)
        assert link.is_symlink()
        assert target.read_text() == text

    assert names(tmp_path) == ["folder", "link"]
    assert names(tmp_path / "folder") == ["target"]


@pytest.mark.skipif(os.name == "nt", reason="FIFOs are of POSIX")
def test_devices_fifos_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(os.devnull)
    for path in (os.devnull, tmp_path / "fifo", tmp_path / "link"):
        message = f"{path} is a device, a FIFO or a socket; give a file name."
        with pytest.raises(ValueError, match=re.escape(message)), atomic_write(path):
            pass

    with pytest.raises(ValueError, match="is a folder"), atomic_write(tmp_path):
        pass

    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert names(tmp_path) == ["fifo", "link"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "." * 3 + "x"])
def test_writers_at_work_leave_each_other_alone(tmp_path, name):
    path = tmp_path / name
    with atomic_write(path, "w") as first_file:
        first_file.write("first")
        with atomic_write(path, "w") as second_file:
            second_file.write("second")
        assert path.read_text() == "second"

    assert path.read_text() == "first"
    assert names(tmp_path) == [name]
