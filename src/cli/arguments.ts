/** The command line: its words, and what each command is for. */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { MANAGEMENT_COMMANDS, MANAGEMENT_DETAILS, MANAGEMENT_OPTIONS } from './management-words.ts'

export interface CliArguments {
  readonly home: string
  readonly dataDir: string
  /** `section.key=value`, in the order given. */
  readonly sets: readonly string[]
  readonly json: boolean
  /** What follows the name of the command. */
  readonly rest: readonly string[]
}

/** What only some commands know; '' and [] where it was not given. */
export interface CommandOptions {
  /** Start the built-in sample backend as well. */
  readonly sample: boolean
  /** Deploy API files as they change. */
  readonly watch: boolean
  readonly method: string
  /** `Name: value`, in the order given. */
  readonly headers: readonly string[]
  /** null: none was given, which is not the same as an empty one. */
  readonly body: string | null
  readonly state: string
  readonly side: string
  readonly limit: string
  /** Only what differs from the defaults. */
  readonly changed: boolean
  readonly burst: string
  readonly sunset: string
  /** Of the commands of management-words.ts, as they were given: those that were left out are not there. */
  readonly management: Readonly<Record<string, string>>
}

interface CommandLine {
  /** '' when none is named. */
  readonly command: string
  readonly help: boolean
  readonly args: CliArguments
  readonly options: CommandOptions
}

/** A command line that makes no sense: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const OPTIONS = {
  home: { type: 'string' },
  data: { type: 'string' },
  set: { type: 'string', multiple: true },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  sample: { type: 'boolean' },
  watch: { type: 'boolean' },
  method: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  body: { type: 'string', short: 'd' },
  state: { type: 'string' },
  side: { type: 'string' },
  limit: { type: 'string' },
  changed: { type: 'boolean' },
  burst: { type: 'string' },
  sunset: { type: 'string' },
} as const

const MORE_OPTIONS = Object.fromEntries(
  Object.keys(MANAGEMENT_OPTIONS).map(option => [option, { type: 'string' }] as const),
)

/** Option -> the commands that know it. */
const OWNERS: Readonly<Record<string, string | readonly string[]>> = {
  ...MANAGEMENT_OPTIONS,
  sample: 'start',
  watch: 'start',
  method: 'walk',
  header: 'walk',
  body: 'walk',
  state: 'connections',
  side: 'connections',
  limit: 'connections',
  changed: 'explain',
  burst: 'explain',
  sunset: 'api',
}

const DEFAULT_HOME = resolve(import.meta.dirname, '../../conf')

/** Throws UsageError. */
export function parseArguments(argv: readonly string[]): CommandLine {
  const { values, positionals } = parse(argv)
  const [command = '', ...rest] = positionals
  for (const option of Object.keys(values)) {
    const owners = [OWNERS[option] ?? command].flat()
    if (!owners.includes(command)) throw new UsageError(`--${option} is an option of ${owners.join(', ')}`)
  }
  const home = resolve(values.home ?? DEFAULT_HOME)
  return {
    command,
    help: values.help ?? false,
    args: {
      home,
      dataDir: values.data === undefined ? join(home, 'data') : resolve(values.data),
      sets: values.set ?? [],
      json: values.json ?? false,
      rest,
    },
    options: {
      sample: values.sample ?? false,
      watch: values.watch ?? false,
      method: values.method ?? '',
      headers: values.header ?? [],
      body: values.body ?? null,
      state: values.state ?? '',
      side: values.side ?? '',
      limit: values.limit ?? '',
      changed: values.changed ?? false,
      burst: values.burst ?? '',
      sunset: values.sunset ?? '',
      management: Object.fromEntries(
        Object.keys(MANAGEMENT_OPTIONS).flatMap(option => {
          const value = (values as Readonly<Record<string, unknown>>)[option]
          return typeof value === 'string' ? [[option, value]] : []
        }),
      ),
    },
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: { ...MORE_OPTIONS, ...OPTIONS }, allowPositionals: true })
  } catch (error) {
    const isUsage = error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
    if (!isUsage) throw error
    throw new UsageError(error.message.split('. ')[0])
  }
}

const COMMON = `  --home DIR               folder with deployment.toml and apis/ (default: conf/ of the package)
  --data DIR               folder for what the gateway writes (default: data/ in the home)
  --set section.key=value  override one key; may be repeated
  --json                   output for scripts
  --help                   this text`

