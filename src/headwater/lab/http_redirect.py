"""A second address of a page: `python -m headwater.lab.http_redirect PORT URL` sends browsers to the first."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headwater.lab.ports import LOOPBACK


def serve(port: int, url: str) -> None:
    """Answer every request with the same path of the other address."""

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(307)
            # Two slashes would begin the name of another host.
            self.send_header("Location", f"{url}/{self.path.lstrip('/')}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer((LOOPBACK, port), Redirect).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
