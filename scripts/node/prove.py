"""Reads files on a node, several at once, and compares their content with what it must be. Python 3.8 or later, no packages.

Arguments: folder, ledger, seal, filesystem id. Standard input, in lines of fields parted by tabs:

    HOW DIGEST SIZE PATH ORIGIN     read: in its place; arrived: in .incoming, gets its name when right; offered: somebody's
                                    file ORIGIN, linked or copied when right; hold: nothing to read, must be in the ledger
    shards - 0 PATTERN                shards that an index names and that match PATTERN must be among the PATHs
    seal                            then the seal's text, written when every PATH is in place and in the ledger

Answers in lines: progress BYTES, proven, damaged, unfit, changed, missing, linked, copied PATH, sealed, unsealed COUNT, end.
A safetensors file whose header does not end it is told before it is read (header PATH WORDS); when its content is what was
asked for all the same, it is broken PATH WORDS. An index that names a shard that nobody asked for: absent PATH SHARD.
A ledger line is filesystem, inode, size, mtime_ns, ctime_ns, digest. It is added as soon as a file is proven.
"""

import collections
import concurrent.futures
import contextlib
import errno
import fnmatch
import hashlib
import json
import os
import shutil
import sys
import threading

PIECE = 1 << 18
HEADER_LIMIT = 100000000
FOLDER, LEDGER, SEAL, FS = sys.argv[1:5]
INCOMING = os.path.join(FOLDER, ".incoming")
Work = collections.namedtuple("Work", "how want size path origin")
speaking = threading.Lock()
read_bytes = 0
told_bytes = 0


def tell(*fields):
    with speaking:
        sys.stdout.write("\t".join(map(str, fields)) + "\n")
        sys.stdout.flush()


def count(amount):
    """Add to the bytes read, and say so every 64 MiB."""
    global read_bytes, told_bytes
    with speaking:
        read_bytes += amount
        if read_bytes - told_bytes < 256 * PIECE:
            return
        told_bytes = now = read_bytes
    tell("progress", now)


def key(status):
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def ledger_line(status, want):
    return "\t".join(map(str, (FS, *key(status), want)))


def hasher(want, size):
    if want.startswith("sha256:"):
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % size)


def read(path, want, follow):
    """The digest of a file and its status, or None for the digest when it changed meanwhile."""
    handle = os.open(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW))
    with open(handle, "rb", buffering=0) as stream:
        before = os.fstat(handle)
        state = hasher(want, before.st_size)
        piece = bytearray(PIECE)
        view = memoryview(piece)
        while True:
            amount = stream.readinto(piece)
            if not amount:
                break
            state.update(view[:amount])
            count(amount)
        after = os.fstat(handle)
        if key(before) != key(after) or key(os.stat(path)) != key(after):
            return None, after
    return want.split(":")[0] + ":" + state.hexdigest(), after


def record(status, want):
    with speaking, open(LEDGER, "a") as ledger:
        ledger.write(ledger_line(status, want) + "\n")


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def place(path, origin, proven):
    """Give a proven file its name, on disk before this returns. Renaming changes its ctime, nothing else may have changed."""
    final = os.path.join(FOLDER, path)
    os.makedirs(os.path.dirname(final), exist_ok=True)
    sync(origin)
    os.replace(origin, final)
    sync(os.path.dirname(final))
    status = os.lstat(final)
    return status if key(status)[:3] == key(proven)[:3] else None


