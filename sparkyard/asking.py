"""Asks nodes: one round trip each, all nodes at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sparkyard import facts
from sparkyard.errors import SparkyardError
from sparkyard.plan import Answers, Question, of_others
from sparkyard.step_world import Surroundings


def ask(around: Surroundings, node: str, questions: tuple[Question, ...]) -> Answers:
    """The answers of one node, and what was discovered on it. Raises Unreachable, CouldNotCheck, Interrupted.

    Ask ``SYSTEM`` too where discovered values are needed; only the home comes without it.
    """
    if not questions:
        return Answers(node)
    wanted = tuple(dict.fromkeys(questions))
    done = around.shell(node).run(facts.command(wanted))
    return facts.parse(around.inventory.node(node), wanted, done.out)


def ask_all(
    around: Surroundings, wanted: Mapping[str, tuple[Question, ...]]
) -> dict[str, Answers | SparkyardError]:
    """The answers of several nodes, or for each the reason why there are none."""

    def one(node: str) -> Answers | SparkyardError:
        try:
            return ask(around, node, wanted[node])
        except SparkyardError as error:
            return error

    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        found = dict(zip(wanted, pool.map(one, wanted), strict=True))
    told = {node: answer.discovered for node, answer in found.items() if isinstance(answer, Answers)}
    return {node: _knowing(answer, told) for node, answer in found.items()}


def _knowing(
    answer: Answers | SparkyardError, told: Mapping[str, Mapping[str, str]]
) -> Answers | SparkyardError:
    if isinstance(answer, SparkyardError):
        return answer
    return replace(answer, discovered={**of_others(answer.node, told), **answer.discovered})