const COMMANDS: Readonly<Record<string, string>> = {
  start: 'start                run the gateway, until SIGTERM or SIGINT',
  check: 'check                is the configuration right? lists every fault; exit code 78 when there is one',
  explain: 'explain [KEY]        every value in effect and where it was set, or all about one key or section',
  reference: 'reference [FILE...]  the page of all keys, printed; or pages, schema and commented file, written to FILE',
  why: 'why [CODE [STATE]]   what an error code means, in every reading, and where to look; without CODE, all codes',
  walk: 'walk URL             one request through the running gateway, step by step, with its microseconds',
  connections: 'connections          the connections of the running gateway, by side and state',
  reload: 'reload               the running gateway reads configuration, APIs and key stores again, without a restart',
  endpoints: 'endpoints [on|off N] the endpoints of the running gateway and their states; switches one on or off',
  api: 'api WORD...          the APIs of the running gateway: list, show NAME, lifecycle NAME ACTION',
  ...MANAGEMENT_COMMANDS,
}

/** Options of one command, and examples. */
const DETAILS: Readonly<Record<string, string>> = {
  ...MANAGEMENT_DETAILS,
  start: `  --sample                 start the built-in sample backend as well
  --watch                  deploy API files as they change; the configuration takes a reload
`,
  reload: `Prints what is in force now and what takes a restart. A faulty configuration is refused as a whole, and
everything stays as it was; a faulty API project goes on as it was, and the others are deployed. SIGHUP does the same
and reopens the access log. Exit code 0 when all of it is in force, 78 when it was refused and nothing has changed, 1
when it is in force and something is wrong (a faulty API, a reactor that has not taken it) or no gateway could be asked.
The gateway is the one that uses the data folder: give --home and --data as to start.
`,
  why: `STATE is a number, 0 to 8, or its name. With it CODE is taken as a base code, as the event log shows it
(BASE_ERROR_CODE and INTERNAL_STATE): sluice why 101504 3, sluice why 101504+REQUEST_DONE
`,
  explain: `  --changed                only what differs from the defaults
  --burst N                messages that arrive at once, for the sums of pools (default 1000)
KEY is a whole path, a section, the end of a path, or any part of one: all that have it are listed.
With --json secrets are shown as (set) as well.
`,
  reference: `The end of FILE says what is written: .md the page, .schema.json the JSON Schema for editors, .toml a
configuration with every key commented out at its default. A .toml in which a key is set is left as it is.
With --json and without FILE: keys, defaults and rules for scripts.
`,
  walk: `  -X, --method METHOD      GET, or POST where there is a body
  -H, --header 'K: V'      a header field; may be repeated
  -d, --body TEXT          body of the request
URL is a path, or a URL whose scheme says which listener is taken; it is always the running gateway that is asked.
The gateway is the one that uses the data folder: give --home and --data as to start.
`,
  connections: `  --side source|target     client connections only, or those to back ends
  --state STATE            in this state only, as REQUEST_DONE
  --limit N                so many rows at most (default 1000 for each reactor); all are counted
The gateway is the one that uses the data folder: give --home and --data as to start.
`,
  endpoints: `sluice endpoints           all of them, with API, state and what went wrong last
sluice endpoints off NAME  takes NAME out of service until it is switched on, or the gateway started anew
sluice endpoints on NAME   makes NAME active, whatever it was
NAME is that of the list, or the URL of a backend for all endpoints that have it.
The gateway is the one that uses the data folder: give --home and --data as to start.
`,
  api: `sluice api list                       all of them, and where each stands in its life
sluice api show NAME                  one: paths, state, endpoints, CORS, chain of handlers, resources
sluice api lifecycle NAME ACTION      what its next request finds on every reactor; kept in the data folder
  --sunset DATE            of Deprecate: when it is meant to end, as 2027-06-30 or 2027-06-30T12:00:00Z (UTC)
NAME is Orders, Orders:1.0.0 or a path, as /orders/1.0.0. ACTION is Publish, Re-Publish, Block, Deprecate, Retire,
"Deploy as a Prototype" or "Demote to Created", in any case, or the state that is wanted. The state that a project
declares is where its API begins; a project that later declares another state overrules the command line.
Exit code 0 when it is in force everywhere, 1 when nothing has changed or a reactor has not taken it yet (--json: its
failures), 2 for a command line that makes no sense.
The gateway is the one that uses the data folder: give --home and --data as to start.
`,
}

/** Help for one command, or for all of them. */
export function usage(command: string): string {
  const own = COMMANDS[command]
  const listed = own === undefined ? Object.values(COMMANDS) : [own]
  const details = DETAILS[command] === undefined ? '' : `\n${DETAILS[command]}`
  return `Usage:\n${listed.map(line => `  sluice ${line}`).join('\n')}\n${details}\nOptions:\n${COMMON}\n`
}
