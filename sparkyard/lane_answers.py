"""Rows of ``invoke lanes`` that nobody's nodes are asked for: published figures side by side, and which lane is for whom. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sparkyard.choosing import Choosing
from sparkyard.lane_rows import AS_KNOWN, YES, Candidate, Row


def figure_rows(candidates: Sequence[Candidate], choosing: Choosing) -> Iterator[Row]:
    """The published figures of all lanes, those of one measure together."""
    for measure in choosing.measures:
        for candidate in candidates:
            for one in candidate.recipe.expect:
                if re.search(measure.what, one.what):
                    yield {
                        "figure": measure.name,
                        "lane": candidate.name,
                        "value": f"{one.value} ({one.what})" if one.what != measure.name else one.value,
                        "conditions": one.conditions,
                        "from": one.source,
                    }


def answer_rows(possible: Mapping[str, str], choosing: Choosing) -> Iterator[Row]:
    """Which lane for whom, and which of those can run here.

    ``possible`` has what ``lanes`` says of each lane that was looked at; an answer that names none of them is left out, and
    nothing is said of a lane that was not looked at.
    """
    for answer in choosing.answers:
        looked = [name for name in answer.run if name in possible]
        if looked:
            can = [name for name in looked if possible[name] in (YES, AS_KNOWN)]
            none = "none" if len(looked) == len(answer.run) else f"not {', '.join(looked)}"
            yield {
                "if you mostly": answer.when,
                "run": answer.run,
                "why": answer.why,
                "possible here": can or none,
                "from": choosing.cited(answer.source),
            }
