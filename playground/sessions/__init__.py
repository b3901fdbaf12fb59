"""Sessions: a run as a user knows it: a scenario, a run, a store, and the live tree of its events.

No HTTP here: the web and the command line are two faces of the same sessions.
"""

from playground.sessions.answers import Answer
from playground.sessions.branches import Branch, ChannelDifference, Difference, difference, family
from playground.sessions.bundle import event_json
from playground.sessions.catalog import Catalog, Entry
from playground.sessions.errors import Busy, Conflict, Invalid, NotFound, SessionError
from playground.sessions.feed import Cursor, Feed, Follower, Told, ends_run
from playground.sessions.layered import Layered, LayeredStage
from playground.sessions.portrait import Portrait, portrait, stored_plan
from playground.sessions.proof import Proof, prove
from playground.sessions.retelling import played, saved_test
from playground.sessions.sessions import Options, Sessions
from playground.sessions.stages import is_stage_note, remembered
from playground.sessions.whatif import WhatIf, what_if, writes_of

__all__ = [
    "Answer",
    "Branch",
    "Busy",
    "Catalog",
    "ChannelDifference",
    "Conflict",
    "Cursor",
    "Difference",
    "Entry",
    "Feed",
    "Follower",
    "Invalid",
    "Layered",
    "LayeredStage",
    "NotFound",
    "Options",
    "Portrait",
    "Proof",
    "SessionError",
    "Sessions",
    "Told",
    "WhatIf",
    "difference",
    "ends_run",
    "event_json",
    "family",
    "is_stage_note",
    "played",
    "portrait",
    "prove",
    "remembered",
    "saved_test",
    "stored_plan",
    "what_if",
    "writes_of",
]
