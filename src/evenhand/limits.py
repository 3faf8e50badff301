"""Every numeric bound, with its reason. Nothing read from outside is taken without one."""

from __future__ import annotations

# A reply is a few kilobytes; a provider that sends megabytes is broken or hostile.
REPLY_BYTES = 4 * 1024 * 1024
# The body around it carries log-probabilities and metadata.
BODY_BYTES = 8 * 1024 * 1024
# A contract's own objects nest five deep; the JSON parser must not run out of stack.
JSON_DEPTH = 64
# What came in so deep reads back from whatever was written around it: a judgment, an export.
STORED_DEPTH = JSON_DEPTH + 32
# Values of one JSON text: a few bytes of it can ask for a hundred of memory. A row may carry the
# whole log of a long conversation.
JSON_ELEMENTS = 1_000_000
# A provider's body: the log-probabilities of 2,000 tokens, each with 20 others, fit.
BODY_ELEMENTS = 500_000
# A verdict has a few dozen.
REPLY_ELEMENTS = 100_000
# A suite, rubric or protocol, and the names that one key of it, or one column, is made of.
TOML_ELEMENTS = 100_000
NAME_PARTS = 32

# A suite, rubric, prompt or file of a protocol: texts that a person wrote.
TEXT_FILE_BYTES = 8 * 1024 * 1024
# Recorded replies are read as a whole.
REPLAY_BYTES = 1024**3
# Files of a protocol, and folders in folders of it: a dozen and two.
PROTOCOL_FILES, PROTOCOL_DEPTH = 256, 8

# One row of input: a book fits, a binary file mistaken for JSONL does not.
LINE_BYTES = 32 * 1024 * 1024
# A workbook is read as a whole; a sheet of a million cells of text unpacks to less.
WORKBOOK_BYTES = 512 * 1024**2
# A sheet is laid out as a rectangle: two cells far apart ask for all between them.
WORKBOOK_CELLS = 16_000_000
# So much of a packed file is taken at any ratio; beyond, what unpacks to so many times its size is
# no text. Files of many gigabytes go through.
RATIO_FREE_BYTES = 256 * 1024**2
UNPACKED_RATIO = 250
# A table is read into memory: its bytes, and the values of a JSON file.
TABLE_BYTES = 4 * 1024**3
TABLE_ELEMENTS = 50_000_000
# An archive of judgments unpacks to a few gigabytes at most; beyond that it is a bomb.
UNPACKED_BYTES = 8 * 1024**3
# Problems listed to a judge in one re-ask, and to a person in one message.
PROBLEMS_SHOWN = 12
# Problems found in one reply: one that holds a million wrong keys is not worded a million times.
PROBLEMS_KEPT = 100

# Evidence, as the contract has it.
EVIDENCE_MIN, EVIDENCE_MAX = 1, 3
# Longer than this is not "a short fragment": flagged.
EVIDENCE_CHARS = 400
# Notes longer than this are flagged.
NOTES_CHARS = 300

# Of a reply that broke the contract, so much is shown to the judge again.
REASK_CHARS = 20_000
# Work on longer texts takes milliseconds, and is done beside the event loop.
ASIDE_CHARS = 10_000
# Re-asks after a broken rule of the contract.
REPAIRS = 2
REPAIRS_MAX = 10

# Rounds of a pair, as the contract has it; more than some will not settle what some did not.
MAX_ROUNDS = 3
MAX_ROUNDS_MOST = 20

# Requests in flight when the suite does not say; an embedded judge takes one at a time.
CONCURRENCY = 16
CONCURRENCY_MAX = 4096
REPEATS_MAX = 1000

# Tokens a judge may write when the suite does not say: a rubric of ten dimensions fits.
MAX_TOKENS = 2048

# One attempt at a call, and the call with all its attempts, in seconds.
ATTEMPT_SECONDS = 120.0
CALL_SECONDS = 600.0
# Attempts at one call; waiting between them is full jitter below these, in seconds.
ATTEMPTS = 8
BACKOFF_FIRST = 0.5
BACKOFF_MOST = 60.0
# The longest pause of all callers of a provider that is busy and names none, in seconds.
BUSY_PAUSE_MOST = 20.0
# A provider's Retry-After beyond this is "come back later": the run stops, resumable.
RETRY_AFTER_MOST = 600.0
# A judge that has not answered yet and cannot be connected to is absent after so many tries of a
# call, or so many seconds; one that has may be starting anew, and is tried as often as any.
UNREACHABLE_TRIES = 3
UNREACHABLE_SECONDS = 5.0
# This many calls lost one after the other, none answered between them: the provider is down.
LOST_IN_A_ROW = 12
# After so many judgments without a verdict, a run stops that would pay for the rest in vain.
FUTILE_JUDGMENTS = 20

