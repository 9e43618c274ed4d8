/** The command line: arguments and options of the commands, and their exit codes. */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

/** The command has failed. Exit code 0 means that everything was done. */
export const EXIT_FAILED = 1
/** The command line is invalid. */
export const EXIT_USAGE = 2
/** The configuration has errors: EX_CONFIG of sysexits.h. */
export const EXIT_CONFIGURATION = 78

export interface CliArguments {
  readonly home: string
  readonly dataDir: string
  /** `section.key=value`, in the order given. */
  readonly sets: readonly string[]
  readonly json: boolean
  /** The words after the command. */
  readonly rest: readonly string[]
}

/** Options of single commands; '' and [] if absent. */
export interface CommandOptions {
  /** Start the built-in sample backend too. */
  readonly sample: boolean
  /** Deploy changed API files. */
  readonly watch: boolean
  /** Seconds that a start waits for a database that cannot be reached. */
  readonly waitS: number
  readonly method: string
  /** `Name: value`, in the order given. */
  readonly headers: readonly string[]
  /** Null if absent; '' is an empty body. */
  readonly body: string | null
  readonly state: string
  readonly side: string
  readonly limit: string
  /** List only values that differ from their defaults. */
  readonly changed: boolean
  readonly burst: string
  readonly sunset: string
  /** Order of counters: rate or limit. */
  readonly by: string
  /** Options of TUNE_OPTIONS that were given; flags are ''. */
  readonly tuning: Readonly<Record<string, string | undefined>>
  /** Filters of failures. */
  readonly api: string
  readonly code: string
  readonly status: string
  readonly since: string
  /** Go on, and show what comes. */
  readonly follow: boolean
  /** Print an HTTP archive. */
  readonly har: boolean
  /** Options of MANAGEMENT_OPTIONS that were given. */
  readonly management: Readonly<Record<string, string>>
}

interface CommandLine {
  /** '' without a command. */
  readonly command: string
  readonly help: boolean
  readonly args: CliArguments
  readonly options: CommandOptions
}

/** The command line is invalid; the message says why. Leads to EXIT_USAGE. */
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
  wait: { type: 'string' },
  method: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  body: { type: 'string', short: 'd' },
  state: { type: 'string' },
  side: { type: 'string' },
  limit: { type: 'string' },
  changed: { type: 'boolean' },
  burst: { type: 'string' },
  sunset: { type: 'string' },
  by: { type: 'string' },
  api: { type: 'string' },
  code: { type: 'string' },
  status: { type: 'string' },
  since: { type: 'string' },
  follow: { type: 'boolean', short: 'f' },
  har: { type: 'boolean' },
} as const

/** Option -> the management commands that have it. */
const MANAGEMENT_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  tenant: ['application', 'key', 'subscription', 'user', 'token'],
  owner: ['application', 'key', 'subscription', 'token'],
  tier: ['application', 'subscription'],
  description: ['application'],
  'token-type': ['application'],
  type: ['key', 'token'],
  grants: ['key'],
  callback: ['key'],
  validity: ['key'],
  reason: ['application', 'key', 'subscription'],
  ips: ['key'],
  referers: ['key'],
  scopes: ['token'],
  roles: ['user'],
  level: ['throttle'],
  invert: ['throttle'],
}

const TUNE_OPTIONS = {
  clients: { type: 'string' },
  seconds: { type: 'string' },
  repeats: { type: 'string' },
  p99: { type: 'string' },
  seed: { type: 'string' },
  delays: { type: 'string' },
  only: { type: 'string' },
  report: { type: 'string' },
  apply: { type: 'boolean' },
} as const

/** Option -> the commands that have it. Every command has the other options. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  ...MANAGEMENT_OPTIONS,
  ...Object.fromEntries(Object.keys(TUNE_OPTIONS).map(option => [option, ['tune']])),
  sample: ['start'],
  watch: ['start'],
  wait: ['start'],
  method: ['walk', 'tune'],
  header: ['walk', 'tune'],
  body: ['walk', 'tune'],
  state: ['connections'],
  side: ['connections', 'failures'],
  limit: ['connections', 'failures', 'throttle'],
  changed: ['explain'],
  burst: ['explain'],
  sunset: ['api'],
  by: ['throttle'],
  api: ['failures'],
  code: ['failures'],
  status: ['failures'],
  since: ['failures'],
  follow: ['failures'],
  har: ['failures'],
}

/** In the working directory; npm runs scripts in the folder of package.json. */
const DEFAULT_HOME = 'conf'

/** Throws UsageError. */
export function parseArguments(argv: readonly string[]): CommandLine {
  const { values, positionals } = parse(argv)
  const [command = '', ...rest] = positionals
  for (const option of Object.keys(values)) {
    const owners = OWNERS[option] ?? [command]
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
      waitS: readWait(values.wait ?? '0'),
      method: values.method ?? '',
      headers: values.header ?? [],
      body: values.body ?? null,
      state: values.state ?? '',
      side: values.side ?? '',
      limit: values.limit ?? '',
      changed: values.changed ?? false,
      burst: values.burst ?? '',
      sunset: values.sunset ?? '',
      by: values.by ?? '',
      tuning: Object.fromEntries(
        Object.keys(TUNE_OPTIONS).flatMap(option => {
          const value = (values as Readonly<Record<string, unknown>>)[option]
          return value === undefined ? [] : [[option, value === true ? '' : String(value)]]
        }),
      ),
      api: values.api ?? '',
      code: values.code ?? '',
      status: values.status ?? '',
      since: values.since ?? '',
      follow: values.follow ?? false,
      har: values.har ?? false,
      management: Object.fromEntries(
        Object.keys(MANAGEMENT_OPTIONS).flatMap(option => {
          const value = (values as Readonly<Record<string, unknown>>)[option]
          return typeof value === 'string' ? [[option, value]] : []
        }),
      ),
    },
  }
}

const WAIT_S_MAX = 3600

function readWait(given: string): number {
  if (!/^\d{1,4}$/.test(given) || Number(given) > WAIT_S_MAX) {
    throw new UsageError(`--wait is a whole number of seconds, 0 to ${WAIT_S_MAX}`)
  }
  return Number(given)
}

function parse(argv: readonly string[]) {
  const management = Object.keys(MANAGEMENT_OPTIONS).map(option => [option, { type: 'string' }] as const)
  try {
    const options = { ...Object.fromEntries(management), ...TUNE_OPTIONS, ...OPTIONS }
    return parseArgs({ args: [...argv], options, allowPositionals: true })
  } catch (error) {
    const isUsage = error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
    if (!isUsage) throw error
    throw new UsageError(error.message.split('. ')[0])
  }
}
