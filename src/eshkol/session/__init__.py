"""Sessions of the language: programs run, errors shown to people, and the prompt.

`session.py` puts the language together; `report.py` shows conditions that nothing handled; `describing.py` answers what
places where people type ask; `repl.py` is the plain prompt; `testing.py` runs files of tests."""

from eshkol.session.session import Session, SessionThread, TranscriptSession, on_session

__all__ = ["Session", "SessionThread", "TranscriptSession", "on_session"]
