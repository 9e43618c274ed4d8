/** The known name that a misspelt one was most likely meant to be. */

/** So few edits are a slip of the finger; more are a guess. */
const SLIP = 2

/** The nearest of `known`, or '' when none is near enough to be worth a guess. */
export function nearest(misspelt: string, known: readonly string[]): string {
  const ranked = known
    .map(name => ({ name, distance: distance(misspelt.toLowerCase(), name.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)
  const best = ranked[0]
  if (best === undefined || best.distance <= SLIP) return best?.name ?? ''
  // A key written without its group, or in the wrong one, is nearer than one spelt a little alike.
  const sameEnd = known.filter(name => lastPart(name) === lastPart(misspelt))
  if (sameEnd.length > 0) return sameEnd.reduce((one, other) => (other.length < one.length ? other : one))
  return best.distance <= misspelt.length / 3 ? best.name : ''
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
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
