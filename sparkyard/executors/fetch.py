"""Downloads files of a checkpoint to this machine, by the hub client or by own ranged HTTP, and proves each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sparkyard.actions import Fetch
from sparkyard.command import Command
from sparkyard.errors import Interrupted, StepFailed
from sparkyard.executors.client import ClientDownload
from sparkyard.executors.parts import Folder, Part, hash_file, hasher, is_full, sync
from sparkyard.executors.ranged import Download, still_to_come
from sparkyard.hub import PUBLIC, Hub
from sparkyard.manifest import digest
from sparkyard.model import RemoteFile
from sparkyard.patience import Patience, waiting
from sparkyard.world import World, must

PATIENCE = Patience()


def fetch(action: Fetch, node: str, world: World) -> None:
    """Fetch the action's files into its folder on this machine. A finished file is never fetched again.

    Raises StepFailed (each cause in its own words) and Interrupted; what has arrived is used by the next run.
    """
    if not world.shell(node).node.local:
        raise StepFailed(
            "downloads run on the node where sparkyard is typed",
            node=node,
            next_step=f"ssh to {node} and type it there",
        )
    folder = _folder(action, node, world)
    work = Work(action, node, world, folder)
    try:
        work.run()
    except OSError as error:
        if is_full(error):
            raise folder.full(still_to_come(action.files, folder)) from error
        raise StepFailed(
            f"{error.filename or action.folder}: {error.strerror or error}", node=node
        ) from error
    except StepFailed as error:
        error.details = (*error.details, work.state())
        raise


def _folder(action: Fetch, node: str, world: World) -> Folder:
    shell = world.shell(node)
    must(shell, Command.of("mkdir", "-p", action.folder), "making the checkpoint's folder")
    told = must(shell, Command.of("stat", "-f", "-c", "%i", action.folder), "asking for the filesystem")
    return Folder(action.folder, action.ledger, told.text.strip())


@dataclass
class Work:
    """One action at work."""

    action: Fetch
    node: str
    world: World
    folder: Folder

    def run(self) -> None:
        self._sweep(tell=True)
        files = self._take_whole(self._missing())
        if not files:
            return
        hub = Hub(
            self.action.endpoint, say=self.world.say, wait=waiting(self.world.cancelled), patience=PATIENCE
        )
        if self.action.way == "client" or (self.action.way == "auto" and hub.endpoint == PUBLIC):
            self._by_client(hub, files)
        else:
            self._by_ranges(hub, files)
        self._sweep(tell=False)

    def state(self) -> str:
        """How much of it is here, for a failure's message."""
        missing = len(self._missing())
        return f"{len(self.action.files) - missing} of its {len(self.action.files)} files are here, {missing} are missing"

    def _missing(self) -> list[RemoteFile]:
        return [file for file in self.action.files if not self._there(file)]

    def _there(self, file: RemoteFile) -> bool:
        path = self.folder.path / file.path
        return path.is_file() and not path.is_symlink() and path.stat().st_size == file.size

    def _sweep(self, *, tell: bool) -> None:
        """Remove partial files that nobody can use again: of other files, or left by the client, which begins anew."""
        names = [file.path for file in self._missing()]
        kept = [*names, *(f"{name}{end}" for name in names for end in (".part", ".part.json"))]
        removed = self.folder.sweep(kept)
        if removed and tell:
            self.world.say(f"removed {removed} orphaned partial file{'' if removed == 1 else 's'}")
        if self.folder.incoming.is_dir() and not names:
            self.folder.incoming.rmdir()

    def _by_ranges(self, hub: Hub, files: Sequence[RemoteFile]) -> None:
        resumed = sum(Part(self.folder, file).there for file in files)
        if resumed:
            self.world.say(f"{resumed} bytes are here from an earlier run, the rest is fetched")

        def progress(done: int, total: int) -> None:
            self.world.progress(done, total, self.action.manifest.repo)

        download = Download(
            hub, self.action.manifest, self.folder, self.world.say, progress, self.world.cancelled, PATIENCE
        )
        download.run(files)

    def _by_client(self, hub: Hub, files: Sequence[RemoteFile]) -> None:
        total = sum(file.size for file in files)

        def progress(done: int) -> None:
            self.world.progress(min(done, total), total, self.action.manifest.repo)

        for last in (False, True):
            shell = self.world.shell(self.world.inventory.head.name)
            ClientDownload(
                shell,
                hub.endpoint,
                self.action.manifest,
                self.folder,
                self.world.say,
                progress,
                self.world.cancelled,
            ).run(files)
            files = self._take_whole(files)
            if not files:
                return
            if last:
                names = ", ".join(file.path for file in files[:5])
                raise StepFailed(
                    f"content differs from the listing, twice: {names}",
                    next_step="type the same line again later; if it stays so, report it to the repository's owner",
                )

    def _take_whole(self, files: Sequence[RemoteFile]) -> list[RemoteFile]:
        """Prove and settle files that are whole in ``.incoming``; those that are still to be fetched."""
        whole = [file for file in files if self._is_whole(file)]
        with ThreadPoolExecutor() as pool:
            right = dict(zip(whole, pool.map(self._prove, whole), strict=True))
        return [file for file in files if not right.get(file)]

    def _is_whole(self, file: RemoteFile) -> bool:
        path = self.folder.incoming / file.path
        return path.is_file() and not path.is_symlink()

    def _prove(self, file: RemoteFile) -> bool:
        path = self.folder.incoming / file.path
        seen = hash_file(path, hasher(file), look=self._look)
        if seen == (file.sha256 or file.blob):
            sync(path)
            self.folder.settle(file, path)
            return True
        self.world.say(f"{file.path}: content differs: expected {digest(file)}, got {seen}; thrown away")
        path.unlink()
        return False

    def _look(self) -> None:
        if self.world.cancelled.is_set():
            raise Interrupted("interrupted")
