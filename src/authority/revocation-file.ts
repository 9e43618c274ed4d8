/**
 * `revoked.json` in the data folder of a node without a database: revoked tokens that are not over yet, so that a
 * restart does not make them good again. A damaged file is a fault and never an empty one.
 */
import { join } from 'node:path'
import type { RevokedFacts } from '../identity/facts.ts'
import { readKept, replaceKept } from '../store/kept-file.ts'

const NAME = 'revoked.json'
const FORMAT = 1

/** Why the file cannot be used; the message names it. */
class RevocationFileDamaged extends Error {
  override readonly name = 'RevocationFileDamaged'
}

export class RevocationFile {
  readonly #path: string
  /** What is written next, asked for when its turn comes; null: nothing. */
  #next: (() => readonly RevokedFacts[]) | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(dataDir: string) {
    this.#path = join(dataDir, NAME)
  }

  /** None where there is no file. Throws RevocationFileDamaged. */
  read(): readonly RevokedFacts[] {
    const tokens = tokensIn(this.#text())
    if (tokens !== undefined) return tokens
    const remedy = 'restore it, or remove it, which makes tokens good again that were revoked'
    throw new RevocationFileDamaged(`${this.#path} holds no revoked tokens: ${remedy}`)
  }

  #text(): string | undefined {
    try {
      return readKept(this.#path)
    } catch (error) {
      throw new RevocationFileDamaged(`${this.#path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
    }
  }

  /** Of several that come while one is written the last one is written. Rejects with what the file system says. */
  async write(tokens: () => readonly RevokedFacts[]): Promise<void> {
    this.#next = tokens
    const written = this.#writing.then(async () => {
      const next = this.#next
      this.#next = null
      if (next !== null) await replaceKept(this.#path, textOf(next()))
    })
    this.#writing = written.catch(() => {})
    await written
  }
}

function textOf(tokens: readonly RevokedFacts[]): string {
  const lines = tokens.map(({ key, expiresMs }) => JSON.stringify([key, expiresMs]))
  return `{"format":${FORMAT},"tokens":[\n${lines.join(',\n')}\n]}\n`
}

/** None of a file that is not there; undefined where it is not what this gateway writes. */
function tokensIn(text: string | undefined): readonly RevokedFacts[] | undefined {
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
