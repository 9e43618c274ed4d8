/** A pipe that nobody writes: a thread that reads it stands in a call of the system. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Returns the path of a pipe. Threads that read it go on at the end of the test. */
export function silentPipe(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pipe-'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  t.after(() => {
    // Readers find a writer, and then the end of the file.
    closeSync(openSync(pipe, constants.O_RDWR))
    rmSync(folder, { recursive: true })
  })
  return pipe
}
