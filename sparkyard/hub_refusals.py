"""What the Hub's refusals mean, in words for people: what was seen and the one next step. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sparkyard.errors import StepFailed

AGAIN = "then type the same line again"


class RevisionMissing(StepFailed):
    """The repository is there, the revision is not."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was asked when the hub refused; ``token`` whether one was sent along."""

    repo: str
    revision: str
    endpoint: str
    token: bool

    @property
    def page(self) -> str:
        return f"{self.endpoint}/{self.repo}"

    def gated(self) -> StepFailed:
        whose = "with the account of your token" if self.token else "and give its account's token as HF_TOKEN"
        return StepFailed(
            f"{self.repo} is gated: its licence is not accepted",
            next_step=f"accept the licence of {self.repo} at {self.page} {whose}, {AGAIN}",
        )

    def disabled(self) -> StepFailed:
        return StepFailed(f"the hub has disabled {self.repo}", next_step=f"read why at {self.page}")

    def no_revision(self) -> RevisionMissing:
        return RevisionMissing(
            f"{self.repo} is there, its revision {self.revision} is not",
            next_step=f"look at {self.page}/commits/main and correct `revision` of this checkpoint",
        )

    def no_file(self) -> StepFailed:
        return StepFailed(
            f"a file of the listing of {self.repo}@{self.revision} is not there any more",
            next_step=f"look at {self.page}/tree/{self.revision}",
        )

    def offline(self) -> StepFailed:
        return StepFailed(
            f"HF_HUB_OFFLINE is set, so {self.endpoint} was not asked",
            next_step=f"unset HF_HUB_OFFLINE, {AGAIN}",
        )

    def not_found(self) -> StepFailed:
        if self.token:
            return StepFailed(
                f"{self.repo} was not found, or your token may not see it",
                next_step=f"open {self.page} with the account of the token",
            )
        return StepFailed(
            f"{self.repo} was not found; a private one also looks like this without a token, and no token was given",
            next_step=f"check the name at {self.page}, or set HF_TOKEN",
        )

    def by_status(self, status: int, wait: float | None) -> StepFailed:
        """For every other HTTP status; ``wait`` is what a rate limit asks for, in seconds."""
        if status == 401 and not self.token:
            return StepFailed(
                f"{self.endpoint} wants a token for {self.repo}, none was given",
                next_step="set HF_TOKEN, or type: hf auth login",
            )
        if status in {401, 403}:
            return StepFailed(
                f"{self.endpoint} refused the token for {self.repo} ({status})",
                next_step="renew the token, or give it read access to this repository",
            )
        if status == 429:
            told = f" and asks to wait {wait:g} s" if wait else ""
            return StepFailed(
                f"{self.endpoint} limits the rate (429){told}",
                next_step="type the same line again after that; what is here is kept",
            )
        return StepFailed(
            f"{self.endpoint} answered {status} for {self.repo}, also when asked again",
            next_step="type the same line again later; what is here is kept",
        )

    def no_network(self, why: str) -> StepFailed:
        return StepFailed(
            f"no network to {self.endpoint}: {why}",
            next_step=f"look at this node's connection and at HF_ENDPOINT, {AGAIN}",
        )
