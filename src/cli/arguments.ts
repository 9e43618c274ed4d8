/** The command line: its words, and what each command is for. */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface CliArguments {
  readonly home: string
  readonly dataDir: string
  /** `section.key=value`, in the order given. */
  readonly sets: readonly string[]
  readonly json: boolean
  /** What follows the name of the command. */
  readonly rest: readonly string[]
}

interface CommandLine {
  /** '' when none is named. */
  readonly command: string
  readonly help: boolean
  /** Start the built-in sample backend as well. */
  readonly sample: boolean
  readonly args: CliArguments
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
  sample: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const DEFAULT_HOME = resolve(import.meta.dirname, '../../conf')

/** Throws UsageError. */
export function parseArguments(argv: readonly string[]): CommandLine {
  const { values, positionals } = parse(argv)
  const [command = '', ...rest] = positionals
  const home = resolve(values.home ?? DEFAULT_HOME)
  return {
    command,
    help: values.help ?? false,
    sample: values.sample ?? false,
    args: {
      home,
      dataDir: values.data === undefined ? join(home, 'data') : resolve(values.data),
      sets: values.set ?? [],
      json: values.json ?? false,
      rest,
    },
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true })
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
  start: 'start [--sample]     run the gateway; --sample brings the built-in sample backend along',
  check: 'check                is the configuration right? lists every fault; exit code 78 when there is one',
  explain: 'explain [KEY]        every value in effect and where it was set, or all about one key or section',
  reference: 'reference [FILE]     the page of all keys, printed or written to FILE',
}

/** Help for one command, or for all of them. */
export function usage(command: string): string {
  const own = COMMANDS[command]
  const listed = own === undefined ? Object.values(COMMANDS) : [own]
  return `Usage:\n${listed.map(line => `  sluice ${line}`).join('\n')}\n\nOptions:\n${COMMON}\n`
}
