"""Leaves out of an archive of ``docker save`` the layers that its receiver has. Python 3.8 or later, no packages.

Standard input: a line with the image's layers, then a line for each chain of layers that the receiver has (diff ids, the lowest
first, as JSON lists), an empty line, and the archive. Standard output: the archive, byte for byte, without the bodies of
layers that the receiver need not be sent. Memory does not grow with the image.

Docker looks a layer up by its chain id, a hash over it and all below it; so only the first layers of a chain count, as far as one of
the receiver's chains begins with the same. A layer that comes again higher up is sent.

Which member is which layer:
    blobs/sha256/DIGEST (OCI, since Docker 25): a layer when DIGEST is its diff id; compressed ones have others and are sent.
    FOLDER/layer.tar (before): FOLDER is a hash over the chain id and what FOLDER/json says, which comes first; so the one
    chain id that gives this name is the layer's. Anything else is passed on as it is.

Answers on standard error: ``left-out BYTES DIFF-ID`` for each, fields parted by tabs; why, when it cannot go on (status 1).
"""

import hashlib
import json
import os
import re
import signal
import sys
import tarfile

BLOCK = tarfile.BLOCKSIZE
PIECE = 1 << 20
SMALL = 1 << 20
"""Bytes of a header or of a layer's json, at most."""
FOLDER = re.compile(r"(?:\./)?([0-9a-f]{64})/(json|layer\.tar)")
BLOB = re.compile(r"(?:\./)?blobs/sha256/([0-9a-f]{64})")
EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
"""Headers that belong to the member behind them."""


class Damaged(Exception):
    """The input is no whole archive, or one of a kind that Docker does not write."""


def line():
    """One line of standard input, read without a byte of what follows it."""
    found = bytearray()
    while not found.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise Damaged("the input ends before the archive begins")
        found += byte
    return found.decode().strip()


def take(size):
    found = bytearray()
    while len(found) < size:
        piece = os.read(0, size - len(found))
        if not piece:
            raise Damaged("the archive was cut short")
        found += piece
    return bytes(found)


