/** The commands. */
export type Name = 'import' | 'export' | 'follow' | 'diff' | 'sync' | 'get' | 'changes' | 'relay';

const CONNECTION = `
The service, and how to get tokens for it (secrets are not accepted as arguments):
  --url <url>, USERS_URL     base URL of the service
  USERS_TOKEN                a token, or instead of it:
  USERS_TOKEN_URL            token endpoint, for tokens by client credentials
  USERS_CLIENT_ID, USERS_CLIENT_SECRET
  USERS_SCOPE, USERS_AUDIENCE   optional
Without all of them, the service that npm run dev of this clone has started is used.`;

const FILES = `
The file is CSV with one line of headers, a JSON array of objects, an object with such an array "users", or one JSON object
per line, also as gzip. Its content decides which:
  --format ndjson|json|csv   the format, if the content does not decide
  --columns <member>=<header>,…   headers of CSV or members of JSON, such as email=Mail,is_active=!disabled (! inverts)
  --ignore <header>   a header or member that is not used; may be repeated
  --encoding <label>  another encoding than UTF-8, such as windows-1252`;

/** The text of \`--help\`, by command. */
export const HELP: Readonly<Record<Name | 'users', string>> = {
  users: `Usage: users <command> …

  import <file|->     creates the users of a file
  export              writes every user as a line of JSON
  follow              writes every change after a cursor as a line of JSON
  diff <file>         compares a file of users with the service
  sync <file>         makes users equal to the lines of a file
  get <user>          writes one user
  changes <id>        writes the changes of one user
  relay               sends every change after a cursor to a receiver

users <command> --help describes a command.`,

  import: `Usage: users import <file|-> [--rejected <file>] [--existing <file>] [--allow-empty] [--url <url>]

Creates the users of the file (- is standard input), with the members of a create, such as email, full_name and external_id.
A user with "is_active": false is created and then deactivated.

Run the same command again after an interruption: nothing is created twice.

  --rejected <file>   file for refused lines, as {"line": 17, "email": …, "problem": {…}} (default: standard error)
  --existing <file>   file for lines whose users exist, as {"line": 17, "email": …, "taken": {"email": <id>}}, and for
                      inactive lines whose users are active, with "is_active": true
  --allow-empty       accepts a file without a line

The last line is: created N, exists N, refused N
A line counts as exists if one user with its email or its external id exists already. It is refused if its values belong
to two users, or its email to a user with another external id.
${FILES}
${CONNECTION}

Exit codes: 0 all lines created or existing already, 1 gave up or interrupted, 2 wrong use, 3 some lines
refused, or an inactive line whose user is active.`,

  export: `Usage: users export [--out <file>] [--cursor <file>] [--url <url>]

Writes every user as a line of JSON, ordered by created_at.

  --out <file>        file for the users (default: standard output); it is replaced when the export is complete
  --cursor <file>     file for the cursor of the changes after the export, for users follow
${CONNECTION}

Exit codes: 0 complete, 1 failed or interrupted, 2 wrong use.`,

  follow: `Usage: users follow --cursor <file> [--once] [--wait <seconds>] [--url <url>]

Writes every change after the cursor as a line of JSON to standard output, and waits for further changes. The cursor in
the file is replaced after the changes before it have been written. After an interruption the last changes may be
written again; a change has the same "id" each time.

  --cursor <file>     file with the cursor, which users export --cursor writes
  --once              ends at the latest change
  --wait <seconds>    time for which a request waits for changes, 1 to 20 (default: 15)
${CONNECTION}

Exit codes: 0 at the latest change (--once), 1 failed or interrupted, 2 wrong use, 4 the changes after the cursor are no
longer available.`,

  diff: `Usage: users diff <file> [--by id|external_id|email] [--subset] [--allow-empty] [--url <url>]

Compares each line of the file with the service, and changes nothing. A line is matched by its id, else its external_id,
else its email. Only the members that the line has are compared. Each difference is a line of JSON: {"line": 17, "id": …, "difference": "missing"}, "changed" with "members", or "additional".

  --by <member>       the member by which every line is matched
  --subset            the service may have further users
  --allow-empty       accepts a file without a line

The last line is: equal N, changed N, missing N, additional N
${FILES}
${CONNECTION}

Exit codes: 0 no difference, 1 failed or interrupted, 2 wrong use, 3 a difference.`,

  sync: `Usage: users sync <file> [--by external_id|email] [--deactivate-missing] [--max-deactivated <max>] [--dry-run]
                  [options] [--url <url>]

Makes users equal to the lines of a file: creates, updates, and deactivates users, and deletes none. Lines are matched by
external_id. email, full_name, external_id and is_active are compared. An absent member leaves its value. All lines are
compared before the first write.

  --dry-run                writes nothing, and lists the intended writes
  --plan <file>            file for the intended writes, as {"line": 17, "id": …, "action": "update", "members": ["email"]}
  --rejected <file>        file for refused lines (default: standard error)
  --by email               matches lines by their email
  --adopt                  gives the external id of a line to the active user with its email that has none
  --reactivate             makes the inactive user of a line without is_active active
  --deactivate-missing     deactivates active users whose external id is in no line
  --prefix <text>          … only those whose external id begins with the text
  --max-deactivated <max>  a number or a percentage of active users (default: 5%); above it nothing is written

The last line is: created N, updated N, deactivated N, equal N, refused N
${FILES}
${CONNECTION}

Exit codes: 0 equal, 1 failed or interrupted (the same command continues), 2 wrong use, 3 refused lines, more users to
deactivate than allowed, or an external id that cannot be read.`,

  get: `Usage: users get <id | email | external id> [--by id|email|external_id] [--json] [--url <url>]

Writes one user. A UUID is an id, and a text with @ is an email; if no user has it, it is an external id. Any other text
is an external id.

  --by <member>       id, email or external_id: the text is this one
  --json              writes JSON on a terminal, too
${CONNECTION}

Exit codes: 0 done, 1 failed or interrupted, 2 wrong use, 3 no such user.`,

  changes: `Usage: users changes <id> [--json] [--url <url>]

Writes the changes of one user, oldest first, also after its deletion.

  --json              writes JSON on a terminal, too: a change per line
${CONNECTION}

Exit codes: 0 done, 1 failed or interrupted, 2 wrong use, 3 neither that user nor a change of it.`,

  relay: `Usage: users relay --cursor <file> [--from now|oldest] [--to <url>] [--parallel <n>] [--with-user]
                   [--skip-refused <file>] [--lock <path>] [--allow-http] [--wait <seconds>] [--url <url>]

Sends every change after the cursor to a receiver, signed as Standard Webhooks has it, until a response is 2xx. The cursor is
replaced after each page of at most 100 changes. After an interruption a page is sent again, with the same webhook-id.

  --cursor <file>        file with the cursor; <file>.lock beside it refuses a second relay
  --lock <path>          lock in place of <file>.lock, on a volume that can hold a socket
  --from now|oldest      where to begin if that file does not exist
  --to <url>, USERS_RELAY_URL   the receiver: https, or http on this machine
  USERS_RELAY_SECRET     whsec_ and the base64 of 24 to 64 bytes, or two of these with a blank between them
  --parallel <n>         sends changes of 1 to 32 users at the same time (default: 1)
  --with-user            adds the current user as data.user, null if it is deleted
  --skip-refused <file>  passes a change that is refused five times in a row (400, 413, 415, 422), and writes it to the file
  --allow-http           accepts http on another machine
  --wait <seconds>       time for which a request waits for changes, 1 to 20 (default: 15)
${CONNECTION}

Exit codes: 1 failed or interrupted, 2 wrong use, 4 the changes after the cursor are no longer available, 5 the receiver
wants no further changes (410).`,
};
