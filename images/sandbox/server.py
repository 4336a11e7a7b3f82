"""A small sandbox: shell commands and files over HTTP, on port 8080. Python's standard library only.

GET  /v1/sandbox                               200 {"status": "ready"}
POST /v1/shell/exec {"command", "timeoutMs"?}  200 {"exitCode", "stdout", "stderr", "timedOut", "truncated"}
GET  /v1/files?path=...                        200 the file's bytes
PUT  /v1/files?path=... (raw body)             200 {"path", "bytes"}; missing folders are made

Errors are {"error": "..."} with 400, 403, 404, 411, 413 or 500. Relative paths start at the sandbox's home. Whoever
reaches the port may run anything here: the container is the boundary, and its address is the secret.
"""

import errno
import json
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

PORT = int(os.environ.get("SANDBOX_PORT", "8080"))
HOME = os.environ.get("HOME", "/tmp")
WORKDIR = HOME if os.access(HOME, os.W_OK) else "/tmp"
OUTPUT_LIMIT = 1 << 20
REQUEST_LIMIT = 1 << 20
DEFAULT_TIMEOUT_MS = 60_000
LONGEST_TIMEOUT_MS = 3_600_000
# How long output may still arrive after the shell itself has ended, while something it left running holds the pipe.
LINGER_SECONDS = 0.2


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Output:
    """What one stream of a command wrote, up to the limit; the rest is read and dropped, so that nobody blocks."""

    def __init__(self, pipe):
        self.kept = bytearray()
        self.truncated = False
        self.thread = threading.Thread(target=self._drain, args=(pipe,), daemon=True)
        self.thread.start()

    def _drain(self, pipe):
        with pipe:
            while chunk := os.read(pipe.fileno(), 65536):
                room = OUTPUT_LIMIT - len(self.kept)
                self.kept += chunk[:room]
                self.truncated = self.truncated or len(chunk) > room

    def text(self):
        return bytes(self.kept).decode("utf-8", "replace")


def run(command, timeout_ms):
    """Runs a command in a process group of its own; at the timeout the whole group is killed and the code is 124."""
    shell = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=WORKDIR,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    outputs = [Output(shell.stdout), Output(shell.stderr)]
    timed_out = False
    try:
        exit_code = shell.wait(timeout_ms / 1000)
    except subprocess.TimeoutExpired:
        timed_out, exit_code = True, 124
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    for output in outputs:
        output.thread.join(LINGER_SECONDS)
    return {
        "exitCode": 128 - exit_code if exit_code < 0 else exit_code,
        "stdout": outputs[0].text(),
        "stderr": outputs[1].text(),
        "timedOut": timed_out,
        "truncated": any(output.truncated for output in outputs),
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    # An idle connection costs a thread.
    timeout = 120

    def do_GET(self):
        self._answer({"/v1/sandbox": self._ready, "/v1/files": self._read_file})

    def do_POST(self):
        self._answer({"/v1/shell/exec": self._exec})

    def do_PUT(self):
        self._answer({"/v1/files": self._write_file})

    def _answer(self, routes):
        route = routes.get(urlsplit(self.path).path)
        try:
            if route is None:
                raise Refused(404, "no such route")
            route()
        except Refused as error:
            self._fail(error.status, str(error))
        except (FileNotFoundError, NotADirectoryError) as error:
            self._fail(404, str(error))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except OSError as error:
            self._fail(403 if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else 500, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told and the sandbox stays up
            print(f"{self.command} {self.path}: {error!r}", file=sys.stderr, flush=True)
            self._fail(500, str(error))

    def _ready(self):
        self._json(200, {"status": "ready"})

    def _exec(self):
        try:
            request = json.loads(self._body(REQUEST_LIMIT))
        except ValueError:
            raise Refused(400, "the body is not JSON") from None
        command = request.get("command") if isinstance(request, dict) else None
        if not isinstance(command, str) or "\0" in command:
            raise Refused(400, "command: a string is needed")
        timeout_ms = request.get("timeoutMs", DEFAULT_TIMEOUT_MS)
        if type(timeout_ms) not in (int, float) or not 0 < timeout_ms <= LONGEST_TIMEOUT_MS:
            raise Refused(400, f"timeoutMs: a number from 1 to {LONGEST_TIMEOUT_MS} is needed")
        self._json(200, run(command, timeout_ms))

    def _read_file(self):
        path = self._path()
        if not os.path.isfile(path):
            raise Refused(404, f"{path}: no such file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._head(200, "application/octet-stream", size)
            shutil.copyfileobj(_Limited(file, size), self.wfile)

    def _write_file(self):
        path = self._path()
        left = size = self._length()
        if os.path.isdir(path):
            raise Refused(400, f"{path}: is a folder")
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with open(descriptor, "wb") as file:
                while left > 0:
                    chunk = self.rfile.read(min(left, 65536))
                    if not chunk:
                        raise ConnectionError("the body ended early")
                    file.write(chunk)
                    left -= len(chunk)
            os.chmod(temporary, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        self._json(200, {"path": path, "bytes": size})

    def _path(self):
        path = parse_qs(urlsplit(self.path).query).get("path", [""])[0]
        if path == "" or "\0" in path:
            raise Refused(400, "path: needed")
        return os.path.normpath(os.path.join(WORKDIR, path))

    def _length(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "Content-Length: needed")
        return int(length)

    def _body(self, limit):
        length = self._length()
        if length > limit:
            raise Refused(413, f"the body is longer than {limit} bytes")
        return self.rfile.read(length)

    def _json(self, status, value):
        body = json.dumps(value).encode()
        self._head(status, "application/json", len(body))
        self.wfile.write(body)

    def _fail(self, status, message):
        # The request's body may be unread, so nothing else can follow on this connection.
        self.close_connection = True
        try:
            self._json(status, {"error": message})
        except OSError:
            pass

    def _head(self, status, content_type, length):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(length))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def version_string(self):
        return "sandbox"

    def log_message(self, *_):
        pass


class _Limited:
    """A file as long as it was when its length was announced."""

    def __init__(self, file, left):
        self.file = file
        self.left = left

    def read(self, size):
        chunk = self.file.read(min(size, self.left))
        self.left -= len(chunk)
        return chunk


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    with Server(("0.0.0.0", PORT), Handler) as server:
        print(f"sandbox ready on port {PORT}", file=sys.stderr, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
