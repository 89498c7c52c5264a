/*
 * The feed of changes: writing, numbering, settling, reading, retention, crashes and a failover that loses commits.
 * README.md names the source of each part and what is left out, and configurations.ts the planted faults (`#ifdef`).
 *
 * Steps of a process are what one SQL statement sees or writes at once: its snapshot, its wait for a lock, its commit.
 * Everything that PostgreSQL may interleave is interleaved. Names in capitals are bounds.
 */

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef CHANGES /* writes in all; at most 7, because sets of changes and of sequence numbers are the bits of a byte */
#define CHANGES 3
#endif
#ifndef USERS
#define USERS 1
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef PAGE /* changes in a page */
#define PAGE 2
#endif
#ifndef STEP /* changes that one statement numbers */
#define STEP 2
#endif
#ifndef MOST_LATE
#define MOST_LATE 1
#endif
#ifndef ROLLBACKS /* transactions that fail, or that never end */
#define ROLLBACKS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef FAILOVERS /* at most 1 */
#define FAILOVERS 0
#endif
#ifndef CLEANERS /* instances that number, settle and delete */
#define CLEANERS 0
#endif

/* Properties: the runner reads the number in the failed assertion (configurations.ts names them). */
#define MUST(property, holds) assert((holds) || property == 0)

#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

typedef Database {
  byte sequence;             /* the last number drawn */
  byte durable;              /* the last number that a crash does not take back */
  byte waiting[CHANGES + 1]; /* by sequence: a committed change without a position */
  byte log[CHANGES + 1];     /* by position: a change; those up to `expired` are deleted, and kept here for the checks */
  byte position; byte expired; byte expiredId; byte removed; byte settled; byte late; byte reached; byte noted; /* the head */
  byte version[USERS]
};

Database db, standby;
byte holder[USERS];          /* the writer that has locked the row, plus 1 */
byte failures = ROLLBACKS, crashes = CRASHES;
byte left = CHANGES;
bool isCopied, isFailedOver;

/* Writers, by number. */
mtype = { IDLE, SENT, DRAWN, COMMITTED, HUNG, SELECTING, NUMBERING, SETTLING, EXPIRING, READ, DONE };
mtype writer[WRITERS] = IDLE;
byte target[WRITERS], sequence[WRITERS], made[WRITERS], earlier[WRITERS];
bool isTooLate[WRITERS];

/* Statements of readers and cleaners, by number: cleaners come after readers. */
#define SESSIONS (READERS + CLEANERS)
mtype session[SESSIONS] = IDLE;
byte candidates[SESSIONS];   /* sequence numbers in the snapshot of a numbering statement */
bool isNumbered[SESSIONS];
byte cursor[READERS], cursorId[READERS], asked[READERS];
bool isRebasing[READERS];
byte upTo[CLEANERS + 1];     /* what the snapshot of a settling or deleting statement found */
bool isMissed[CLEANERS + 1];
#ifdef NUMBERING_WITHOUT_LOCK
byte stale[SESSIONS];
#endif

/* For the checks only. Changes have the numbers from 1 in the order of their commits. */
byte born, acknowledged, lost, unnumbered;
byte owner[CHANGES + 1], number[CHANGES + 1], answeredBefore[CHANGES + 1];
byte formerLog[CHANGES + 1], follows[READERS]; /* after a failover: up to where a reader has followed the history before */

hidden byte i, j, k, n, top, taken;

/*
 * WINDOW: a stretch of a real history (windows.ts) is accepted if this model has an execution with the same requests,
 * responses, positions and reads. Then only these begin and end, in the order of their times; the other steps are free.
 */
#ifdef WINDOW
c_decl {
\#include "windows.h"
};
#define BEGINS_WITH_SELECT false
#define BEGINS 1
#define ENDS 2
int window;                  /* its number */
byte size, at, upcoming;     /* its changes, the number of the next event, and the event */
byte userOf[WRITERS], base[USERS], readTo[READERS], author[CHANGES + 1], n_author, n_number;
bool isWrong;                /* a position or a page differs */
#define LIVE (!isWrong && c_expr { !accepted[now.window] })
#define IS_FIRST(w) true
#define NEXT(what, who) (upcoming == (what) * 16 + (who))

