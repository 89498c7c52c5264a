/*
 * Idempotency keys of creates: claim, crash between commit and response, replay, expiry, deletion, failover.
 * README.md names the source of each part and what is left out, and configurations.ts the planted faults (`#ifdef`).
 *
 * All clients use the same key. Clients of one caller are attempts of one request that overlap, unless VALUES is 2:
 * then the last client of each caller sends other values. A client sends its request again until it has a final response.
 */

#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef CLIENTS /* of each caller */
#define CLIENTS 2
#endif
#ifndef VALUES
#define VALUES 1
#endif
#ifndef LOSSES /* statements that fail, and responses that are lost after the commit */
#define LOSSES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef FAILOVERS /* at most 1 */
#define FAILOVERS 0
#endif
#ifndef DAYS /* how often 24 hours pass */
#define DAYS 1
#endif
#ifndef DELETIONS
#define DELETIONS 1
#endif

/* Properties: the runner reads the number in the failed assertion (configurations.ts names them). */
#define MUST(property, holds) assert((holds) || property == 0)

#define ALL (CALLERS * CLIENTS)
#define CALLER(c) ((c) / CLIENTS)
#define VALUE(c) (VALUES == 2 && (c) % CLIENTS == CLIENTS - 1 -> 2 : 1)
#ifdef KEY_WITHOUT_CALLER /* lib/idempotency/fingerprint.ts: the digest of the key */
#define KEY(c) 0
#else
#define KEY(c) CALLER(c)
#endif

#define USERS 7 /* at most: every client may create one in each period */

mtype = { IDLE, WAITING, CLAIMED, KNOWN, CREATED, REPLAYED, REUSED, GONE, DONE, LEFT };

/* A record of a key: `user` is 0 if there is none. */
typedef Database {
  byte user[CALLERS]; byte request[CALLERS]; bool isOld[CALLERS];
  bool isDeleted[USERS + 1]; bool isStored[USERS + 1]
};

Database db, standby;
byte holder[CALLERS];         /* the client whose statement has claimed the key and has not ended, plus 1 */
mtype client[ALL] = IDLE;
byte response[ALL];           /* the user in its response */
bool isExpiring[CALLERS];     /* the snapshot of the deleting statement has found this key */
byte losses = LOSSES, crashes = CRASHES, days = DAYS, deletions = DELETIONS;
bool isCopied, isFailedOver;

/* For the checks only. */
byte born, answered;
byte madeBy[USERS + 1];       /* the client that created a user, plus 1 */
byte period[CALLERS];         /* users that the current record of a key stands for */

hidden byte i;

/* The commit of claim and user. */
inline commit(c) {
  born++;
  assert(born <= USERS);
  madeBy[born] = c + 1; db.isStored[born] = true; response[c] = born
}

inline record(c, user_) {
  db.user[KEY(c)] = user_; db.request[KEY(c)] = VALUE(c); db.isOld[KEY(c)] = false
}

/* Users that exist, or existed, because of this caller's key since it was last new. */
inline count(c) {
  period[CALLER(c)]++;
  MUST(11, period[CALLER(c)] == 1)                    /* a key makes one user */
}

inline endAttempt(c, state) {
  client[c] = state; response[c] = 0
}

/* lib/users/idempotent-creates.ts, lib/users/users.ts, lib/idempotency/key-table.ts */
proctype create(byte me) {
  do
  :: d_step { client[me] == IDLE -> client[me] = WAITING }
#ifdef CHECK_BEFORE_CLAIM
  :: d_step { client[me] == WAITING -> client[me] = (db.user[KEY(me)] != 0 && !db.isOld[KEY(me)] -> KNOWN : CLAIMED) }
  :: d_step { client[me] == CLAIMED -> commit(me); count(me); record(me, born); client[me] = CREATED }
#else
  /* The statement claims the key: it waits for an unfinished one with the same key, and sees the record as it is then. */
  :: d_step { client[me] == WAITING && holder[KEY(me)] == 0 ->
      if
      :: db.user[KEY(me)] != 0 && !db.isOld[KEY(me)] -> client[me] = KNOWN
      :: else ->
        holder[KEY(me)] = me + 1; client[me] = CLAIMED
      fi
    }
  :: d_step { client[me] == CLAIMED && holder[KEY(me)] == me + 1 ->
#ifdef KEY_BEFORE_USER
      record(me, USERS); holder[KEY(me)] = 0; isExpiring[KEY(me)] = false
    }
  :: d_step { client[me] == CLAIMED && holder[KEY(me)] == 0 ->
      commit(me); count(me); record(me, born); client[me] = CREATED
    }
#else
#ifdef KEY_AFTER_USER
      commit(me); count(me); holder[KEY(me)] = 0; client[me] = REUSED
    }
  :: d_step { client[me] == REUSED && response[me] != 0 -> record(me, response[me]); client[me] = CREATED }
