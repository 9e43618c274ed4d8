/** Reading a file of the home folder as text, and naming it as a person would. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Fault } from './fault.ts'

interface SourceFile {
  readonly label: string
  readonly text: string
  /** Why the file, which is there, cannot be read. */
  readonly fault: Fault | undefined
}

/** Of a configuration or a project. The reader of a longer one would hold up whoever waits for a reload. */
const LONGEST_BYTES = 4 * 1024 * 1024
const PIECE_BYTES = 65_536
const DECODER = new TextDecoder('utf-8', { fatal: true })

/** Beside the codes of the system. */
const NO_REGULAR_FILE = 'NO_REGULAR_FILE'
const TOO_LONG = 'TOO_LONG'

/** Code of an error -> what is wrong, and what to do. */
const UNREADABLE: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  [NO_REGULAR_FILE]: ['it is not a regular file', 'put a file there'],
  ERR_ENCODING_INVALID_ENCODED_DATA: ['it is not UTF-8', 'save it as UTF-8'],
  EISDIR: ['it is a folder', 'put a file there'],
}

function tooLong(bytes: number): readonly [reason: string, remedy: string] {
  return [`it is longer than ${bytes / 2 ** 20} MiB`, 'leave out what is not needed']
}

/** Undefined when there is no such file. */
export function readSource(path: string, longestBytes = LONGEST_BYTES): SourceFile | undefined {
  const label = labelOf(path)
  try {
    return {
      label,
      text: DECODER.decode(readBytes(path, longestBytes)),
      fault: undefined,
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const code = 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    const [reason, remedy] = (code === TOO_LONG ? tooLong(longestBytes) : UNREADABLE[code]) ?? [
      code || error.message,
      'let the user of the gateway read it',
    ]
    const fault = { where: label, key: '', given: '', expected: `cannot be read: ${reason}`, remedy }
    return { label, text: '', fault }
  }
}

/** Its bytes; undefined where there is no such file, or none that can be read. */
export function readBinary(path: string, longestBytes: number): Buffer | undefined {
  try {
    return readBytes(path, longestBytes)
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

/** Never waits: nobody may ever write to a pipe of that name, and a device has no end. */
function readBytes(path: string, longestBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    if (status.isDirectory()) throw failure('EISDIR')
    if (!status.isFile()) throw failure(NO_REGULAR_FILE)
    const pieces: Buffer[] = []
    let length = 0
    // What it is said to be long is not asked: it may grow meanwhile.
    for (let read = -1; read !== 0 && length <= longestBytes; ) {
      // A byte more than there is said to be: then the end shows at once.
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Math.max(status.size - length, 0) + 1))
      read = readSync(file, piece)
      pieces.push(piece.subarray(0, read))
      length += read
      // It ends where it is said to: nothing has to be asked for once more.
      if (read < piece.length && length === status.size) break
    }
    if (length > longestBytes) throw failure(TOO_LONG)
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  } finally {
    closeSync(file)
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** A path as a person would type it from where the command was started. */
export function labelOf(path: string): string {
  const whole = resolve(path)
  const near = relative(process.cwd(), whole)
  if (near === '') return '.'
  return near.startsWith('..') ? whole : near
}