/* One write at a time, in the order of the positions, unless SEARCHES_ALL: that suffices for almost every history. */
#ifdef SEARCHES_ALL
#define IS_IN_TURN(w) true
#else
#define IS_IN_TURN(w) (db.sequence == born && db.sequence + 1 == c_expr { turns[now.window][Pwrite->me] })
#endif

inline advance() {
  at++;
  c_code { now.upcoming = eventAt(now.window, now.at); }
}
#else
#define LIVE true
#define IS_FIRST(w) (w == 0 || writer[(w + WRITERS - 1) % WRITERS] != IDLE)
#define NEXT(what, who) true
#define BEGINS_WITH_SELECT true /* a read that begins earlier must have less */
#define IS_IN_TURN(w) true
#endif

/* Whether a transaction may commit that is so old that it is taken for ended: README.md, "Known cases". */
#ifdef LATE_COMMITS
#define MAY_COMMIT(w) true
#else
#define MAY_COMMIT(w) (!isTooLate[w])
#endif

/* lib/changes/numbering.ts: changes that a statement finds without a position. */
#define IS_FOUND(s) (db.waiting[s] != 0 && ((s) > db.settled || HAS(db.late, s)))

inline findUnnumbered(most, set) {
  set = 0; n = 0;
  for (i : 1 .. CHANGES) {
    if
    :: IS_FOUND(i) && n < most -> set = set | BIT(i); n++
    :: else
    fi
  }
}

/* Gives the next position to a change, and checks everything that must be so in the feed. */
inline give(id, at_position) {
  MUST(1, db.log[at_position] == 0);                    /* no two changes at one position */
  for (j : 0 .. READERS - 1) {
    MUST(2, cursor[j] < at_position || follows[j] || isRebasing[j]) /* no reader has gone past: nothing is skipped */
  }
#ifdef WINDOW
  k = base[owner[id]];
#else
  k = 0;
#endif
  for (j : 1 .. CHANGES) {
    if
    :: db.log[j] != 0 && j < at_position ->
      MUST(3, db.log[j] != id);                         /* no change twice */
#ifndef LATE_COMMITS
      MUST(4, !HAS(answeredBefore[db.log[j]], id));     /* a write that began after another was answered comes after it */
#endif
      k = (owner[db.log[j]] == owner[id] -> number[db.log[j]] : k)
    :: else
    fi
  }
#ifndef LATE_COMMITS
  MUST(5, number[id] == k + 1);                         /* the versions of a user are in order, and none is missing */
#endif
  db.log[at_position] = id;
  if
  :: FAILOVERS == 0 || isFailedOver -> for (j : 1 .. CHANGES) { answeredBefore[j] = answeredBefore[j] & (255 - BIT(id)) }
  :: else
  fi;
  unnumbered--
#ifdef WINDOW
  ;
  n_author = author[id]; n_number = number[id];
  c_code { now.isWrong |= !isExpected(now.window, now.db.position, now.n_author, now.n_number); }
#endif
}

/* lib/changes/numbering.ts, the snapshot: the statement finds candidates before it waits for the head's row. */
inline findCandidates(me, next) {
  findUnnumbered(STEP, candidates[me]);
  isNumbered[me] = (n < STEP); /* how many it found: another statement may move some of them meanwhile */
#ifdef NUMBERING_WITHOUT_LOCK
  stale[me] = db.position;
#endif
  session[me] = (n == 0 -> next : NUMBERING)
}

/* Settles the sequence up to the highest number taken. Numbers below it whose transaction has not ended are late. */
inline moveHead() {
  db.durable = db.sequence;
  n = (top > db.settled -> top : db.settled);
  db.reached = (n > db.reached -> n : db.reached);
#ifdef LATE_FORGOTTEN
  db.settled = n
#else
  k = 0;
  for (i : 1 .. CHANGES) {
    k = k + ((HAS(db.late, i) || (i > db.settled && i <= n && !HAS(taken, i))) -> 1 : 0)
  }
  if
  :: k <= MOST_LATE + n - top ->
    for (i : 1 .. CHANGES) {
      db.late = (i > db.settled && i <= n -> db.late | BIT(i) : db.late)
    }
    db.late = db.late & (255 - taken);
    db.settled = n
  :: else -> /* too many: the sequence is settled up to the first late one only */
    for (i : 1 .. CHANGES) {
      db.settled = (HAS(db.late, i) && i <= db.settled -> i - 1 : db.settled)
    }
    db.late = 0
  fi
#endif
}

