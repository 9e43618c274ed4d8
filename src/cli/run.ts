/** Runs one command of the command line. The module of a command is loaded only for that command. */
import {
  type CliArguments,
  type CommandOptions,
  EXIT_FAILED,
  EXIT_USAGE,
  parseArguments,
  UsageError,
} from './arguments.ts'
import { writeLine } from './service-log.ts'

type Command = (args: CliArguments, options: CommandOptions) => Promise<number>

const COMMANDS: Readonly<Record<string, Command>> = {
  init: async args => (await import('./init.ts')).init(args),
  check: async args => (await import('./check.ts')).check(args),
  explain: async (args, options) =>
    (await import('./explain.ts')).explain(args, process.stdout, process.stderr, options),
  reference: async args => (await import('./reference.ts')).reference(args),
  why: async args => (await import('./why.ts')).why(args),
  reload: async args => (await import('./reload.ts')).reload(args),
  upgrade: async args => (await import('./upgrade.ts')).upgrade(args),
  endpoints: async args => (await import('./endpoints.ts')).endpoints(args),
  api: async (args, options) => (await import('./api.ts')).api(args, options),
  walk: async (args, options) => (await import('./walk.ts')).walk(args, options),
  connections: async (args, options) => (await import('./connections.ts')).connections(args, options),
  failures: async (args, options) =>
    (await import('./failures.ts')).failures(args, options, process.stdout, process.stderr, outputEnds.signal),
  pools: async args => (await import('./pools.ts')).pools(args),
  advise: async args => (await import('./advise.ts')).advise(args),
  tune: async (args, options) => (await import('./tune.ts')).tune(args, options),
  throttle: async (args, options) => (await import('./throttle.ts')).throttle(args, options),
  healthcare: async args => (await import('./healthcare.ts')).healthcare(args),
  help: async args => (await import('./help.ts')).help(args),
  ...Object.fromEntries(
    ['application', 'key', 'subscription', 'user', 'mail', 'token', 'revoke'].map(command => [
      command,
      management(command),
    ]),
  ),
}

function management(command: string): Command {
  return async (args, options) => (await import('./management.ts')).manage(command, args, options)
}

/** Set where standard output takes nothing more; commands that go on until they are ended end then. */
const outputEnds = new AbortController()
/** Why standard output took not everything, as with a full disk. */
let outputFailure: Error | null = null

/** Without a listener a failed write ends the process with a stack trace. */
function watchOutput(): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that closes early, such as `head`, is no failure.
    if (error.code !== 'EPIPE') outputFailure ??= error
    outputEnds.abort()
  })
}

/** Returns the exit code when all output is written: a process that exits earlier loses it. */
async function whenWritten(code: number): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>(written => {
      stream.on('error', () => written())
      stream.write('', () => written())
    })
  }
  if (outputFailure === null) return code
  process.stderr.write(`the output is incomplete: ${outputFailure.message}\n`)
  return code === 0 ? EXIT_FAILED : code
}

/** Returns the exit code: 0 done, 1 failed, 2 invalid command line, 78 errors in the configuration. */
export async function run(argv: readonly string[], compileCache: string): Promise<number> {
  try {
    const { command, help, args, options } = parseArguments(argv)
    if (command === 'start' && !help) return await (await import('./start.ts')).start(args, options, compileCache)
    watchOutput()
    const known = COMMANDS[command]
    if (known !== undefined && !help) return await whenWritten(await known(args, options))
    const { usage } = await import('./help.ts')
    const output = help ? process.stdout : process.stderr
    output.write(usage(command))
    return await whenWritten(help ? 0 : EXIT_USAGE)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    // The words cannot be parsed; a service manager's are those of a start.
    if (argv[0] === 'start') writeLine('fatal', error.message)
    else process.stderr.write(`${error.message}\n`)
    return EXIT_USAGE
  }
}
