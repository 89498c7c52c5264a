import { FORMATS } from './files/format.ts';
import { USER_KEYS } from './user-keys.ts';

/** A text, which the help shows as `value`. */
const text = (value: string, help: string) => ({ type: 'string', value, help }) as const;
const path = (help: string, value = '<file>') => ({ ...text(value, help), isPath: true }) as const;
const needed = (help: string) => ({ ...path(help), isNeeded: true }) as const;
const flag = (help: string) => ({ type: 'boolean', default: false, help }) as const;
const repeated = (value: string, help: string) => ({ ...text(value, help), multiple: true }) as const;

/** One of these values. `read` returns undefined for a text that does not keep the `rule`. */
function oneOf<const Value extends string>(values: readonly Value[], help: string) {
  const read = (given: string) => values.find((value) => value === given);
  return { ...text(values.join('|'), help), rule: values.join(' or '), read } as const;
}

function integer(value: string, max: number, initial: number, help: string) {
  const read = (given: string) => (/^[1-9]\d?$/.test(given) && +given <= max ? Number(given) : undefined);
  const rule = `from 1 to ${max}`;
  const described = text(value, `${help}, ${rule} (default: ${initial})`);
  return { ...described, default: String(initial), rule, read } as const;
}

const REJECTED = path(
  'file for refused lines, as {"line": 17, "email": …, "problem": {…}} (default: standard error)',
);
const ALLOW_EMPTY = flag('accepts a file without a line');
const JSON_OPTION = flag('writes JSON on a terminal, too');
const WAIT = integer('<seconds>', 20, 15, 'time for which a request waits for changes');

/** The options of a command that reads a file of users. */
const OF_FILES = {
  format: oneOf(FORMATS, 'the format, if the content does not decide'),
  columns: repeated(
    '<member>=<header>,…',
    'headers of CSV or members of JSON, such as email=Mail,is_active=!disabled (! inverts)',
  ),
  ignore: repeated('<header>', 'a header or member that is not used; may be repeated'),
  encoding: {
    ...text('<label>', 'another encoding than UTF-8, such as windows-1252'),
    rule: 'the name of an encoding, such as windows-1252',
    read: (given: string) => (isEncoding(given) ? given : undefined),
  },
};
const FILES = `
The file is CSV with one line of headers, a JSON array of objects, an object with such an array "users", or one JSON object
per line, also as gzip. Its content decides which.`;

/**
 * The commands. Help, refusals and types derive from this table. An operand has its form and what a command without it must
 * name. The first sentence of `about` describes the command in the list of all.
 */
