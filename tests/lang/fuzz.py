"""Random programs of the language: a generator, what turns a program into an equal one, and a driver.

    python tests/lang/fuzz.py programs --count 1000 [--oracle scheme] [--seed 1]    run and compare with an oracle
    python tests/lang/fuzz.py programs --count 10000 --batch 100 --small --oracle tier
    python tests/lang/fuzz.py garbage --count 10000 [--seed 1]                      mutated and broken texts

Oracles: the same program with its expressions wrapped in what does not change their values (`twin`), the same compiled
as it is written (`tier`), a collector that runs all the time (`stress`), or another Scheme, given by its command
(fuzz_programs.py defines what it lacks).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz_programs import PRELUDES, Generator, programs, render

# ---- garbage -----------------------------------------------------------------------------------------------------

WORDS = """
( ) [ ] ' ` , ,@ #' #` #, #,@ . ... _ #; #| |# ; " | \\ #( #u8( #0= #0# #1# #\\a #\\ #t #f #true 1 -1 1.5 1/2 1e400 +i
+inf.0 -nan.0 #e1.5 #x-ff 99999999999999999999 x y z f lambda define define-syntax let let* letrec letrec* if cond =>
else case and or when unless do begin quote quasiquote unquote unquote-splicing set! syntax-rules syntax-case syntax
with-syntax let-syntax letrec-syntax define-record-type define-values let-values let*-values parameterize guard
case-lambda delay delay-force import export define-library cond-expand library only except prefix rename (eshkol)
(scheme (srfi 1) car cdr cons list vector apply call/cc values dynamic-wind raise error string-append + - * < = eq?
eval (interaction-environment) define-struct syntax-error :key #!eof #!fold-case #!default #d1 #b2 "\\x41;" "\\q" |a
b| é λ begin-for-syntax require provide assert"""
TOKENS = [*WORDS.split(), "\n", "\ufeff", "\u200b", "\x00", "\x7f"]


def garbage(chance: random.Random, seeds: list[str]) -> str:
    """A text that may be anything: a broken program, tokens, characters."""
    kind = chance.randrange(16)
    if kind >= 10:
        return regrown(chance.choice(seeds), chance)
    if kind == 0:
        return "".join(
            chr(chance.choice([chance.randrange(128), chance.randrange(0xD800), 0x10FFFF]))
            for _ in range(chance.randrange(60))
        )
    if kind < 3:
        return " ".join(chance.choice(TOKENS) for _ in range(chance.randrange(1, 40)))
    if kind < 5:
        return balanced(chance, chance.randrange(1, 6))
    text = chance.choice(seeds)
    start = chance.randrange(max(1, len(text) - 1500))
    text = text[start : start + chance.randrange(20, 1500)] if chance.random() < 0.3 else text
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        text = mutated(text, chance)
    return text


def balanced(chance: random.Random, depth: int) -> str:
    """Tokens in lists."""
    if depth == 0:
        return chance.choice(TOKENS[9:])
    return "(" + " ".join(balanced(chance, chance.randrange(depth)) for _ in range(chance.randrange(6))) + ")"


def mutated(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    to = min(len(text), at + chance.choice([1, 1, 2, 5, 20]))
    match chance.randrange(6):
        case 0:
            return text[:at] + text[to:]
        case 1:
            return text[:at] + chance.choice(TOKENS) + text[at:]
        case 2:
            return text[:at] + chance.choice(TOKENS) + text[to:]
        case 3:
            other = chance.randrange(len(text) + 1)
            return text[:at] + text[other : other + chance.randrange(60)] + text[at:]
        case 4:
            return text[:at] + chr(chance.randrange(0x250)) + text[to:]
        case _:
            words = text.split(" ")
            i, j = chance.randrange(len(words)), chance.randrange(len(words))
            words[i], words[j] = words[j], words[i]
            return " ".join(words)


def regrown(text: str, chance: random.Random) -> str:
    """A program some of whose lists and atoms were put in the place of others; much of what comes out compiles."""
    parts = re.split(r'("[^"]*"|#\\.|[()\s])', text)
    spans, opened = [], []
    for at, part in enumerate(parts):
        if part == "(":
            opened.append(at)
        elif part == ")" and opened:
            spans.append((opened.pop(), at + 1))
        elif part.strip():
            spans.append((at, at + 1))
    if not spans:
        return text
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        (a, b), (c, d) = chance.choice(spans), chance.choice(spans)
        inner = "".join(parts[c:d])
        match chance.randrange(4):
            case 0:
                inner = f"({chance.choice(TOKENS[40:])} {inner})"
            case 1:
                inner = ""
        parts = [*parts[:a], inner, *[""] * (b - a - 1), *parts[b:]]
    return "".join(parts)


def seed_texts() -> list[str]:
    """Programs to be broken: those of the suite (but none that touch files), the library, and random ones."""
    root = Path(__file__).parents[2]
    files = [*root.glob("tests/scheme/**/*.esk"), *root.glob("src/eshkol/lib/**/*.esk")]
    texts = [path.read_text() for path in sorted(files)]
    forms = [part for text in texts for part in text.split("\n\n") if 20 < len(part) < 3000]
    own = [render(Generator(number).program()) for number in range(40)]
    return [form for form in forms + own if not any(word in form for word in ("file", "exit", "load", "include"))]


def try_garbage(
    seed: int, count: int, run_share: float, log: Path | None = None, tally: dict[str, int] | None = None
) -> list[str]:
    """Read and expand so many texts, and run some; what went wrong, other than by an error for people.

    `tally` is told how many were compiled, at least in part, and how many ended with a value.
    """
    from eshkol.errors import EshkolError
    from eshkol.lang.deep import mark_deep
    from eshkol.lang.source import Source
    from eshkol.runtime.scheme import SchemeExit, SchemeRaised
    from eshkol.runtime.worker import on_large_stack
    from eshkol.session import Session

    texts, defects = seed_texts(), []

    def work() -> None:
        mark_deep()
        session: Any = None
        for number in range(seed, seed + count):
            chance = random.Random(number)
            text = garbage(chance, texts)
            if log is not None:
                log.write_text(f"{number}\n{text}")
            if session is None or number % 100 == 0:
                if session is not None:
                    session.close()
                session = Session()
            timer = Interrupter(session)
            try:
                if chance.random() < run_share:
                    session.machine.flush()
                    value = None
                    for form in session.forms(text):
                        if value is None and tally is not None:
                            tally["compiled"] = tally.get("compiled", 0) + 1
                        value = form()
                    if value is not None:
                        session.shown(value)
                        if tally is not None:
                            tally["ended well"] = tally.get("ended well", 0) + 1
                else:
                    for _ in session.world.prompt.units(Source("<garbage>", text)):
                        pass
            except (EshkolError, SchemeExit):
                pass
            except KeyboardInterrupt:  # what the interrupter sent, perhaps for the case before
                if tally is not None:
                    tally["interrupted"] = tally.get("interrupted", 0) + 1
            except SchemeRaised as raised:
                from eshkol.session.report import scheme_error

                message = str(scheme_error(session, raised))
                of_python = message.startswith("py-")  # which names Python's errors, as it should
                if ("Error:" in message and not of_python) or "system:" in message:
                    defects.append(f"{number}: {message[:300]}")
            except Exception as error:
                import traceback

                defects.append(f"{number}: {type(error).__name__}: {error}\n{''.join(traceback.format_exc()[-900:])}")
            finally:
                timer.stop()
        if session is not None:
            session.close()

    on_large_stack(work)
    return defects


class Interrupter:
    """Interrupts a session that takes too long, as Ctrl-C does."""

    def __init__(self, session: Any, seconds: float = 10.0) -> None:
        import threading

        self.timer = threading.Timer(seconds, session.machine.interrupt)
        self.timer.daemon = True
        self.timer.start()

    def stop(self) -> None:
        self.timer.cancel()


# ---- the driver -------------------------------------------------------------------------------------------------


def values(output: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)


def run_program(
    text: str, environment: dict[str, str] | None = None, command: list[str] | None = None
) -> tuple[int, str, str]:
    """Exit code, output and errors of a program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.esk"
        path.write_text(text)
        words = command or [sys.executable, "-c", "from eshkol.cli.main import main; main()", "run"]
        done = subprocess.run(
            [*words, str(path)], capture_output=True, text=True, env=os.environ | (environment or {}), timeout=1800
        )
    return done.returncode, done.stdout, done.stderr


def compare(seed: int, count: int, oracle: str, small: bool = False) -> list[str]:
    """Run programs and compare: with a twin, another tier, a collector under stress, or another Scheme."""
    text = PRELUDES["eshkol"] + programs(seed, count, small=small, own=oracle in ("tier", "stress"))
    if oracle == "twin":
        other = run_program(PRELUDES["eshkol"] + programs(seed, count, twin=1, small=small))
    elif oracle == "tier":
        other = run_program(text, {"ESHKOL_TIER": "quick"})
    elif oracle == "stress":
        other = run_program(text, {"ESHKOL_GC_STRESS": "7"})
    else:
        other = run_program(PRELUDES["chez"] + programs(seed, count, small=small), command=[oracle, "--script"])
    own = run_program(text, {"ESHKOL_TIER": "full"} if oracle == "tier" else None)
    defects = [
        f"{name} ends with {code}: {error[:300]}" for name, (code, _, error) in (("it", own), ("oracle", other)) if code
    ]
    found, wanted = values(own[1]), values(other[1])
    for number in range(seed, seed + count):
        a, b = found.get(str(number)), wanted.get(str(number))
        if a != b or a is None:
            defects.append(f"program {number}: {a} instead of {b}")
    return defects


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["programs", "garbage"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--small", action="store_true", help="small programs, but for one batch in fifty")
    parser.add_argument("--oracle", default="twin", help="twin, tier, stress, or the command of a Scheme")
    parser.add_argument("--run-share", type=float, default=0.1, help="of garbage that is not only expanded")
    parser.add_argument("--log", type=Path, help="where the text is kept that is being tried")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.count, options.batch):
        if options.what == "programs":
            small = options.small and (seed // options.batch) % 50 != 3
            defects = compare(seed, options.batch, options.oracle, small)
        else:
            defects = try_garbage(seed, options.batch, options.run_share, options.log)
        print(f"{seed}: {len(defects)} defects", *defects, sep="\n", flush=True)
        failed += len(defects)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