def take(work, proven):
    """Link a person's proven file to where it is to be, or copy it and prove the copy."""
    there = os.path.join(INCOMING, work.path)
    os.makedirs(os.path.dirname(there), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(there)
    real = os.path.realpath(work.origin)
    try:
        os.link(real, there)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copyfile(real, there)
        seen, proven = read(there, work.want, False)
        tell("copied", work.path, work.origin)
        return place(work.path, there, proven) if seen == work.want else None
    tell("linked", work.path, work.origin)
    return place(work.path, there, proven)


def look(work, origin):
    """The digest of a file and its status; says so and gives nothing when it is not there or changes meanwhile."""
    try:
        seen, status = read(origin, work.want, work.how == "offered")
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            raise
        if work.how != "offered":
            tell("missing", work.path)
        return None, None
    if seen is None:
        tell("changed", work.path)
    return seen, status


def header_fault(path, follow):
    """How far a safetensors file's header is from ending the file, in words; nothing when it ends it, or cannot be opened."""
    try:
        handle = os.open(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW))
    except OSError:
        return ""
    with open(handle, "rb") as stream:
        size = os.fstat(handle).st_size
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= HEADER_LIMIT or 8 + length > size:
            return "does not begin as a safetensors file"
        try:
            tensors = json.loads(stream.read(length))
            ends = [told["data_offsets"][1] for name, told in tensors.items() if name != "__metadata__"]
            end = 8 + length + max(ends, default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "has a header that cannot be read"
    if end == size:
        return ""
    return f"is {abs(end - size)} bytes {'short' if end > size else 'too long'}"


def throw_away(work, origin, seen):
    """A file with the wrong content goes, and with it the seal. What a person offers is left alone."""
    tell("unfit" if work.how == "offered" else "damaged", work.path, seen)
    if work.how == "offered":
        return
    for path in (origin, SEAL):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def prove(work):
    """Read one file, say what came of it; True when it is right and in its place."""
    origins = {"read": os.path.join(FOLDER, work.path), "arrived": os.path.join(INCOMING, work.path)}
    origin = origins.get(work.how, work.origin)
    fault = header_fault(origin, work.how == "offered") if work.path.endswith(".safetensors") else ""
    if fault:
        tell("header", work.path, fault)
    seen, status = look(work, origin)
    if seen is None:
        return False
    if seen != work.want:
        throw_away(work, origin, seen)
        return False
    if fault:
        tell("broken", work.path, fault)
        return False
    if work.how == "arrived":
        status = place(work.path, origin, status)
    elif work.how == "offered":
        status = take(work, status)
    if status is None:
        tell("changed", work.path)
        return False
    record(status, work.want)
    tell("proven", work.path)
    return True


def prove_any(works):
    """Read what is offered for one path until one of them is right."""
    return any(prove(work) for work in works)


def parse():
    """The work by path, the patterns of shards, and the seal's text."""
    lines = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n")
    cut = lines.index("seal")
    works, patterns = collections.OrderedDict(), []
    for line in lines[:cut]:
        work = Work(*line.split("\t"))
        if work.how == "shards":
            patterns.append(work.path)
        else:
            works.setdefault(work.path, []).append(work)
    return works, patterns, "\n".join(lines[cut + 1 :])


def absent(works, patterns):
    """(index, shard) of each shard that an index names, the patterns ask for, and nobody asked to be here."""
    for path in works:
        if not path.endswith(".safetensors.index.json"):
            continue
        try:
            with open(os.path.join(FOLDER, path), "rb") as stream:
                named = set(json.load(stream)["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # not proven, or no index after all: said elsewhere
        for name in sorted(named):
            shard = os.path.join(os.path.dirname(path), name)
            if shard not in works and any(fnmatch.fnmatchcase(shard, pattern) for pattern in patterns):
                yield path, shard


def write(path, text):
    """Write a file whole or not at all."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def keep_known():
    """Cut the ledger down to lines of files that are there; the lines."""
    present = set()
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                present.add(ledger_line(os.lstat(os.path.join(folder, name)), ""))
    known = set()
    with contextlib.suppress(FileNotFoundError), open(LEDGER, errors="replace") as ledger:
        known = {line.rstrip("\n") for line in ledger}
    known = {line for line in known if line[: line.rfind("\t") + 1] in present}
    write(LEDGER, "".join(line + "\n" for line in sorted(known)))
    return known


def unproven(works, known):
    """The paths that are not in their place with the right content, as far as the ledger knows."""
    for path, (work, *_) in works.items():
        try:
            line = ledger_line(os.lstat(os.path.join(FOLDER, path)), work.want)
        except OSError:
            line = ""
        if line not in known:
            yield path


def main():
    tell("tool", "python3")
    works, patterns, seal = parse()
    reading = [items for items in works.values() if items[0].how != "hold"]
    reading.sort(key=lambda items: -int(items[0].size))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in concurrent.futures.as_completed([pool.submit(prove_any, items) for items in reading]):
            done.result()
    left = list(unproven(works, keep_known()))
    for path, (work, *_) in works.items():
        fault = header_fault(os.path.join(FOLDER, path), False) if path.endswith(".safetensors") else ""
        if fault and work.how == "hold":  # read by whoever brought it; the others have been told of already
            tell("broken", path, fault)
            left.append(path)
    for path, shard in absent(works, patterns):
        tell("absent", path, shard)
        left.append(shard)
    if left:
        tell("unsealed", len(left))
    else:
        write(SEAL, seal)
        shutil.rmtree(INCOMING, ignore_errors=True)
        tell("sealed")
    tell("end")


if __name__ == "__main__":
    try:
        main()
    except OSError as fault:
        sys.exit(f"{fault.filename or FOLDER}: {fault.strerror}")