/* The same statement under the lock of the head's row: it sees the head as it is now, and moves what is still there. */
inline numberCandidates(me, next) {
  taken = 0; n = 0;
#ifdef NUMBERING_WITHOUT_LOCK
  db.position = stale[me];
#endif
  for (i : 1 .. CHANGES) {
    if
    :: HAS(candidates[me], i) && db.waiting[i] != 0 ->
      db.position++;
      give(db.waiting[i], db.position);
      db.waiting[i] = 0; taken = taken | BIT(i); top = i; n++
    :: else
    fi
  }
#ifdef COUNT_MOVED
  isNumbered[me] = (n < STEP);
#endif
  candidates[me] = 0;
  if
  :: taken != 0 -> moveHead()
  :: else
  fi;
  session[me] = next
}

inline endWrite(w) {
  writer[w] = IDLE; target[w] = 0; sequence[w] = 0; made[w] = 0; earlier[w] = 0; isTooLate[w] = false
}

inline rollBack(w) {
  holder[target[w]] = 0; endWrite(w)
}

/* lib/users/user-statements.ts, lib/users/change-recording.ts: one statement locks the row, draws a number and writes both. */
proctype write(byte me) {
  do
  :: atomic { /* sent; writers that rest are alike, so the first of them goes on */
      LIVE && writer[me] == IDLE && IS_FIRST(me) && left > 0 && NEXT(BEGINS, me) ->
      left--; writer[me] = SENT;
      earlier[me] = acknowledged;
#ifdef WINDOW
      target[me] = userOf[me];
      advance()
#else
      target[me] = 0;
      do
      :: target[me] < USERS - 1 -> target[me]++
      :: break
      od
#endif
#ifdef SEQUENCE_BEFORE_LOCK
      ; db.sequence++; sequence[me] = db.sequence
#endif
    }
  :: atomic { /* the row is locked, then the number drawn */
      LIVE && writer[me] == SENT && holder[target[me]] == 0 && IS_IN_TURN(me) ->
      holder[target[me]] = me + 1; writer[me] = DRAWN;
#ifndef SEQUENCE_BEFORE_LOCK
      db.sequence++; sequence[me] = db.sequence
#endif
    }
  :: d_step { /* commit */
      LIVE && writer[me] == DRAWN && MAY_COMMIT(me) ->
      born++; unnumbered++; made[me] = born;
      db.version[target[me]]++;
      owner[born] = target[me]; number[born] = db.version[target[me]]; answeredBefore[born] = earlier[me];
#ifdef WINDOW
      author[born] = me;
#endif
#ifdef POSITION_BEFORE_COMMIT
      give(born, sequence[me]);
      db.position = (sequence[me] > db.position -> sequence[me] : db.position);
#else
      db.waiting[sequence[me]] = born;
#endif
      holder[target[me]] = 0; earlier[me] = 0; target[me] = 0; sequence[me] = 0;
      writer[me] = COMMITTED; db.durable = db.sequence
    }
  :: d_step { /* the transaction fails */
      writer[me] == DRAWN && (failures > 0 || !MAY_COMMIT(me)) ->
      failures = (MAY_COMMIT(me) -> failures - 1 : failures);
      rollBack(me)
    }
  :: d_step { writer[me] == DRAWN && failures > 0 -> failures--; writer[me] = HUNG } /* it ends only with a crash */
  :: atomic { /* answered; the response may be lost, and a write of a quarter of an hour is never answered */
      LIVE && writer[me] == COMMITTED && NEXT(ENDS, me) ->
      acknowledged = (isTooLate[me] -> acknowledged : acknowledged | BIT(made[me]));
#ifdef WINDOW
      advance();
#endif
      endWrite(me)
    }
#ifndef WINDOW
  :: d_step { writer[me] == COMMITTED -> endWrite(me) }
#endif
  od
}

