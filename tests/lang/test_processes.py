"""Processes, connections and HTTP of the library: what is told to and of other programs, nothing left behind, Ctrl-C.

Servers are threads on 127.0.0.1 that end with their test; every wait has a limit.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import pytest
from test_services import scheme

import eshkol as ek
from eshkol.cli.main import main

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is open")
LIMIT = 30.0  # seconds that nothing here takes
NAP = f"77.{os.getpid()}"  # seconds that a program sleeps, told from those of others

RUN = """(lambda (program arguments input)
  (let ((result (run-process program arguments :input input :timeout 20)))
    (list (process-result-code result) (process-result-output result) (process-result-error result))))"""


def run(program: str, *arguments: str, given: str | bytes = "") -> list[Any]:
    return list(scheme(RUN, "eshkol processes")(program, list(arguments), given))


def test_arguments_arrive_as_they_are() -> None:
    odd = ["a b", "$HOME", "'\"\\", "", "*", "zwölf\n", "-n"]
    code = "import sys; sys.stdout.write(repr(sys.argv[1:])); sys.stderr.write('said'); sys.exit(7)"
    assert run(sys.executable, "-c", code, *odd) == [7, repr(odd), "said"]


def test_much_is_fed_and_gathered_at_once() -> None:
    text = "zwölf\n" * 200_000
    assert run("cat", given=text) == [0, text, ""]
    code = "import sys; sys.stderr.write('e' * 300000); sys.stdout.write('o' * 300000); sys.stderr.write('f' * 300000)"
    assert run(sys.executable, "-c", code, given="x" * 500_000) == [0, "o" * 300_000, "e" * 300_000 + "f" * 300_000]


def test_codes_signals_and_folders(tmp_path: Path) -> None:
    assert run("sh", "-c", "kill -9 $$") == [-9, "", ""]
    work = scheme(
        """(lambda (folder)
          (let ((result (run-shell "pwd; echo $A; echo $HOME >&2" :directory folder :environment '(("A" . "b"))
                                   :error 'output)))
            (list (process-output "pwd" '() :directory folder) (process-result-output result))))""",
        "eshkol processes",
    )
    place = str(tmp_path.resolve())
    assert list(work(place)) == [f"{place}\n", f"{place}\nb\n\n"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ('(run-process "no-such-program-here")', "no program of this name"),
        ('(run-process "/")', "Permission denied"),
        ('(run-process "ls" \'() :directory "/no/such/folder")', "No such file or directory"),
        ('(process-output "sh" \'("-c" "echo why >&2; exit 3"))', "ended with code 3: why"),
        ('(run-process "cat" "x")', "a list of strings"),
        ('(run-process "yes" \'() :limit 100000)', ":limit allows"),
        ('(process-output "sleep" \'("20") :timeout 0.05)', "not ended in time"),
        ('(run-process "ls" \'() :error "x")', ":error is a port"),
        ('(run-process "ls" \'() :timeout -1)', "a number of seconds"),
    ],
)
def test_errors_of_processes(call: str, says: str) -> None:
    with pytest.raises(ek.EshkolError) as raised:
        scheme(f"(lambda () {call})", "eshkol processes")()
    assert says in str(raised.value)


def test_a_process_beside_us(tmp_path: Path) -> None:
    work = scheme(
        """(lambda (path)
          (let* ((out (open-output-file path))
                 (process (start-process "tr" '("a-z" "A-Z")))
                 (other (start-process "echo" '("into a file") :output out :input 'ignore))
                 (sleeper (start-process "sleep" '("20") :input 'ignore :output 'ignore)))
            (write-bytevector (string->utf8 "hello") (process-input process))
            (close-port (process-input process))
            (let* ((said (utf8->string (read-bytevector 100 (process-output-port process))))
                   (codes (list (process-wait process) (process-wait other) (process-running? sleeper)
                                (process-wait sleeper :timeout 0.01))))
              (process-kill sleeper)
              (close-port out)
              (append (list said) codes (list (process-wait sleeper) (process-running? sleeper)
                                              (call-with-input-file path read-line))))))""",
        "eshkol processes", "scheme file",
    )  # fmt: skip
    assert list(work(str(tmp_path / "file"))) == ["HELLO", 0, 0, True, False, -15, False, "into a file"]


LEAKS = """
(import (eshkol) (eshkol processes) (eshkol files) (eshkol network))
(define (open-ones) (collect-garbage) (length (directory-list "/proc/self/fd")))
(define (zombies)
  (let ((me (car (string-split (read-file "/proc/self/stat") #\\space))))
    (filter (lambda (id)
              (let ((stat (guard (e (#t "")) (read-file (path-join "/proc" id "stat")))))
                (let ((parts (string-split stat #\\space)))
                  (and (> (length parts) 4) (string=? (list-ref parts 3) me) (string=? (list-ref parts 2) "Z")))))
            (filter string->number (directory-list "/proc")))))
(define (try thunk) (guard (e (#t #f)) (thunk)))
(define (work)
  (try (lambda () (run-process "true")))
  (try (lambda () (run-process "sleep" '("20") :timeout 0.01)))
  (try (lambda () (run-process "yes" '() :limit 100000)))
  (try (lambda () (run-process "no-such-program")))
  (try (lambda () (run-process "ls" '() :directory "/nowhere")))
  (call/cc (lambda (leave) (guard (e ((string? e) #f)) (run-process "head" '("-c" "1") :input "xy"))))
  (try (lambda () (start-process "true" '() :error 'pipe)))
  (let* ((listener (tcp-listen 0)) (port (cdr (tcp-local-address listener))))
    (call-with-tcp-connection "127.0.0.1" port
      (lambda (in out) (let-values (((sin sout) (tcp-accept listener))) (close-port sin) (close-port sout))))
    (tcp-connect "127.0.0.1" port)
    (close-port listener)
    (try (lambda () (tcp-connect "127.0.0.1" port :timeout 1)))))
(work)
(sleep 0.1)
(define before (open-ones))
(do ((i 0 (+ i 1))) ((= i 10)) (work))
(sleep 0.1)
(define after (open-ones))
(run-process "true")
(display (list (- after before) (zombies)))
"""


@LINUX
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Descriptors and zombies of processes and connections that were forgotten, refused, too slow or too loud."""
    (tmp_path / "leaks.esk").write_text(LEAKS)
    done = subprocess.run(
        [sys.executable, "-m", "eshkol", "run", str(tmp_path / "leaks.esk")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    grown, left = done.stdout.strip("()\n").split(" ", 1)
    assert int(grown) <= 6  # the last rounds' may not have been collected
    assert left.strip("()") == ""


FORGETTING = """
(import (eshkol) (eshkol processes) (eshkol network))
(define listener (tcp-listen 0))
(define number (cdr (tcp-local-address listener)))
(do ((i 0 (+ i 1))) ((= i 60)) (start-process "true" '() :error 'pipe))
(do ((i 0 (+ i 1))) ((= i 60))
  (let-values (((in out) (tcp-connect "127.0.0.1" number)) ((their-in their-out) (tcp-accept listener))) #f))
(display "well")
"""


@LINUX
def test_forgotten_descriptors_are_found_again(tmp_path: Path) -> None:
    """With room for 64 descriptors: ports that nobody closed give theirs back when there are no others."""
    (tmp_path / "forgetting.esk").write_text(FORGETTING)
    command = f"ulimit -n 64; exec {sys.executable} -m eshkol run {tmp_path / 'forgetting.esk'}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("well", "")


@LINUX
def test_ctrl_c_ends_what_runs(tmp_path: Path) -> None:
    """The wait ends at once, it can be handled, and the other program is gone."""
    (tmp_path / "long.esk").write_text(
        '(import (eshkol) (eshkol processes))\n(display "ready\\n") (flush-output-port)\n'
        f'(guard (e (#f #f)) (guard (e ((string? e) #f)) (run-process "sleep" \'("{NAP}"))))\n'
        '(display "not reached")\n'
    )
    program = subprocess.Popen(
        [sys.executable, "-m", "eshkol", "run", str(tmp_path / "long.esk")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begun = time.monotonic()
        program.send_signal(signal.SIGINT)  # to it alone: the other program gets none
        out, _ = program.communicate(timeout=LIMIT)
        assert time.monotonic() - begun < 15
        assert out == ""
        assert program.returncode != 0
        assert not asleep()
    finally:
        program.kill()
        program.wait()


def asleep() -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes() == f"sleep\0{NAP}\0".encode():
                    found.append(folder.name)
            except OSError:
                continue
    return found


# ---- connections


def test_connections_in_both_directions() -> None:
    work = scheme(
        """(lambda ()
          (let* ((listener (tcp-listen 0)) (port (cdr (tcp-local-address listener))))
            (let-values (((in out) (tcp-connect "127.0.0.1" port :binary #f))
                         ((theirs-in theirs-out) (tcp-accept listener :timeout 10)))
              (write-string "zwölf\\n" out)
              (tcp-end-output out)
              (let* ((heard (read-bytevector 100 theirs-in)) (end (eof-object? (read-u8 theirs-in)))
                     (same (= (cdr (tcp-peer-address theirs-in)) (cdr (tcp-local-address in)))))
                (write-bytevector (make-bytevector 200000 65) theirs-out)
                (close-port theirs-out)
                (close-port theirs-in)
                (let ((answer (string-length (read-string 1000000 in))))
                  (close-port in)
                  (close-port out)
                  (let-values (((none also-none) (tcp-accept listener :timeout 0.01)))
                    (close-port listener)
                    (list heard end same answer none)))))))""",
        "eshkol network",
    )
    heard, *others = work()
    assert bytes(heard) == "zwölf\n".encode()
    assert others == [True, True, 200_000, False]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ('(tcp-connect "127.0.0.1" 1 :timeout 5)', "Connection refused"),
        ('(tcp-connect "no.such.host.invalid" 80 :timeout 5)', "no.such.host.invalid"),
        ('(tcp-connect "127.0.0.1" 70000)', "from 0 to 65535"),
        ('(tcp-listen 0 :host "192.0.2.1")', "192.0.2.1"),
        ('(let ((l (tcp-listen 0))) (close-port l) (tcp-accept l))', "closed"),
        ('(let ((l (tcp-listen 0))) (read-u8 l))', "binary input port"),
        ('(tcp-accept (open-input-string "x"))', "a listener"),
        (
            '(let ((l (tcp-listen 0))) (let-values (((in out) (tcp-connect "127.0.0.1" (cdr (tcp-local-address l)))))'
            " (port-deadline! in 0.05) (read-u8 in)))",
            "timed out",
        ),
        (
            '(let ((l (tcp-listen 0))) (let-values (((in out) (tcp-connect "127.0.0.1" (cdr (tcp-local-address l)))))'
            " (port-deadline! out 0.2) (do () (#f) (write-bytevector (make-bytevector 100000) out))))",
            "timed out",
        ),
    ],
)  # fmt: skip
def test_errors_of_connections(call: str, says: str) -> None:
    with pytest.raises(ek.EshkolError) as raised:
        scheme(f"(lambda () {call})", "eshkol network")()
    assert says in str(raised.value)


# ---- HTTP


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        code, _, place = self.path[1:].partition("/")
        if code.isdigit():
            self.answer(int(code), Location=f"/{place}" if place else "echo")
        elif code == "away":
            self.answer(302, Location=place)
        elif self.path.startswith("/latin"):
            self.answer(200, "é".encode("latin-1"), **{"Content-Type": "text/plain; charset=ISO-8859-1"})
        elif self.path.startswith("/chunks"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "Chunked")
            self.end_headers()
            for piece in (b"he", b"llo" * 30_000, "é".encode()):
                self.wfile.write(b"%X;x=y\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\nTrailer: x\r\n\r\n")
        else:
            length = int(self.headers.get("Content-Length", 0))
            told = f"{self.command} {self.path} {self.headers.get('X-Mine')} {self.headers.get('Authorization')} "
            self.answer(200, told.encode() + self.rfile.read(length))

    do_POST = do_PUT = do_HEAD = do_GET


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(LIMIT)


ASK = """(lambda (method url body headers redirects)
  (let ((response (http-request method url :body body :headers headers :timeout 20 :redirects redirects)))
    (list (http-response-status response) (http-response-text response) (http-response-url response))))"""


def test_http_requests() -> None:
    with serving() as base:

        def ask(method: str, path: str, body: Any = False, redirects: int = 5, **headers: str) -> list[Any]:
            pairs = scheme("(lambda (names values) (map cons names values))")(list(headers), list(headers.values()))
            code, text, url = scheme(ASK, "eshkol http")(method, base + path, body, pairs, redirects)
            assert url.startswith(base)
            return [code, text, url.removeprefix(base)]

        path = "/a?b=c&d"
        assert ask("GET", path + "#part") == [200, "GET /a?b=c&d None None ", path + "#part"]
        assert ask("PUT", path, "zwölf") == [200, "PUT /a?b=c&d None None zwölf", path]
        assert ask("POST", "/x", b"\x00\x01") == [200, "POST /x None None \x00\x01", "/x"]
        assert ask("HEAD", "/x") == [200, "", "/x"]
        assert ask("GET", "/latin")[1] == "é"
        assert ask("GET", "/chunks")[1] == "he" + "llo" * 30_000 + "é"
        assert ask("GET", "/404")[0] == 404
        assert ask("POST", "/302/to", "body")[1:] == ["GET /to None None ", "/to"]
        assert ask("POST", "/307/302/to", "body")[1:] == ["GET /to None None ", "/to"]
        assert ask("POST", "/308/to", "body")[1] == "POST /to None None body"
        assert ask("GET", "/301")[1] == "GET /echo None None "
        assert ask("GET", "/302/to", redirects=0)[0] == 302
        assert ask("GET", "/302/to", **{"X-Mine": "m"}, Authorization="key")[1] == "GET /to m key "
        with serving() as elsewhere:  # keys stay with the host that they are for
            pairs = scheme('(lambda () \'(("Authorization" . "key") ("X-Mine" . "m")))')()
            found = scheme(ASK, "eshkol http")("GET", f"{base}/away/{elsewhere}/to", False, pairs, 5)
            assert list(found) == [200, "GET /to m None ", f"{elsewhere}/to"]
        with pytest.raises(ek.EshkolError, match="more redirections"):
            ask("GET", "/302/302/302/to", redirects=2)


BAD = [  # what a server sends, and what is said of it (or the body)
    (b"", "ends in its head"),
    (b"SSH-2.0-x\r\n\r\n", "does not begin like HTTP"),
    (b"HTTP/1.1 abc\r\n\r\n", "does not begin like HTTP"),
    (b"HTTP/1.1 200 OK\r\nA: b\r\n", "ends in its head"),
    (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "no header"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 20_000, "too long"),
    (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 300 + b"\r\n", "too many headers"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "ends too early"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc", "no number"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "no number"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", ":limit"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "two lengths"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab", "encoding"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "size of a piece"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n", ":limit"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", "does not end"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", "ends too early"),
    (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 3000, ":limit"),
    (b"HTTP/1.0 200\nA: b\n\nto the end", "=to the end"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", "=ok"),
    (b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok", "="),
    (b"HTTP/1.1 302 No\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n", "https needs encryption"),
    (None, "timed out"),
]


def raw_server(answers: list[bytes | None]) -> tuple[int, Callable[[], None]]:
    """Sends each of the answers to one connection, whatever it is asked; None: nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(LIMIT)

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(LIMIT)
                connection.recv(65536)
                if answer is None:
                    time.sleep(0.6)
                else:
                    try:
                        connection.sendall(answer)
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(1)
                    except OSError:
                        pass  # it had heard enough
        listener.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return listener.getsockname()[1], lambda: thread.join(LIMIT)


def test_http_of_bad_servers() -> None:
    port, end = raw_server([answer for answer, _ in BAD])
    get = scheme("(lambda (url time) (http-response-text (http-get url :timeout time :limit 2000)))", "eshkol http")
    for answer, says in BAD:
        try:
            found = "=" + get(f"http://127.0.0.1:{port}/", 0.2 if answer is None else 20)
        except ek.EshkolError as error:
            found = str(error)
        assert (found == says) if says.startswith("=") else (says in found), (answer, found)
    end()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://example.org/", "https needs encryption"),
        ("ftp://example.org/", "begins with http://"),
        ("http:///x", "no host"),
        ("http://a b/", "no spaces"),
        ("http://h/\r\nX: y", "no spaces"),
        ("http://h:x/", "no number"),
        ("http://h:70000/", "no number"),
        ("http://me:secret@h/", "do not belong"),
        ("http://é/", "only ASCII"),
    ],
)
def test_bad_addresses(url: str, says: str) -> None:
    with pytest.raises(ek.EshkolError) as raised:
        scheme("(lambda (url) (http-get url :timeout 5))", "eshkol http")(url)
    assert says in str(raised.value)


def test_texts_in_addresses() -> None:
    encode, decode = scheme("url-encode", "eshkol http"), scheme("url-decode", "eshkol http")
    for text in ("a b/ü?&=+%", "", "~-._", "日本\0", os.fsdecode(bytes(range(32, 127)))):
        assert encode(text) == quote(text, safe="")
        assert decode(encode(text)) == text == unquote(encode(text))
    query = scheme('(lambda () (url-query \'((a . 1) ("b c" . "&="))))', "eshkol http")()
    assert query == urlencode({"a": 1, "b c": "&="}, quote_via=quote)
    for bad in ("%", "%4", "%zz", "a%2"):
        with pytest.raises(ek.EshkolError, match="two hexadecimal digits"):
            decode(bad)


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that docs/services.md shows, one after another, in an empty folder."""
    page = (Path(__file__).parents[2] / "docs" / "services.md").read_text("utf-8")
    text = "\n".join(re.findall(r"^```scheme\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    port, end = raw_server([b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[7]"])
    (tmp_path / "page.esk").write_text(text.replace(":8000", f":{port}"), "utf-8")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    code = main(["test", str(tmp_path / "page.esk")])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    end()
