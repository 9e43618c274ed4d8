/** Reads the key stores and profiles behind the TLS plans, and tells whether one has changed since it was read. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

const FILE_BYTES_MAX = 4 * 1024 * 1024

interface FileResult {
  /** Undefined if the file cannot be read. */
  readonly bytes: Buffer | undefined
  /** Why the file cannot be read; '' if it was read. */
  readonly error: string
}

export class WatchedFiles {
  /** Path -> signature of the file just before it was read. */
  readonly #signatures = new Map<string, string>()

  read(path: string): FileResult {
    const { signature, bytes: size, isFile } = statusOf(path)
    this.#signatures.set(path, signature)
    // Reading a pipe would block.
    if (!isFile) return { bytes: undefined, error: 'it is not a regular file' }
    if (size > FILE_BYTES_MAX) return { bytes: undefined, error: `it is larger than ${FILE_BYTES_MAX} bytes` }
    try {
      return { bytes: readFileSync(path), error: '' }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      return { bytes: undefined, error: code === 'ENOENT' ? 'there is no such file' : (code ?? message) }
    }
  }

  get haveChanged(): boolean {
    return [...this.#signatures].some(([path, signature]) => statusOf(path).signature !== signature)
  }
}

/** A URL is refused as a file name before it is resolved: as a path its credentials could no longer be masked. */
export const IS_URL = /^[a-z][a-z0-9+.-]*:\/\//i
/** The URL itself is not shown. */
export const URL_GIVEN = 'is a URL, and a file is expected'

/**
 * Resolves a relative path within `folder` of the home, the home, or `documented`, the folder of the reference platform
 * that paths may begin with. Returns the first candidate that exists, or the first of all.
 */
export function resolveDocumented(home: string, folder: string, documented: string, path: string): string {
  const short = path.startsWith(documented) ? path.slice(documented.length) : path
  const candidates = [resolve(home, folder, short), resolve(home, path), resolve(home, documented, short)]
  return candidates.find(candidate => existsSync(candidate)) ?? candidates[0]!
}

/** The signature holds inode, size and times: a file that is written or replaced differs in one of them. */
function statusOf(path: string): { readonly signature: string; readonly bytes: number; readonly isFile: boolean } {
  try {
    const stat = statSync(path, { bigint: true })
    const { ino, size, mtimeNs, ctimeNs } = stat
    return { signature: [ino, size, mtimeNs, ctimeNs].join(), bytes: Number(size), isFile: stat.isFile() }
  } catch (error) {
    // Reading the file reports this error.
    return { signature: (error as NodeJS.ErrnoException).code ?? '', bytes: 0, isFile: true }
  }
}
