/** The known name that a misspelt one was most likely meant to be. */

/** So few edits are a slip of the finger; more are a guess. */
const SLIP = 2

/** The nearest of `known`, or '' when none is near enough to be worth a guess. */
export function nearest(misspelt: string, known: readonly string[]): string {
  return nearOrRegrouped(misspelt, known) || (closest(misspelt, known)?.name ?? '')
}

/** One that a slip of the finger, or a group left out or mistaken, makes of the other; '' for mere likeness. */
export function nearOrRegrouped(misspelt: string, known: readonly string[]): string {
  const best = closest(misspelt, known)
  const isSlip = best !== undefined && best.edits <= SLIP
  const regrouped = known.filter(name => isRegrouped(misspelt, name))
  // A name without any group is more likely to have lost it than to be another one that is misspelt as well.
  if (isSlip && (regrouped.length === 0 || misspelt.includes('.'))) return best.name
  return regrouped.length === 0 ? '' : regrouped.reduce((one, other) => (other.length < one.length ? other : one))
}

/** The same key without its group or in another one, unless nothing but the last part is the same. */
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
    const furthest = best?.edits ?? Math.max(SLIP, wanted.length / 3) + 1
    // Names whose lengths alone put them further away are not compared.
    if (Math.abs(name.length - wanted.length) >= furthest) continue
    const edits = distance(wanted, name.toLowerCase())
    if (edits < furthest && isAlike(wanted, name.toLowerCase(), edits)) best = { name, edits }
  }
  return best
}

/** Each part for itself: a long path does not make two short names alike. */
function isAlike(one: string, other: string, edits: number): boolean {
  const [parts, otherParts] = [one.split('.'), other.split('.')]
  if (parts.length !== otherParts.length) return edits <= SLIP
  return parts.every((part, index) => distance(part, otherParts[index]!) <= allowance(part.length))
}

function allowance(length: number): number {
  if (length < 3) return 0
  return length < 6 ? 1 : Math.max(SLIP, length / 3)
}

/** Edits between two names: a letter more, less or other, or two neighbours swapped. */
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