/* Whether the identity in a cursor is that of its change (lib/changes/feed-page.ts, `holds`). */
#ifdef BARE_CURSOR
#define IS_SAME(r) true
#else
#define IS_SAME(r) (cursorId[r] == (cursor[r] == db.expired -> db.expiredId : db.log[cursor[r]]))
#endif
#ifdef CURSOR_BEYOND_HEAD
#define IS_HELD(r) (cursor[r] >= db.expired && (cursor[r] > db.position || IS_SAME(r)))
#else
#define IS_HELD(r) (cursor[r] >= db.expired && cursor[r] <= db.position && IS_SAME(r))
#endif
#define END(r) (isRebasing[r] || cursor[r] > db.position || db.position < cursor[r] + PAGE -> db.position : cursor[r] + PAGE)
#define IS_FULL(r) (!isRebasing[r] && END(r) == cursor[r] + PAGE)

/* `cursor=now`. */
inline takeHead(me) {
  isRebasing[me] = false; cursor[me] = db.position;
  cursorId[me] = (cursor[me] == db.expired -> db.expiredId : db.log[cursor[me]])
}

inline forgetFormerLog() {
  k = 0;
  for (i : 0 .. READERS - 1) { k = k + follows[i] }
  if
  :: k == 0 -> for (i : 1 .. CHANGES) { formerLog[i] = 0 }
  :: else
  fi
}

inline takePage(me) {
  isNumbered[me] = false; session[me] = IDLE;
  /* After a failover: whether the history before the cursor has the changes that this reader has read (n == 0), and
     whether in the same order (k). */
  k = true; n = 0;
  for (i : 1 .. CHANGES) {
    k = k && (i > follows[me] || (i <= db.position && db.log[i] == formerLog[i]));
    n = (i <= follows[me] -> n ^ BIT(formerLog[i]) ^ (i <= db.position -> BIT(db.log[i]) : 1) : n)
  }
  if
  :: isRebasing[me] -> takeHead(me)
  :: !isRebasing[me] && IS_HELD(me) ->
    MUST(6, n == 0);                                    /* lost history is 410 */
    if
    :: !IS_FULL(me) ->                                  /* a read that begins after a write was answered has its change */
      k = lost;
      for (i : 1 .. CHANGES) {
        k = (db.log[i] != 0 && i <= db.position -> k | BIT(db.log[i]) : k)
      }
      MUST(7, (asked[me] & k) == asked[me])
    :: else
    fi;
    for (i : 1 .. CHANGES) {
      MUST(8, i <= cursor[me] || i > END(me) || (db.log[i] != 0 && i > db.removed)) /* no gap */
    }
#ifdef WINDOW
    isWrong = (db.position != readTo[me]);
    session[me] = READ;
#endif
    cursor[me] = END(me);
    cursorId[me] = (cursor[me] == db.expired -> db.expiredId : db.log[cursor[me]])
  :: else ->
    MUST(9, cursor[me] < db.expired || !k);             /* 410 only if changes have expired or were lost */
    isRebasing[me] = true; cursor[me] = 0; cursorId[me] = 0
  fi;
  asked[me] = 0; follows[me] = 0;
  forgetFormerLog()
}

/* lib/changes/changes.ts, `#look`, and a reader that follows the links. It begins again at the head after a 410. */
proctype read(byte me) {
  do
  :: d_step { /* lib/changes/feed-page.ts: the head and a page, in one snapshot */
      LIVE && (session[me] == SELECTING || (session[me] == IDLE && BEGINS_WITH_SELECT)) ->
      if
      :: session[me] == IDLE -> asked[me] = acknowledged; isNumbered[me] = false
      :: else
      fi;
      findUnnumbered(1, k);
#ifdef READ_WITHOUT_NUMBERING
      n = 0;
#endif
      if
      :: n > 0 && !isNumbered[me] && !IS_FULL(me) -> findCandidates(me, SELECTING)
      :: else -> takePage(me)
      fi
    }
  :: d_step { LIVE && session[me] == NUMBERING -> numberCandidates(me, SELECTING) }
#ifdef WINDOW
  :: atomic { LIVE && session[me] == IDLE && NEXT(BEGINS, WRITERS + me) ->
      asked[me] = acknowledged; session[me] = SELECTING; advance()
    }
  :: atomic { LIVE && session[me] == READ && NEXT(ENDS, WRITERS + me) -> session[me] = DONE; advance() }
#endif
  od
}