# Bytes bound tokens from above (a byte-level tokenizer never makes more); each message of a
# conversation adds at most this many.
TOKENS_A_MESSAGE = 16
# More than this in one call is no count but a mistake: ten times the longest context there is.
TOKENS_MOST = 10**8
# Tokens that a judge may be allowed to write.
MAX_TOKENS_MOST = 10**7
# Dollars a million tokens: many times the dearest. What a call may cost then fits 64 bits.
PRICE_MOST = 10_000
BUDGET_MOST = 10**9

# A commit waits so long for others to join it, in seconds: nothing beside the time of a call, and
# with many calls in flight it saves most of the commits.
GATHER_SECONDS = 0.003
# What need not survive a crash waits so long, in seconds, for a commit that is made anyway.
JOIN_SECONDS = 1.0
# Pages of the write-ahead log after which it is copied into the store, and the bytes that its file
# keeps after that.
CHECKPOINT_PAGES = 8000
LOG_BYTES = 64 * 1024 * 1024
# What one connection to a store in a file may hold of it in memory.
PAGE_CACHE_KILOBYTES = 8 * 1024
# How long one waits for another who writes, in seconds.
BUSY_SECONDS = 30.0
# How often it is tried again, in seconds, where SQLite itself does not wait.
BUSY_LOOK_SECONDS = 0.01
# Pauses between tries to claim a run, in seconds.
CLAIM_PAUSES = (0.1, 0.3, 0.6)
# A commit that takes so long, in seconds, is held up: nothing is asked meanwhile.
HELD_UP_SECONDS = 1.0
# Rows read from the store, and written to it, at a time.
PAGE_ROWS = 256
BATCH_ROWS = 512
# Rows of a table after which it is told how far its reading is.
ROWS_A_NOTICE = 100_000

# A batch of questions, whatever its provider would take: requests, and bytes of their bodies, which
# are held in memory while it is made.
BATCH_REQUESTS = 20_000
BATCH_BYTES = 64 * 1024 * 1024
# The answers of a batch, read as a whole, and the values in them.
BATCH_ANSWER_BYTES = 1024 * 1024 * 1024
BATCH_ELEMENTS = 50_000_000
# What is left of a run below this is asked live: a batch may take a day.
BATCH_THEN_LIVE = 50
# Up- and downloads take longer than a question, in seconds.
BATCH_SECONDS = 600.0
# How often a batch is looked at, in seconds: soon at first, then ever more seldom.
BATCH_LOOK_FIRST = 1.0
BATCH_LOOK_MOST = 60.0
# Pages of a list of batches that are searched for one, a hundred on each.
BATCH_PAGES = 10
# How often a batch is looked for whose creation was not answered, and how long before it may have
# been made by a clock that goes otherwise, in seconds.
BATCH_SEARCHES = 3
BATCH_CLOCK_SECONDS = 300.0

# An embedded judge that says nothing for so long hangs, in seconds; loading may take a minute.
EMBEDDED_ANSWER_SECONDS = 300.0
EMBEDDED_LOAD_SECONDS = 180.0

# A server of a store that does not take a connection for so long is not there, in seconds; one that
# leaves a statement unanswered for so long has been lost.
CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 120.0
# What cannot be written because the server is away waits so long for its return, in seconds: a
# server is started anew, and a standby promoted, in less.
SERVER_AWAY_SECONDS = 60.0

# How soon, in seconds, one looks again for what another process does: at first, and at most.
LOOK_AGAIN_FIRST = 0.05
LOOK_AGAIN_MOST = 1.0
# Actors that judge one run at most, and locks for them and for the successors of those that die.
ACTORS_MOST = 128
ACTOR_LOCKS = 256
# Units that an actor is handed at a time, for each call that it may have under way.
UNITS_PER_CALL = 16

# What people say of a run: a line or two in a list of runs.
AUTHOR_LENGTH, NOTE_LENGTH, TAG_LENGTH, TAGS = 100, 500, 50, 20
