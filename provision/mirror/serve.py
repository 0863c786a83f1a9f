"""`python -m provision.mirror.serve --config FILE`: the service, until it is told to stop."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import uvicorn
from starlette.applications import Starlette

from provision.mirror import service
from provision.mirror.config import Config, ConfigError, load
from provision.spread.routes import routes

_TEMPLATE = "nginx.conf.j2"
_STOP_WITHIN_S = 10


@dataclass(frozen=True, slots=True)
class Front:
    """What nginx adds: where it listens and which certificates it uses; empty paths are none."""

    listens: tuple[str, ...]
    server_name: str = "_"
    access_log: str = "/var/log/nginx/muster-mirror.log"
    certificate: str = ""
    certificate_key: str = ""
    client_ca: str = ""


def nginx(config: Config, front: Front) -> str:
    """Return the part of nginx's configuration that belongs into its http block."""
    folder = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=folder, undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701  no HTML
    return environment.get_template(_TEMPLATE).render(
        root=config.root,
        service=config.listen,
        listens=front.listens,
        server_name=front.server_name,
        access_log=front.access_log,
        certificate=front.certificate,
        certificate_key=front.certificate_key,
        client_ca=front.client_ca,
    )


def serve(config: Config, app: Starlette) -> None:
    """Answer requests until SIGTERM or SIGINT. Raises OSError where we cannot listen."""
    settings = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_STOP_WITHIN_S,
    )
    with _listening(config) as opened:
        uvicorn.Server(settings).run(sockets=[opened])


def _listening(config: Config) -> socket.socket:
    """Open the socket. One for nginx is open to our group alone: who speaks there is believed."""
    if not config.behind_nginx:
        host, _, port = config.listen.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=1024)
    path = Path(config.listen.removeprefix("unix:"))
    path.unlink(missing_ok=True)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        opened.bind(str(path))
    finally:
        os.umask(before)
    opened.listen(1024)
    return opened


def main(words: Sequence[str] | None = None) -> int:
    """Run the service, or print its nginx configuration."""
    parser = argparse.ArgumentParser(prog="python -m provision.mirror.serve", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the service's YAML file")
    parser.add_argument("--check", action="store_true", help="only read the configuration")
    parser.add_argument("--print-nginx", action="append", metavar="LISTEN", help="print nginx's part and end")
    given = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        config = load(given.config)
    except ConfigError as error:
        sys.stderr.write(f"error: {error}\n")
        return 5
    if given.print_nginx:
        sys.stdout.write(nginx(config, Front(tuple(given.print_nginx))))
        return 0
    if not given.check:
        serve(config, service.make(config, routes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