/* lib/changes/numbering.ts, the snapshot. A write that had drawn its number when it was noted has ended a quarter of an
   hour later, or is never answered. */
inline findMissed(me) {
  upTo[me] = db.noted; isMissed[me] = false;
  for (i : 1 .. CHANGES) {
    isMissed[me] = isMissed[me] || (db.waiting[i] != 0 && (i <= db.noted || (i <= db.settled && !HAS(db.late, i))))
  }
  for (i : 0 .. WRITERS - 1) {
    isTooLate[i] = isTooLate[i] || (writer[i] == DRAWN && sequence[i] <= db.noted)
  }
}

/* The same statement on the head as it is now. */
inline settle(me) {
  if
  :: isMissed[me] -> db.settled = 0; db.late = 0; db.reached = 0; db.noted = 0
  :: !isMissed[me] && db.noted == upTo[me] ->
    db.settled = (upTo[me] > db.settled -> upTo[me] : db.settled);
    for (i : 1 .. upTo[me]) { db.late = db.late & (255 - BIT(i)) }
    db.noted = db.reached
  :: else
  fi;
  db.durable = db.sequence; upTo[me] = 0; isMissed[me] = false
}

/* lib/changes/change-cleanup.ts: one statement deletes changes and moves `expired`. */
inline expire(me, to) {
#ifdef RETENTION_IN_TWO_STATEMENTS
  if
  :: db.removed < to -> db.removed = to
  :: else ->
#endif
#ifndef EXPIRED_SET_BACK
  if
  :: db.expired < to ->
#endif
    db.expired = to; db.expiredId = db.log[to];
    db.removed = (to > db.removed -> to : db.removed)
#ifndef EXPIRED_SET_BACK
  :: else
  fi
#endif
  ; db.durable = db.sequence; to = 0; session[me] = IDLE
#ifdef RETENTION_IN_TWO_STATEMENTS
  fi
#endif
}

/* lib/cleanup.ts, in any order: numbering, settling (lib/changes/numbering.ts), retention (lib/changes/change-cleanup.ts). */
proctype clean(byte me) {
  do
  :: d_step { LIVE && session[me] == IDLE -> findCandidates(me, IDLE) }
  :: d_step { LIVE && session[me] == NUMBERING -> numberCandidates(me, IDLE) }
#ifndef WINDOW
  /* Settling, the snapshot. Writes that had drawn a number when it was noted have ended, or are never answered. */
  :: d_step { session[me] == IDLE -> findMissed(me - READERS); session[me] = SETTLING }
  :: d_step { session[me] == SETTLING -> settle(me - READERS); session[me] = IDLE }
  /* Retention: the snapshot finds the changes that are old, a prefix of the positions; then one statement deletes them. */
  :: atomic { session[me] == IDLE && db.expired < db.position ->
      upTo[me - READERS] = db.expired + 1; session[me] = EXPIRING;
      do
      :: upTo[me - READERS] < db.position -> upTo[me - READERS]++
      :: break
      od
#ifdef RETENTION_BEFORE_NUMBERING
      for (i : 1 .. CHANGES) {
        unnumbered = unnumbered - (db.waiting[i] != 0 -> 1 : 0);
        db.waiting[i] = 0
      }
#endif
    }
  :: d_step { session[me] == EXPIRING -> expire(me, upTo[me - READERS]) }
#endif
  od
}

inline copy(to, from) {
  to.sequence = from.durable; to.durable = from.durable; to.position = from.position; to.expired = from.expired;
  to.expiredId = from.expiredId; to.removed = from.removed; to.settled = from.settled; to.late = from.late;
  to.reached = from.reached; to.noted = from.noted;
  for (i : 1 .. CHANGES) { to.waiting[i] = from.waiting[i]; to.log[i] = from.log[i] }
  for (i : 0 .. USERS - 1) { to.version[i] = from.version[i] }
}

