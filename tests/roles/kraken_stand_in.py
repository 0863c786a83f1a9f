#!/usr/bin/python3
"""Stands in for a Kraken component: the same flags, ports and child process, and no images.

It reads its configuration, so that a file that Kraken could not read fails here, too. As Kraken does, it
leaves its port to a child ("nginx") that writes below /tmp and reads conf.d.
"""

import http.server
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

import yaml


def flags(words):
    """Return the flags by name."""
    return {word.lstrip("-"): words[at + 1] for at, word in enumerate(words) if word.startswith("-")}


def hosts(config, component):
    """Return what this component asks before it is ready."""
    names = {"agent": ["tracker", "build_index"], "tracker": ["origin"], "build-index": ["origin"]}
    return [host for name in names.get(component, []) for host in config[name]["hosts"]["static"]]


def ready(asked):
    """Tell whether all of them answer."""
    try:
        for host in asked:
            urllib.request.urlopen(f"http://{host}/health", timeout=2).close()
    except (OSError, urllib.error.URLError):
        return False
    return True


def serve(port, asked):
    """Answer health at once and readiness when those that are asked answer."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            good = self.path in ("/health", "/v2/") or (self.path == "/readiness" and ready(asked))
            self.send_response(200 if good else 503)
            self.end_headers()

        def log_message(self, *_args):
            pass

    http.server.ThreadingHTTPServer(("", port), Answer).serve_forever()


def nginx(name, port, asked):
    """Be the child that holds the port."""
    strange = list(pathlib.Path("/etc/nginx/conf.d").glob("*"))
    if strange:
        sys.exit(f"nginx: would read {strange[0]}")
    pathlib.Path("/tmp/nginx").mkdir()
    pathlib.Path("/tmp/nginx", name).write_text("configuration\n")
    serve(port, asked)


def main():
    """Run until killed."""
    given = flags(sys.argv[1:])
    config = yaml.safe_load(pathlib.Path(given["config"]).read_text())
    component = pathlib.Path(given["config"]).stem
    pathlib.Path(config["nginx"]["log_dir"], "nginx-error.log").touch()
    asked = hosts(config, component)
    port = int(given.get("port") or given.get("blobserver-port") or given["agent-registry-port"])
    child = os.fork()
    if child == 0:
        nginx(config["nginx"]["name"], port, asked)
    if component == "agent" and os.fork() == 0:
        serve(int(given["agent-server-port"]), asked)
    os.waitpid(child, 0)
    time.sleep(0.1)
    sys.exit("nginx ended")


if __name__ == "__main__":
    main()
