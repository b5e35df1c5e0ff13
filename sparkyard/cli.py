"""The seam to invoke: tasks that carry the shared flags, and the executor, named in ``invoke.yaml``, that runs a line of them.

Imported at every start, also for ``--list`` and ``--help``: nothing heavier than invoke may be imported here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.collection import Collection
from invoke.exceptions import Exit, ParseError
from invoke.executor import Executor
from invoke.parser.argument import Argument
from invoke.program import Program
from invoke.tasks import Task

from sparkyard import __version__
from sparkyard.errors import Interrupted, SparkyardError, SystemRefused, UsageError
from sparkyard.options import HELP, SHARED, settle
from sparkyard.reporting.broken_pipe import complain, fill_closed

if TYPE_CHECKING:
    from sparkyard.line import Line

SHORT = {"verbose": ("verbose", "v")}

gc.set_threshold(
    50_000
)  # imports and recipes make much that lives to the end: the default looks through it 70 times as often


class LaneTask(Task[Any]):
    """A task whose body is f(line, its own flags...). Flags of a line are added to its own."""

    def __init__(self, body: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(body, **{"auto_shortflags": False, "positional": (), **kwargs})

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        own = super().get_arguments(ignore_unknown_help)
        return [*own, *(_argument(name, default) for name, default in SHARED.items())]

    def __call__(self, context: Any, *args: Any, line: Line | None = None, **flags: Any) -> Any:
        own = {name: value for name, value in flags.items() if name not in SHARED}
        return self.body(line, *args, **own)


def _argument(name: str, default: Any) -> Argument:
    kind = type(default) if isinstance(default, bool | int) else list
    flag = name.replace("_", "-")
    argument = Argument(
        names=SHORT.get(name, (flag,)),
        attr_name=name if name != SHORT.get(name, (flag,))[0] else None,
        kind=kind,
        default=[] if kind is list else default,
        help=HELP[flag],
        incrementable=name == "verbose",
    )
    if kind is list:
        argument.raw_value = None  # invoke's own [] lets a flag pass whose value was forgotten
    return argument


class LaneExecutor(Executor):
    """Carries the shared flags to every task of a line and turns every expected failure into words and an exit status."""

    def normalize(self, tasks: Any) -> list[Any]:
        calls: list[Any] = super().normalize(tasks)
        ours = [call for call in calls if isinstance(call.task, LaneTask)]
        self._line = None
        if ours:
            options = settle([call.kwargs for call in ours])
            from sparkyard.line import Line  # noqa: PLC0415 - not for --list and --help

            self._line = Line(options, [call.task.name for call in ours])
            for call in ours:
                call.kwargs["line"] = self._line
            self._line.begin()
        return calls

    def execute(self, *tasks: Any) -> Any:
        fill_closed()
        try:
            with _expected():
                result = super().execute(*tasks)
                status = self._line.finish() if self._line else 0
        except SparkyardError as error:
            status = self._line.fail(error) if self._line else _usage(error)
            result = None
        finally:
            if self._line is not None:
                self._line.close()
        if status:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            raise Exit(code=status)
        return result


@contextlib.contextmanager
def _expected() -> Iterator[None]:
    """What the machine or the person at it may do at any time, as errors of ours. A traceback is for bugs only."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was left running") from None
    except EOFError:
        sys.stderr.write("\n")  # the question's line is still open
        raise UsageError("the input ended before the question was answered") from None
    except OSError as error:
        raise SystemRefused.of(error) from error


def _usage(error: SparkyardError) -> int:
    """An error before there was a line."""
    from sparkyard.report import JsonView, error_events  # noqa: PLC0415

    if "--json" in sys.argv:
        for event in error_events(error):
            JsonView(sys.stdout).handle(event)
    complain(f"error: {error}\n")
    return error.status


class SparkyardProgram(Program):
    """The console script: the same tasks, with exit status 2 for a line that cannot be read."""

    def parse_core(self, argv: Any) -> None:
        with _status_two():
            super().parse_core(argv)

    def parse_tasks(self) -> None:
        with _status_two():
            super().parse_tasks()


@contextlib.contextmanager
def _status_two() -> Iterator[None]:
    try:
        yield
    except (ParseError, ValueError) as error:
        raise Exit(f"error: {error}", code=2) from None


def project_folder() -> Path:
    """The folder with ``tasks.py``, ``recipes/`` and ``inventory/``: the clone, or what was installed with the package."""
    package = Path(__file__).resolve().parent
    clone = package.parent
    return clone if (clone / "tasks.py").is_file() and (clone / "recipes").is_dir() else package / "share"


def main() -> None:
    """Entry point of the console script ``sparkyard``."""
    import importlib.util  # noqa: PLC0415

    spec = importlib.util.spec_from_file_location("tasks", project_folder() / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    tasks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tasks)
    program = SparkyardProgram(
        name="sparkyard",
        binary="sparkyard",
        version=__version__,
        namespace=Collection.from_module(tasks),
        executor_class=LaneExecutor,
    )
    os.environ.setdefault("INVOKE_TASKS_DEDUPE", "0")
    program.run()
