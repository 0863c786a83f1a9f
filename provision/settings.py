"""Where this installation keeps its site files and its state, from the environment."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import BadRequest, StateUnusable
from provision.waiting import Pace

_CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Settings:
    """`site` is a site folder; `state` holds databases, runs and consoles; `who` is the operator."""

    site: Path
    state: Path
    database: str
    engine_database: str
    who: str
    host: str = ""
    pace: Pace = field(default_factory=Pace)

    @property
    def shared(self) -> bool:
        """Whether the databases are a server's, which several hosts may work on."""
        return not self.engine_database.startswith("sqlite")

    @property
    def executor(self) -> str:
        """The name under which this host executes runs; the same after every restart."""
        return self.host if self.shared else "runner"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read MUSTER_SITE, MUSTER_STATE, MUSTER_DATABASE_URL, MUSTER_HOST and MUSTER_WHO.

        Without them the site is `inventory/sites/lab`, the state is `var` beside it, both databases
        are SQLite files in it. Raises BadRequest where a value makes no sense.
        """
        site = Path(environment.get("MUSTER_SITE") or _CHECKOUT / "inventory" / "sites" / "lab")
        state = Path(environment.get("MUSTER_STATE") or _CHECKOUT / "var").absolute()
        if not site.is_dir():
            raise BadRequest("MUSTER_SITE", f"{site} is not a folder", "name a folder with a site.yaml in it")
        url = _with_driver(environment.get("MUSTER_DATABASE_URL", ""))
        return cls(
            site=site.absolute(),
            state=state,
            database=url or f"sqlite:///{state}/muster.sqlite",
            engine_database=url or f"sqlite:///{state}/engine.sqlite",
            who=environment.get("MUSTER_WHO") or environment.get("SUDO_USER") or getpass.getuser(),
            host=environment.get("MUSTER_HOST") or platform.node(),
        )

    def ensure_state(self) -> None:
        """Make the state folder, readable by its owner only, and prove that it can be written.

        Raises StateUnusable.
        """
        try:
            self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.state / ".write-probe"
            with probe.open("wb") as file:
                file.write(b"\0" * 65536)
                file.flush()
                os.fsync(file.fileno())
            probe.unlink()
        except OSError as error:
            raise StateUnusable(str(self.state), error.strerror or str(error)) from error

    def run_folder(self, run: str, node: str | None = None) -> Path:
        """Return where a run, or one node of it, keeps its logs and evidence; made if missing."""
        folder = self.state / "runs" / run / (node or "")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def console_folder(self, node: str) -> Path:
        """Return where a node's console recordings lie; made if missing."""
        folder = self.state / "consoles" / node
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _with_driver(url: str) -> str:
    """Return a database URL with the driver that we install, where it names none."""
    for plain in ("postgres://", "postgresql://"):
        if url.startswith(plain):
            return "postgresql+psycopg://" + url.removeprefix(plain)
    return url
