/** The bytes of a transferred body, from memory or from its file in pieces. */
import { closeSync, openSync, readSync } from 'node:fs'
import type { TransferredBody } from '../worker-task.ts'
import { FormatError } from './format-error.ts'

/** A body with bytes. */
export type HeldBody = Extract<TransferredBody, { readonly kind: 'bytes' | 'file' }>

export function lengthOf(body: HeldBody): number {
  return body.kind === 'bytes' ? body.bytes.length : body.length
}

/** Pieces of at most `pieceSize` bytes of a file, or the whole body in memory. Throws FormatError. */
export function* piecesOf(body: HeldBody, pieceSize: number): Generator<Uint8Array> {
  if (body.kind === 'bytes') {
    yield body.bytes
    return
  }
  const file = attempt(() => openSync(body.path, 'r'))
  try {
    for (let at = 0; at < body.length; ) {
      const piece = Buffer.allocUnsafe(Math.min(pieceSize, body.length - at))
      const read = attempt(() => readSync(file, piece, 0, piece.length, at))
      if (read === 0) throw new FormatError('unreadable', 'the file of the body is shorter than the body')
      at += read
      yield piece.subarray(0, read)
    }
  } finally {
    closeSync(file)
  }
}

/** The whole body. `maxLength`: more bytes are an error. Throws FormatError. */
export function bytesOf(body: HeldBody, pieceSize: number, maxLength: number): Uint8Array {
  const length = lengthOf(body)
  if (length > maxLength) throw new FormatError('limit', `the body has more than ${maxLength} bytes`)
  if (body.kind === 'bytes') return body.bytes
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const piece of piecesOf(body, pieceSize)) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function attempt<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new FormatError('unreadable', `the file of the body cannot be read (${code ?? 'unknown'})`)
  }
}