def give(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def move(size, keep):
    """Pass the next bytes on, or throw them away."""
    while size:
        piece = os.read(0, min(size, PIECE))
        if not piece:
            raise Damaged("the archive was cut short")
        if keep:
            give(piece)
        size -= len(piece)


def padded(size):
    return -(-size // BLOCK) * BLOCK


def common(chain, chains):
    """How many of the first layers the receiver has."""
    longest = 0
    for other in chains:
        count = 0
        while count < min(len(chain), len(other)) and chain[count] == other[count]:
            count += 1
        longest = max(longest, count)
    return longest


def chain_ids(layers):
    """The chain id of each layer: that of the lowest is its diff id."""
    ids = []
    for layer in layers:
        ids.append("sha256:" + hashlib.sha256((ids[-1] + " " + layer).encode()).hexdigest() if ids else layer)
    return ids


def fields(text):
    """The members of a JSON object, each value as it is written. Raises ValueError or IndexError."""
    decoder, found, at = json.JSONDecoder(), {}, 1
    while text[at - 1] in "{,":
        name, at = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, at + 1)
        found[name], at = text[at + 1 : end], end + 1
    return found


def folder_names(written, chain_id):
    """The names that Docker gives the folder of a layer with this json and chain id: its ``os`` counts for the top layer only."""
    hashed = {name: value for name, value in written.items() if name != "id"}
    if "parent" in hashed:
        hashed["parent"] = json.dumps("sha256:" + json.loads(hashed["parent"]))
    hashed["layer_id"] = json.dumps(chain_id)
    for leave in ("", "os"):
        text = ",".join(json.dumps(name) + ":" + hashed[name] for name in sorted(hashed) if name != leave)
        yield hashlib.sha256(("{" + text + "}").encode()).hexdigest()


class Layers:
    """Which members are bodies of layers that may be left out."""

    def __init__(self, chain, chains):
        held = common(chain, chains)
        self.known = [(chain_id, chain[n]) for n, chain_id in enumerate(chain_ids(chain[:held]))]
        self.spare = set(chain[:held]) - set(chain[held:])
        self.folders = {}

    def wants_json(self, name):
        found = FOLDER.fullmatch(name)
        return bool(self.spare and found and found.group(2) == "json")

    def learn(self, name, body):
        """Which layer a folder of the older layout holds."""
        folder = FOLDER.fullmatch(name).group(1)
        try:
            written = fields(body.decode())
            for chain_id, layer in self.known:
                if folder in folder_names(written, chain_id):
                    self.folders[folder] = layer
        except (ValueError, IndexError, TypeError):
            return  # then nobody knows what it holds, and it is sent

    def spared(self, name):
        """The diff id of the layer whose body this is, if it may be left out; else nothing."""
        blob, folder = BLOB.fullmatch(name), FOLDER.fullmatch(name)
        layer = None
        if blob:
            layer = "sha256:" + blob.group(1)
        elif folder and folder.group(2) == "layer.tar":
            layer = self.folders.get(folder.group(1))
        return layer if layer in self.spare else None


class Member:
    """A member's headers: as they came, and what they say."""

    def __init__(self, raw, info, told):
        self.raw = raw
        self.name = told.get("path", info.name)
        self.regular = info.isreg()
        sized = self.regular or info.type not in tarfile.SUPPORTED_TYPES
        self.size = int(told.get("size", info.size)) if sized else 0
        sparse = info.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse.") for key in told)
        if sparse or self.size < 0:
            raise Damaged("the archive has a member of a kind that cannot be copied: " + self.name)


def records(body):
    """The records of a PAX header: LENGTH KEY=VALUE, each with a line feed."""
    found, at = {}, 0
    while at < len(body) and body[at] != 0:
        length, _, _ = body[at:].partition(b" ")
        key, _, value = body[at + len(length) + 1 : at + int(length) - 1].partition(b"=")
        if int(length) < 5:
            raise ValueError("a record without a key")
        found[key.decode(errors="surrogateescape")] = value.decode(errors="surrogateescape")
        at += int(length)
    return found


def next_member():
    """The headers of the next member; None at the end of the archive, whose first block is passed on."""
    raw, told = b"", {}
    while True:
        block = take(BLOCK)
        if not any(block):
            if raw:
                raise Damaged("the archive ends behind a header that belongs to a member")
            give(block)
            return None
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        raw += block
        if info.type not in EXTENDED:
            return Member(raw, info, told)
        if info.size > SMALL:
            raise Damaged("a header of the archive is too long")
        body = take(padded(info.size))
        raw += body
        if info.type == tarfile.GNUTYPE_LONGNAME:
            told["path"] = body[: info.size].rstrip(b"\0").decode(errors="surrogateescape")
        elif info.type != tarfile.GNUTYPE_LONGLINK:
            told.update(records(body[: info.size]))


def rest():
    """Pass on what follows the first block of the end."""
    while True:
        piece = os.read(0, PIECE)
        if not piece:
            return
        give(piece)


def trim(layers):
    while True:
        member = next_member()
        if member is None:
            return rest()
        layer = layers.spared(member.name) if member.regular else None
        if layer:
            move(padded(member.size), keep=False)
            sys.stderr.write(f"left-out\t{len(member.raw) + padded(member.size)}\t{layer}\n")
            sys.stderr.flush()
            continue
        give(member.raw)
        if member.regular and member.size <= SMALL and layers.wants_json(member.name):
            body = take(padded(member.size))
            layers.learn(member.name, body[: member.size])
            give(body)
        else:
            move(padded(member.size), keep=True)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads is gone: so are we
    chain, chains, text = json.loads(line()) or [], [], line()
    while text:
        chains.append(json.loads(text) or [])
        text = line()
    trim(Layers(chain, chains))


if __name__ == "__main__":
    try:
        main()
    except Damaged as fault:
        sys.exit("trim: " + str(fault))
    except (ValueError, OSError, tarfile.TarError) as fault:
        sys.exit("trim: the input cannot be read: " + str(fault))
