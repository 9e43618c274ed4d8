/** The files that plans were made of, and whether any of them has changed since. None is read beyond 4 MiB. */
import { readFileSync, statSync } from 'node:fs'

const FILE_BYTES_MAX = 4 * 1024 * 1024

interface FileRead {
  readonly bytes: Buffer | undefined
  /** Why there are no bytes. */
  readonly why: string
}

export class WatchedFiles {
  /** Path -> what it looked like just before it was read. */
  readonly #seen = new Map<string, string>()

  read(path: string): FileRead {
    const look = lookOf(path)
    this.#seen.set(path, look.signature)
    if (look.bytes > FILE_BYTES_MAX) return { bytes: undefined, why: `it is larger than ${FILE_BYTES_MAX} bytes` }
    try {
      return { bytes: readFileSync(path), why: '' }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      return { bytes: undefined, why: code === 'ENOENT' ? 'there is no such file' : (code ?? message) }
    }
  }

  get haveChanged(): boolean {
    return [...this.#seen].some(([path, signature]) => lookOf(path).signature !== signature)
  }
}

/** Identity, size and times: a file that is written or replaced differs in one of them. */
function lookOf(path: string): { readonly signature: string; readonly bytes: number } {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (stat === undefined) return { signature: 'absent', bytes: 0 }
  const { ino, size, mtimeNs, ctimeNs } = stat
  return { signature: [ino, size, mtimeNs, ctimeNs].join(), bytes: Number(size) }
}
