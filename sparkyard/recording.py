"""The record of a line that acts: its folder, its events, and ``record.json``, kept as far as the disk allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sparkyard import state
from sparkyard.plan import Plan
from sparkyard.report import RecordView
from sparkyard.reporting.jsonline import timestamp


class Recording:
    """Opens a new run folder below ``runs``.

    What has been done on the nodes does not depend on its record: once it is open, an error while writing is told to ``lost``,
    once, and the run goes on. Raises OSError when it cannot be opened.
    """

    def __init__(
        self, runs: Path, verbs: Sequence[str], plan: Plan, stand_in: bool, lost: Callable[[OSError], None]
    ) -> None:
        joined = "-".join(dict.fromkeys(verbs))
        self.folder = state.make_run_folder(runs, joined, plan.lane)
        self.view = RecordView(self.folder, on_lost=self._gone)
        self._lost: Callable[[OSError], None] | None = lost
        self._secrets: tuple[str, ...] = ()
        self._record = replace(state.new_record(joined, plan.lane, plan.nodes()), stand_in=stand_in)
        self._record.write(self.folder)

    def mask(self, secrets: Sequence[str]) -> None:
        """More values that must not be kept."""
        self._secrets = (*self._secrets, *secrets)
        self.view.add_secrets(secrets)

    def ranks(self, ranks: tuple[state.Rank, ...]) -> None:
        """Keep what every rank was started with."""
        self._record = replace(self._record, ranks=ranks)
        self._write()

    def end(self, status: int) -> None:
        """The run has ended with this exit status."""
        self._record = replace(self._record, ended=timestamp(datetime.now(UTC)), status=status)
        self._write()

    def _write(self) -> None:
        try:
            self._record.write(self.folder, self._secrets)
        except OSError as error:
            self._gone(error)

    def _gone(self, error: OSError) -> None:
        lost, self._lost = self._lost, None
        if lost:
            lost(error)
