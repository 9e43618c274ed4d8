/**
 * `revoked.json` in the data folder of a node without a database: revoked tokens that are not over yet, so that a
 * restart does not make them good again. Written beside itself and renamed into place. A damaged file is a fault and
 * never an empty one.
 */
import { readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RevokedFacts } from '../identity/facts.ts'

const NAME = 'revoked.json'
const FORMAT = 1
const MODE = 0o600

/** Why the file cannot be used; the message names it. */
class RevocationFileDamaged extends Error {
  override readonly name = 'RevocationFileDamaged'
}

export class RevocationFile {
  readonly #dataDir: string
  /** What is written next, asked for when its turn comes; null: nothing. */
  #next: (() => readonly RevokedFacts[]) | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  /** None where there is no file. Throws RevocationFileDamaged. */
  read(): readonly RevokedFacts[] {
    const path = join(this.#dataDir, NAME)
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw new RevocationFileDamaged(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
    }
    const tokens = tokensIn(text)
    if (tokens !== undefined) return tokens
    const remedy = 'restore it, or remove it, which makes tokens good again that were revoked'
    throw new RevocationFileDamaged(`${path} holds no revoked tokens: ${remedy}`)
  }

  /** Of several that come while one is written the last one is written. Rejects with what the file system says. */
  async write(tokens: () => readonly RevokedFacts[]): Promise<void> {
    this.#next = tokens
    const written = this.#writing.then(async () => {
      const next = this.#next
      this.#next = null
      if (next !== null) await replace(this.#dataDir, textOf(next()))
    })
    this.#writing = written.catch(() => {})
    await written
  }
}

async function replace(folder: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, NAME)
  const fresh = `${path}.new`
  // One that was left behind may have other rights.
  await rm(fresh, { force: true })
  const handle = await open(fresh, 'wx', MODE)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(fresh, path)
}

function textOf(tokens: readonly RevokedFacts[]): string {
  const lines = tokens.map(({ key, expiresMs }) => JSON.stringify([key, expiresMs]))
  return `{"format":${FORMAT},"tokens":[\n${lines.join(',\n')}\n]}\n`
}

/** Undefined where it is not what this gateway writes. */
function tokensIn(text: string): readonly RevokedFacts[] | undefined {
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
