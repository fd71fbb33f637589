"""Where episodes get their paths from, changed while an environment lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ccgym.envs.batch_base import EpisodeBatch
    from ccgym.envs.settings import Settings


class PathsOfEpisodes:
    """What every face of the environments offers to change its paths."""

    settings: Settings
    """How episodes are made."""
    _batch: EpisodeBatch

    @property
    def paths(self) -> object:
        """Where paths come from. Assign anything that the argument ``paths`` takes; used from the next episode on."""
        return self.settings.source

    @paths.setter
    def paths(self, value: object) -> None:
        self.settings = self._batch.settings = self.settings.with_paths(value)

    def set_progress(self, progress: float) -> None:
        """Move a curriculum on; ``progress``: share of the training that is done, 0 to 1."""
        self.settings = self._batch.settings = self.settings.at(progress)
