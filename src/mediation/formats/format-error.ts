/** Why a body cannot be read or written, and the fault that it raises. */
import { hasBytesRoom, hasHeapRoom } from '../../runtime/heap-room.ts'
import type { RaisedFault } from '../worker-task.ts'

/**
 * `malformed`: the bytes are not what the content type names. `limit`: a limit is exceeded. `coding`: an unknown
 * Content-Encoding. `charset`: an unknown charset. `types`: more than one content type. `unwritable`: the payload
 * cannot be written in the wanted format. `unreadable`: the file that holds the body, or a module of the operator,
 * failed. `memory`: no room for the body.
 */
export type FormatErrorKind =
  | 'malformed'
  | 'limit'
  | 'coding'
  | 'charset'
  | 'types'
  | 'unwritable'
  | 'unreadable'
  | 'memory'

/** Rows of `faults/error-codes.ts` for requests; every failure of a response is 101510. */
const IN_REQUEST: Readonly<Record<FormatErrorKind, number>> = {
  malformed: 102520,
  limit: 102521,
  coding: 102522,
  charset: 102522,
  types: 102522,
  unwritable: 500,
  unreadable: 500,
  memory: 102533,
}
const IN_RESPONSE = 101510

/** `message`: the cause with its place, for client and log alike: it holds no text of the body. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
  readonly kind: FormatErrorKind

  constructor(kind: FormatErrorKind, cause: string) {
    super(cause)
    this.kind = kind
  }
}

const NO_MEMORY = 'the body needs more memory than the worker has left'

/** Throws FormatError where the heap of this thread has no room for so many bytes. */
export function requireHeapRoom(bytes: number): void {
  if (!hasHeapRoom(bytes)) throw new FormatError('memory', NO_MEMORY)
}

/** Throws FormatError where the thread holds too many bytes outside of its heap. */
export function requireBytesRoom(): void {
  if (!hasBytesRoom()) throw new FormatError('memory', NO_MEMORY)
}

/** The fault of a body that a flow could not read or write. `isResponse`: the body came from the backend. */
export function faultOfFormat(error: FormatError, isResponse: boolean): RaisedFault {
  const code = isResponse ? IN_RESPONSE : IN_REQUEST[error.kind]
  // The client is told what is wrong with its own body, and no more.
  const message = isResponse || code === 500 ? 'The message could not be processed' : error.message
  return { code, message, detail: '', cause: error.message, sequence: '' }
}
