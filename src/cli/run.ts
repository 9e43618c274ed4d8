/** Which command was asked for. Each is loaded only when it is. */
import { type CliArguments, type CommandOptions, parseArguments, UsageError, usage } from './arguments.ts'
import { EXIT_USAGE } from './exit-codes.ts'

const COMMANDS: Readonly<Record<string, (args: CliArguments, options: CommandOptions) => Promise<number>>> = {
  check: async args => (await import('./check.ts')).check(args),
  explain: async (args, options) =>
    (await import('./explain.ts')).explain(args, process.stdout, process.stderr, options),
  reference: async args => (await import('./reference.ts')).reference(args),
  why: async args => (await import('./why.ts')).why(args),
  reload: async args => (await import('./reload.ts')).reload(args),
  endpoints: async args => (await import('./endpoints.ts')).endpoints(args),
  api: async (args, options) => (await import('./api.ts')).api(args, options),
  walk: async (args, options) => (await import('./walk.ts')).walk(args, options),
  application: async (args, options) => (await import('./management.ts')).manage('application', args, options),
  key: async (args, options) => (await import('./management.ts')).manage('key', args, options),
  subscription: async (args, options) => (await import('./management.ts')).manage('subscription', args, options),
  user: async (args, options) => (await import('./management.ts')).manage('user', args, options),
  token: async (args, options) => (await import('./management.ts')).manage('token', args, options),
  revoke: async (args, options) => (await import('./management.ts')).manage('revoke', args, options),
  connections: async (args, options) => (await import('./connections.ts')).connections(args, options),
}

/** The exit code, when everything that was said has been taken: a process that ends before loses it. */
async function written(code: number): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>(taken => {
      // Somebody who reads the first lines only and leaves has had enough.
      stream.on('error', () => taken())
      stream.write('', () => taken())
    })
  }
  return code
}

/** Answers the exit code: 0 done, 1 failed, 2 usage, 78 bad configuration. */
export async function run(argv: readonly string[], compileCache: string): Promise<number> {
  try {
    const { command, help, args, options } = parseArguments(argv)
    if (help) {
      process.stdout.write(usage(command))
      return 0
    }
    if (command === 'start') return await (await import('./start.ts')).start(args, options, compileCache)
    const known = COMMANDS[command]
    if (known !== undefined) return await written(await known(args, options))
    process.stderr.write(usage(command))
    return EXIT_USAGE
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n`)
    return EXIT_USAGE
  }
}
