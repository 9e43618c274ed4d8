/** Guesses which known name a misspelt one was meant to be. */

/** Up to so many edits are a typing error; more are a guess. */
const TYPO_EDITS_MAX = 2

/** The most similar of `known`; '' where none is similar enough. */
export function nearest(misspelt: string, known: readonly string[]): string {
  return nearestTypoOrRegrouped(misspelt, known) || (closest(misspelt, known)?.name ?? '')
}

/** The name that differs by a typing error, or by a missing or wrong group; '' for mere similarity. */
export function nearestTypoOrRegrouped(misspelt: string, known: readonly string[]): string {
  const best = closest(misspelt, known)
  const isTypo = best !== undefined && best.edits <= TYPO_EDITS_MAX
  const regrouped = known.filter(name => isRegrouped(misspelt, name))
  // A name without a group has more likely lost its group than been misspelt.
  if (isTypo && (regrouped.length === 0 || misspelt.includes('.'))) return best.name
  return regrouped.length === 0 ? '' : regrouped.reduce((one, other) => (other.length < one.length ? other : one))
}

/** True if two names have the same last part, and the same first part or one inside the other. */
function isRegrouped(misspelt: string, name: string): boolean {
  if (lastPart(name) !== lastPart(misspelt)) return false
  return name.split('.')[0] === misspelt.split('.')[0] || name.endsWith(`.${misspelt}`) || misspelt.endsWith(`.${name}`)
}

export function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

interface Candidate {
  readonly name: string
  readonly edits: number
}

function closest(misspelt: string, known: readonly string[]): Candidate | undefined {
  const wanted = misspelt.toLowerCase()
  let best: Candidate | undefined
  for (const name of known) {
    const furthest = best?.edits ?? Math.max(TYPO_EDITS_MAX, wanted.length / 3) + 1
    // The difference of lengths is a lower bound of the distance.
    if (Math.abs(name.length - wanted.length) >= furthest) continue
    const edits = distance(wanted, name.toLowerCase())
    if (edits < furthest && isSimilar(wanted, name.toLowerCase(), edits)) best = { name, edits }
  }
  return best
}

/** Compares part by part, so that a long path does not make two different short names similar. */
function isSimilar(one: string, other: string, edits: number): boolean {
  const [parts, otherParts] = [one.split('.'), other.split('.')]
  if (parts.length !== otherParts.length) return edits <= TYPO_EDITS_MAX
  return parts.every((part, index) => distance(part, otherParts[index]!) <= allowedEdits(part.length))
}

function allowedEdits(length: number): number {
  if (length < 3) return 0
  return length < 6 ? 1 : Math.max(TYPO_EDITS_MAX, length / 3)
}

/** Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
function distance(from: string, to: string): number {
  let before: number[] = []
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const cost = from[row - 1] === to[column - 1] ? 0 : 1
      let edits = Math.min(above[column]! + 1, current[column - 1]! + 1, above[column - 1]! + cost)
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) edits = Math.min(edits, before[column - 2]! + 1)
      current.push(edits)
    }
    before = above
    above = current
  }
  return above[to.length]!
}