#else
      commit(me); count(me); record(me, born); holder[KEY(me)] = 0; client[me] = CREATED
    }
#endif
#endif
#endif
  :: d_step { client[me] == KNOWN ->                     /* the record, in a second statement: none if it has expired */
      if
      :: db.user[KEY(me)] == 0 || db.isOld[KEY(me)] -> client[me] = WAITING
#ifndef VALUES_NOT_COMPARED
      :: db.user[KEY(me)] != 0 && !db.isOld[KEY(me)] && db.request[KEY(me)] != VALUE(me) ->
        endAttempt(me, DONE)
#endif
      :: else ->
        response[me] = db.user[KEY(me)];
        client[me] = (db.isStored[response[me]] && !db.isDeleted[response[me]] -> REPLAYED : GONE);
        MUST(14, client[me] == REPLAYED || db.isDeleted[response[me]]) /* 410 only if the user was deleted */
      fi
    }
  /* 201 arrives. */
  :: d_step { client[me] == CREATED || client[me] == REPLAYED ->
      MUST(12, CALLER(madeBy[response[me]] - 1) == CALLER(me)); /* the user is this caller's, */
      MUST(13, VALUE(madeBy[response[me]] - 1) == VALUE(me));   /* with the values of this request */
      endAttempt(me, DONE)
    }
  :: d_step { client[me] == GONE -> endAttempt(me, DONE) } /* 410 arrives */
  /* The statement fails, the time limit is reached, or the response is lost: the client sends its request again. */
  :: d_step { client[me] != IDLE && client[me] != DONE && client[me] != LEFT && losses > 0 ->
      losses--;
      holder[KEY(me)] = (holder[KEY(me)] == me + 1 -> 0 : holder[KEY(me)]);
      endAttempt(me, IDLE)
    }
  :: d_step { client[me] == DONE -> answered++; client[me] = LEFT }
  :: client[me] == LEFT -> break
  od
}

/* lib/idempotency/key-table.ts: one statement finds old records, locks each, looks again and deletes it. */
proctype expire(byte key) {
end:
  do
  :: d_step { db.isOld[key] && !isExpiring[key] -> isExpiring[key] = true }
  :: d_step { isExpiring[key] && holder[key] == 0 ->
#ifdef EXPIRY_WITHOUT_LOOK
      db.isOld[key] = true;
#endif
      db.user[key] = (db.isOld[key] -> 0 : db.user[key]);
      db.request[key] = (db.isOld[key] -> 0 : db.request[key]);
      db.isOld[key] = false; isExpiring[key] = false
    }
  od
}

inline copy(to, from) {
  for (i : 0 .. CALLERS - 1) { to.user[i] = from.user[i]; to.request[i] = from.request[i]; to.isOld[i] = from.isOld[i] }
  for (i : 1 .. USERS) { to.isStored[i] = from.isStored[i]; to.isDeleted[i] = from.isDeleted[i] }
}

/* All transactions and statements end. A response that is under way may still arrive. */
inline endStatements() {
  for (i : 0 .. CALLERS - 1) { holder[i] = 0; isExpiring[i] = false }
  for (i : 0 .. ALL - 1) {
    if
    :: client[i] == WAITING || client[i] == CLAIMED || client[i] == KNOWN || client[i] == REUSED -> endAttempt(i, IDLE)
    :: else
    fi
  }
}

proctype disturb() {
end:
  do
  :: d_step { days > 0 ->                                /* 24 hours pass */
      for (i : 0 .. CALLERS - 1) { db.isOld[i] = (db.user[i] != 0); period[i] = 0 }
      days--
    }
  :: d_step { deletions > 0 && born > 0 && db.isStored[born] -> deletions--; db.isDeleted[born] = true }
  :: d_step { crashes > 0 -> crashes--; endStatements(); i = 0 }
  :: d_step { FAILOVERS > 0 && !isCopied -> copy(standby, db); isCopied = true }
  :: d_step { isCopied && !isFailedOver ->
      endStatements();
      copy(db, standby);
      /* A user is lost together with the record of its key, so the key is new again. */
      for (i : 0 .. CALLERS - 1) { period[i] = (db.user[i] != 0 && !db.isOld[i] -> 1 : 0) }
      isFailedOver = true
    }
  od
}

init {
  atomic {
    for (i : 0 .. ALL - 1) { run create(i) }
    for (i : 0 .. CALLERS - 1) { run expire(i) }
    run disturb()
  }
}

#ifdef LIVENESS
/* Every client gets a final response. */
ltl liveness { <> (answered == ALL) }
#endif