/* All transactions and statements end. Numbers that only they had drawn may be drawn again. */
inline endSessions() {
  for (i : 0 .. WRITERS - 1) {
    if
    :: writer[i] == DRAWN || writer[i] == HUNG -> rollBack(i)
    :: else
    fi
  }
  for (i : 0 .. SESSIONS - 1) {
    /* A reader that has no statement under way goes on, on the new primary as well. */
    if
    :: session[i] != SELECTING -> session[i] = IDLE; candidates[i] = 0; isNumbered[i] = false
    :: else
    fi
  }
  for (i : 0 .. CLEANERS) { upTo[i] = 0; isMissed[i] = false }
  for (i : 0 .. READERS - 1) { asked[i] = (session[i] == IDLE -> 0 : asked[i]) }
}

/* What only the former primary had is lost. */
inline failOver() {
#ifndef READ_OVER_FAILOVER
  for (i : 0 .. READERS - 1) { asked[i] = 0 } /* a known limit of reads that a failover interrupts: README.md */
#endif
  for (i : 1 .. CHANGES) { formerLog[i] = (i <= db.position -> db.log[i] : 0) }
  for (i : 0 .. READERS - 1) { follows[i] = cursor[i] }
  forgetFormerLog();
  copy(db, standby);
  unnumbered = 0; lost = 0;
  for (i : 1 .. CHANGES) {
    lost = lost | BIT(db.waiting[i]) | BIT(db.log[i]);
    unnumbered = unnumbered + (db.waiting[i] != 0 -> 1 : 0)
  }
  lost = (BIT(born + 1) - 2) & (255 - lost);
  for (i : 1 .. CHANGES) { standby.waiting[i] = 0; standby.log[i] = 0 }
  for (i : 0 .. USERS - 1) { standby.version[i] = 0 }
  standby.sequence = 0; standby.durable = 0; standby.position = 0; standby.expired = 0; standby.expiredId = 0;
  standby.removed = 0; standby.settled = 0; standby.late = 0; standby.reached = 0; standby.noted = 0
}

proctype fail() {
  do
  :: d_step { crashes > 0 -> crashes--; endSessions(); db.sequence = db.durable }
  :: d_step { FAILOVERS > 0 && !isCopied -> copy(standby, db); isCopied = true } /* the standby receives nothing more */
  :: d_step { isCopied && !isFailedOver -> endSessions(); failOver(); isFailedOver = true }
  od
}

#ifdef WINDOW
init {
  d_step {
    c_code { readWindows(); }
  }
  atomic {
    do
    :: c_expr { now.window + 1 < windows } -> window++
    :: break
    od;
    c_code {
      startWindow(now.window, now.userOf, now.base, now.readTo);
      now.size = sizes[now.window];
      now.upcoming = eventAt(now.window, 0);
    }
    for (i : 0 .. USERS - 1) { db.version[i] = base[i] }
    for (i : 0 .. WRITERS - 1) { run write(i) }
    for (i : 0 .. READERS - 1) { run read(i) }
    run clean(READERS)
  }
  atomic { LIVE && upcoming == 0 && db.position == size -> c_code { accepted[now.window] = 1; } }
}
#else
init {
  atomic {
    for (i : 0 .. WRITERS - 1) { run write(i) }
    for (i : 0 .. READERS - 1) { run read(i) }
    i = READERS;
    do
    :: i < SESSIONS -> run clean(i); i++
    :: else -> break
    od;
    run fail()
  }
}

#endif

#ifdef LIVENESS
#ifdef LATE_COMMITS /* only settling finds these changes, and it runs again and again */
#define IS_FAIR ([] <> (session[READERS] == SETTLING))
#else
#define IS_FAIR true
#endif
/* Every committed change gets a position, and every reader gets to the head. */
ltl liveness { IS_FAIR -> ([] <> (unnumbered == 0) && [] <> (cursor[0] == db.position && !isRebasing[0])) }
#endif
