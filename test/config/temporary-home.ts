/** A home folder for one test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CliArguments } from '../../src/cli/arguments.ts'
import type { Terminal } from '../../src/cli/terminal.ts'

/** Files by their path within the home. */
export function temporaryHome(test: { after(end: () => void): void }, files: Readonly<Record<string, string>>): string {
  const home = mkdtempSync(join(tmpdir(), 'sluice-'))
  test.after(() => rmSync(home, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  return home
}

export function argumentsFor(home: string, changes: Partial<CliArguments> = {}): CliArguments {
  return { home, dataDir: join(home, 'data'), sets: [], json: false, rest: [], ...changes }
}

/** Records the output of a command. */
export class Transcript implements Terminal {
  text = ''
  readonly isTTY: boolean

  constructor(isTTY = false) {
    this.isTTY = isTTY
  }

  write(text: string): void {
    this.text += text
  }
}
