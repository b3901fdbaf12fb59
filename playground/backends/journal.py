"""An append-only file of JSON lines that survives crashes and is shared by processes.

Three things go wrong with such files.  A crash leaves half a line, and the next
record is glued to it: so what is not whole is cut off before anything is
written.  Two processes write at once: so each append holds the file's lock and
first reads what others have added.  A write fails in the middle, on a full
disk: so the file goes back to where it was, and the error to the caller.

The first line is a header with the kind of file and its format.  What a whole
record is, the owner of the journal says.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playground.backends.codec import decode, encode
from playground.backends.lane import Busy
from playground.backends.store import StoreError, check_format, unusable
from playground.kernel.values import JsonObject

FORMAT = 1
"""Version of the files' layout."""


class Journal:
    """One such file.  Looking and writing need the lock; nothing here waits for it.

    Args:
        header: what the first line says; `read_header` checks it.
        whole: how many bytes of the given ones are whole records; what follows them is torn.
        sync: whether a write has reached the disk when it returns.  If not, a
            killed process still loses nothing, but a power cut may take the last writes.
    """

    def __init__(self, path: Path, header: JsonObject, whole: Callable[[bytes], int], *, sync: bool) -> None:
        self.path = path
        self.end = 0
        self._fd = -1
        self._size = 0
        self._header = encode({**header, "format": FORMAT}).encode() + b"\n"
        self._whole = whole
        self._sync = sync

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file alone, made if it is missing.  After any error, the next look begins anew.

        Raises:
            Busy: another process, or another store of this one, holds it.
        """
        self._lock()
        try:
            yield
        except BaseException:
            self.close()
            raise
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def fresh(self) -> bytes:
        """The whole records that were added since the last look; a torn tail is cut off.

        If this is the first look, or the file was replaced, it is all of the
        file, header included: as long as `end` then says.
        """
        if self._size == self.end:
            return b""
        if self._size < self.end:
            self.end = 0
        with named(self.path):
            data = _read(self._fd, self.end, self._size)
        keep = self._whole(data)
        if not self.end + keep and not self._header.startswith(data) and not data.startswith(self._header):
            raise StoreError(
                f"{self.path}: this is another kind of file: move it away, or use another folder"
            )
        if keep < len(data):
            os.ftruncate(self._fd, self.end + keep)
        self.end += keep
        return data[:keep]

    def write(self, lines: bytes) -> None:
        """Append whole records, all or none.

        Raises:
            StoreError: the disk is full, say; the file is as it was.
        """
        data = lines if self.end else self._header + lines
        try:
            _write(self._fd, data)
            if self._sync:
                _sync_data(self._fd)
                if not self.end:
                    sync_directory(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self.end)
            raise StoreError(
                f"{self.path}: {error.strerror}: nothing of this write was kept; make room and go on"
            ) from error
        self.end += len(data)

    def replace(self, lines: bytes) -> None:
        """Write the whole file anew, in one step; other processes notice when they next lock it."""
        write_whole(self.path, self._header + lines, sync=self._sync)
        self.close()

    def remove(self) -> None:
        """Delete the file; other processes notice when they next lock it."""
        with named(self.path):
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file until it is next needed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self.end = 0

    def __del__(self) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            while True:
                if self._fd < 0:
                    self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
                lock(self._fd)
                file = os.fstat(self._fd)
                if file.st_nlink:
                    self._size = file.st_size
                    return
                self.close()
        except OSError as error:
            raise unusable(self.path, error) from error


def lock(fd: int, *, wait: bool = False) -> None:
    """Take the lock of an open file or folder, until it is closed.

    Raises:
        Busy: someone else has it, and we do not `wait`.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise Busy from None


@contextmanager
def locked_folder(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder's lock, so that looking at a file and replacing it are one step.

    Raises:
        Busy: someone else has it, and we do not `wait`.
    """
    with named(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with named(path):
            lock(fd, wait=wait)
        yield
    finally:
        os.close(fd)


def read_header(path: Path, line: bytes, header: JsonObject) -> None:
    """Check the first line of a journal.

    Raises:
        StoreError: another kind of file, or another format; it stays as it is.
    """
    try:
        found = decode(line.decode())
    except ValueError:
        found = None
    if not isinstance(found, dict) or any(found.get(key) != value for key, value in header.items()):
        raise StoreError(
            f"{path}, line 1: the header of {encode(header)} is missing: name another file or folder"
        )
    check_format(found.get("format"), FORMAT, f"{path}, line 1")


def write_whole(path: Path, data: bytes, *, sync: bool) -> None:
    """Put `data` in place of a file's contents; a crash at any moment leaves the old or the new ones.

    The caller holds a lock, for there is one temporary file.

    Raises:
        StoreError: it could not be written; the old contents are still there.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            _write(fd, data)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        if sync:
            sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreError(
            f"{path}: {error.strerror}: what was there before is kept; make room and go on"
        ) from error


def sync_directory(path: Path) -> None:
    """Make new and renamed names in a folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_file(path: Path, start: int = 0, size: int = -1) -> bytes:
    """The bytes of a file from `start` on, all or `size` of them; none if it is missing.

    Raises:
        StoreError: it cannot be read.
    """
    with named(path):
        try:
            with path.open("rb") as file:
                file.seek(start)
                return file.read(size)
        except FileNotFoundError:
            return b""


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn the system's errors into a `StoreError` that names the file."""
    try:
        yield
    except OSError as error:
        raise unusable(path, error) from error


def _sync_data(fd: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def _read(fd: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
