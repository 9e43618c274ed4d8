/** The files that plans were made of, and whether any of them has changed since. None is read beyond 4 MiB. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

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
    // A pipe would be waited for without end.
    if (look.isOther) return { bytes: undefined, why: 'it is no file' }
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

/** Resolved like a path it would lose what tells its credentials apart. */
export const IS_URL = /^[a-z][a-z0-9+.-]*:\/\//i
/** Said without the URL. */
export const NO_FILE = 'is a URL, and a file is expected'

/**
 * Where a relative path leads: into the folder for it, or from the root that documented files count from. The first
 * place where there is something; the first of all where there is nothing.
 */
export function locate(home: string, folder: string, documented: string, path: string): string {
  const near = path.startsWith(documented) ? path.slice(documented.length) : path
  const places = [resolve(home, folder, near), resolve(home, path), resolve(home, documented, near)]
  return places.find(place => existsSync(place)) ?? places[0]!
}

/** Identity, size and times: a file that is written or replaced differs in one of them. */
function lookOf(path: string): { readonly signature: string; readonly bytes: number; readonly isOther: boolean } {
  try {
    const stat = statSync(path, { bigint: true })
    const { ino, size, mtimeNs, ctimeNs } = stat
    return { signature: [ino, size, mtimeNs, ctimeNs].join(), bytes: Number(size), isOther: !stat.isFile() }
  } catch (error) {
    return { signature: (error as NodeJS.ErrnoException).code ?? '', bytes: 0, isOther: false }
  }
}