export const COMMANDS = {
  import: {
    operand: ['<file|->', 'one file, or - for standard input'],
    about: `Creates the users of a file. The file (- is standard input) has the members of a create, such as email, full_name and
external_id. A user with "is_active": false is created and then deactivated.

Run the same command again after an interruption: nothing is created twice.
${FILES}

The last line is: created N, exists N, refused N
A line counts as exists if one user with its email or its external id exists already. It is refused if its values belong
to two users, or its email to a user with another external id.`,
    options: {
      rejected: REJECTED,
      existing: path(
        'file for lines whose users exist, with their ids, and for inactive lines whose users are active',
      ),
      'allow-empty': ALLOW_EMPTY,
      ...OF_FILES,
    },
    exits: ', 3 some lines refused, or an inactive line whose user is active',
  },
  export: {
    about: 'Writes every user as a line of JSON. They are ordered by created_at.',
    options: {
      out: path('file for the users (default: standard output); it is replaced when the export is complete'),
      cursor: path('file for the cursor of the changes after the export, for users follow'),
    },
    stopped: 'The export is incomplete, and no file was replaced.',
  },
  follow: {
    about: `Writes every change after a cursor as a line of JSON. It waits for further changes. The cursor in the file is replaced
after the changes before it have been written to standard output. After an interruption the last changes may be written again;
a change has the same "id" each time.`,
    options: {
      cursor: needed('file with the cursor, which users export --cursor writes'),
      once: flag('ends at the latest change'),
      wait: WAIT,
    },
    exits: ', 4 the changes after the cursor are no longer available',
  },
  diff: {
    operand: ['<file>', 'one file'],
    about: `Compares a file of users with the service. It changes nothing. A line is matched by its id, else its external_id, else its
email. Only the members that the line has are compared. Each difference is a line of JSON:
{"line": 17, "id": …, "difference": "missing"}, "changed" with "members", or "additional".
${FILES}

The last line is: equal N, changed N, missing N, additional N`,
    options: {
      by: oneOf(USER_KEYS, 'the member by which every line is matched'),
      subset: flag('the service may have further users'),
      'allow-empty': ALLOW_EMPTY,
      ...OF_FILES,
    },
    exits: ', 3 a difference',
    stopped: 'The users are not compared to the end.',
  },
  sync: {
    operand: ['<file>', 'one file'],
    about: `Makes users equal to the lines of a file. It creates, updates and deactivates users, and deletes none. email, full_name,
external_id and is_active are compared. An absent member leaves its value. All lines are compared before the first write.
${FILES}

The last line is: created N, updated N, deactivated N, equal N, refused N`,
    options: {
      'dry-run': flag('writes nothing, and lists the intended writes'),
      plan: path(
        'file for the intended writes, as {"line": 17, "id": …, "action": "update", "members": ["email"]}',
      ),
      rejected: REJECTED,
      by: {
        ...oneOf(['external_id', 'email'], 'the member by which lines are matched (default: external_id)'),
        default: 'external_id',
      },
      adopt: flag('gives the external id of a line to the active user with its email that has none'),
      reactivate: flag('makes the inactive user of a line without is_active active'),
      'deactivate-missing': flag('deactivates active users whose external id is in no line'),
      prefix: text('<text>', '… only those whose external id begins with the text'),
      'max-deactivated': {
        ...text(
          '<max>',
          'a number or a percentage of active users (default: 5%); above it nothing is written',
        ),
        default: '5%',
        rule: 'a number, or a percentage from 0% to 100%',
        read: (given: string) =>
          /^(?:\d+|(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?)%)$/.test(given) ? given : undefined,
      },
      ...OF_FILES,
    },
    exits: ', 3 refused lines, more users to deactivate than allowed, or an external id that cannot be read',
  },
  get: {
    operand: ['<id | email | external id>', 'one user'],
    about: `Writes one user. A UUID is an id, and a text with @ is an email; if no user has it, it is an external id. Any other text is
an external id.`,
    options: { by: oneOf(USER_KEYS, 'the text is this member'), json: JSON_OPTION },
    exits: ', 3 no such user',
  },
  changes: {
    operand: ['<id>', 'the id of one user'],
    about: 'Writes the changes of one user. They are written oldest first, also after its deletion.',
    options: { json: JSON_OPTION },
    exits: ', 3 neither that user nor a change of it',
  },
  relay: {
    about: `Sends every change after a cursor to a receiver. Each is signed as Standard Webhooks has it, and sent until a response is
2xx. The cursor is replaced after each page of at most 100 changes. After an interruption a page is sent again, with the same
webhook-id. USERS_RELAY_SECRET is whsec_ and the base64 of 24 to 64 bytes, or two of these with a blank between them.`,
    options: {
      cursor: needed('file with the cursor; <file>.lock beside it refuses a second relay'),
      lock: path('lock in place of <file>.lock, on a volume that can hold a socket', '<path>'),
      from: oneOf(['now', 'oldest'], 'where to begin if that file does not exist'),
      to: text('<url>, USERS_RELAY_URL', 'the receiver: https, or http on this machine'),
      parallel: integer('<n>', 32, 1, 'number of users whose changes are sent at the same time'),
      'with-user': flag('adds the current user as data.user, null if it is deleted'),
      'skip-refused': path(
        'passes a change that is refused five times in a row (400, 413, 415, 422), and writes it to the file',
      ),
      'allow-http': flag('accepts http on another machine'),
      wait: WAIT,
    },
    exits:
      ', 4 the changes after the cursor are no longer available, 5 the receiver wants no further changes (410)',
  },
} as const;

function isEncoding(label: string): boolean {
  try {
    return new TextDecoder(label) !== undefined;
  } catch {
    return false;
  }
}
