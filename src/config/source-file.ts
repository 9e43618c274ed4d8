/** Reads files of the home folder, as text or bytes and up to a size, and labels them for messages. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Diagnostic } from './diagnostics.ts'

export interface SourceFile {
  readonly label: string
  readonly text: string
  /** Set where the file exists and cannot be read. */
  readonly error: Diagnostic | undefined
}

/** Largest configuration or project file: a reload waits until the file is parsed. */
const BYTES_MAX = 4 * 1024 * 1024
const CHUNK_BYTES = 65_536
const DECODER = new TextDecoder('utf-8', { fatal: true })

// Codes of our own beside those of the system.
const NO_REGULAR_FILE = 'NO_REGULAR_FILE'
const TOO_LONG = 'TOO_LONG'

/** Error code -> what is wrong, and what to do. */
const UNREADABLE: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  [NO_REGULAR_FILE]: ['it is not a regular file', 'put a file there'],
  ERR_ENCODING_INVALID_ENCODED_DATA: ['it is not UTF-8', 'save it as UTF-8'],
  EISDIR: ['it is a folder', 'put a file there'],
}

function tooLong(bytes: number): readonly [reason: string, hint: string] {
  return [`it is longer than ${bytes / 2 ** 20} MiB`, 'leave out what is not needed']
}

/** Undefined when there is no such file. */
export function readSource(path: string, bytesMax = BYTES_MAX): SourceFile | undefined {
  const label = labelOf(path)
  try {
    return {
      label,
      text: DECODER.decode(readBytes(path, bytesMax)),
      error: undefined,
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code = 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    const [reason, hint] = (code === TOO_LONG ? tooLong(bytesMax) : UNREADABLE[code]) ?? [
      code || error.message,
      'let the gateway user read it',
    ]
    const unreadable = { where: label, key: '', given: '', expected: `cannot be read: ${reason}`, hint }
    return { label, text: '', error: unreadable }
  }
}

/** The bytes of a file; undefined where it does not exist or cannot be read. */
export function readBinary(path: string, bytesMax: number): Buffer | undefined {
  try {
    return readBytes(path, bytesMax)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

/** Opens without blocking, because a named pipe may have no writer and a device has no end. */
function readBytes(path: string, bytesMax: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    if (status.isDirectory()) throw failure('EISDIR')
    if (!status.isFile()) throw failure(NO_REGULAR_FILE)
    const chunks: Buffer[] = []
    let length = 0
    // The size in `status` is not trusted, because the file may grow meanwhile.
    for (let read = -1; read !== 0 && length <= bytesMax; ) {
      // One byte more than the size, so that one read shows the end.
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(status.size - length, 0) + 1))
      read = readSync(file, chunk)
      chunks.push(chunk.subarray(0, read))
      length += read
      // A short read at the stated size is the end; a further read is not needed.
      if (read < chunk.length && length === status.size) break
    }
    if (length > bytesMax) throw failure(TOO_LONG)
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  } finally {
    closeSync(file)
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** A path relative to the working directory where it lies below it, else absolute. A service works in `/`: absolute. */
export function labelOf(path: string): string {
  const whole = resolve(path)
  const near = relative(process.cwd(), whole)
  if (near === '') return '.'
  if (process.cwd() === '/') return whole
  return near.startsWith('..') ? whole : near
}
