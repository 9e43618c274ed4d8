/** Finds the end of a group in brackets, in expressions of every kind. */

/**
 * Returns the index behind the bracket that closes the one in front of `from`; -1 without it. `pair`: both brackets.
 * Brackets in quotes close nothing.
 */
export function endOfGroup(text: string, from: number, pair: '()' | '[]' | '{}'): number {
  const [open, close] = pair
  let depth = 1
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (character === "'" || character === '"') {
      at = text.indexOf(character, at + 1)
      if (at === -1) return -1
    } else if (character === open) depth++
    else if (character === close && --depth === 0) return at + 1
  }
  return -1
}
