/** `upgrade`: replaces the running gateway by a process of the program that this command belongs to. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type CliArguments, EXIT_USAGE } from './arguments.ts'
import { ControlClient, ControlError, orFail, sendCommand } from './control-client.ts'
import { usage } from './help.ts'
import type { Terminal } from './terminal.ts'

/** For the new process to take the data folder over. */
const TAKE_OVER_MS = 10_000
const POLL_MS = 20

export async function upgrade(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  if (args.rest.length > 0) {
    errorOutput.write(usage('upgrade'))
    return EXIT_USAGE
  }
  return orFail(errorOutput, async () => {
    const program = { node: process.execPath, entry: process.argv[1]! }
    const { pid } = await sendCommand<{ readonly pid: number }>(args.dataDir, { command: 'upgrade', ...program })
    await takenOver(args.dataDir, pid)
    output.write(args.json ? `${JSON.stringify({ pid })}\n` : `upgraded: process ${pid} serves\n`)
    return 0
  })
}

/** Resolves once the new process takes commands. Rejects with ControlError. */
async function takenOver(dataDir: string, pid: number): Promise<void> {
  const lock = join(dataDir, 'lock')
  for (const endMs = performance.now() + TAKE_OVER_MS; performance.now() < endMs; await wait(POLL_MS)) {
    if (!isHeldBy(lock, pid)) continue
    const control = await ControlClient.connect(dataDir).catch(() => null)
    control?.close()
    if (control !== null) return
  }
  throw new ControlError(`process ${pid} serves, and does not take commands within ${TAKE_OVER_MS} ms; see its log`)
}

function isHeldBy(lock: string, pid: number): boolean {
  try {
    return readFileSync(lock, 'latin1').startsWith(`${pid} `)
  } catch {
    return false
  }
}
