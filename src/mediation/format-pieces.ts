/**
 * Formats of payloads: text with `$1`, `$2` in it, cut into pieces once. Arguments are put between the pieces and never
 * looked at for `$` again.
 */

/** Text, or an argument by its number from 1. */
export type Piece = string | { readonly argument: number; readonly isQuoted: boolean }

const ARGUMENT = /\$(\d+)/y

/** Of XML or plain text. */
export function textPieces(format: string): readonly Piece[] {
  return cut(format, () => false)
}

/** `isQuoted`: it stands within the quotes of a JSON text. */
export function jsonPieces(format: string): readonly Piece[] {
  let isQuoted = false
  let isEscaped = false
  return cut(format, character => {
    if (isQuoted && character === '\\') isEscaped = !isEscaped
    else {
      if (character === '"' && !isEscaped) isQuoted = !isQuoted
      isEscaped = false
    }
    return isQuoted
  })
}

function cut(format: string, quotedAfter: (character: string) => boolean): readonly Piece[] {
  const pieces: Piece[] = []
  let text = ''
  let isQuoted = false
  for (let at = 0; at < format.length; ) {
    ARGUMENT.lastIndex = at
    const found = ARGUMENT.exec(format)
    if (found === null) {
      text += format[at]
      isQuoted = quotedAfter(format[at]!)
      at++
      continue
    }
    if (text !== '') pieces.push(text)
    text = ''
    pieces.push({ argument: Number(found[1]), isQuoted })
    at += found[0].length
  }
  if (text !== '') pieces.push(text)
  return pieces
}

/** Numbers of the arguments that are used. */
export function argumentsOf(pieces: readonly Piece[]): readonly number[] {
  return pieces.flatMap(piece => (typeof piece === 'string' ? [] : [piece.argument]))
}
