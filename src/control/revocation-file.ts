/**
 * `revoked.json` in the data folder of a node without a database: the revoked tokens that have not expired, so that
 * they stay revoked after a restart. A damaged file refuses the start.
 */
import { join } from 'node:path'
import type { RevocationRecord } from '../auth/records.ts'
import { readIfPresent, replaceFile } from '../runtime/atomic-file.ts'

const NAME = 'revoked.json'
const FORMAT = 1

/** The file cannot be used; the message names it and says why. */
class RevocationFileDamaged extends Error {
  override readonly name = 'RevocationFileDamaged'
}

export class RevocationFile {
  readonly #path: string
  /** Gets the tokens of the next write when its turn comes; null: none waits. */
  #next: (() => readonly RevocationRecord[]) | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(dataDir: string) {
    this.#path = join(dataDir, NAME)
  }

  /** Empty where there is no file. Throws RevocationFileDamaged. */
  read(): readonly RevocationRecord[] {
    const tokens = tokensIn(this.#text())
    if (tokens !== undefined) return tokens
    const hint = 'restore it, or remove it, which makes revoked tokens valid again'
    throw new RevocationFileDamaged(`${this.#path} holds no revoked tokens: ${hint}`)
  }

  #text(): string | undefined {
    try {
      return readIfPresent(this.#path)
    } catch (error) {
      throw new RevocationFileDamaged(`${this.#path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
    }
  }

  /** Writes the last of several calls that come while another write is under way. Rejects with an errno error. */
  async write(tokens: () => readonly RevocationRecord[]): Promise<void> {
    this.#next = tokens
    const written = this.#writing.then(async () => {
      const next = this.#next
      this.#next = null
      if (next !== null) await replaceFile(this.#path, textOf(next()))
    })
    this.#writing = written.catch(() => {})
    await written
  }
}

function textOf(tokens: readonly RevocationRecord[]): string {
  const lines = tokens.map(({ key, expiresMs }) => JSON.stringify([key, expiresMs]))
  return `{"format":${FORMAT},"tokens":[\n${lines.join(',\n')}\n]}\n`
}

/** Empty for no file; undefined for a file that this version does not write. */
function tokensIn(text: string | undefined): readonly RevocationRecord[] | undefined {
  if (text === undefined) return []
  try {
    const { format, tokens } = JSON.parse(text) as { format: unknown; tokens: unknown }
    if (format !== FORMAT || !Array.isArray(tokens) || !tokens.every(isRow)) return undefined
    return tokens.map(([key, expiresMs]) => ({ key, expiresMs }))
  } catch {
    return undefined
  }
}

function isRow(row: unknown): row is readonly [string, number] {
  return Array.isArray(row) && row.length === 2 && typeof row[0] === 'string' && Number.isSafeInteger(row[1])
}
