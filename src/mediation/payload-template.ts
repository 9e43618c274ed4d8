/**
 * Templates of payloadFactory: text with `$1`, `$2` for arguments, split once. Arguments are inserted between the parts
 * and never scanned for `$` again.
 */

/** Text, or an argument by its number from 1. */
export type TemplatePart = string | { readonly argument: number; readonly isQuoted: boolean }

/** `${#1}` is what the parser makes of an expression in the template. */
const ARGUMENT = /\$(?:(\d+)|\{#(\d+)\})/y

/** Parts of an XML or plain text template. */
export function textParts(template: string): readonly TemplatePart[] {
  return split(template, () => false)
}

/** Parts of a JSON template; `isQuoted`: the argument is within a JSON string. */
export function jsonParts(template: string): readonly TemplatePart[] {
  let isQuoted = false
  let isEscaped = false
  return split(template, character => {
    if (isQuoted && character === '\\') isEscaped = !isEscaped
    else {
      if (character === '"' && !isEscaped) isQuoted = !isQuoted
      isEscaped = false
    }
    return isQuoted
  })
}

function split(template: string, isQuotedAfter: (character: string) => boolean): readonly TemplatePart[] {
  const parts: TemplatePart[] = []
  let text = ''
  let isQuoted = false
  for (let at = 0; at < template.length; ) {
    ARGUMENT.lastIndex = at
    const found = ARGUMENT.exec(template)
    if (found === null) {
      text += template[at]
      isQuoted = isQuotedAfter(template[at]!)
      at++
      continue
    }
    if (text !== '') parts.push(text)
    text = ''
    parts.push({ argument: Number(found[1] ?? found[2]), isQuoted })
    at += found[0].length
  }
  if (text !== '') parts.push(text)
  return parts
}

/** Numbers of the arguments that the template uses. */
export function argumentsIn(parts: readonly TemplatePart[]): readonly number[] {
  return parts.flatMap(part => (typeof part === 'string' ? [] : [part.argument]))
}
